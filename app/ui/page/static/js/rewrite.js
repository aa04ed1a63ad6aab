// Replace what a person wrote so that it comes back: by Ctrl Z, by Undo in a note, and as "Earlier text" beside the samples.
import { earlier, keepEarlier, restoreDraft, waitingDraft } from "./drafts.js";
import { el, makeButton, onPage, text } from "./elements.js";
import { area, call, fill, press, redraw } from "./hearth.js";
import { told } from "./told.js";
import { sentences, t } from "./words.js";

const LONG = 20_000; // characters; as if typed, more take the browser seconds
const /** @type {Record<StartTab, string[]>} */ TABS = { speak: ["speak-text"], paint: ["paint-prompt", "paint-negative"] };
const copied = new Map(); // field -> words that a sample or an earlier creation put there: they are not lost
const /** @type {Partial<Record<StartTab, Record<string, string>>>} */ reused = {}; // tab -> its words from before an earlier creation's settings came
let rewriting = false;

/** @param {string} id */
const box = (id) => document.querySelector(`#${id} textarea, #${id} input`);
/** @param {string} id */
const tabOf = (id) => (TABS.speak.includes(id) ? "speak" : "paint");
/** @param {StartTab} tab */
const note = (tab) => document.querySelector(`#${TABS[tab][0]} + .h-rewritten`);
/** @param {StartTab} tab @returns {Record<string, string>} */
const read = (tab) => Object.fromEntries(TABS[tab].filter(box).map((id) => [id, box(id).value]));

/** Write into a field so that Ctrl Z takes it back. @param {string} id @param {string} words */
export function write(id, words) {
  const field = box(id);
  rewriting = true;
  field.focus({ preventScroll: true });
  field.select();
  const typed = words.length <= LONG && document.activeElement === field && document.execCommand(words ? "insertText" : "delete", false, words);
  if (!typed || field.value !== words) fill(id, words);
  field.setSelectionRange(0, 0);
  field.scrollTop = 0;
  rewriting = false;
}

// Say what replaced these words, and offer them back; those that a person wrote are kept with the drafts: before the others, or,
// where one of the others came back, behind them, so that one press after another brings them all.
/** @param {Record<string, string>} before @param {string} said */
const offerBack = (before, said, behind = false) => {
  const tab = tabOf(Object.keys(before)[0]);
  const written = Object.entries(before).filter(([id, words]) => words.trim() && copied.get(id) !== words);
  keepEarlier(Object.fromEntries(written.map(([id, words]) => {
    const others = earlier(id).filter((each) => each !== words);
    return [id, behind ? [...new Set([...others.filter((each) => each !== box(id).value), words, box(id).value])] : [words, ...others]];
  })));
  note(tab)?.remove();
  const line = el(`<p class="h-soft h-rewritten" role="status"><span></span> <button type="button" class="h-chip"></button></p>`);
  document.querySelector(`#${TABS[tab][0]}`).after(line);
  text(line.firstElementChild, said);
  text(line.lastElementChild, t("shelf.undo", "Undo"));
  line.lastElementChild.addEventListener("click", () => {
    for (const [id, words] of Object.entries(before)) write(id, words);
    if (told[tab].reused) call(tab === "speak" ? "speak.back" : "paint.back");
    line.remove();
  });
  redraw();
  return line;
};

/** Return the note that says so. @param {Record<string, string>} words by their fields @param {string} said */
export const rewriteAll = (words, said) => {
  const before = Object.fromEntries(Object.keys(words).map((id) => [id, box(id).value]));
  for (const id of Object.keys(words).reverse()) write(id, words[id]); // the first keeps the focus
  return offerBack(before, said);
};
/** @param {string} id @param {string} words @param {string} said */
export const rewrite = (id, words, said) => rewriteAll({ [id]: words }, said);

// Keep what a field holds as "Earlier text", as other words are about to replace it.
/** @param {string} id @param {string} words */
export const keepReplaced = (id, words) => {
  const before = box(id).value;
  if (before.trim() && before !== words && copied.get(id) !== before) keepEarlier({ [id]: [before, ...earlier(id).filter((each) => each !== before)] });
};

// Put an edited script into the field; as if typed, so that Ctrl Z takes it back there. The focus stays where it is.
/** @param {string} words */
export const putScript = (words) => {
  const pressed = /** @type {HTMLElement} */ (document.activeElement);
  note("speak")?.remove();
  write("speak-text", words);
  pressed?.focus({ preventScroll: true });
};

/** @param {string} id @param {string} words @param {string} name */
const useSample = (id, words, name) => {
  const before = box(id).value, pressed = /** @type {HTMLElement} */ (document.activeElement);
  write(id, words);
  pressed.focus({ preventScroll: true });
  if (before.trim() && before !== words) offerBack({ [id]: before }, t("rewritten.sample", "The sample \u201c{name}\u201d replaced your text.", { name }));
  copied.set(id, words);
};

// Put a sample into a field, then press a button; wait for a tab that was never opened and is not on the page yet.
/** @param {string} id @param {string} words @param {string} name @param {string} then */
export const sendSample = (id, words, name, then, tries = 300) => {
  if (box(id)) {
    useSample(id, words, name);
    setTimeout(() => press(then), 120);
  } else if (tries) setTimeout(() => sendSample(id, words, name, then, tries - 1), 100);
};

// Chips that put a sample text into a field: named in the user's language, the text in the model's.
/** @param {any} element @param {string} label @param {string[][]} samples @param {string} field */
export const offerSamples = (element, label, samples, field) => {
  if (element.firstElementChild) return;
  element.innerHTML = `<div class="h-chips" role="group"></div>`;
  element.firstElementChild.setAttribute("aria-label", label);
  for (const [name, words] of samples) {
    const chip = makeButton(name, () => useSample(field, words, name));
    chip.title = words;
    element.firstElementChild.append(chip);
  }
};

// An earlier creation's settings come, and have come: Gradio fills its fields a moment after it says so.
/** @param {StartTab} tab */
export const rememberWords = (tab) => (reused[tab] = Object.fromEntries(TABS[tab].filter(box).map((id) => [id, box(id).value || waitingDraft(id)])));
/** @param {StartTab} tab */
export const offerWords = async (tab) => {
  const before = reused[tab] ?? {}, now = () => Object.keys(before).filter((id) => box(id).value !== before[id]);
  delete reused[tab];
  for (let tries = 0; tries < 20 && !now().length; tries++) await new Promise((go) => setTimeout(go, 50));
  const changed = now().map((id) => [id, before[id]]);
  if (changed.some(([, words]) => words.trim())) offerBack(Object.fromEntries(changed), t("rewritten.reused", "The text of an earlier creation replaced yours."));
  for (const [id] of changed) copied.set(id, box(id).value);
};

for (const id of Object.values(TABS).flat()) {
  area(`#${id}`, () => {
    const lost = restoreDraft(id);
    if (lost) offerBack({ [id]: lost }, t("rewritten.reused", "The text of an earlier creation replaced yours."));
  });
}

for (const [tab, place] of /** @type {[StartTab, string][]} */ ([["speak", "#h-scripts"], ["paint", "#h-samples"]])) {
  area(place, (element) => {
    const kept = Object.fromEntries(TABS[tab].filter(box).map((id) => [id, next(id)]).filter(([, words]) => words));
    const chip = element.querySelector(".h-earlier");
    if (!Object.keys(kept).length || !element.firstElementChild) return chip?.remove();
    const made = chip ?? makeButton(t("rewritten.earlier", "Earlier text"), () => bringBack(tab), "h-chip h-earlier");
    made.title = Object.values(kept).join("\n").slice(0, 300);
    if (!chip) element.firstElementChild.append(made);
  });
}

/** @param {string} id */
const next = (id) => earlier(id).find((words) => words !== box(id).value);

/** @param {StartTab} tab */
function bringBack(tab) {
  const before = read(tab);
  for (const id of Object.keys(before)) if (next(id)) write(id, next(id) ?? "");
  offerBack(before, t("rewritten.back", "Your earlier text is back."), true);
}

// Whoever types on has kept it.
onPage("input", ({ target }) => {
  const id = !rewriting && Object.values(TABS).flat().find((each) => target.closest?.(`#${each}`));
  if (id) note(tabOf(id))?.remove();
});

// Names become speakers' tags, from the last on, so that the places of the others hold.
/** @param {TagView[]} tags */
export const giveVoices = (tags) => {
  let words = document.querySelector("#speak-text textarea").value;
  if (words.length !== tags[0].length) return; // it was typed on; the next answer knows
  for (const { begin, end, name } of [...tags].reverse()) words = `${words.slice(0, begin)}[${name}] ${words.slice(end)}`;
  const narrated = words.slice(words.indexOf("[")).split("\n").some((/** @type {string} */ each) => each.trim() && !/^\s*\[/.test(each));
  const said = t("rewritten.tags", "Each name is a tag now. Choose the voices below.");
  rewrite("speak-text", words, sentences([said, narrated && t("rewritten.narrated", "Lines without a name go to the one who spoke before.")]));
};
