// A book: dropped on Speak or chosen, its chapters with a tick each, spoken one after the other or put into the script.
import { el, list, makeButton, text } from "./elements.js";
import { area, ask, call, live, post } from "./hearth.js";
import { rewrite } from "./rewrite.js";
import { inForce } from "./told.js";
import { t, time } from "./words.js";

const READ = ".epub,.docx,.pdf,.srt,.vtt,.txt,.text,.md,.markdown", LONG = 200_000; // bytes of a text that is rather a book
let /** @type {BookView} */ book = {}, asked = false;

const owner = () => Boolean(live.state?.charts);
const panel = () => document.querySelector("#h-book");

// Whether the server reads it; a plain text becomes the script at once.
/** @param {File} file */
export const wantsReading = ({ name, size }) => owner() && (/\.(epub|docx|srt|vtt|markdown|pdf|doc|rtf|odt|mobi|azw3?)$/i.test(name) || (/\.(txt|text|md)$/i.test(name) && size > LONG));

/** @param {File} file */
export const openBook = async (file) => {
  const body = new FormData();
  body.append("file", file);
  inForce("speak", "refused", "");
  reading(t("book.reading", "Reading {name}\u2026", { name: file.name }));
  const answer = await fetch("hearth/book", { method: "POST", credentials: "same-origin", body }), view = await answer.json().catch(() => ({}));
  reading("");
  if (answer.ok) show(view);
  else inForce("speak", "refused", view.trouble ?? t("book.status", "Hearth did not take {name} (status {status}). Try again.", { name: file.name, status: answer.status }));
};

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
  draw();
  if (book.chapters) panel()?.querySelector("legend").scrollIntoView({ block: "nearest" });
}

const ticked = () => [...panel().querySelectorAll("li input")].flatMap((each, place) => (each.checked ? [place] : []));

/** @param {HTMLElement} element */
function frame(element) {
  element.innerHTML = `<p class="h-soft h-reading" role="status"></p><fieldset hidden><legend></legend><p class="h-soft"></p><p class="h-lacks" hidden></p><p class="h-chips h-tick-all"></p><ol class="h-chapters"></ol>
    <p class="h-trouble" role="alert" hidden></p><p class="h-chips h-with-chapters"></p></fieldset>`;
  element.querySelector(".h-tick-all").append(
    makeButton(t("book.all", "Tick all"), () => tickAll(true), "h-chip"), makeButton(t("book.no-chapter", "Tick none"), () => tickAll(false), "h-chip"),
  );
  element.querySelector(".h-with-chapters").append(
    makeButton("", speak, "h-chip"), makeButton(t("book.script", "Put into the script"), putIntoScript, "h-chip"),
    makeButton(t("book.close", "Close the book"), close, "h-chip"),
  );
  element.addEventListener("change", count);
}

/** @param {boolean} on */
const tickAll = (on) => {
  for (const each of panel().querySelectorAll("li input")) each.checked = on;
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
  list(element.querySelector("ol"), [...chapters.entries()], ([place]) => place, ([, chapter]) => {
    const line = el(`<li><label><input type="checkbox"> <span></span></label> <span class="h-soft"></span></li>`);
    line.querySelector("input").checked = chapter.ticked;
    text(line.querySelector("label span"), chapter.title);
    text(line.lastElementChild, time(chapter.seconds));
    return line;
  });
  count();
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
  script.title = letters > most ? t("book.too-long", "The script takes {most} {most:character|characters}; these are {letters}.", { most, letters }) : "";
}

/** @param {string} name @param {number[]} [chapters] */
const act = (name, chapters = []) => post(`hearth/book/${name}`, { chapters });

/** @param {Response} answer */
async function tell(answer) {
  const view = await answer.json().catch(() => ({})), line = panel().querySelector(".h-trouble");
  line.hidden = answer.ok;
  text(line, view.trouble ?? "");
  return answer.ok ? view : null;
}

async function speak() {
  if (await tell(await act("tick", ticked()))) call("speak.book");
}

async function putIntoScript() {
  const view = await tell(await act("script", ticked()));
  if (view) rewrite("speak-text", view.words, t("drop.taken", "The script is now {name}.", { name: book.title || t("book.untitled", "Untitled") }));
}

async function close() {
  await act("close");
  book = {};
  draw();
  document.querySelector("#h-scripts .h-open-book")?.focus();
}

area("#h-book", () => {
  if (owner() && !asked) {
    asked = true;
    ask("hearth/book").then(show, () => {}); // one that was open before the page was loaded anew
  }
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
