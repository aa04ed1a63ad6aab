// What a reload, as by a switch of the language, does not take away: the tab in view, the switch that has the focus, open folds, and what is in force for the next start.
import { onPage } from "./elements.js";
import { area, call, tabInView } from "./hearth.js";
import { guide, reference } from "./guide.js";
import { readStart } from "./picture.js";
import { openStart, startReading } from "./sketch.js";
import { openTab } from "./tabs.js";
import { told } from "./told.js";

const TAB = "hearth_tab", FORCE = "hearth_force", ROOM = "hearth_room", FOLDS = "hearth_folds", SWITCH = "hearth_switch";
const PASSING = ["changed", "refused"]; // the check says the one anew; the other was read, in the language of then
const /** @type {Record<StartTab, string>} */ CALLS = { speak: "speak.kept", paint: "paint.kept" };
const LATE = ["h-samples", "h-prompts", "h-prompt", "paint-fit"];
const AS_IT_IS = { __type__: "update" }, OPEN = { __type__: "update", open: true };
const before = JSON.parse(sessionStorage.getItem(FORCE) ?? "{}"), last = sessionStorage.getItem(TAB);
let opened = !last, pressed = sessionStorage.getItem(SWITCH);

addEventListener("pagehide", () => {
  sessionStorage.setItem(TAB, tabInView() ?? "");
  sessionStorage.setItem(SWITCH, /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.hAct ?? "");
  sessionStorage.setItem(FOLDS, JSON.stringify([...folds, ...[...document.querySelectorAll("button.label-wrap.open")].map(nameFold)]));
  const held = (/** @type {StartTab} */ tab) => Object.entries(told[tab]).filter(([what, value]) => !PASSING.includes(what) && !isEmpty(value));
  const now = /** @type {StartTab[]} */ (Object.keys(CALLS)).map((tab) => [tab, { ...before[tab], ...Object.fromEntries(held(tab)) }]); // a tab that was never opened told nothing
  sessionStorage.setItem(FORCE, JSON.stringify(Object.fromEntries(now)));
  sessionStorage.setItem(ROOM, JSON.stringify({ width: innerWidth, heights: LATE.map((id) => [id, document.getElementById(id)?.offsetHeight]) }));
});

// Folds by their names, as those of a tab that was never opened are not on the page yet.
const nameFold = (/** @type {HTMLElement} */ fold) => fold.parentElement?.id, folds = new Set(JSON.parse(sessionStorage.getItem(FOLDS) ?? "[]"));
area("button.label-wrap", (fold) => {
  if (folds.delete(nameFold(fold)) && !fold.classList.contains("open")) fold.click();
});

// What is filled in late has the height that it had, until somebody touches the page: nothing below it jumps.
const /** @type {{ width?: number, heights?: [string, number?][] }} */ room = JSON.parse(sessionStorage.getItem(ROOM) ?? "{}"), style = document.createElement("style");
if (room.width === innerWidth) style.textContent = (room.heights ?? []).filter(([, high]) => high).map(([id, high]) => `#${id} { min-height: ${high}px; } #${id}:empty { display: block !important; visibility: hidden; }`).join(" ");
document.head.append(style);
for (const touch of ["pointerdown", "keydown"]) document.addEventListener(touch, () => style.remove(), { once: true, capture: true });
// A tab that somebody opens meanwhile stays.
onPage("click", (event) => {
  if (event.target.closest?.('button[role="tab"]')) opened = true;
}, true);
area("#h-rooms", () => {
  if (!opened && tabInView()) openTab(last);
  if (pressed && opened) document.querySelector(`[data-h-act="${pressed}"]`)?.focus({ preventScroll: true });
  if (opened) pressed = "";
});

// Once the page has filled in its fields, give those of a tab what they held before.
/** @param {StartTab} tab */
export const stay = async (tab) => {
  if (before[tab]) call(CALLS[tab]);
  const picture = tab === "paint" && (await readStart());
  if (picture && !startReading.began) openStart(picture.background, picture.name, { mask: picture.layers?.[0], frame: picture.frame });
  if (tab === "paint") await Promise.all([guide.read(), reference.read()]);
};
const isEmpty = (/** @type {any} */ value) => value == null || value === "" || value.length === 0;
/** @param {StartTab} tab @param {string[]} names */
export const kept = (tab, names) => {
  const values = before[tab] ?? {};
  Object.assign(told[tab], values); // another reload may come before the fields tell
  delete before[tab]; // once
  return names.map((name) => (isEmpty(values[name]) ? AS_IT_IS : values[name]));
};
const hadClip = !isEmpty(before.speak?.clip);
export const keptClip = () => (hadClip ? OPEN : AS_IT_IS);
