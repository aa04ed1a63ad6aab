// Speak: the script checked as it is typed, its parts as they are spoken, and the result.
import { makeAlong } from "./along.js";
import { lookAtVoices, onVoices } from "./book.js";
import { drawCast } from "./cast.js";
import { checked, drawProblems } from "./check.js";
import { arrange, compared, drawEditing, drawLine, editFrame, focusOn, takeFocus } from "./edit.js";
import { el, list, makeButton, onPage, text } from "./elements.js";
import { area, call, live, post, soon } from "./hearth.js";
import { drawJob, jobCard, jobFrame, jobSaid, stopped } from "./job.js";
import { drawListening, drawMarks, listenFrame } from "./listen.js";
import { drawScript, makePlayer, speakerLook } from "./player.js";
import { offerSamples } from "./rewrite.js";
import { scripts } from "./samples.js";
import { saidDifferently } from "./says.js";
import { sendButton } from "./send.js";
import { inForce } from "./told.js";
import { t, time } from "./words.js";

const FIRST_CHIPS = ["laughs", "sighs", "clears throat"];
const BY_HAND = ["guidance", "temperature", "top_p", "cfg_filter"];
const FORMATS = ["wav", "flac", "mp3", "ogg", "opus"];
const SUBTITLES = ["srt", "vtt"], WORDS = { "srt-words": () => t("sound.srt-words", "srt, word by word"), "vtt-words": () => t("sound.vtt-words", "vtt, word by word") };

/** @typedef {import("./edit.js").Line} Line */
let /** @type {{ on: boolean, at: number, gains: string, job?: string, parts: PartView[], stop: () => void } | null} */ player = null;

// The script box.
const box = () => document.querySelector("#speak-text textarea");

/** @param {ScriptView} view */
function drawCheck(view) {
  const place = document.querySelector("#h-script");
  if (!place) return;
  if (!place.firstElementChild) {
    place.innerHTML = `<div class="h-chips" role="group"></div><ol class="h-turns"></ol>
      <p class="h-check"><span class="h-badge"></span> <span class="h-soft"></span></p><ul class="h-problems"></ul>`;
  }
  const chips = ["(pause 0.5s)", ...view.tags, ...view.nonverbals.map((name) => `(${name})`)];
  chips.sort((a, b) => rank(a) - rank(b));
  list(place.querySelector(".h-chips"), chips, (name) => name, (name) => {
    const chip = el(`<button type="button" class="h-chip"></button>`);
    chip.dataset.insert = name;
    chip.textContent = name;
    return chip;
  });
  const chipsArea = place.querySelector(".h-chips");
  chipsArea.setAttribute("aria-label", t("speak.insert", "Insert into the script"));
  const turns = place.querySelector(".h-turns");
  list(turns, view.turns, (turn) => `${turn.speaker} ${turn.name} ${turn.text} ${turn.said}`, (turn) => {
    const line = el(`<li><span class="h-badge ${speakerLook(turn.speaker)}"></span> <span></span></li>`);
    line.firstElementChild.textContent = turn.name;
    line.lastElementChild.textContent = turn.text;
    const spoken = turn.said && line.lastElementChild.appendChild(el(`<span class="h-soft h-as-spoken"></span>`));
    if (spoken) spoken.textContent = t("check.said", "spoken: {words}", { words: turn.said });
    return line;
  });
  turns.tabIndex = turns.scrollHeight > turns.clientHeight ? 0 : -1; // so that keys can scroll a long list
  const fade = () => turns.classList.toggle("h-more-below", turns.scrollTop + turns.clientHeight < turns.scrollHeight - 2);
  turns.onscroll = fade;
  fade();
  const check = place.querySelector(".h-check");
  const blank = !box()?.value.trim(); // an empty script has no problems yet
  check.hidden = blank;
  check.firstElementChild.className = `h-badge ${view.level}`;
  text(check.firstElementChild, { right: t("check.right", "ready"), careful: t("check.careful", "ready, see the notes"), wrong: t("check.wrong", "not ready") }[view.level]);
  const takes = { time: time(view.eta_s) }, here = live.state?.charts; // a guest's own machine is another
  const eta = view.eta_s == null ? "" : here ? t("check.eta", ", about {time} on this machine", takes) : t("check.eta-host", ", about {time} on the host", takes);
  text(check.lastElementChild, view.about + eta);
  drawProblems(place.querySelector(".h-problems"), blank ? [] : view.problems);
  drawCast(view, script.look);
  lookAtVoices(view.model);
  compared(view.draft, script.anew);
  saidDifferently(view, script.anew);
  inForce("speak", "changed", view.changed);
  document.querySelector("#speak-new-voice")?.classList.toggle("h-hidden", !view.imitates); // some know only the voices that lie with them
  for (const name of BY_HAND) document.querySelector(`#speak-${name}`)?.classList.toggle("h-hidden", !view.settings.includes(name));
  document.querySelector("#speak-transcript")?.classList.toggle("h-hidden", !view.transcript); // asked for where the voice needs it
}

/** @param {string} chip */
function rank(chip) {
  const name = chip.slice(1, -1);
  return chip.startsWith("[") ? 0 : chip.startsWith("(pause") ? 1 : FIRST_CHIPS.includes(name) ? 2 : 3;
}

const script = checked("speak-text", "speech", drawCheck, { cast: "speak-cast", says: "speak-says" });
onVoices(script.anew);
export const spokenBy = script.again;
export const spokenAt = script.at;
area("#h-script", () => script.look());
area("#h-scripts", (element) => offerSamples(element, t("speak.samples", "Sample scripts"), scripts(), "speak-text"));
onPage("click", (event) => {
  const insert = event.target.closest?.("[data-insert]")?.dataset.insert;
  if (!insert || !box()) return;
  const field = box();
  const [from, to] = [field.selectionStart, field.selectionEnd];
  const before = field.value.slice(0, from), after = field.value.slice(to);
  const lead = before && !/\s$/.test(before) ? " " : "";
  field.focus();
  field.setSelectionRange(from, to + after.length - after.trimStart().length);
  document.execCommand("insertText", false, `${lead}${insert} `); // as if typed, for Ctrl Z
});

// Play a part while it is spoken, piece after piece, then the rest from the finished file, as its voice made it. With `on`
// all parts after it, too, as they come: each as the joined file will have it, with its pauses (hear_script.py).
const AHEAD_S = 4, LOOK_MS = 200, FADE_S = 0.008; // parts without a pause fade into each other, as in join_sound.py
/** @param {number} first */
function hear(first, on = false, context = new AudioContext()) {
  player?.stop();
  for (const audio of document.querySelectorAll(".h-player audio")) audio.pause();
  let next = 0;
  const mine = {
    on,
    at: first,
    gains: "{}", // of each voice in the joined file, once they are known
    job: live.state.speech?.job,
    parts: live.state.speech?.parts ?? [],
    stop() {
      if (player === mine) player = null;
      context.close();
      drawHeard();
    },
  };
  player = mine;

  /** @param {Response} answer */
  async function play(answer, from = 0, gap = 0) {
    const sound = await context.decodeAudioData(await answer.arrayBuffer());
    if (sound.duration <= from) return 0;
    const source = context.createBufferSource();
    source.buffer = sound;
    source.connect(context.destination);
    next = Math.max(next + gap, context.currentTime + 0.05);
    source.start(next, from);
    next += sound.duration - from;
    return sound.duration - from;
  }

  // Play what has come of a part; return how far it is heard.
  /** @param {PartView} part @param {number} heard */
  async function playJoined(part, heard) {
    const values = new URLSearchParams({ after: String(heard), gains: mine.gains });
    const answer = await fetch(`hearth/heard/${mine.job}/${part.index}?${values}`);
    if (!answer.ok) throw new Error(String(answer.status));
    if (answer.status === 204) return heard;
    mine.gains = answer.headers.get("Hearth-Gains") ?? "{}";
    await play(answer, 0, heard ? 0 : part.pause || -FADE_S);
    return Number(answer.headers.get("Hearth-Until"));
  }

  // Not much is fetched before its time: a long script has hundreds of parts.
  const rest = () => new Promise((done) => setTimeout(done, LOOK_MS));
  const early = () => next - context.currentTime > AHEAD_S;

  async function playPart() {
    for (let heard = 0, known = 0, begun = null; ; await rest()) {
      const { job, parts, end } = live.state.speech ?? {}, gone = on && job !== mine.job; // a book goes on with its next chapter while this one is heard
      if (!gone) mine.parts = parts ?? [];
      const part = mine.parts[mine.at];
      if (player !== mine || (job !== mine.job && !gone) || !part || (end && !gone && part.state !== "done")) return false;
      if (on && early()) continue;
      const done = gone || part.state === "done", count = part.pieces?.length ?? 0, anew = begun !== null && count && part.pieces?.[0] !== begun;
      begun ??= part.pieces?.[0] ?? null;
      if (on && (done || count > known)) heard = await playJoined(part, heard);
      else if (done) await play(await fetch(part.url ?? ""), heard);
      else if (!anew) for (const url of part.pieces?.slice(known) ?? []) heard += await play(await fetch(url));
      if (done) return true;
      known = count;
    }
  }

  async function follow() {
    while ((await playPart()) && on && mine.at + 1 < mine.parts.length) {
      mine.at += 1;
      drawHeard();
    }
    while (player === mine && next > context.currentTime) await rest();
  }
  follow().catch(() => {}).finally(() => player === mine && mine.stop()); // after a stop the context is closed
  drawHeard();
}

onPage("play", () => player?.stop(), true); // one plays at a time

/** Hear the next script by itself, as soon as it begins to sound. Safari lets sound begin only what a press has made: the context. */
export function hearNext() {
  const context = new AudioContext(), before = live.state.speech?.job;
  awaited = ({ job, end, parts }) => {
    if (job === before) return;
    if (parts[0]?.url || parts[0]?.pieces?.length) hear(0, true, context);
    else if (end) context.close();
    else return;
    awaited = null;
  };
}
let /** @type {((speech: SpeechView) => void) | null} */ awaited = null;
area("#h-parts", (_, { speech }) => speech && awaited?.(speech));

function drawHeard() {
  document.querySelectorAll("#h-parts .h-part").forEach(drawLive);
  drawAll();
}

// What a part's length lets doubt, said in words: a colour alone is not seen by everybody.
const DOUBTS = { long: () => t("part.long", "much too long"), short: () => t("part.short", "much too short") };

// Parts.
area("#h-parts", (element, { speech }) => {
  // Remarks and failures stand above the rows: a long script has hundreds.
  jobCard(element, speech, `${jobFrame}<p class="h-soft h-whole-book" hidden></p>${jobSaid}<p class="h-soft h-empty"></p><p class="h-chips h-all" hidden><button type="button"></button></p>${editFrame}${listenFrame}<ol class="h-list"></ol><details hidden><summary></summary><ol class="h-list"></ol></details>`);
  text(element.querySelector("h2"), t("parts.title", "Parts"));
  text(element.querySelector(".h-empty"), speech ? "" : t("parts.empty", "Your script is spoken part by part. You can play each part as soon as it is ready, and redo it."));
  // What of the script is spoken already is known once a job has ended.
  const stage = `${speech?.job} ${Boolean(speech?.end)}`;
  if ((element.dataset.stage ?? stage) !== stage) script.anew();
  element.dataset.stage = stage;
  if (!speech) return player?.stop();
  const { end } = speech;
  const closing = end?.kind === "finished" ? t("parts.done", "done in {time}", { time: time(end.elapsed_s, true) }) : end?.kind === "stopped" ? stopped(speech.parts.some((part) => "url" in part)) : "";
  const last = speech.parts.findLast((part) => part.state === "done");
  const said = [...(speech.taken ? [{ kind: "note", text: speech.taken }] : []), ...speech.said];
  drawJob(element, { ...speech, said }, closing, last && t("part.there", "Part {n} of {total} is ready to play.", { n: last.index + 1, total: speech.parts.length }));
  const whole = element.querySelector(".h-whole-book"), { chapter, chapters, left_s } = speech.book ?? {};
  whole.hidden = !chapter || Boolean(end);
  if (!whole.hidden) text(whole, t("book.chapter", "Chapter {chapter} of {chapters}", { chapter, chapters }) + (left_s == null ? "" : t("book.left", ", about {time} left for all of them", { time: time(left_s) })));
  // What was not spoken is folded once the job has ended.
  const lines = arrange(speech), isLeft = (/** @type {Line} */ line) => end && !["done", "draft"].includes(line.state);
  const left = lines.filter(isLeft);
  const [rows, folded] = element.querySelectorAll(".h-list");
  drawEditing(element, speech);
  drawRows(rows, lines.filter((line) => !isLeft(line)), speech);
  drawRows(folded, left, speech);
  folded.parentElement.hidden = !left.length;
  text(folded.previousElementSibling, t("parts.left", "{n} {n:part|parts} not spoken", { n: left.length }));
  takeFocus(element, speech.job);
  drawListening(element, speech);
  drawAll();
});

// While a script is spoken, hear it from its first part on; afterwards its result stands above.
function drawAll() {
  const line = document.querySelector("#h-parts .h-all"), speech = live.state.speech;
  if (!line) return;
  line.hidden = !player?.on && !(speech && !speech.end && speech.parts.length > 1 && (speech.parts[0].url || speech.parts[0].pieces?.length));
  const button = line.firstElementChild;
  text(button, player?.on ? t("part.pause", "Stop") : t("sound.play", "Play all"));
  button.setAttribute("aria-pressed", Boolean(player?.on));
  button.onclick = () => (player?.on ? player.stop() : hear(0, true));
}

/** @param {HTMLElement} rows @param {Line[]} parts @param {SpeechView} speech */
function drawRows(rows, parts, speech) {
  const { job } = speech;
  list(rows, parts, (part) => `${job}-${part.key}`, (part) => {
    const row = el(`<li class="h-part"><span class="h-badge h-number"></span><div class="h-sounding"><p></p></div>
      <button type="button" class="h-chip h-live"></button><button type="button" class="h-chip h-again"></button></li>`);
    row.querySelector(".h-live").addEventListener("click", () => listen(row));
    row.querySelector(".h-again").addEventListener("click", () => {
      call("speak.redo", { part: `${job} ${part.index}` });
      focusOn(`${row.spoken.at} .h-again`, job); // it goes while its part is spoken anew
      soon();
    });
    return row;
  }, (row, part) => {
    drawPart(row, part, speech);
    drawLine(row, part, speech);
  });
}

/** @param {any} row @param {Line} part @param {SpeechView} speech whose place in the queue a paused job has again */
function drawPart(row, part, { end, pace, place }) {
  row.spoken = part;
  const done = part.state === "done", now = part.state === "now" && !place, cut = done && !part.whole, doubt = done && part.doubt && DOUBTS[part.doubt]();
  text(row.querySelector(".h-number"), String(part.at + 1));
  row.querySelector(".h-number").className = `h-badge h-number ${cut || now || doubt || part.marks?.length ? "careful" : done ? "right" : ""}`;
  if (!done) row.querySelector(".h-player")?.remove(); // a part that was stopped in its middle is spoken on
  if (done && !row.querySelector(".h-player")) {
    const label = t("part.play-n", "Play part {n}", { n: part.index + 1 });
    row.querySelector(".h-sounding").prepend(makePlayer({ ...part, label, pace: pace * part.pace }));
  }
  const under_way = part.state === "draft" ? t("edit.draft", "to be spoken") : now ? t("part.now", "speaking, {time} ready", { time: time(part.seconds ?? 0, true) }) : end ? t("part.not", "not spoken") : t("part.waits", "waiting");
  const words = row.querySelector("p");
  words.classList.toggle("h-soft", !done);
  const before = cut ? t("part.cut", "cut off by the stop") : done ? (doubt ? `⚠ ${doubt}` : "") : under_way;
  drawScript(words, [before, part.text].filter(Boolean).join(t("word.colon", ": ")), live.state.speech?.cast);
  drawMarks(row, part.marks);
  drawLive(row);
  const again = row.querySelector(".h-again");
  again.hidden = !done || !end || part.changed; // it would be spoken as the script was
  text(again, t("part.again", "Redo"));
  again.setAttribute("aria-label", t("part.again-n", "Redo part {n}", { n: part.index + 1 }));
}

/** @param {any} row */
function drawLive(row) {
  const chip = row.querySelector(".h-live"), heard = player?.at === row.spoken.index && player?.job === live.state.speech?.job && row.spoken.state !== "draft", listening = heard && !player?.on;
  row.classList.toggle("h-heard-now", heard);
  chip.hidden = !listening && !(row.spoken.state === "now" && row.spoken.pieces?.length);
  text(chip, listening ? t("part.pause", "Stop") : t("part.listen", "Listen live"));
  chip.setAttribute("aria-pressed", listening);
}

/** @param {{ spoken: Line }} row */
const listen = ({ spoken }) => (player?.at === spoken.index && player.job === live.state.speech?.job && !player.on ? player.stop() : hear(spoken.index));

// Word by word, once a recogniser has found when each is said. The player stays: it may be sounding.
/** @param {HTMLElement} element @param {SoundView} result */
function wordsCame(element, { words }) {
  if (!words || element.dataset.words) return;
  element.dataset.words = "true";
  const formats = element.querySelector(".h-format");
  for (const [format, name] of Object.entries(WORDS)) formats.append(new Option(name(), format, false, format === picked));
  if (picked in WORDS) formats.dispatchEvent(new Event("change"));
  along?.refresh();
}

// The result; `picked`: the format that was chosen by hand.
let picked = "", /** @type {ReturnType<typeof makeAlong> | null} */ along = null;
area("#h-sound", (element, { speech }) => {
  const results = speech?.results ?? [];
  element.hidden = !results.length;
  if (!results.length) return;
  const result = results[results.length - 1];
  if (element.dataset.drawn === String(result.id)) return wordsCame(element, result);
  element.dataset.drawn = String(result.id);
  element.innerHTML = `<h2></h2><p class="h-chips"></p>`;
  text(element.querySelector("h2"), t("sound.title", "Result"));
  const sounds = makePlayer({ ...result, label: t("sound.play", "Play all") });
  element.querySelector("h2").after(sounds);
  along = result.subtitles ? makeAlong(sounds, result.id) : null;
  if (along) element.append(along.along);
  const download = el(`<a class="h-chip" download></a>`), formats = el(`<select class="h-field h-format"></select>`);
  const own = picked || result.name.split(".").pop();
  formats.setAttribute("aria-label", t("sound.format", "Download format"));
  for (const format of [...FORMATS, ...(result.subtitles ? SUBTITLES : [])]) formats.append(new Option(format, format, false, format === own));
  const aim = () => {
    download.href = `${result.url}?download=1&format=${formats.value}`;
    download.title = result.name.replace(/[^.]+$/, formats.value.replace("-words", ""));
  };
  text(download, t("canvas.download", "Download"));
  formats.addEventListener("change", () => {
    picked = formats.value;
    aim();
  });
  aim();
  delete element.dataset.words;
  wordsCame(element, result);
  const naming = el(`<form class="h-one" hidden><input type="text" class="h-field" maxlength="60" required><button class="h-chip"></button></form>`), name = naming.querySelector("input");
  name.placeholder = t("sound.name", "Name for this voice");
  name.setAttribute("aria-label", name.placeholder);
  text(naming.querySelector("button"), t("token.keep", "Save"));
  const keep = makeButton(t("sound.keep", "Save this voice"), () => {
    naming.hidden = !naming.hidden;
    name.focus();
  });
  naming.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation(); // it stops no job
    naming.hidden = true;
    keep.focus();
  });
  let saves = false;
  naming.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (saves) return; // the name would be taken: by the first press
    saves = true;
    const called = name.value, answer = await post("hearth/voices", { id: result.id, name: called }).catch(() => null);
    const { trouble } = (await answer?.json().catch(() => null)) ?? { trouble: t("machines.silent", "Hearth did not respond.") };
    saves = false;
    text(element.querySelector(".h-kept"), trouble ?? t("sound.kept", "Saved as {name}. You can choose it under Voice.", { name: called }));
    naming.hidden = !trouble;
    if (trouble) return;
    call("speak.voices");
    if (naming.contains(document.activeElement) || document.activeElement === document.body) keep.focus();
  });
  element.querySelector(".h-chips").append(download, formats, ...sendButton(download));
  if (!live.state.charts) return; // only the owner can save voices
  element.querySelector(".h-chips").append(keep);
  element.append(naming, el(`<p class="h-soft h-kept" role="status"></p>`));
});
