// Help: one dialog with all topics, searched as one types; opened by the button in the head, by "?", and by every error's "Why?".
import { el, list, makeButton, onPage, show, text } from "./elements.js";
import { area, ask, tabInView } from "./hearth.js";
import { nameKeys, t } from "./words.js";

let /** @type {TopicView[] | null} */ topics = null;

// What is said of the tab in view, also of an error there whose cure, code and card lead nowhere else.
const RING_PX = 6; // of the focus around a topic, above it
const /** @type {Record<string, string>} */ OF_TABS = { speak: "script", paint: "prompt", shelf: "disk", models: "models", machine: "by-hand" };
const /** @type {Record<string, string>} */ OF_CARDS = {
  ".h-sharing": "sharing", ".h-pausing": "pause", ".h-styles": "prompt", ".h-enlarge-by": "disk", "#h-tuning": "by-hand", "#h-loras": "words", "#h-machines": "machines",
  "#h-notify": "notify", "#h-disk": "disk", "#h-upkeep": "updates",
};
const /** @type {Record<string, string>} */ OF_CURES = { extras: "updates", smaller: "memory", "open-folder": "disk", "get-configs": "models", token: "models", report: "crash", repair: "crash", "go-on": "crash", automatic: "by-hand", models: "models" };
const /** @type {Record<string, string>} */ OF_CODES = { disk_full: "disk", quota_met: "disk", not_stored: "disk", no_room: "disk", no_memory: "memory", model_not_found: "models", share_ended: "sharing" };
const here = () => OF_TABS[tabInView() ?? ""];

// A job that broke off for no reason that has a code of its own had nothing wrong in its script or prompt.
/** @param {any} trouble */
const topicOf = (trouble) => {
  const { cure, code } = trouble.dataset;
  const card = Object.keys(OF_CARDS).find((each) => trouble.closest(each));
  if (/^(get|use):/.test(cure)) return "models";
  return OF_CURES[cure] ?? OF_CODES[code] ?? (card ? OF_CARDS[card] : trouble.matches(".h-broke") && code === "refused" ? "crash" : here());
};

/** @param {TopicView} topic @param {string[]} words */
const found = (topic, words) => {
  const all = [topic.title, ...topic.lines.flatMap((each) => [each.term ?? "", each.text])].join(" ").toLowerCase();
  return words.every((each) => all.includes(each));
};

/** @param {TopicView} topic */
function topicFold(topic) {
  const fold = el(`<details><summary></summary><div></div></details>`);
  text(fold.querySelector("summary"), topic.title);
  const inside = fold.querySelector("div");
  for (const { term, text: words } of topic.lines) {
    if (!term) {
      inside.append(Object.assign(document.createElement("p"), { textContent: words }));
      continue;
    }
    if (inside.lastElementChild?.tagName !== "DL") inside.append(document.createElement("dl"));
    const row = el(`<div><dt></dt><dd></dd></div>`);
    text(row.querySelector("dt"), topic.id === "keys" ? nameKeys(term) : term);
    text(row.querySelector("dd"), words);
    inside.lastElementChild.append(row);
  }
  return fold;
}

// Once the dialog is gone, come anew to what has the focus again: a screen reader names nothing that gets it in the frame in which the page is freed.
const NAMED_MS = 50;
const comeBack = () => {
  const from = /** @type {HTMLElement} */ (document.activeElement);
  from.blur();
  setTimeout(() => document.activeElement === document.body && from.focus({ preventScroll: true }), NAMED_MS);
};

/** Open the help, at a topic. @param {string} topic */
const openHelp = async (topic = "") => {
  const dialog = el(`<dialog class="h-dialog h-help" aria-labelledby="h-help"><h2 id="h-help"></h2><label><span class="h-heard"></span><input type="search" class="h-field" autocomplete="off"></label>
    <p class="h-soft" role="status"></p><div class="h-topics"></div><form method="dialog"><button class="h-chip"></button></form></dialog>`);
  const [input, told, folds] = ["input", "p", ".h-topics"].map((each) => dialog.querySelector(each));
  text(dialog.querySelector("h2"), t("help.title", "Help"));
  text(dialog.querySelector("label span"), t("help.search", "Search the help"));
  input.placeholder = t("help.search", "Search the help");
  text(dialog.querySelector("form button"), t("help.close", "Close"));
  const draw = () => {
    if (!topics) return;
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean), hits = topics.filter((each) => found(each, words));
    list(folds, hits, (each) => each.id, topicFold, (fold, each) => (fold.open = words.length ? hits.length <= 3 : each.id === topic));
    text(told, !words.length ? "" : hits.length ? t("help.hits", "{n} {n:topic|topics}", { n: hits.length }) : t("help.none", "Nothing is said of that here."));
  };
  input.addEventListener("input", draw);
  show(dialog);
  dialog.addEventListener("close", comeBack);
  try {
    topics ??= (await ask("hearth/help")).topics;
  } catch {
    return text(told, t("help.away", "The help cannot be read while Hearth does not answer."));
  }
  draw();
  const wanted = document.activeElement === input && !input.value && [...folds.children].find((fold) => fold.open);
  if (!wanted) return; // or somebody types already
  wanted.querySelector("summary").focus({ preventScroll: true });
  folds.scrollTop = wanted.offsetTop - folds.offsetTop - RING_PX;
};

/** The button that leads from an error to what is said of it. @param {any} trouble */
export const whyButton = (trouble) => makeButton(t("help.why", "Why?"), () => openHelp(topicOf(trouble)), "h-chip h-why");

onPage("click", ({ target }) => target.closest?.('[data-h-act="help"]') && openHelp(here()));
onPage("keydown", (event) => {
  const typing = event.target.closest?.("input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable=true]");
  if (event.key !== "?" || typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  openHelp("keys");
});
area('[data-h-act="help"]', (button) => {
  button.setAttribute("aria-label", t("help.label", "Help (key ?)"));
  button.setAttribute("aria-haspopup", "dialog");
  button.title = button.getAttribute("aria-label");
});
