// Enlarge a finished picture without painting it anew: how much and by what is asked, then it is done beside the queue.
import { el, makeButton, show, text } from "./elements.js";
import { offerCure } from "./cures.js";
import { area, ask, live, post, soon } from "./hearth.js";
import { t } from "./words.js";

const chosen = { times: "2", enlarger: "starter" }; // the last choice, while the page is open
let asking = false;

/** @typedef {{ id: number, width?: number, height?: number, binned?: boolean, gone?: boolean }} Picture a result or a creation */

/** @param {{ id: number }} picture */
const findRunning = ({ id }) => live.state?.enlarging?.find((each) => each.id === id);

/** Which pictures are being enlarged now. */
export const listEnlarging = () => live.state?.enlarging?.map(({ id }) => id).join() ?? "";

/** The button beside a picture: it asks, or stops what runs. @param {Picture} picture */
export function enlargeButton(picture, look = "") {
  const made = makeButton("", async () => {
    if (!findRunning(picture)) return askEnlarge(picture);
    await post("hearth/enlarge/stop", { id: picture.id });
    soon();
  }, `${look} h-larger`.trim());
  made.dataset.of = picture.id;
  draw(made);
  return made;
}

/** @param {HTMLElement} button */
function draw(button) {
  const running = findRunning({ id: Number(button.dataset.of) });
  text(button, running ? t("enlarge.stop", "Stop enlarging ({percent}%)", { percent: Math.round(100 * running.share) }) : t("enlarge.go", "Enlarge"));
}
area(".h-larger", draw);

/** What a picture in full, and the menu of one on the Shelf, offer. @param {Picture} picture @returns {[string, () => unknown][]} */
export const enlargeActs = (picture) => (live.state.charts && !picture.binned && !picture.gone ? [[t("enlarge.go", "Enlarge"), () => askEnlarge(picture)]] : []); // guests have none

/** @param {Picture} picture */
async function askEnlarge(picture) {
  if (asking) return; // a double click
  asking = true;
  const { enlargers } = await ask("hearth/enlarge").finally(() => (asking = false)), { width = 0, height = 0 } = picture;
  const dialog = el(`<dialog class="h-dialog h-enlarge-by"><form method="dialog"><h2></h2><p class="h-soft"></p><label><span></span><select class="h-field"></select></label>
    <label><span></span><select class="h-field"></select></label><p class="h-trouble" role="alert" hidden></p><p class="h-chips"><button type="button" class="h-chip h-not"></button><button class="h-chip h-go-on"></button></p></form></dialog>`);
  const [times, by] = dialog.querySelectorAll("select"), [how, what] = dialog.querySelectorAll("label span"), told = dialog.querySelector(".h-trouble"), go = dialog.querySelector(".h-go-on");
  dialog.setAttribute("aria-label", t("enlarge.go", "Enlarge"));
  text(dialog.querySelector("h2"), t("enlarge.go", "Enlarge"));
  text(dialog.querySelector("p"), t("enlarge.how", "The picture is not painted anew. The larger one is put beside it, with its settings."));
  text(how, t("enlarge.times", "Size"));
  text(what, t("enlarge.by", "Enlarger"));
  times.replaceChildren(...["2", "4"].map((each) => new Option(`${each}x: ${width * Number(each)} × ${height * Number(each)}`, each)));
  by.replaceChildren(...enlargers.map(({ name, title }) => new Option(title, name)));
  times.value = chosen.times;
  by.value = enlargers.some(({ name }) => name === chosen.enlarger) ? chosen.enlarger : "starter";
  text(dialog.querySelector(".h-not"), t("sure.no", "Cancel"));
  text(go, t("enlarge.go", "Enlarge"));
  dialog.querySelector(".h-not").addEventListener("click", () => dialog.close());
  dialog.querySelector("form").addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    Object.assign(chosen, { times: times.value, enlarger: by.value });
    go.disabled = true;
    const answer = await post("hearth/enlarge/begin", { id: picture.id, times: Number(times.value), enlarger: by.value }).catch(() => null);
    const { trouble, cure } = (await answer?.json().catch(() => null)) ?? { trouble: t("share.silent", "Hearth did not respond; it may have been closed. Start it again, then try again.") };
    go.disabled = false;
    [told.hidden, told.textContent, told.dataset.cure] = [!trouble, trouble ?? "", cure ?? ""];
    offerCure(told);
    if (!trouble) dialog.close();
    soon();
  });
  show(dialog);
  times.focus();
}
