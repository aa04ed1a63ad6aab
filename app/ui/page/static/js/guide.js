// The pictures beside the prompt on Paint, one that guides and one to be like: chosen, dropped or an earlier result; kept over a reload, sent with Paint.
import { el, makeButton, text } from "./elements.js";
import { area, fill, live, redraw } from "./hearth.js";
import { keepPicture, readPicture, send } from "./picture.js";
import { Reading } from "./reading.js";
import { t } from "./words.js";

/** @typedef {{ name: string, picture: Blob }} Beside */

class BesidePicture {
  now = /** @type {Beside | null} */ (null);
  reading = new Reading();
  seen = ""; // its address on this page

  /**
   * @param {string} key by which it is kept
   * @param {(name: string) => void} tell puts its name into a field of Gradio's
   * @param {(name: string) => string} word @param {() => string} ask
   */
  constructor(key, tell, word, ask) {
    this.key = key;
    this.tell = tell;
    this.word = word;
    this.ask = ask;
    this.card = /** @type {any} */ (null);
  }

  /** @param {Beside | null} now */
  change(now) {
    if (this.seen) URL.revokeObjectURL(this.seen);
    [this.now, this.seen] = [now, now ? URL.createObjectURL(now.picture) : ""];
    this.tell(now?.name ?? "");
    keepPicture(this.key, now && { name: now.name, background: now.picture });
    this.show();
    if (live.state) redraw();
  }

  /** @param {Blob | Promise<Blob | null> | undefined} given @param {string} name */
  async open(given, name) {
    if (given) await this.reading.begin(given, name, async (picture) => (await createImageBitmap(picture)).close(), (picture) => this.change({ name, picture }));
  }

  /** What was there before a reload. */
  async read() {
    const kept = await readPicture(this.key);
    if (kept && !this.reading.began) await this.open(kept.background, kept.name);
  }

  close = () => {
    this.reading.stop();
    this.change(null);
  };

  /** Take the picture that is here now; what is returned sends it. */
  take = () => {
    const { now } = this;
    return async () => now && [await send(now.picture, now.name)];
  };

  show() {
    if (!this.card?.firstElementChild) return;
    this.card.querySelector(".h-empty").hidden = Boolean(this.now);
    this.card.querySelector(".h-guide").hidden = !this.now;
    if (this.now) Object.assign(this.card.querySelector("img"), { src: this.seen, alt: this.word(this.now.name) });
  }

  /** @param {HTMLElement} card */
  build(card) {
    if (card.firstElementChild) return;
    this.card = card;
    card.classList.add("h-takes-files"); // else its picture's settings would be taken as well
    card.append(...el(`<div><button type="button" class="h-empty"></button><input type="file" accept="image/*" hidden>
      <div class="h-guide" hidden><img alt=""><div class="h-chips"></div></div></div>`).children);
    const choose = card.querySelector(".h-empty"), file = card.querySelector("input");
    text(choose, matchMedia("(hover: none)").matches ? t("file.tap", "Tap to choose a file") : this.ask());
    choose.addEventListener("click", () => file.click());
    file.addEventListener("change", () => (this.open(file.files[0], file.files[0]?.name), (file.value = "")));
    card.querySelector(".h-chips").append(
      makeButton(t("sketch.other", "Another picture"), () => file.click(), "h-chip"),
      makeButton(t("force.remove", "Remove"), this.close, "h-chip"),
    );
    card.addEventListener("dragover", (/** @type {DragEvent} */ event) => event.preventDefault());
    card.addEventListener("drop", (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      const [dropped] = event.dataTransfer?.files ?? [];
      this.open(dropped, dropped?.name ?? "");
    });
    this.show();
  }
}

export const guide = new BesidePicture(
  "guide",
  (name) => fill("paint-guided", name),
  (name) => t("guide.alt", "Guide: {name}", { name }),
  () => t("guide.choose", "Drop the picture here that shows where things are, or press to choose one"),
);
export const reference = new BesidePicture(
  "reference",
  (name) => fill("paint-liked", name),
  (name) => t("reference.alt", "Reference: {name}", { name }),
  () => t("reference.choose", "Drop the picture here that it is to be like, or press to choose one"),
);

area("#h-guide", (card) => guide.build(card));
area("#h-reference", (card) => reference.build(card));
