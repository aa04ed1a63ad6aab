// What is in force for the next start and may lie in a closed drawer: a chip each beside Speak and Paint, with a button that removes it.
import { el, list, onPage, text } from "./elements.js";
import { area, call, live, redraw, soon } from "./hearth.js";
import { giveStart, keepPicture } from "./picture.js";
import { offerWords, rememberWords } from "./rewrite.js";
import { inForce, told } from "./told.js";
import { t } from "./words.js";

const own = {}; // the person's values, from before an earlier creation's came
let /** @type {View} */ start = null, /** @type {View} */ seen = null, looking = false;
let name = "", fresh = false; // of the picture in the editor; fresh while the editor is still to take it

const again = () => live.state && redraw();
// The editor takes a picture after a moment: look often until it has, rather than with the next answer.
const hurry = (left = 40) => {
  again();
  if (fresh && left) setTimeout(hurry, 100, left - 1);
};

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

/** @param {string} given */
export const nameStart = (given) => {
  [name, fresh] = [given, true];
  hurry();
};
/** @param {View} creation */
export const startFrom = (creation) => {
  nameStart(creation.name);
  if (live.state.charts) call("paint.start", { creation: creation.id });
  else fetch(creation.url).then((answer) => answer.blob()).then((background) => giveStart({ name: creation.name, background, layers: [] })); // a guest gets no file by its path
};
const takeName = (event) => {
  const file = event.target.closest?.("#paint-image") && (event.target.files ?? event.dataTransfer?.files)?.[0];
  if (!file) return;
  nameStart(file.name);
};
onPage("change", takeName, true);
onPage("drop", takeName, true);

// Gradio's editor tells nobody without uploading all that it holds, so it is looked at: its history moves with every change.
async function look() {
  const editor = document.querySelector("#paint-image canvas") && window.editor;
  const now = editor?.background_image ? editor.command_manager.history : null;
  if (now === seen || looking) return;
  [seen, looking] = [now, true];
  if (start) URL.revokeObjectURL(start.picture);
  start = now && (await read(editor).catch(() => null));
  if (now) fresh = false;
  else if (!fresh) name = "";
  looking = false;
  keepPicture(start && { name, ...start.blobs });
  again();
}

async function read(editor) {
  const { background, composite, layers } = await editor.get_blobs();
  const given = layers.filter(Boolean), masks = await Promise.all(given.map(isPainted));
  return { picture: URL.createObjectURL(composite ?? background), masked: masks.some(Boolean), blobs: { background, layers: given.filter((_, place) => masks[place]) } };
}

async function isPainted(layer) {
  const side = 256, canvas = new OffscreenCanvas(side, side), brush = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
  brush.drawImage(await createImageBitmap(layer), 0, 0, side, side);
  return brush.getImageData(0, 0, side, side).data.some((value, at) => at % 4 === 3 && value > 0);
}

const names = (files) => files.map((each) => each.orig_name ?? each.path.split(/[/\\]/).pop()).join(t("word.comma", ", "));

const CHIPS = {
  start: () => start && { words: startWords(), picture: start.picture, call: "paint.nostart" },
  loras: (files) => files?.length && { words: t("force.loras", "with {n:LoRA|LoRAs} {names}", { n: files.length, names: names(files) }), call: "paint.noloras" },
  clip: (clip) => clip && !told.speak.voice && { words: t("force.clip", "with the voice of {name}", { name: names([clip]) }), call: "speak.noclip" },
  seed: (seed, tab) => seed != null && seed !== "" && { words: t("force.seed", "seed {seed}", { seed }), call: tab === "speak" ? "speak.noseed" : "paint.noseed" },
  changed: (words) => words && { words, look: "offer", call: "speak.changed", label: t("cure.changed", "Speak only what changed") }, // Speak itself speaks all parts anew
  reused: (other, tab) => other && { words: t("force.reused", "settings of an earlier creation"), call: tab === "speak" ? "speak.back" : "paint.back" },
  refused: (words, tab) => words && { words: t("force.refused", "Not used: {why}", { why: words }), look: "wrong", run: () => inForce(tab, "refused", "") },
};

function startWords() {
  const words = name ? t("force.start", "starting from {name}", { name }) : t("force.start-nameless", "starting from a picture");
  return start.masked ? t("force.masked", "{start}, changing only the painted area", { start: words }) : words;
}

// What Tab reaches is scrolled to above the bar, however many chips stand on it.
const keepClear = (bar) => document.documentElement.style.setProperty("--h-going", `${bar.offsetHeight + 12}px`);

area(".h-force", (element) => {
  const tab = element.closest(".h-going")?.querySelector("#paint-go") ? "paint" : "speak";
  if (tab === "paint") look();
  const shown = Object.entries(CHIPS).map(([what, chip]) => (what !== "start" || tab === "paint") && chip(told[tab][what], tab)).filter(Boolean);
  element.hidden = !shown.length;
  element.setAttribute("aria-label", t("force.title", "In force for the next start"));
  list(element, shown, (each) => `${each.call} ${each.words}`, (each) => {
    const line = el(`<li class="h-chip ${each.look ?? ""}"><span></span> <button type="button"></button></li>`);
    if (each.picture) line.prepend(el(`<img alt="">`));
    text(line.querySelector("span"), each.words);
    const label = each.label ?? (each.look === "wrong" ? t("force.close", "Close") : t("force.remove", "Remove"));
    text(line.querySelector("button"), label);
    line.querySelector("button").setAttribute("aria-label", `${label}${t("word.colon", ": ")}${each.words}`);
    line.querySelector("button").addEventListener("click", each.run ?? (() => (call(each.call), each.label && soon())));
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
area('[data-adds="image"]', (note) => (note.hidden = Boolean(start)));

// Gradio's own note of it comes a moment later, with "Error" and the status, over the switches: it is closed unseen.
const NOTE_MS = 15_000;
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

// A refused file is not used, which its field alone does not say.
const asked = window.fetch;
window.fetch = async (address, options) => {
  const answer = await asked(address, options);
  if (/\/gradio_api\/upload(\?|$)/.test(address instanceof Request ? address.url : String(address))) {
    const tab = document.querySelector("button#paint-go")?.offsetParent ? "paint" : "speak";
    const words = answer.ok ? "" : await answer.clone().text();
    if (words) closeNotes(words);
    inForce(tab, "refused", words);
  }
  return answer;
};
