// The picture that guides another on Paint: chosen, dropped or an earlier result; kept over a reload, sent with Paint.
import { el, makeButton, text } from "./elements.js";
import { area, fill, live, redraw } from "./hearth.js";
import { keepPicture, readPicture, send } from "./picture.js";
import { inForce } from "./told.js";
import { t } from "./words.js";

const KEY = "guide";
/** @typedef {{ name: string, picture: Blob }} Guide */
export const guide = { now: /** @type {Guide | null} */ (null), seen: "" }; // seen: the picture's address on this page

/** @param {Guide | null} now */
function change(now) {
  if (guide.seen) URL.revokeObjectURL(guide.seen);
  [guide.now, guide.seen] = [now, now ? URL.createObjectURL(now.picture) : ""];
  fill("paint-guided", now?.name ?? "");
  keepPicture(KEY, now && { name: now.name, background: now.picture });
  show();
  if (live.state) redraw();
}

/** @param {Blob | undefined} picture @param {string} name */
export async function openGuide(picture, name) {
  if (!picture) return;
  try {
    (await createImageBitmap(picture)).close();
  } catch {
    inForce("paint", "refused", t("sketch.not-a-picture", "{name} cannot be opened as a picture. Save it as PNG or JPEG and choose that.", { name }));
    return;
  }
  inForce("paint", "refused", "");
  change({ name, picture });
}

/** What was there before a reload. */
export async function readGuide() {
  const kept = await readPicture(KEY);
  if (kept) await openGuide(kept.background, kept.name);
}

export const closeGuide = () => change(null);

/** The file that Paint sends. */
export const guideFiles = async () => guide.now && [await send(guide.now.picture, guide.now.name)];

function show() {
  const card = document.querySelector("#h-guide");
  if (!card?.firstElementChild) return;
  card.querySelector(".h-empty").hidden = Boolean(guide.now);
  card.querySelector(".h-guide").hidden = !guide.now;
  const image = card.querySelector("img");
  if (guide.now) Object.assign(image, { src: guide.seen, alt: t("guide.alt", "Guide: {name}", { name: guide.now.name }) });
}

area("#h-guide", (card) => {
  if (card.firstElementChild) return;
  card.append(...el(`<div><button type="button" class="h-empty"></button><input type="file" accept="image/*" hidden>
    <div class="h-guide" hidden><img alt=""><div class="h-chips"></div></div></div>`).children);
  const choose = card.querySelector(".h-empty"), file = card.querySelector("input");
  text(choose, matchMedia("(hover: none)").matches ? t("file.tap", "Tap to choose a file") : t("guide.choose", "Drop the picture here that shows where things are, or press to choose one"));
  choose.addEventListener("click", () => file.click());
  file.addEventListener("change", () => (openGuide(file.files[0], file.files[0]?.name), (file.value = "")));
  card.querySelector(".h-chips").append(
    makeButton(t("sketch.other", "Another picture"), () => file.click(), "h-chip"),
    makeButton(t("force.remove", "Remove"), closeGuide, "h-chip"),
  );
  card.addEventListener("dragover", (event) => event.preventDefault());
  card.addEventListener("drop", (event) => {
    event.preventDefault();
    const [dropped] = event.dataTransfer?.files ?? [];
    openGuide(dropped, dropped?.name);
  });
  show();
});
