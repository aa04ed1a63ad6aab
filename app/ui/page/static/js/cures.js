// Put a button beside each trouble that Hearth can cure.
import { el, makeButton } from "./elements.js";
import { area, call, live, post } from "./hearth.js";
import { whyButton } from "./help.js";
import { retrySmaller } from "./job.js";
import { copyReport } from "./machine.js";
import { deed, getModel } from "./models.js";
import { giveVoices, rewrite } from "./rewrite.js";
import { openTab } from "./tabs.js";
import { showExtras } from "./upkeep.js";
import { t } from "./words.js";

/** @typedef {[string, () => unknown][]} Cures what the buttons say and do */

/** @param {string} id */
const tab = (id) => () => openTab(id);
/** @param {string} id @returns {Cures} */
const get = (id) => [[t("cure.get", "Download it"), () => getModel(id)]];
/** @param {() => unknown} run @returns {Cures} */
const use = (run) => [[t("cure.use", "Use it"), run]];
/** @param {HTMLElement} trouble @returns {Cures} */
const smaller = (trouble) => [
  [t("cure.smaller", "Retry smaller"), () => retrySmaller(trouble.closest("#h-parts") ? "speech" : "picture")],
  [t("cure.free", "Free memory"), () => deed("free")], [t("cure.models", "Choose another model"), tab("models")],
];
// A single caption is named in the sentence; several are buttons.
/** @param {string[]} offered @returns {Cures} */
const captions = (offered) => offered.map((each) => [offered.length === 1 ? t("cure.caption", "Use this caption") : each, () => rewrite("paint-prompt", each, t("cure.caption-taken", "The prompt is now: {words}", { words: each }))]);
/** @returns {Cures} */
const report = () => [[t("cure.report", "Copy report"), copyReport]];
// Resuming a failed job keeps what it finished.
/** @param {HTMLElement} trouble @returns {Cures} */
const on = (trouble) => {
  const kind = trouble.closest("#h-parts") ? "speech" : trouble.closest("#h-canvas") ? "picture" : "";
  const job = () => kind && live.state[kind]?.job;
  return kind ? [[t("interrupted.on", "Resume"), () => post(`hearth/queue/${job()}/go-on`)]] : [];
};
/** @type {Record<string, (trouble: HTMLElement) => Cures>} */
const CURES = {
  "use:dia-1.6b": () => use(() => call("speak.use", { model: "dia-1.6b" })),
  "use:sd15": () => use(() => call("paint.use", { model: "sd15" })),
  "get-configs": () => [[t("cure.configs", "Open Models"), tab("models")]],
  extras: () => [[t("cure.extras", "Open extras"), () => (openTab("machine"), showExtras())]],
  models: () => [[t("cure.configs", "Open Models"), tab("models")]],
  smaller,
  automatic: (trouble) => (trouble.closest("#machine-more") ? [] : [[t("cure.machine", "Open Machine"), tab("machine")]]), // else it is open
  report,
  repair: report,
  "go-on": (trouble) => [...on(trouble), ...report()],
  voices: (trouble) => [[t("cure.voices", "Give each a voice"), () => giveVoices(JSON.parse(trouble.dataset.tags ?? "[]"))]],
  "open-folder": (trouble) => [[t("cure.folder", "Open folder"), () => deed("creations")], ...on(trouble)],
};

// Put the buttons after a paragraph or at the end of a list line, the last of them to the help. Captions are for everybody, most cures for the owner;
// only the owner's state has charts.
/** @param {HTMLElement} trouble */
export const offerCure = (trouble) => {
  if (!live.state) return;
  const offered = JSON.parse(trouble.dataset.captions ?? "[]"), owned = live.state.charts || trouble.dataset.cure === "voices" ? trouble.dataset.cure ?? "" : "";
  const listed = trouble.tagName === "LI", failed = !listed || trouble.classList.contains("wrong");
  const cure = owned || (offered.length ? "captions" : failed ? "why" : "");
  let row = listed ? trouble.querySelector(".h-cure") : trouble.nextElementSibling;
  if (!row?.classList.contains("h-cure")) {
    if (!cure || trouble.hidden) return;
    row = el(`<p class="h-chips h-cure"></p>`);
    if (listed) trouble.append(row);
    else trouble.after(row);
  }
  row.hidden = trouble.hidden;
  if (row.dataset.cure === cure) return;
  row.dataset.cure = cure;
  row.innerHTML = "";
  const buttons = cure.startsWith("get:") ? get(cure.slice(4)) : (CURES[cure]?.(trouble) ?? []);
  row.append(...[...captions(offered), ...buttons].map(([label, run]) => makeButton(label, run, "h-chip")), ...(failed ? [whyButton(trouble)] : []));
};
area(".h-trouble", offerCure);
