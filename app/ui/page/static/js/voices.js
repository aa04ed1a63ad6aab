// The shelf of voices: what each model brings and what is kept, heard by a click; kept ones renamed, described, removed, and as one file each.
// New ones that a model makes of seeds stand below, to be kept or not.
import { el, list, makeButton, text } from "./elements.js";
import { area, ask, call, post, soon } from "./hearth.js";
import { t } from "./words.js";

const audio = new Audio();
const LOOK_MS = 3000;
/** @typedef {ShelfVoiceView & { of: string, model: string }} Listed a voice, with the first model that speaks with it */

let /** @type {ShelfGroupView[]} */ groups = [], /** @type {AuditionView[]} */ auditions = [], /** @type {string[]} */ able = [];
let seeds = 0, awaited = 0, playing = "", removed = "", said = "", turn = 0;
const under_way = new Set(); // what was pressed and is not answered

const shelf = () => document.querySelector("#h-voices");

async function load() {
  const mine = ++turn, answer = await ask("hearth/voices").catch(() => ({ models: [], auditions: [], able: [], seeds: 0 }));
  if (mine !== turn) return; // a later question's answer counts
  ({ models: groups, auditions, able, seeds } = answer);
  draw();
}

area("#h-voices", (element, { charts }) => {
  if (element.firstElementChild) return;
  element.hidden = !charts; // guests have only those to choose
  if (element.hidden) return;
  element.innerHTML = `<summary></summary><p class="h-soft h-voices-said" role="status"></p><ul class="h-list h-shelf-voices"></ul><ul class="h-list h-auditions"></ul><p class="h-chips h-new-voices"></p><p class="h-chips"></p><input type="file" accept=".wav" hidden>`;
  text(element.querySelector("summary"), t("voices.title", "All voices: hear, rename, send"));
  const input = element.querySelector("input");
  input.addEventListener("change", () => input.files[0] && take(input.files[0]).finally(() => (input.value = "")));
  element.querySelector(".h-chips:last-of-type").append(makeButton(t("voices.take", "Add a voice from a file\u2026"), () => input.click(), "h-chip"));
  element.addEventListener("toggle", () => element.open && load());
});

// All voices once, kept ones first; a voice that several models can speak with names the first.
function all() {
  /** @type {Map<string, Listed>} */
  const known = new Map();
  for (const group of groups) for (const each of group.voices) known.set(each.name, known.get(each.name) ?? { ...each, of: each.kept ? "" : group.title, model: group.id });
  return [...known.values()].sort((a, b) => Number(b.kept) - Number(a.kept));
}

function draw() {
  const element = shelf();
  if (!element?.firstElementChild) return;
  const status = element.querySelector(".h-voices-said");
  text(status, said);
  if (removed) status.append(" ", makeButton(t("shelf.undo", "Undo"), () => act("restore", removed).then((fine) => fine && tell("")), "h-chip"));
  list(element.querySelector(".h-shelf-voices"), all(), (each) => each.name, makeRow, drawRow);
  list(element.querySelector(".h-auditions"), auditions, (each) => `${each.id} ${each.name}`, makeNew, drawNew);
  const models = groups.filter(({ id }) => able.includes(id));
  list(element.querySelector(".h-new-voices"), models, ({ id }) => id, ({ id, title }) => makeButton(t("voices.audition", "Try {count} new voices of {model}", { count: seeds, model: title }), () => audition(id), "h-chip"), () => {});
}

// A voice that a seed made: heard, then kept under its name or another one, or put into the bin.
/** @param {AuditionView} voice */
function makeNew(voice) {
  const row = el(`<li><button type="button" class="h-round"><i aria-hidden="true"></i></button><div><b></b> <span class="h-soft"></span></div><span class="h-chips"></span></li>`);
  row.querySelector("b").textContent = voice.name;
  row.querySelector(".h-round").addEventListener("click", () => play(voice.name, `hearth/creation/${voice.id}`));
  row.querySelector(".h-chips").append(
    named(makeButton("", () => keep(voice), "h-chip"), t("voices.keep", "Keep"), voice),
    named(makeButton("", () => act("discard", voice.name, String(voice.id)), "h-chip"), t("voices.discard", "Discard"), voice),
  );
  return row;
}

/** @param {HTMLElement} row @param {AuditionView} voice */
function drawNew(row, voice) {
  const sounds = playing === voice.name;
  row.classList.toggle("h-sounding-now", sounds);
  row.querySelector(".h-round").setAttribute("aria-label", sounds ? t("voices.stop", "Stop {name}", voice) : t("voices.hear", "Hear {name}", voice));
  text(row.querySelector("div > span"), voice.of);
}

/** @param {AuditionView} voice */
const keep = async ({ id, name }) => (await act("keep", name, String(id))) && tell(t("voices.taken", "{name} is among your voices now.", { name }));

/** @param {string} model */
async function audition(model) {
  if (!(await act("audition", model, model))) return;
  tell(t("voices.auditioning", "{count} new voices speak one after another. Each stands here once it has spoken.", { count: seeds }));
  if (!awaited) setTimeout(lookAgain, LOOK_MS);
  awaited = auditions.length + seeds;
  soon();
}

// New voices come while others still speak; whoever closes the shelf sees them at its next opening.
async function lookAgain() {
  if (shelf()?.open && auditions.length < awaited) {
    await load();
    setTimeout(lookAgain, LOOK_MS);
  } else awaited = 0;
}

/** @param {Listed} voice */
function makeRow(voice) {
  const row = el(`<li><button type="button" class="h-round"><i aria-hidden="true"></i></button><div><b></b> <span class="h-soft"></span><p class="h-soft"></p></div><span class="h-chips"></span></li>`);
  row.querySelector("b").textContent = voice.name;
  row.querySelector(".h-round").addEventListener("click", () => (voice.heard ? play(voice.name) : sample(voice)));
  if (voice.kept) {
    const send = el(`<a class="h-chip" download></a>`);
    send.href = `hearth/voice?${new URLSearchParams({ name: voice.name, download: "1" })}`;
    named(send, t("voices.send", "Save as a file"), voice);
    row.querySelector(".h-chips").append(
      named(makeButton("", () => edit(row, voice, true), "h-chip"), t("voices.rename", "Rename"), voice),
      named(makeButton("", () => edit(row, voice, false), "h-chip"), t("voices.describe", "Describe"), voice),
      send,
      named(makeButton("", () => remove(voice.name), "h-chip"), t("voices.remove", "Remove"), voice),
    );
  }
  return row;
}

/** @param {HTMLElement} button @param {string} label @param {{ name: string }} voice */
function named(button, label, { name }) {
  text(button, label);
  button.setAttribute("aria-label", `${label}${t("word.colon", ": ")}${name}`);
  return button;
}

/** @param {HTMLElement} row @param {Listed} voice */
function drawRow(row, voice) {
  const button = row.querySelector(".h-round"), sounds = playing === voice.name;
  row.classList.toggle("h-sounding-now", sounds);
  button.setAttribute("aria-label", sounds ? t("voices.stop", "Stop {name}", { name: voice.name }) : voice.heard ? t("voices.hear", "Hear {name}", { name: voice.name }) : t("voices.sample", "Have {name} speak a sample", { name: voice.name }));
  const where = voice.kept ? t("voices.kept", "saved") : voice.of;
  text(row.querySelector("div > span"), [...voice.words, where].filter(Boolean).join(t("word.comma", ", ")));
  text(row.querySelector("div > p"), voice.about);
}

/** @param {string} name */
function play(name, from = `hearth/voice?${new URLSearchParams({ name })}`) {
  if (playing === name) audio.pause();
  else {
    audio.src = from;
    audio.play().catch(() => {});
    playing = name;
    draw();
  }
}
for (const each of ["pause", "ended", "error"]) {
  audio.addEventListener(each, () => {
    playing = "";
    draw();
  });
}

/** @param {string} words */
function tell(words, undo = "") {
  [said, removed] = [words, undo];
  draw();
}

// Do something with a kept voice, and look anew; tell what stands in the way. A second press of the same would be refused, as the first has done it.
/** @param {string} name @param {string} voice */
async function act(name, voice, value = "") {
  const deed = `${name} ${voice}`;
  if (under_way.has(deed)) return false;
  under_way.add(deed);
  try {
    return await actOnce(name, voice, value);
  } finally {
    under_way.delete(deed);
  }
}

/** @param {string} name @param {string} voice @param {string} value */
async function actOnce(name, voice, value) {
  const answer = await post(`hearth/voices/${name}`, { name: voice, value }).catch(() => null);
  const { trouble } = answer ? await answer.json().catch(() => ({})) : { trouble: t("machines.silent", "Hearth did not respond.") };
  if (trouble) tell(trouble);
  await load();
  call("speak.voices"); // the field to choose from
  return answer?.ok;
}

// A voice that lies with a model is no sound: its model speaks a sample, as any script.
/** @param {Listed} voice */
async function sample({ name, model }) {
  if (await act("speak", name, model)) tell(t("voices.sampled", "{name} speaks a sample. You hear it under Result.", { name }));
  soon();
}

/** @param {string} name */
const remove = async (name) => (await act("remove", name)) && tell(t("voices.removed", "{name} was removed.", { name }), name);

/** @param {HTMLElement} row @param {Listed} voice @param {boolean} renames */
function edit(row, voice, renames) {
  row.querySelector("form")?.remove();
  const form = el(`<form class="h-one"><input type="text" class="h-field"><button class="h-chip"></button></form>`), input = form.querySelector("input");
  input.maxLength = renames ? 60 : 400;
  input.value = renames ? voice.name : voice.about;
  input.setAttribute("aria-label", renames ? t("voices.name-of", "Name of {name}", { name: voice.name }) : t("voices.about-of", "What {name} is like", { name: voice.name }));
  text(form.querySelector("button"), t("token.keep", "Save"));
  form.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation(); // it stops no job
    form.remove();
  });
  form.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    tell("");
    const { value } = input;
    if ((await act(renames ? "rename" : "describe", voice.name, value)) && input.value === value) form.remove();
  });
  row.append(form);
  input.select();
  input.focus();
}

/** @param {File} file */
async function take(file) {
  const body = new FormData();
  body.append("file", file);
  const answer = await fetch("hearth/voice", { method: "POST", credentials: "same-origin", body }), { name, trouble } = await answer.json().catch(() => ({}));
  await load();
  tell(answer.ok ? t("voices.taken", "{name} is among your voices now.", { name }) : (trouble ?? t("book.status", "Hearth did not take {name} (status {status}). Try again.", { name: file.name, status: answer.status })));
  if (answer.ok) call("speak.voices");
}
