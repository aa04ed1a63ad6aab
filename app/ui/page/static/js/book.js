// A book: dropped on Speak or chosen, its chapters with a tick each, spoken one after the other or put into the script; who speaks in it; how far each is.
import { el, list, makeButton, text } from "./elements.js";
import { area, ask, call, live, post, redraw, soon } from "./hearth.js";
import { rewrite } from "./rewrite.js";
import { fetchFile } from "./send.js";
import { openTab } from "./tabs.js";
import { inForce, told } from "./told.js";
import { t, time } from "./words.js";

const READ = ".epub,.docx,.pdf,.srt,.vtt,.txt,.text,.md,.markdown", LONG = 200_000; // bytes of a text that is rather a book
let /** @type {string} */ model = "", voicesAsked = "", comparing = false, /** @type {RevoicedView | null} */ revoiced = null;
let /** @type {BookView} */ book = {}, asked = false, seen = "", turn = 0, /** @type {Promise<unknown>} */ opening = Promise.resolve();

const owner = () => Boolean(live.state?.charts);
const panel = () => document.querySelector("#h-book");

// Whether the server reads it: a Markdown file has marks and notes that nobody says. A plain text becomes the script at once.
/** @param {File} file */
export const wantsReading = ({ name, size }) => owner() && (/\.(epub|docx|srt|vtt|md|markdown|pdf|doc|rtf|odt|mobi|azw3?)$/i.test(name) || (/\.(txt|text)$/i.test(name) && size > LONG));

// One after the other: the server has open what it read last.
/** @param {File} file */
export const openBook = (file) => (opening = opening.catch(() => {}).then(() => read(file)));

/** @param {File} file */
async function read(file) {
  const body = new FormData();
  body.append("file", file);
  inForce("speak", "refused", "");
  reading(t("book.reading", "Reading {name}\u2026", { name: file.name }));
  const answer = await fetch("hearth/book", { method: "POST", credentials: "same-origin", body }).catch(silent), view = await answer.json().catch(() => ({}));
  reading("");
  if (answer.ok) show(view);
  else inForce("speak", "refused", view.trouble ?? t("book.status", "Hearth did not take {name} (status {status}). Try again.", { name: file.name, status: answer.status }));
}

/** @param {string} words */
function reading(words) {
  const element = panel();
  if (!element) return;
  if (!element.firstElementChild) frame(element);
  element.hidden = !words && !book.chapters;
  text(element.querySelector(".h-reading"), words);
}

/** @param {BookView} view */
function show(view) {
  book = view;
  [revoiced, voicesAsked] = [null, ""];
  turn++;
  draw();
  if (!book.chapters) return;
  panel()?.querySelector("legend").scrollIntoView({ block: "nearest" });
  const pressed = document.activeElement;
  if (pressed?.matches(".h-open-book")) panel()?.querySelector("fieldset").focus({ preventScroll: true }); // who listens hears its title and its length
}

const ticked = () => [...panel().querySelectorAll(".h-chapters input")].flatMap((each, place) => (each.checked ? [place] : []));

/** @param {HTMLElement} element */
function frame(element) {
  element.innerHTML = `<p class="h-soft h-reading" role="status"></p><fieldset tabindex="-1" aria-describedby="h-book-length" hidden><legend></legend><p class="h-soft" id="h-book-length" role="status"></p><p class="h-lacks" hidden></p><p class="h-chips h-tick-all"></p><ol class="h-chapters"></ol>
    <div class="h-names" role="group" hidden><p class="h-soft"></p><p class="h-speakers"></p><p class="h-chips"></p></div><p class="h-lacks h-invents" hidden></p>
    <p class="h-trouble" role="alert" hidden></p><p class="h-chips h-with-chapters"></p><p class="h-chips h-spoken-book" hidden></p><p class="h-chips h-revoice" hidden><span class="h-soft" role="status"></span></p></fieldset>`;
  element.querySelector(".h-tick-all").append(
    makeButton(t("book.all", "Tick all"), () => tickAll(true), "h-chip"), makeButton(t("book.no-chapter", "Tick none"), () => tickAll(false), "h-chip"),
  );
  element.querySelector(".h-with-chapters").append(
    makeButton("", speak, "h-chip"), makeButton(t("book.script", "Put into the script"), putIntoScript, "h-chip"),
    makeButton(t("book.close", "Close the book"), close, "h-chip"),
  );
  element.querySelector(".h-revoice").append(makeButton("", speakRevoiced, "h-chip"));
  for (const [kind, label] of [["audiobook", t("shelf.audiobook", "Save as an audiobook")], ["mp3", t("book.save-each", "Save each chapter as {format}", { format: "MP3" })], ["flac", t("book.save-each", "Save each chapter as {format}", { format: "FLAC" })]]) {
    const button = makeButton(label, () => save(button, kind), "h-chip");
    element.querySelector(".h-spoken-book").append(button);
  }
  element.querySelector(".h-chapters").addEventListener("change", count);
}

/** @param {boolean} on */
const tickAll = (on) => {
  for (const each of panel().querySelectorAll(".h-chapters input")) each.checked = on;
  count();
};

function draw() {
  const element = panel();
  if (!element) return;
  if (!element.firstElementChild) frame(element);
  const { chapters } = book;
  element.hidden = element.querySelector("fieldset").hidden = !chapters;
  if (!chapters) return;
  const title = book.title || t("book.untitled", "Untitled");
  text(element.querySelector("legend"), book.author ? t("book.by", "{title} by {author}", { title, author: book.author }) : title);
  const lacks = element.querySelector(".h-lacks");
  lacks.hidden = !book.note;
  text(lacks, book.note ? `⚠ ${book.note}` : "");
  element.querySelector("ol").innerHTML = "";
  list(element.querySelector("ol"), [...chapters.entries()], ([place]) => place, ([place, chapter]) => {
    const line = el(`<li><label><input type="checkbox"> <span></span></label> <span class="h-badge" hidden></span> <span class="h-badge careful h-revoiced" hidden></span> <span class="h-soft"></span></li>`);
    line.querySelector("input").checked = chapter.ticked;
    [...line.children].slice(1).forEach((each, at) => (each.id = `h-chapter-${place}-${at}`));
    line.querySelector("input").setAttribute("aria-describedby", `h-chapter-${place}-0 h-chapter-${place}-1 h-chapter-${place}-2`); // how far it is, what changed, how long
    text(line.querySelector("label span"), chapter.title);
    text(line.lastElementChild, time(chapter.seconds));
    return line;
  });
  drawNames();
  drawSpoken();
  count();
}

const STATES = {
  waits: () => t("book.waits", "waiting"), now: () => t("book.now", "being spoken"), done: () => t("book.done", "spoken"), cut: () => t("book.cut", "stopped"),
};

// How far each chapter is. What is spoken is opened, line by line, from here; once there are some they are saved.
function drawSpoken() {
  const { chapters = [] } = book;
  panel().querySelectorAll(".h-chapters li").forEach((/** @type {HTMLElement} */ line, /** @type {number} */ place) => {
    const { state, creation, title } = chapters[place], badge = line.querySelector(".h-badge");
    badge.hidden = !state;
    badge.className = `h-badge ${state === "done" ? "right" : state === "waits" ? "" : "careful"}`;
    text(badge, state ? STATES[state]() : "");
    let open = line.querySelector("button");
    if (!open && creation) {
      open = makeButton(t("shelf.parts", "Open its parts"), () => (openTab("speak"), call("speak.open", { creation: Number(open.dataset.creation) }), soon()), "h-chip");
      open.setAttribute("aria-label", `${t("shelf.parts", "Open its parts")}${t("word.colon", ": ")}${title}`);
      badge.after(open);
    }
    if (open) [open.dataset.creation, open.hidden] = [String(creation), !creation || Boolean(live.state.speech && !live.state.speech.end)];
  });
  panel().querySelector(".h-spoken-book").hidden = !chapters.some((each) => each.state === "done");
  drawRevoiced();
}

// The spoken chapters that other voices touch, and the press that has those lines spoken anew.
function drawRevoiced() {
  const touched = revoiced?.chapters ?? [], place = panel().querySelector(".h-revoice"), takes = revoiced?.takes_s;
  panel().querySelectorAll(".h-revoiced").forEach((/** @type {HTMLElement} */ badge, /** @type {number} */ at) => {
    const found = touched.find((each) => each.place === at);
    badge.hidden = !found;
    text(badge, found ? t("book.revoiced", "{fresh} of {parts} {parts:part|parts} in another voice now", found) : "");
  });
  place.hidden = !touched.length;
  text(place.querySelector("span"), !touched.length ? "" : takes == null
    ? t("book.revoice-said", "Voices have changed since these chapters were spoken.")
    : t("book.revoice-takes", "Voices have changed since these chapters were spoken. Speaking only those lines takes about {time}.", { time: time(takes) }));
  text(place.querySelector("button"), t("book.revoice", "Speak the changed lines of {count} {count:chapter|chapters}", { count: touched.length }));
}

const chosenVoices = () => ({ model, voice: told.speak.voice || "", cast: told.speak.cast || "" });

// Ask which spoken chapters the voices touch that are chosen now, by the fields or for this model: one request at a time, then whatever was chosen last.
export function lookAtVoices(chosen = model) {
  model = chosen;
  const recording = told.speak.clip && !told.speak.voice, spoken = book.chapters?.some((each) => each.state === "done");
  if (recording && revoiced) { // nothing of them is spoken with one
    [revoiced, voicesAsked] = [null, ""];
    drawRevoiced();
  }
  if (!model || !seen || recording || !spoken) return;
  const of = book, wanted = JSON.stringify([chosenVoices(), seen, book.names?.map((each) => each.voiced)]);
  if (wanted === voicesAsked) return;
  voicesAsked = comparing ? "" : wanted; // what is on its way tells of others
  if (comparing) return;
  comparing = true;
  act("revoiced", chosenVoices()).then((answer) => (answer.ok ? answer.json() : null)).then((view) => {
    if (wanted !== voicesAsked || book !== of) return; // others were chosen meanwhile
    revoiced = view;
    drawRevoiced();
  }).finally(() => ((comparing = false), lookAtVoices()));
}

async function speakRevoiced() {
  const of = book, view = await tell(await act("revoice", chosenVoices()));
  if (!view || book !== of) return;
  [book.chapters, revoiced, voicesAsked] = [view.chapters, null, ""];
  drawSpoken();
  if (document.activeElement === document.body) panel().querySelector("fieldset").focus({ preventScroll: true }); // the pressed button is gone
  soon();
}

// Who seems to speak: a guess, until it is pressed; then each name has a tick, and the voices stand below.
function drawNames() {
  const place = panel().querySelector(".h-names"), { names = [] } = book, [said, speakers, chips] = place.children, voiced = names.filter((each) => each.voiced);
  place.hidden = !names.length;
  if (place.hidden) return;
  place.setAttribute("aria-label", t("book.names", "Who speaks"));
  const [{ name: first }] = names;
  text(said, voiced.length
    ? t("book.voiced", "Ticked people get their own voice; the narrator reads everything else. Choose the voices below.")
    : t("book.guessed", "{n} {n:name seems|names seem} to speak in this book, by words such as: said {first}.", { n: names.length, first }));
  speakers.hidden = !voiced.length;
  list(speakers, voiced.length ? names : [], (each) => each.name, (each) => {
    const line = el(`<label><input type="checkbox"> <span></span></label>`);
    text(line.lastElementChild, `${each.name} (${each.count})`);
    line.firstElementChild.addEventListener("change", () => give([...speakers.querySelectorAll("label")].flatMap((one, at) => (one.firstElementChild.checked ? [names[at].name] : []))));
    return line;
  }, (line, each) => (line.firstElementChild.checked = each.voiced));
  const deed = voiced.length
    ? /** @type {const} */ (["none", t("book.one-voice", "One voice for all"), () => give([])])
    : /** @type {const} */ (["all", t("cure.voices", "Give each a voice"), () => give(names.slice(0, book.voiced_most).map((each) => each.name))]);
  list(chips, [deed], ([key]) => key, ([, label, run]) => makeButton(label, run, "h-chip"));
}

/** @param {string[]} names */
async function give(names) {
  const mine = ++turn, of = book, view = await tell(await act("voices", { names }));
  if (!view || mine !== turn || book !== of) return; // others were ticked meanwhile, or it was closed
  Object.assign(book, view);
  drawSpoken();
  drawNames();
  if (document.activeElement === document.body) panel().querySelector(".h-names :is(input, button)")?.focus({ preventScroll: true }); // the pressed button is gone
  checkAgain();
}

let checkAgain = () => {};
// What is drawn of the script's speakers, where the voices of a book change it.
/** @param {() => void} look */
export const onVoices = (look) => (checkAgain = look);

/** @param {HTMLButtonElement} button @param {string} kind */
async function save(button, kind) {
  const label = button.textContent ?? "", ids = (book.chapters ?? []).filter((each) => each.state === "done").map((each) => each.creation).join();
  button.disabled = true;
  text(button, t("shelf.joining", "Joining\u2026"));
  const refused = await fetchFile(`hearth/export?${new URLSearchParams({ [kind === "audiobook" ? kind : "each"]: kind, ids, title: book.title ?? "" })}`).catch(silent);
  await tell(refused ?? new Response("{}"));
  button.disabled = false;
  text(button, label);
  if (document.activeElement === document.body) button.focus({ preventScroll: true }); // what is disabled loses it
}

function count() {
  const { chapters = [], most = 0 } = book, places = ticked(), chosen = places.map((place) => chapters[place]);
  const seconds = chosen.reduce((sum, each) => sum + each.seconds, 0), letters = chosen.reduce((sum, each) => sum + each.letters + 2, 0);
  const [all, whole] = [chapters.length, { count: places.length, all: chapters.length, time: time(seconds) }];
  text(panel().querySelector("fieldset > .h-soft"), all === places.length
    ? t("book.whole", "{all} {all:chapter|chapters}, about {time} of speech.", whole)
    : t("book.some", "{count} of {all} {all:chapter|chapters}, about {time} of speech.", whole));
  const [speaking, script] = panel().querySelectorAll(".h-with-chapters button");
  text(speaking, t("book.speak", "Speak {count} {count:chapter|chapters}", { count: places.length }));
  speaking.disabled = !places.length;
  script.disabled = !places.length || letters > most;
  drawInvents();
  script.title = letters > most ? t("book.too-long", "The script takes {most} {most:character|characters}; these are {letters}.", { most, letters }) : "";
}

// A model without voices of its own makes one up for each job.
function drawInvents() {
  const line = panel().querySelector(".h-invents");
  line.hidden = !book.invents || (book.chapters?.length ?? 0) < 2 || Boolean(told.speak.voice || told.speak.clip || told.speak.cast);
  text(line, line.hidden ? "" : `\u26a0 ${t("book.invents", "If no voice is chosen, each chapter may sound different. Choose a voice below.")}`);
}

/** @param {string} name @param {{ chapters?: number[], names?: string[], model?: string, voice?: string, cast?: string }} [values] */
const act = (name, values = {}) => post(`hearth/book/${name}`, values).catch(silent);
const silent = () => new Response(JSON.stringify({ trouble: t("share.silent", "Hearth did not respond; it may have been closed. Start it again, then try again.") }), { status: 503 });

/** @param {Response} answer */
async function tell(answer) {
  const view = await answer.json().catch(() => ({})), line = panel().querySelector(".h-trouble");
  line.hidden = answer.ok;
  text(line, view.trouble ?? "");
  line.dataset.cure = view.cure ?? "";
  redraw(); // what cures it stands behind it
  return answer.ok ? view : null;
}

async function speak() {
  if (!(await tell(await act("tick", { chapters: ticked() })))) return;
  call("speak.book");
  soon();
}

async function putIntoScript() {
  const view = await tell(await act("script", { chapters: ticked() }));
  if (view) rewrite("speak-text", view.words, t("drop.taken", "The script is now {name}.", { name: book.title || t("book.untitled", "Untitled") }));
}

async function close() {
  const from = document.activeElement, closed = book;
  if (!(await tell(await act("close"))) || book !== closed) return;
  const stayed = [from, document.body].includes(document.activeElement);
  show({});
  if (stayed) document.querySelector("#h-scripts .h-open-book")?.focus();
}

area("#h-book", () => {
  if (owner() && !asked) {
    asked = true;
    ask("hearth/book").then((view) => view.chapters && !book.chapters && show(view), () => (asked = false)); // one that was open before the page was loaded anew
  }
  const { speech, queue } = live.state ?? {}, now = `${speech?.job} ${speech?.end?.kind} ${speech?.results.length} ${queue?.length}`;
  if (!book.chapters) return;
  drawInvents();
  lookAtVoices();
  if (now === seen) return;
  seen = now;
  const of = book;
  ask("hearth/book").then(({ chapters }) => {
    if (seen !== now || book !== of || chapters?.length !== book.chapters?.length) return; // asked anew, or another one meanwhile
    book.chapters = chapters;
    drawSpoken();
  }, () => (seen = ""));
});
area("#h-scripts", (element) => {
  if (!owner() || !element.firstElementChild || element.querySelector(".h-open-book")) return;
  const field = el(`<input type="file" class="h-book-file" accept="${READ}" hidden>`), chip = makeButton(t("book.open", "Open a book\u2026"), () => field.click(), "h-chip h-open-book");
  chip.title = t("book.kinds", "EPUB, Word, PDF, Markdown, subtitles or text");
  field.addEventListener("change", () => {
    if (field.files[0]) openBook(field.files[0]);
    field.value = ""; // so that the same file can be chosen again
  });
  element.firstElementChild.append(chip, field);
});
