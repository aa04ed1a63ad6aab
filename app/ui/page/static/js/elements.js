// Elements of the page: made, filled, kept in step with a list.
import { backCloses } from "./history.js";

/**
 * Update a list by key: unchanged elements stay in place, so that nothing jumps and no sound is cut off; who is in one that moves stays there.
 * @template T
 * @param {any} parent
 * @param {T[]} items
 * @param {(item: T) => unknown} key
 * @param {(item: T) => any} make
 * @param {(child: any, item: T) => void} [update]
 */
export const list = (parent, items, key, make, update) => {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const times = new Map(), held = parent.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement) : null;
  items.forEach((item, index) => {
    const same = String(key(item)), before = times.get(same) ?? 0;
    times.set(same, before + 1);
    const id = before ? `${same} (${before})` : same; // the same line may appear twice
    let child = known.get(id);
    if (!child) {
      child = make(item);
      child.dataset.key = id;
    }
    known.delete(id);
    update?.(child, item);
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
  for (const gone of known.values()) gone.remove();
  if (held?.isConnected && document.activeElement === document.body) held.focus({ preventScroll: true });
};

/**
 * @param {string} html of one element
 * @returns {any}
 */
export const el = (html) => {
  const holder = document.createElement("template");
  holder.innerHTML = html.trim();
  return holder.content.firstElementChild;
};

/** @param {any} element @param {string} words */
export const text = (element, words) => {
  if (element && element.textContent !== words) element.textContent = words;
};

/** @param {string} label @param {(event: any) => unknown} run */
export const makeButton = (label, run, look = "") => {
  const made = el(`<button type="button" class="${look}"></button>`);
  text(made, label);
  made.addEventListener("click", run);
  return made;
};

/** Take away what had the focus, once the browser has told of what has it now: a screen reader is silent if both come in one frame. @param {() => unknown} run */
export const onceFocused = (run) => requestAnimationFrame(() => requestAnimationFrame(run));

// What a dialog shuts out says nothing meanwhile, nor as it comes back: a screen reader takes that for news, and told the last result once more.
const BACK_MS = 1000;
/** @param {HTMLDialogElement} dialog */
const hush = (dialog) => {
  const regions = [...document.querySelectorAll("[role=status], [role=alert]")].filter((each) => !dialog.contains(each) && !each.ariaLive);
  for (const each of regions) each.ariaLive = "off";
  dialog.addEventListener("close", () => setTimeout(() => regions.forEach((each) => (each.ariaLive = null)), BACK_MS), { once: true });
};

// Open a dialog; the browser's Back closes it, too.
/** @param {HTMLDialogElement} dialog */
export const open = (dialog) => {
  hush(dialog);
  dialog.showModal();
  backCloses(dialog);
};

// Show a dialog until it is closed.
/** @param {HTMLDialogElement} dialog */
export const show = (dialog) => {
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  open(dialog);
};

// Draw a waveform as bars; peaks are 0 to 1.
/** @param {any} svg @param {number[]} peaks */
export const wave = (svg, peaks) => {
  const drawn = peaks.join();
  if (svg.dataset.drawn === drawn) return;
  svg.dataset.drawn = drawn;
  const width = 6;
  svg.setAttribute("viewBox", `0 0 ${peaks.length * width} 40`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.innerHTML = peaks
    .map((peak, i) => {
      const height = Math.max(2, peak * 38);
      return `<rect x="${i * width + 1}" y="${20 - height / 2}" width="3.6" height="${height}" rx="1.8"/>`;
    })
    .join("");
};

/**
 * Hear an event anywhere on the page; `early`: before the element that it is for.
 * @template {keyof DocumentEventMap} K
 * @param {K} kind
 * @param {(event: DocumentEventMap[K] & { target: any }) => unknown} hear
 */
export const onPage = (kind, hear, early = false) => document.addEventListener(kind, /** @type {any} */ (hear), early);
