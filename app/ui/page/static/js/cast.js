// Who speaks: a row for each name of the script, with its voice, volume and pace. The field speak-cast keeps them, as JSON.
import { el, list, text } from "./elements.js";
import { ask, call, fill } from "./hearth.js";
import { speakerLook } from "./player.js";
import { told } from "./told.js";
import { t } from "./words.js";

/** @typedef {{ voice?: string, model?: string, volume?: number, pace?: number }} Own what was chosen for a name */

const FRESH_MS = 5000;
let /** @type {VoiceGroupView[]} */ groups = [], asked = "", askedMs = 0;
let /** @type {ScriptView | null} */ seen = null, look = () => {};

const field = () => document.querySelector("#speak-cast textarea, #speak-cast input");
/** @returns {Record<string, Own>} */
const read = () => {
  try {
    return JSON.parse(field()?.value || "{}");
  } catch {
    return {};
  }
};
/** @param {Record<string, Own>} table @param {string} name */
const find = (table, name) => Object.keys(table).find((each) => each.toLowerCase() === name.toLowerCase()) ?? name;

// Keep what was chosen for a name; what is as ever is not kept.
/** @param {string} name @param {Own} changes */
function choose(name, changes) {
  const table = read(), key = find(table, name), row = { ...table[key], ...changes };
  for (const [what, usual] of /** @type {[keyof Own, unknown][]} */ (Object.entries({ voice: "", model: "", volume: 0, pace: 1 }))) if (row[what] === usual) delete row[what];
  delete table[key];
  if (Object.keys(row).length) table[key] = row;
  fill("speak-cast", Object.keys(table).length ? JSON.stringify(table) : "");
  if (seen) drawCast(seen, look);
  look();
}

/** @param {string} model */
async function load(model) {
  if (asked === model && Date.now() - askedMs < FRESH_MS) return;
  [asked, askedMs] = [model, Date.now()];
  const answer = await ask(`hearth/cast?${new URLSearchParams({ model })}`).catch(() => null);
  if (model !== asked) return; // those of another model were asked for meanwhile
  if (!answer) return void (askedMs = 0);
  groups = answer.models;
  if (seen) drawCast(seen, look);
}

// Draw the rows of a checked script; where it has one speaker alone, the field of the one voice stands in their place.
/** @param {ScriptView} view @param {() => void} again */
export function drawCast(view, again) {
  [seen, look] = [view, again];
  const place = document.querySelector("#h-cast");
  if (!place) return;
  const rows = view.cast ?? [];
  place.hidden = !rows.length;
  document.querySelector("#speak-voice")?.closest(".row, .h-inline")?.classList.toggle("h-hidden-by-cast", rows.length > 0);
  if (!rows.length) return;
  load(view.model);
  if (!place.firstElementChild) place.innerHTML = `<p class="h-cast-title" aria-hidden="true"></p><ul class="h-cast"></ul>`;
  text(place.firstElementChild, t("cast.title", "Voices"));
  place.lastElementChild.setAttribute("aria-label", t("cast.title", "Voices"));
  const table = read(), own = (/** @type {ActorView} */ row) => table[find(table, row.name)] ?? {};
  const first = rows.find((row) => !own(row).voice && !own(row).model); // whose voice is the one that is chosen for a script of one
  list(place.querySelector(".h-cast"), rows, (row) => `${row.speaker} ${row.name}`, makeRow, (line, row) => drawRow(line, row, own(row), row === first));
}

/** @param {ActorView} row */
function makeRow(row) {
  const line = el(`<li><span class="h-badge ${speakerLook(row.speaker)}"></span><select class="h-field h-who-voice"></select><select class="h-field h-who-volume"></select><select class="h-field h-who-pace"></select></li>`);
  line.firstElementChild.textContent = row.name;
  line.firstElementChild.title = row.name;
  const [voice, volume, pace] = line.querySelectorAll("select");
  voice.setAttribute("aria-label", t("cast.voice-of", "Voice of {name}", { name: row.name }));
  volume.setAttribute("aria-label", t("cast.volume-of", "Volume of {name}", { name: row.name }));
  pace.setAttribute("aria-label", t("cast.pace-of", "Pace of {name}", { name: row.name }));
  voice.addEventListener("change", () => {
    const [model, name] = JSON.parse(voice.value);
    if (!model && !name && told.speak.voice) call("speak.novoice");
    choose(row.name, { model, voice: name });
  });
  volume.addEventListener("change", () => choose(row.name, { volume: Number(volume.value) }));
  pace.addEventListener("change", () => choose(row.name, { pace: Number(pace.value) }));
  return line;
}

/** @returns {[number, string][]} */
const VOLUMES = () => [[-9, t("cast.softest", "much quieter")], [-4, t("cast.softer", "quieter")], [0, t("cast.loud", "usual volume")], [4, t("cast.louder", "louder")]];
/** @returns {[number, string][]} */
const PACES = () => [[0.85, t("cast.slower", "slower")], [0.93, t("cast.slow", "a little slower")], [1, t("cast.pace", "usual pace")], [1.08, t("cast.fast", "a little faster")], [1.18, t("cast.faster", "faster")]];

/** @param {HTMLElement} line @param {ActorView} row @param {Own} own @param {boolean} first */
function drawRow(line, row, own, first) {
  const [voice, volume, pace] = line.querySelectorAll("select");
  const chosen = first && told.speak.voice ? told.speak.voice : "", recording = first && !chosen && told.speak.clip;
  const alone = recording ? t("cast.recording", "The recording below") : row.voice && !own.voice ? t("cast.auto-named", "Automatic: {voice}", { voice: row.voice }) : t("cast.auto", "Automatic");
  const wanted = JSON.stringify([own.model ?? "", nowCalled(own.voice ?? chosen, own.model || seen?.model)]);
  const drawn = JSON.stringify([groups, seen?.model, alone, wanted]);
  if (voice.dataset.drawn !== drawn) {
    voice.dataset.drawn = drawn;
    voice.replaceChildren(new Option(alone, JSON.stringify(["", ""])), ...groups.map((group) => makeGroup(group)));
    voice.value = wanted;
    if (voice.selectedIndex < 0) voice.selectedIndex = 0; // it is gone
  }
  drawSteps(volume, VOLUMES(), own.volume ?? 0, (value) => `${value} dB`);
  drawSteps(pace, PACES(), own.pace ?? 1, (value) => `${value} ×`);
}

// The name that a voice has by now, as it may have been renamed since it was chosen.
/** @param {string} name @param {string | undefined} model */
function nowCalled(name, model) {
  const voices = groups.find((group) => group.id === model)?.voices ?? [];
  return voices.some((each) => each.name === name) ? name : (voices.find((each) => each.formerly?.includes(name))?.name ?? name);
}

/** @param {VoiceGroupView} group */
function makeGroup(group) {
  const main = group.id === seen?.model, made = el(`<optgroup></optgroup>`), model = main ? "" : group.id;
  made.label = group.title || t("cast.title", "Voices");
  const any = main ? [] : [["", group.voices.length ? t("cast.any", "One of its voices") : t("cast.made", "A voice of its own")]];
  for (const [name, words] of [...any, ...group.voices.map((each) => [each.name, each.name])]) made.append(new Option(words, JSON.stringify([model, name])));
  if (!made.childElementCount) made.hidden = true;
  return made;
}

/** @param {HTMLSelectElement} select @param {[number, string][]} steps @param {number} now @param {(value: number) => string} word */
function drawSteps(select, steps, now, word) {
  const all = steps.some(([value]) => value === now) ? steps : steps.concat([[now, word(now)]]).sort(([a], [b]) => a - b);
  const drawn = JSON.stringify([all, now]);
  if (select.dataset.drawn === drawn) return;
  select.dataset.drawn = drawn;
  select.replaceChildren(...all.map(([value, words]) => new Option(words, String(value))));
  select.value = String(now);
}
