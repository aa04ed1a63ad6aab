// What is in force for the next start and may lie in a closed drawer: a chip each beside Speak and Paint, with a button that removes it.
import { el, list, text } from "./elements.js";
import { area, call, soon } from "./hearth.js";
import { guide, reference } from "./guide.js";
import { readLoras } from "./loras.js";
import { start } from "./picture.js";
import { offerWords, rememberWords } from "./rewrite.js";
import { closeStart, openStart, startReading } from "./sketch.js";
import { inForce, told } from "./told.js";
import { t } from "./words.js";

const /** @type {Partial<Record<StartTab, unknown[]>>} */ own = {}; // the person's values, from before an earlier creation's came

// An earlier creation's settings come, have come, and go again.
/** @param {StartTab} tab @param {unknown[]} values */
export const reusing = (tab, values) => {
  own[tab] ??= values;
  rememberWords(tab);
};
/** @param {StartTab} tab @param {unknown[]} values */
export const reused = (tab, values) => {
  const other = JSON.stringify(values) !== JSON.stringify(own[tab]);
  if (!other) delete own[tab];
  inForce(tab, "reused", other);
  offerWords(tab);
};
/** @param {StartTab} tab */
export const before = (tab) => {
  const values = own[tab];
  delete own[tab];
  inForce(tab, "reused", false);
  return values;
};

/** @param {ResultView} creation */
async function bring(creation) {
  const answer = await fetch(creation.url);
  if (!answer.ok && answer.status !== 404) throw new Error(String(answer.status)); // it may be there still
  return answer.ok ? answer.blob() : null;
}

/** @param {ResultView} creation */
export const startFrom = (creation) => openStart(bring(creation), creation.name);

/** Say in words what to change: the picture is where Paint starts, a model that edits is chosen, the old words are ready to be typed over. @param {ResultView} creation */
export const changeByWords = async (creation) => {
  const earlier = start.now, from = document.activeElement;
  await startFrom(creation);
  if (start.now === earlier || start.now?.name !== creation.name) return; // it cannot be opened, or another one was meanwhile
  call("paint.edit");
  if (![from, document.body].includes(document.activeElement)) return; // somebody types already
  const prompt = /** @type {HTMLTextAreaElement | null} */ (document.querySelector("#paint-prompt textarea"));
  prompt?.focus();
  prompt?.select();
};

/** @param {ResultView} creation */
export const guideBy = (creation) => {
  guide.open(bring(creation), creation.name);
  call("paint.guided");
};

/** @param {ResultView} creation */
export const likeIt = (creation) => {
  reference.open(bring(creation), creation.name);
  call("paint.liked");
};

/** @param {{ name: string }} lora */
const bare = (lora) => lora.name.split(/[/\\]/).pop();
/** @param {{ path: string, orig_name?: string }[]} files */
const names = (files) => files.map((each) => each.orig_name ?? each.path.split(/[/\\]/).pop()).join(t("word.comma", ", "));

/** @typedef {{ what?: string, words: string, picture?: string, look?: string, label?: string, call?: string, run?: () => unknown }} Chip */
/** @type {Record<string, (value: any, tab: StartTab) => Chip | false | 0 | "" | null>} */
const CHIPS = {
  start: () => start.now && { words: startWords(), picture: start.seen, run: closeStart },
  startReading: () => isRead(startReading),
  guideReading: () => isRead(guide.reading),
  referenceReading: () => isRead(reference.reading),
  sending: (now) => now && { words: now.again ? t("force.sending-again", "sending the picture, then painting once more…") : t("force.sending", "sending the picture…") },
  guide: () => guide.now && { words: t("force.guide", "guided by {name}", { name: guide.now.name }), picture: guide.seen, run: guide.close },
  reference: () => reference.now && { words: t("force.reference", "like {name}", { name: reference.now.name }), picture: reference.seen, run: reference.close },
  loras: (chosen) => {
    const rows = readLoras(chosen), named = rows.map((each) => (each.weight === 1 ? bare(each) : `${bare(each)} ${each.weight}`));
    return rows.length && { words: t("force.loras", "with {n:LoRA|LoRAs} {names}", { n: rows.length, names: named.join(t("word.comma", ", ")) }), call: "paint.noloras" };
  },
  clip: (clip) => clip && !told.speak.voice && { words: t("force.clip", "with the voice of {name}", { name: names([clip]) }), call: "speak.noclip" },
  seed: (seed, tab) => seed != null && seed !== "" && { words: t("force.seed", "seed {seed}", { seed }), call: tab === "speak" ? "speak.noseed" : "paint.noseed" },
  changed: (words) => words && { words, look: "offer", call: "speak.changed", label: t("cure.changed", "Speak only what changed") }, // Speak itself speaks all parts anew
  reused: (other, tab) => other && { words: t("force.reused", "settings of an earlier creation"), call: tab === "speak" ? "speak.back" : "paint.back" },
  refused: (words, tab) => words && { words: t("force.refused", "Not used: {why}", { why: words }), look: "wrong", run: () => inForce(tab, "refused", "") },
};

/** @param {import("./reading.js").Reading} reading */
const isRead = ({ name, stop }) => name && { words: t("force.reading", "reading {name}…", { name }), label: t("sure.no", "Cancel"), run: stop };

const OF_PAINT = /^(start|guide|reference)/;

function startWords() {
  const { name, marked, grows } = /** @type {import("./picture.js").Start} */ (start.now);
  const words = name ? t("force.start", "starting from {name}", { name }) : t("force.start-nameless", "starting from a picture");
  if (grows) return t("force.beyond", "{start}, painting beyond its edges", { start: words });
  return marked ? t("force.masked", "{start}, changing only the painted area", { start: words }) : words;
}

// What Tab reaches is scrolled to above the bar, however many chips stand on it.
/** @param {HTMLElement} bar */
const keepClear = (bar) => document.documentElement.style.setProperty("--h-going", `${bar.offsetHeight + 12}px`);

area(".h-force", (element) => {
  const tab = element.closest(".h-going")?.querySelector("#paint-go") ? "paint" : "speak";
  const mine = Object.entries(CHIPS).filter(([what]) => tab === "paint" || !OF_PAINT.test(what));
  const shown = mine.map(([what, chip]) => ({ what, ...(chip(told[tab][what], tab) || { words: "" }) })).filter(({ words }) => words);
  element.hidden = !shown.length;
  element.setAttribute("aria-label", t("force.title", "In force for the next start"));
  list(element, shown, (each) => `${each.what} ${each.words}`, (each) => {
    const line = el(`<li class="h-chip ${each.look ?? ""}"><span></span> <button type="button"></button></li>`);
    if (each.picture) line.prepend(el(`<img alt="">`));
    text(line.querySelector("span"), each.words);
    const label = each.label ?? (each.look === "wrong" ? t("force.close", "Close") : t("force.remove", "Remove")), button = line.querySelector("button");
    text(button, label);
    button.setAttribute("aria-label", `${label}${t("word.colon", ": ")}${each.words}`);
    button.addEventListener("click", each.run ?? (() => each.call && (call(each.call), each.label && soon())));
    if (!each.run && !each.call) button.remove(); // it passes by itself
    if (each.look === "wrong") line.querySelector("span").setAttribute("role", "alert"); // the line itself belongs to the list
    return line;
  }, (line, each) => {
    const picture = line.querySelector("img");
    if (picture && picture.src !== each.picture) picture.src = each.picture;
  });
  const bar = element.closest(".h-going");
  if (bar?.offsetParent) keepClear(bar);
});

// What a note asks for is there.
area('[data-adds="image"]', (note) => (note.hidden = Boolean(start.now)));
area('[data-adds="guide"]', (note) => (note.hidden = Boolean(guide.now)));
area('[data-adds="reference"]', (note) => (note.hidden = Boolean(reference.now)));

// Gradio's own note of it comes a moment later, with "Error" and the status, over the switches: it is closed unseen.
const NOTE_MS = 15_000;
/** @param {string} words */
function closeNotes(words) {
  const watcher = new MutationObserver(() => {
    for (const note of document.querySelectorAll(".toast-body:not([hidden])")) {
      if (!note.textContent.includes(words)) continue;
      note.hidden = true;
      note.querySelector("[data-testid='toast-close']")?.click();
    }
  });
  watcher.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => watcher.disconnect(), NOTE_MS);
}

// A refused file is not used, which its field alone does not say. Gradio's client, which no name of the page reaches, sends files by this global and
// tells of a refusal only in that note: so the global is wrapped.
const asked = window.fetch;
window.fetch = async (address, options) => {
  const tab = document.querySelector("button#paint-go")?.offsetParent ? "paint" : "speak"; // that it is sent from, whichever is open once it is refused
  const answer = await asked(address, options);
  if (/\/gradio_api\/upload(\?|$)/.test(address instanceof Request ? address.url : String(address))) {
    const words = answer.ok ? "" : await answer.clone().text();
    if (words) closeNotes(words);
    inForce(tab, "refused", words);
  }
  return answer;
};
