// Say words differently: a word selected in the script, how it is spelt to be spoken, heard at once; those of this script, which the field speak-says
// keeps as JSON, and those of every script, which lie with Hearth.
import { el, list, makeButton, onPage, text } from "./elements.js";
import { area, ask, fill, post } from "./hearth.js";
import { t } from "./words.js";

const CONTEXT = 180, WAIT_MS = 250, TEXT_MOST = 200_000; // letters of a sentence that is heard, and of a script that goes with it
const sound = new Audio();
/** @typedef {PronunciationView & { own?: boolean }} Said */
let /** @type {PronunciationsView} */ everywhere = { rows: [], found: 0, all: 0 }, near = "", before = "", beforeOwn = false, timer = 0, turn = 0, opened = 0;
let look = () => {}, /** @type {HTMLElement | null} */ offer = null, takenBack = /** @type {null | (() => unknown)} */ (null);

const shelf = () => document.querySelector("#h-says");
const box = () => document.querySelector("#speak-text textarea");
const field = () => document.querySelector("#speak-says textarea, #speak-says input");
/** @returns {Record<string, string>} */
const own = () => {
  try {
    return JSON.parse(field()?.value || "{}");
  } catch {
    return {};
  }
};

// How many words of the script are said differently, as its check says.
/** @param {ScriptView} view @param {() => void} again */
export const saidDifferently = (view, again) => {
  look = again;
  const title = shelf()?.querySelector("summary");
  if (title) text(title, view.said ? t("says.title-n", "Pronunciations ({n} in this script)", { n: view.said }) : t("says.title", "Pronunciations"));
};

area("#h-says", (element, { charts }) => {
  if (element.firstElementChild) return;
  element.hidden = !charts; // the list is the owner's
  if (element.hidden) return;
  element.innerHTML = `<summary></summary><form><p class="h-pair-of"><label><span></span><input type="text" class="h-field h-word" maxlength="60"></label><label><span></span><input type="text" class="h-field h-spoken" maxlength="200"></label></p>
    <p class="h-chips"><button type="button" class="h-chip h-hear"></button><select class="h-field"><option value="script"></option><option value="all"></option></select><button class="h-chip h-main h-put"></button></p></form>
    <p class="h-soft h-told" role="status"></p><input type="search" class="h-field h-search" maxlength="60"><ul class="h-list"></ul><p class="h-soft h-more"></p><p class="h-chips h-files"><input type="file" accept=".csv,.tsv,.txt" hidden></p>`;
  const [word, spoken] = ["word", "spoken"].map((each) => element.querySelector(`.h-${each}`));
  text(element.querySelector("summary"), t("says.title", "Pronunciations"));
  const labels = element.querySelectorAll("label span"), [here, all] = element.querySelectorAll("option"), scope = element.querySelector("select");
  text(labels[0], t("says.label-word", "Word"));
  text(labels[1], t("says.label-spoken", "Spoken as"));
  spoken.placeholder = t("says.example", "spelt as it sounds, e.g. Shivawn");
  text(here, t("says.here", "in this script"));
  text(all, t("says.all", "everywhere"));
  scope.setAttribute("aria-label", t("says.where", "Where it is said so"));
  text(element.querySelector(".h-hear"), t("says.hear", "Hear it"));
  text(element.querySelector(".h-put"), t("says.put", "Say it so"));
  element.querySelector(".h-hear").addEventListener("click", () => hear(word.value, spoken.value));
  element.querySelector("form").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    put(word.value, spoken.value, scope.value === "all");
  });
  const search = element.querySelector(".h-search"), file = element.querySelector("input[type=file]");
  search.placeholder = t("says.search", "Search the list");
  search.setAttribute("aria-label", search.placeholder);
  search.addEventListener("input", () => (clearTimeout(timer), (timer = setTimeout(load, WAIT_MS))));
  file.addEventListener("change", () => file.files[0] && take(file.files[0]).finally(() => (file.value = "")));
  const save = el(`<a class="h-chip" href="hearth/says?download=1" download></a>`);
  text(save, t("says.save", "Save as CSV"));
  element.querySelector(".h-files").append(makeButton(t("says.take", "Add from CSV\u2026"), () => file.click(), "h-chip"), save);
  element.addEventListener("toggle", () => element.open && load());
});

async function load() {
  const mine = ++turn, words = shelf()?.querySelector(".h-search")?.value.trim() ?? "";
  const answer = await ask(`hearth/says?${new URLSearchParams({ words })}`).catch(() => everywhere);
  if (mine !== turn) return; // a later question's answer counts
  everywhere = answer;
  draw();
}

function draw() {
  const element = shelf(), wanted = element.querySelector(".h-search").value.trim().toLowerCase();
  const mine = Object.entries(own()).map(([word, spoken]) => ({ word, spoken, own: true })).filter(({ word, spoken }) => `${word} ${spoken}`.toLowerCase().includes(wanted));
  const /** @type {Said[]} */ rows = [...mine, ...everywhere.rows];
  list(element.querySelector("ul"), rows, (each) => `${each.own} ${each.word} ${each.spoken}`, makeRow);
  element.querySelector(".h-search").hidden = everywhere.all + mine.length < 6 && !wanted;
  const more = everywhere.found - everywhere.rows.length;
  text(element.querySelector(".h-more"), more > 0 ? t("says.more", "{n} more: search for them.", { n: more }) : "");
}

/** @param {Said} each */
function makeRow(each) {
  const row = el(`<li><div><b></b> <span></span> <span class="h-soft"></span></div><span class="h-chips"></span></li>`), [said, where] = row.querySelectorAll("div span");
  text(row.querySelector("b"), each.word);
  text(said, `\u2192 ${each.spoken}`);
  text(where, each.own ? t("says.here", "in this script") : t("says.all", "everywhere"));
  /** @param {string} label @param {() => unknown} run */
  const named = (label, run) => {
    const button = makeButton(label, run, "h-chip");
    button.setAttribute("aria-label", `${label}${t("word.colon", ": ")}${each.word}`);
    return button;
  };
  row.querySelector(".h-chips").append(
    named(t("says.hear", "Hear it"), () => hear(each.word, each.spoken)),
    named(t("says.change", "Change"), () => open(each.word, each.spoken, each.own)),
    named(t("preset.delete", "Delete"), () => remove(each)),
  );
  return row;
}

// Fill the form; `mine`: it is of this script alone.
/** @param {string} word */
function open(word, spoken = "", mine = true) {
  const element = shelf(), form = element.querySelector("form");
  opened++;
  [before, beforeOwn] = [spoken ? word : "", mine];
  near = sentenceOf(word);
  element.open = true;
  form.querySelector(".h-word").value = word;
  form.querySelector(".h-spoken").value = spoken;
  form.querySelector("select").value = mine ? "script" : "all";
  form.querySelector(".h-spoken").select();
  form.querySelector(".h-spoken").focus();
  element.scrollIntoView({ block: "nearest" });
}

// Where the word is heard: where it is selected, else where it stands first.
/** @param {string} word */
function placeOf(word) {
  const words = box()?.value ?? "", chosen = words.slice(box()?.selectionStart, box()?.selectionEnd).trim() === word;
  return chosen ? box().selectionStart : words.indexOf(word);
}

// The sentence around it.
/** @param {string} word */
function sentenceOf(word) {
  const words = box()?.value ?? "", at = placeOf(word);
  if (at < 0) return "";
  const first = words.slice(Math.max(0, at - CONTEXT), at).split(/[.!?\n]\s+|\n/).pop(), rest = words.slice(at, at + CONTEXT).split(/(?<=[.!?])\s|\n/)[0];
  return first + rest;
}

/** @param {string} words @param {null | (() => unknown)} [undo] */
function tell(words, undo = null) {
  takenBack = undo;
  const line = shelf().querySelector(".h-told");
  text(line, words);
  if (undo) line.append(" ", makeButton(t("shelf.undo", "Undo"), () => takenBack?.(), "h-chip"));
}

/** @param {string} name */
async function act(name, asked = {}) {
  const answer = await post(`hearth/says/${name}`, asked).catch(() => null);
  if (answer?.ok) return answer;
  const { trouble } = answer ? await answer.json().catch(() => ({})) : { trouble: t("machines.silent", "Hearth did not respond.") };
  tell(trouble ?? "");
  return null;
}

/** @param {string} word @param {string} spoken */
async function hear(word, spoken) {
  const button = shelf().querySelector(".h-hear");
  tell(t("says.hearing", "Speaking \u2026"));
  button.disabled = true;
  const words = box()?.value ?? "", at = placeOf(word), cast = document.querySelector("#speak-cast textarea, #speak-cast input")?.value ?? "";
  const there = at < 0 || words.length > TEXT_MOST ? {} : { text: words, at: [...words.slice(0, at)].length, cast }; // whose voice speaks there, its cast says
  const answer = await act("hear", { word, spoken, near: sentenceOf(word) || near, ...there });
  button.disabled = false;
  if (!answer) return;
  if (!takenBack) tell(""); // else Undo of what was done meanwhile stands there
  if (sound.src) URL.revokeObjectURL(sound.src);
  sound.src = URL.createObjectURL(await answer.blob());
  sound.play().catch(() => {});
}

/** @param {Record<string, string>} rows */
const keepOwn = (rows) => {
  fill("speak-says", Object.keys(rows).length ? JSON.stringify(rows) : "");
  draw();
  look();
};

// For the next word, if nobody has begun with it.
/** @param {string} word @param {string} spoken */
function emptyForm(word, spoken) {
  const form = shelf().querySelector("form"), first = form.querySelector(".h-word");
  [before, near] = ["", ""];
  if (first.value !== word || form.querySelector(".h-spoken").value !== spoken) return;
  form.reset();
  if (form.contains(document.activeElement) || document.activeElement === document.body) first.focus();
}

/** @param {string} word @param {string} spoken @param {boolean} all */
async function put(word, spoken, all) {
  const at = opened, [was, wasOwn] = [before, beforeOwn], answer = await act(all ? "put" : "check", { word, spoken, before: was && !wasOwn ? was : "" });
  if (!answer) return;
  const kept = all ? null : await answer.json(), mine = own(), rows = { ...mine }; // as they are now, whatever was done meanwhile
  if (was && (wasOwn || !all)) delete rows[was];
  if (kept) rows[kept.word] = kept.spoken;
  if (kept || (was && wasOwn)) keepOwn(rows);
  if (all) {
    await load();
    look();
  }
  if (at === opened) emptyForm(word, spoken);
  tell(all ? t("says.kept-all", "{word} is said so in every script from now on.", { word }) : t("says.kept", "{word} is said so in this script.", { word }), all ? back : () => keepOwn(mine) ?? tell(""));
}

/** @param {Said} each */
async function remove(each) {
  const mine = own(), words = t("says.removed", "{word} is read as it is written again.", { word: each.word });
  if (each.own) {
    const rows = { ...mine };
    delete rows[each.word];
    keepOwn(rows);
    return tell(words, () => keepOwn(mine) ?? tell(""));
  }
  if (!(await act("remove", { word: each.word }))) return;
  await load();
  look();
  tell(words, back);
}

async function back() {
  if (!(await act("back"))) return;
  await load();
  look();
  tell(t("edit.undone", "Undone."));
}

/** @param {File} file */
async function take(file) {
  const body = new FormData();
  body.append("file", file);
  const answer = await fetch("hearth/says", { method: "POST", credentials: "same-origin", body }), view = await answer.json().catch(() => ({}));
  await load();
  look();
  if (answer.ok) tell(view.text, back);
  else tell(view.trouble ?? t("book.status", "Hearth did not take {name} (status {status}). Try again.", { name: file.name, status: answer.status }));
}

// A word that is selected in the script.
function close() {
  offer?.remove();
  offer = null;
}

function offerWord() {
  const script = box(), words = script && document.activeElement === script ? script.value.slice(script.selectionStart, script.selectionEnd).trim() : "";
  if (!words || words.length > 60 || /[\n[\]()]/.test(words) || !/[\p{L}\p{N}]/u.test(words) || words.split(/\s+/).length > 6 || !shelf()?.firstElementChild || shelf().hidden) return close();
  if (offer?.dataset.word === words) return;
  close();
  const made = (offer = el(`<div class="h-say" role="group"></div>`));
  made.dataset.word = words;
  made.append(makeButton(t("says.offer", "Say \u201c{word}\u201d differently", { word: words }), () => {
    close();
    open(words, own()[words] ?? "", true);
  }, "h-chip"));
  document.querySelector("#speak-text").append(made);
}

document.addEventListener("selectionchange", () => setTimeout(offerWord, 0));
onPage("focusout", ({ target, relatedTarget }) => target === box() && !offer?.contains(/** @type {Node | null} */ (relatedTarget)) && setTimeout(() => !offer?.contains(document.activeElement) && close(), 150));
onPage("keydown", (event) => {
  if (event.key !== "Escape" || !offer) return;
  event.stopPropagation(); // it would stop a job
  close();
}, true);
