// Parts heard back by a recogniser: what went wrong in each, how many places there are, and those spoken again.
import { el, list, makeButton, text } from "./elements.js";
import { live, post, soon } from "./hearth.js";
import { getModel } from "./models.js";
import { t } from "./words.js";

export const listenFrame = `<div class="h-listen" hidden><p class="h-chips"></p><p class="h-soft" role="status"></p></div>`;

/** @param {SpeechView} speech */
const wrong = (speech) => speech.parts.filter((part) => part.marks?.length);

/** @param {"listen" | "mend" | "words" | "stop"} act */
const deed = async (act) => {
  const answer = await post(`hearth/listen/${act}`);
  const { trouble, cure } = answer.ok ? await answer.json() : {};
  const place = document.querySelector("#h-parts .h-listen p[role=status]");
  if (trouble && place) {
    text(place, trouble);
    if (cure?.startsWith("get:")) getModel(cure.slice(4));
  }
  soon();
};

// Go to the next part with a mark, from the one that has the focus on.
function goOn() {
  const rows = [...document.querySelectorAll("#h-parts .h-part")].filter((row) => row.spoken.marks?.length);
  const here = document.activeElement?.closest(".h-part");
  const next = rows.find((row) => here && here.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_FOLLOWING) ?? rows[0];
  next?.scrollIntoView({ block: "center" });
  (next?.querySelector(".h-player button") ?? next?.querySelector("button"))?.focus({ preventScroll: true });
}

/** @param {Element} element @param {SpeechView} speech */
export function drawListening(element, speech) {
  const box = element.querySelector(".h-listen"), { state, share, trouble } = speech.listening;
  box.hidden = !live.state.charts || !speech.end || !speech.parts.some((part) => part.state === "done"); // the owner alone can
  if (box.hidden) return;
  const chips = box.firstElementChild, marked = wrong(speech).length, heard = speech.parts.filter((part) => part.marks).length;
  const all = speech.parts.filter((part) => part.state === "done").length;
  const does = /** @type {[string, string, () => unknown][]} */ ([]);
  if (state) does.push(["stop", t("listen.stop", "Stop listening"), () => deed("stop")]);
  else if (heard < all) does.push(["listen", t("listen.listen", "Listen for mistakes"), () => deed("listen")]);
  const result = speech.results.at(-1);
  if (!state && result?.subtitles && !result.words) does.push(["words", t("listen.words", "Find when each word is said"), () => deed("words")]);
  if (!state && marked) does.push(["next", t("listen.next", "Next place"), goOn], ["mend", t("listen.mend", "Redo where it went wrong"), () => deed("mend")]);
  list(chips, does, ([act]) => act, ([, label, run]) => makeButton(label, run), (button, [, label]) => text(button, label));
  const said = box.lastElementChild;
  const now = `${state} ${Math.round(share * 20)} ${heard} ${marked} ${trouble} ${speech.job}`;
  if (box.dataset.drawn === now) return; // what an answer said stays until something changes
  box.dataset.drawn = now;
  const percent = Math.round(100 * share);
  if (state === "mending") text(said, t("listen.mending", "Speaking the marked parts again and listening to them ..."));
  else if (state) text(said, t("listen.hearing", "Listening: {percent} %", { percent }));
  else if (trouble) text(said, trouble);
  else if (!heard) text(said, "");
  else if (marked) text(said, t("listen.places", "{n} {n:place|places} to hear", { n: marked }));
  else text(said, t("listen.right", "Nothing to mend was heard."));
}

// What went wrong in a part.
/** @param {HTMLElement} row @param {PlaceView[] | null | undefined} marks */
export function drawMarks(row, marks) {
  let place = row.querySelector(".h-marks");
  if (!place && !marks?.length) return;
  if (!place) row.querySelector(".h-sounding").append((place = el(`<ul class="h-marks"></ul>`)));
  list(place, marks ?? [], (mark) => `${mark.place} ${mark.text}`, () => el("<li></li>"), (line, mark) => text(line, `⚠ ${mark.text}`));
}
