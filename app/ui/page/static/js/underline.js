// Underline in a field what its model does not know; at a click, or where the caret goes by key, offer the nearest that it knows.
import { el, makeButton, onPage, text } from "./elements.js";
import { t } from "./words.js";

/** @type {Map<string, { words: string, marks: UnknownView[] }>} */
const shown = new Map(); // field -> its text as last seen, and what is not known in it
const LOOKS = /** @type {const} */ (["font", "letterSpacing", "wordSpacing", "lineHeight", "padding", "textAlign", "tabSize", "direction"]);
let /** @type {any} */ offer = null;

/** @param {string} id */
const field = (id) => document.querySelector(`#${id} textarea`);

/** @param {string} id */
const shownIn = (id) => shown.get(id) ?? { words: "", marks: [] };

// `asked`: the text that was checked.
/** @param {string} id @param {string} asked @param {UnknownView[]} marks */
export const underline = (id, asked, marks) => {
  if (field(id)?.value !== asked) return;
  shown.set(id, { words: asked, marks });
  draw(id);
};

// A copy of the text over the field, of which only the lines are seen. Svelte keeps the field itself.
/** @param {string} id */
function draw(id) {
  const box = field(id), { words, marks } = shownIn(id);
  let copy = box.parentElement.querySelector(".h-underlines");
  if (!copy) {
    if (!marks.length) return;
    copy = el(`<div class="h-underlines" aria-hidden="true"></div>`);
    box.after(copy);
    box.addEventListener("scroll", () => (copy.scrollTop = box.scrollTop));
    new ResizeObserver(() => draw(id)).observe(box);
  }
  const looks = getComputedStyle(box);
  for (const name of LOOKS) copy.style[name] = looks[name];
  Object.assign(copy.style, { left: `${box.offsetLeft + box.clientLeft}px`, top: `${box.offsetTop + box.clientTop}px`, width: `${box.clientWidth}px`, height: `${box.clientHeight}px` });
  let at = 0;
  copy.replaceChildren(...marks.flatMap(({ begin, end }) => {
    const mark = document.createElement("u");
    mark.textContent = words.slice(begin, end);
    const pieces = [words.slice(at, begin), mark];
    at = end;
    return pieces;
  }), marks.length ? `${words.slice(at)}\n` : "");
  copy.scrollTop = box.scrollTop;
}

// While it is typed on, what stands before and after the change keeps its lines; the next answer knows the rest.
/** @param {string} id */
function moved(id) {
  const { words, marks } = shownIn(id), now = field(id).value;
  let begin = 0, rest = 0;
  const least = Math.min(words.length, now.length);
  while (begin < least && words[begin] === now[begin]) begin++;
  while (rest < least - begin && words[words.length - 1 - rest] === now[now.length - 1 - rest]) rest++;
  const by = now.length - words.length, after = words.length - rest;
  const kept = marks.flatMap((mark) => (mark.end < begin ? [mark] : mark.begin > after ? [{ ...mark, begin: mark.begin + by, end: mark.end + by }] : []));
  shown.set(id, { words: now, marks: kept });
  draw(id);
}

/** @param {EventTarget} target */
const owner = (target) => [...shown.keys()].find((id) => target === field(id));

function close() {
  offer?.remove();
  offer = null;
}

/** @param {string} id */
function look(id) {
  close();
  const box = field(id), { words, marks } = shownIn(id), caret = box.selectionStart;
  if (box.selectionEnd !== caret || box.value !== words) return;
  const place = marks.findIndex(({ begin, end }) => begin <= caret && caret <= end);
  if (place >= 0) open(id, marks[place], box.parentElement.querySelectorAll(".h-underlines u")[place]);
}

/** @param {string} id @param {UnknownView} mark @param {HTMLElement} line */
function open(id, mark, line) {
  const words = field(id).value.slice(mark.begin, mark.end), home = document.querySelector(`#${id}`);
  offer = el(`<div class="h-offer" role="group"><span class="h-soft"></span></div>`);
  const label = mark.near.length ? t("unknown.near", "Not known: {words}. Use", { words }) : t("unknown.alone", "Not known: {words}", { words });
  text(offer.firstElementChild, label);
  offer.setAttribute("aria-label", label);
  for (const near of mark.near) offer.append(makeButton(near, () => put(id, mark, near), "h-chip"));
  offer.append(makeButton(t("unknown.remove", "Remove it"), () => put(id, mark, ""), "h-chip"));
  home.append(offer);
  const [around, at] = [home.getBoundingClientRect(), line.getBoundingClientRect()];
  offer.style.top = `${at.bottom - around.top + 4}px`;
  offer.style.left = `${Math.max(0, Math.min(at.left - around.left, around.width - offer.offsetWidth))}px`;
}

// As if typed, so that Ctrl Z takes it back.
/** @param {string} id @param {UnknownView} mark @param {string} near */
function put(id, { begin, end }, near) {
  const box = field(id), blank = !near && /\s/.test(box.value[end] ?? " ") && /\s/.test(box.value[begin - 1] ?? " ");
  close();
  box.focus();
  box.setSelectionRange(begin, blank ? Math.min(end + 1, box.value.length) : end);
  document.execCommand(near ? "insertText" : "delete", false, near);
}

onPage("input", ({ target }) => {
  const id = owner(target);
  if (!id) return;
  close();
  moved(id);
});
onPage("click", ({ target }) => {
  if (offer?.contains(target)) return;
  const id = owner(target);
  if (id) look(id);
  else close();
});
onPage("keyup", ({ target, key }) => {
  const id = /^(Arrow|Home|End|Page)/.test(key) && owner(target);
  if (id) look(id);
});
onPage("keydown", (event) => {
  if (event.key !== "Escape" || !offer) return;
  event.stopPropagation(); // it would stop a job
  const box = field(offer.closest("[id]").id);
  close();
  box.focus();
}, true);
