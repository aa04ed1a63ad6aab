// Words from a picture: a model says what it shows, and what it says is offered for the prompt; nothing that is written there is lost.
import { shrunk } from "./drawn.js";
import { el, makeButton, text } from "./elements.js";
import { live, post, redraw } from "./hearth.js";
import { rewrite } from "./rewrite.js";
import { t } from "./words.js";

const FIELD = "paint-prompt", SIDE_MOST = 1024;
let asked = 0; // how often, so that only the last answer is shown

const place = () => document.querySelector("#h-prompts .h-described");

// The comma is the model's, whatever the page's language.
/** @param {string} words @param {string} more */
export const behind = (words, more) => (words && more ? words.concat(", ", more) : words || more);

/** The button in the row below the prompt, and where the words are offered. @param {HTMLElement} row */
export function buildDescribing(row) {
  const file = el(`<input type="file" accept="image/*" hidden>`);
  file.addEventListener("change", () => {
    describe(file.files[0], file.files[0]?.name ?? "");
    file.value = "";
  });
  row.append(makeButton(t("describe.go", "Words from a picture"), () => file.click(), "h-chip h-describe"), file);
  row.append(...el(`<div><div class="h-described" hidden><p role="status"></p><p class="h-trouble" role="alert" hidden></p><p class="h-chips"></p></div></div>`).children);
}

/** @param {string} words @param {[string, () => unknown][]} does @param {{ trouble?: string, cure?: string }} [failed] */
function tell(words, does, { trouble = "", cure = "" } = {}) {
  const box = place();
  if (!box) return;
  const wrong = box.querySelector(".h-trouble"), close = t("compare.close", "Close");
  box.hidden = !words && !trouble;
  text(box.querySelector("[role=status]"), words);
  Object.assign(wrong, { hidden: !trouble, textContent: trouble });
  wrong.dataset.cure = cure;
  box.lastElementChild.replaceChildren(...[...does, /** @type {[string, () => unknown]} */ ([close, quiet])].map(([label, run]) => makeButton(label, run, "h-chip")));
  redraw(); // what cures it stands behind it
}
const quiet = () => (asked++, tell("", []));

/** Say what a picture shows. @param {Blob | undefined} picture @param {string} name */
export async function describe(picture, name) {
  if (!picture || !live.state?.charts) return; // guests have none
  const mine = ++asked;
  place()?.scrollIntoView({ block: "nearest" });
  tell(t("describe.looking", "Looking at the picture; without a graphics card this may take a minute ..."), []);
  const opened = await createImageBitmap(picture, { imageOrientation: "from-image" }).catch(() => null);
  if (mine !== asked) return; // another one was asked for, or this one is no longer wanted
  if (!opened) return tell("", [], { trouble: t("sketch.not-a-picture", "{name} cannot be opened as a picture. Save it as PNG or JPEG and choose that.", { name }) });
  const answer = await post("hearth/describe", { picture: shrunk(opened, SIDE_MOST) }).catch(() => null);
  const silent = { trouble: t("share.silent", "Hearth did not respond; it may have been closed. Start it again, then try again.") };
  const { words = "", ...failed } = (await answer?.json().catch(() => null)) ?? silent;
  if (mine !== asked) return;
  if (!words) return tell("", [], failed);
  tell(t("describe.shows", "It shows: “{words}”", { words }), [[t("describe.add", "Add to the prompt"), () => add(words)]]);
  place().scrollIntoView({ block: "nearest" });
}

/** @param {string} words */
function add(words) {
  const now = document.querySelector(`#${FIELD} textarea`).value.trim();
  quiet();
  rewrite(FIELD, behind(now, words), t("describe.added", "What the picture shows was added to your prompt."));
}
