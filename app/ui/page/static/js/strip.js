// The strip on every tab: model, activity, time left, memory, device; what else there is to know folds out of it.
import { text } from "./elements.js";
import { area, live } from "./hearth.js";
import { gb, t, time } from "./words.js";

const inside = `<span class="h-model"></span><span class="h-doing"></span><span class="h-heard" role="status"></span>
  <span class="h-left"></span><i class="h-break"></i><span class="h-memory"><span class="h-memory-word"></span>
  <span class="h-bar" aria-hidden="true"><i></i><b></b></span><span class="h-memory-text"></span></span>
  <span class="h-machine"></span><button type="button" class="h-more" popovertarget="h-more"></button>
  <dl id="h-more" class="h-card" popover></dl>`;
const DETAILS = {
  rate: () => t("strip.speed", "Speed"), precision: () => t("strip.precision", "Precision"), attention: () => t("strip.how", "Attention"),
  swap: () => t("strip.swapped", "In swap"),
};

/** @param {StripMemoryView} memory */
export const memoryWords = ({ now, highest, total, stands_in }) => {
  const figures = { now: gb(now), highest: gb(highest), total: gb(total) };
  return stands_in ? t("strip.memory-here", "{now} of {total} GB of this computer, peak {highest}", figures) : t("strip.memory-text", "{now} of {total} GB, peak {highest}", figures);
};

// Facts of a server that does not answer are old: nothing is told of it.
/** @param {StripView} strip @returns {Partial<StripView> & { doing: string, machine: string }} */
const gone = (strip) => ({ doing: t("strip.away", "not connected"), machine: "", guest: strip.guest });

// What it says once a job has ended; after "stopped" or "done" that is no news.
let rest = "";
area("#h-strip", (element, state) => {
  if (!state.strip) return;
  const strip = live.away ? gone(state.strip) : state.strip;
  if (!element.firstElementChild) {
    element.innerHTML = inside;
    for (const [name, word] of Object.entries(DETAILS)) element.lastElementChild.insertAdjacentHTML("beforeend", `<div><dt>${word()}</dt><dd class="h-${name}"></dd></div>`);
  }
  const part = (/** @type {string} */ name) => element.querySelector(`.h-${name}`);
  text(part("model"), live.away ? "" : strip.model || t("strip.nothing", "no model loaded"));
  part("model").classList.toggle("h-none", !strip.model);
  text(part("doing"), strip.doing);
  part("doing").title = strip.doing;
  part("heard").ariaLive = document.querySelector("dialog:modal") ? "off" : "polite";
  if (!strip.job && !live.away && element.classList.contains("h-busy")) rest = strip.doing;
  else if (strip.doing !== rest) rest = "";
  text(part("heard"), strip.job || rest ? "" : strip.doing); // a job's own tab announces its progress and end
  part("doing").ariaHidden = part("heard").textContent ? "true" : null; // who reads on hears it once
  text(part("left"), strip.eta_s == null ? "" : t("strip.left", "about {time} left", { time: time(strip.eta_s) }));
  const memory = strip.memory;
  part("memory").hidden = !memory;
  if (memory) {
    text(part("memory-word"), t("strip.memory", "memory"));
    const bar = part("bar");
    const share = Math.min(1, memory.now / memory.total || 0);
    bar.firstElementChild.style.transform = `scaleX(${share.toFixed(3)})`;
    bar.lastElementChild.style.left = `${(Math.min(1, memory.highest / memory.total || 0) * 100).toFixed(1)}%`;
    bar.classList.toggle("h-full", memory.now > 0.9 * memory.limit); // what other programs leave
    text(part("memory-text"), memoryWords(memory));
  }
  const { rate, precision, attention } = strip, /** @type {Record<string, string | undefined>} */ details = { rate, precision, attention, swap: memory?.swap ? `${gb(memory.swap)} GB` : "" };
  for (const name in DETAILS) text(part(name), details[name] ?? "");
  const more = part("more");
  more.hidden = live.away || !Object.keys(DETAILS).some((name) => details[name]);
  text(more, t("strip.details", "Details"));
  text(part("machine"), strip.machine);
  part("machine").title = strip.machine;
  element.classList.toggle("h-busy", Boolean(strip.job));
  element.classList.toggle("h-guest", Boolean(strip.guest)); // only what is theirs, in one line
});
