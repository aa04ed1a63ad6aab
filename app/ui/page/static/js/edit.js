// Edit the lines of a script that was spoken: words, place, pauses, earlier takes, and the way back. The field's script is the truth: each deed
// changes it, and the list shows its lines with the parts that say them.
import { el, list, makeButton, onPage, text } from "./elements.js";
import { fill, live, post, soon } from "./hearth.js";
import { makePlayer } from "./player.js";
import { keepReplaced, putScript } from "./rewrite.js";
import { told } from "./told.js";
import { sentences, t, time } from "./words.js";

/**
 * A row of the list.
 * @typedef {Omit<PartView, "state"> & { state: PartView["state"] | "draft", at: number, last: boolean, key: string | number, editable: boolean, changed?: boolean }} Line
 */

const box = () => document.querySelector("#speak-text textarea");
const castField = () => document.querySelector("#speak-cast textarea, #speak-cast input");
const saysField = () => document.querySelector("#speak-says textarea, #speak-says input");
const fields = () => ({ text: box()?.value ?? "", cast: castField()?.value ?? "", says: saysField()?.value ?? "" });
const undone = /** @type {{ text: string, cast: string, says: string }[]} */ ([]);
const unsent = /** @type {Map<string, string>} */ (new Map()); // a line -> words typed into its form and not in the script yet
let /** @type {DraftView | null} */ draft = null, open = "", said = "", focus = "", left = "", waits = false, again = () => {}; // left: the job whose lines are to go
let /** @type {Promise<unknown>} */ turn = Promise.resolve(), going = 0, shown = /** @type {(done?: unknown) => void} */ (() => {});

// How the field's script goes with the parts, as the check of the script says.
/** @param {DraftView | null} found @param {() => void} look */
export const compared = (found, look) => {
  if (draft?.job !== found?.job) undone.length = 0;
  if (found?.state === "other") unsent.clear();
  [draft, again, waits] = [found, look, false];
  shown();
};

// The lines to show: those of the script as it stands now, each as the part that says it, or as one that is not spoken yet.
/** @param {SpeechView} speech @returns {Line[]} */
export const arrange = (speech) => {
  const mine = speech.end && draft?.job === speech.job ? draft : null;
  if (mine?.state !== "changed") return speech.parts.map((part) => ({ ...part, at: part.index, last: part.index === speech.parts.length - 1, key: part.index, editable: mine?.state === "same" }));
  return mine.lines.map((line, at) => {
    const part = line.part < 0 ? { index: at, state: /** @type {const} */ ("draft"), text: line.text ?? "", pace: 1 } : speech.parts[line.part];
    return { ...part, pause: line.pause, at, last: at === mine.lines.length - 1, key: line.part < 0 ? `new ${line.text}` : line.part, changed: true, editable: true, takes: [] };
  });
};

/** @param {string} name @param {object} [more] */
const act = async (name, more = {}) => {
  const answer = await post(`hearth/edit/${name}`, { ...fields(), ...more });
  const view = await answer.json().catch(() => ({}));
  if (answer.ok) return view;
  tell(view.trouble ?? "");
  return null;
};

// Deeds go one after the other, each once the list shows what the one before it left: a line is known by its place there.
/** @template T @param {() => Promise<T>} run @returns {Promise<T>} */
function inTurn(run) {
  going++;
  const mine = turn.then(() => waits && new Promise((done) => (shown = done))).then(run);
  turn = mine.catch(() => {}).then(() => going--);
  return mine;
}

/** @param {string} words */
function tell(words) {
  said = words;
  text(document.querySelector("#h-parts .h-editing [role=status]"), words);
}

// Do something with a line, or with the pause after it; the field gets the script that comes of it, unless somebody typed there meanwhile.
/** @param {string} name @param {any} row @param {{ after?: number, seconds?: number, words?: string, focus?: string }} asked @param {string} words */
const deed = (name, row, { after = 0, ...asked }, words) => inTurn(async () => {
  const before = fields();
  const view = await act(name, { ...asked, part: row.spoken.at + after });
  if (!view || box().value !== before.text) return false;
  if (view.text !== before.text) {
    undone.push(before);
    put(view.text);
  }
  focusOn(`${view.part} ${asked.focus ?? ".h-edit"}`);
  tell(words);
  return true;
});

// What of which line is to have the focus, once it is there; not while the list still shows the job that goes.
/** @param {string} place @param {string} [job] */
export const focusOn = (place, job = "") => ([focus, left] = [place, job]);

// Do what brings another job's lines: whoever is at a line is at the same place among those.
/** @template T @param {() => Promise<T>} run @returns {Promise<T>} */
async function keepLine(run) {
  const at = /** @type {any} */ (document.activeElement?.closest("#h-parts .h-part"))?.spoken.at, job = draft?.job;
  const view = await run();
  if (view && at !== undefined) focusOn(`${at} .h-edit`, job);
  return view;
}

// Put a script with its cast and pronunciations into the fields.
/** @param {{ text: string, cast?: string, says?: string }} view */
function replace(view) {
  fill("speak-cast", view.cast ?? "");
  fill("speak-says", view.says ?? "");
  put(view.text);
}

// Put a script into the field; until it is checked, the lines in the list are those before.
/** @param {string} words */
function put(words) {
  if (box().value !== words) putScript(words);
  waits = true;
  again();
}

async function speak() {
  if (!(await inTurn(() => keepLine(() => act("speak"))))) return;
  undone.length = 0;
  tell("");
  soon();
}

const undo = () => inTurn(async () => {
  const last = undone.pop();
  if (last) {
    replace(last);
    return tell(t("edit.undone", "Undone."));
  }
  const view = await keepLine(() => act("back"));
  if (!view) return;
  keepReplaced("speak-text", view.text);
  replace(view);
  tell(t("edit.back", "The script is as it was before, with its parts and its result. What was made since is in the bin."));
  soon();
});

onPage("keydown", (event) => {
  const inside = event.target.closest?.("#h-parts"), typed = event.target.closest?.("textarea, input:not([type=range])");
  if (!inside || typed || event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
  if (!document.querySelector("#h-parts .h-undo-edit:not([hidden])")) return;
  event.preventDefault();
  undo();
});

export const editFrame = `<div class="h-editing" hidden><p class="h-soft" role="status"></p><p class="h-soft h-pending" hidden></p><p class="h-chips"><button type="button" class="h-chip h-apply" hidden></button>
  <button type="button" class="h-chip h-undo-edit" hidden></button><button type="button" class="h-chip h-theirs" hidden></button></p></div>`;

// Above the list: what is left to speak, and the way back.
/** @param {HTMLElement} element @param {SpeechView} speech */
export const drawEditing = (element, speech) => {
  const bar = element.querySelector(".h-editing"), mine = draft?.job === speech.job ? draft : null, free = Boolean(live.state.charts && speech.end);
  const changed = free && mine?.state === "changed", other = free && mine?.state === "other"; // also beside an empty field: a book's chapters are never in it
  const back = Boolean(live.state.charts) && (free ? undone.length > 0 || speech.before : speech.before);
  bar.hidden = !(changed || other || back || said);
  const [apply, undoes, theirs] = bar.querySelectorAll("button"), pending = bar.querySelector(".h-pending"), held = document.activeElement;
  apply.hidden = pending.hidden = !changed;
  text(pending, changed ? told.speak.changed || "" : "");
  text(apply, mine?.fresh ? t("edit.apply", "Speak only what changed") : t("edit.join", "Join anew"));
  undoes.hidden = !back;
  text(undoes, t("shelf.undo", "Undo"));
  undoes.title = t("edit.undo-key", "Ctrl+Z in this list");
  theirs.hidden = !other;
  text(theirs, t("edit.theirs", "Put the script of these parts back to edit them"));
  // A pressed button that is gone leaves its focus to the next one, or to the first line.
  if (bar.contains(held) && !held?.checkVisibility()) {
    const next = [undoes, apply, theirs].find((each) => each.checkVisibility());
    if (next) next.focus({ preventScroll: true });
    else focusOn("0 .h-edit");
  }
  if (bar.dataset.wired) return;
  bar.dataset.wired = "true";
  apply.addEventListener("click", speak);
  undoes.addEventListener("click", undo);
  theirs.addEventListener("click", async () => {
    const view = await inTurn(() => act("script"));
    if (!view) return;
    undone.push(fields());
    keepReplaced("speak-text", view.text);
    replace(view);
  });
};

// A row's own: the button that opens its form, the form, and its earlier takes.
/** @param {any} row @param {Line} part @param {SpeechView} speech */
export const drawLine = (row, part, speech) => {
  const may = Boolean(live.state.charts && speech.end && part.editable && part.state !== "now");
  let edit = row.querySelector(".h-edit");
  if (!edit && !may) return;
  if (!edit) {
    edit = makeButton("", () => toggle(row), "h-chip h-edit");
    edit.setAttribute("aria-expanded", "false");
    row.querySelector(".h-again").before(edit);
    row.addEventListener("keydown", (/** @type {KeyboardEvent & { target: HTMLElement }} */ event) => {
      if (!event.altKey || event.ctrlKey || event.metaKey || !["ArrowUp", "ArrowDown"].includes(event.key) || edit.hidden) return;
      event.preventDefault();
      if (!event.repeat || !going) move(row, event.key === "ArrowUp", event.target.closest(".h-form") ? ".h-form textarea" : ".h-edit");
    });
  }
  edit.hidden = !may;
  text(edit, t("edit.edit", "Edit"));
  edit.setAttribute("aria-label", t("edit.edit-n", "Edit part {n}", { n: part.at + 1 }));
  if (!may || (open !== row.dataset.key && row.querySelector(".h-form"))) close(row);
  barEnds(row);
  drawTakes(row, part);
};

// Once the rows are drawn: the focus goes where it is aimed, unless somebody works elsewhere by then.
/** @param {HTMLElement} element @param {string} job */
export const takeFocus = (element, job) => {
  const [at, where] = focus.split(/ (.*)/);
  const row = focus && !waits && job !== left && [.../** @type {NodeListOf<any>} */ (element.querySelectorAll(".h-part"))].find(({ spoken }) => spoken.at === Number(at));
  const target = row && (row.querySelector(where) ?? row.querySelector(".h-edit")), held = document.activeElement;
  if (!target || target.hidden) return;
  if (held === document.body || (!left && held === box()) || (row.contains(held) && !held?.closest(".h-form"))) target.focus({ preventScroll: true }); // whoever went on in the form stays there, or in the script while it was spoken
  focus = "";
};

// The first line goes no further up, and the last no further down.
/** @param {any} row */
function barEnds(row) {
  const [up, down] = [row.querySelector(".h-up"), row.querySelector(".h-down")];
  if (up) [up.disabled, down.disabled] = [row.spoken.at === 0, row.spoken.last];
}

/** @param {any} row */
function close(row) {
  if (open === row.dataset.key) open = "";
  const form = row.querySelector(".h-form"), held = form?.contains(document.activeElement);
  const kept = form && unsent.has(form.dataset.line);
  if (kept) tell(t("edit.kept", "What you typed in part {n} is kept: Edit shows it again.", { n: row.spoken.at + 1 }));
  form?.remove();
  row.querySelector(".h-edit")?.setAttribute("aria-expanded", "false");
  if (held) row.querySelector(".h-edit").focus({ preventScroll: true });
  return kept;
}

// A line by its words, which stay its own when it moves or is spoken anew; of equal ones, by how many stand before it.
/** @param {any} row @param {string} words */
const nameLine = (row, words) => {
  const before = [.../** @type {NodeListOf<any>} */ (document.querySelectorAll("#h-parts .h-part"))].filter(({ spoken }) => spoken.at < row.spoken.at && spoken.text === row.spoken.text);
  return `${before.length} ${words}`;
};

/** @param {any} row */
async function toggle(row) {
  if (row.querySelector(".h-form")) return close(row);
  const from = document.activeElement, line = await inTurn(() => act("line", { part: row.spoken.at }));
  if (!line || !row.isConnected || row.querySelector(".h-form")) return;
  const stayed = [from, document.body].includes(document.activeElement);
  for (const other of document.querySelectorAll("#h-parts .h-form")) close(other.closest(".h-part"));
  open = row.dataset.key;
  const n = row.spoken.at + 1, form = el(`<form class="h-form"><textarea class="h-field" rows="3"></textarea><p class="h-pauses"><label><span></span> <input type="number" class="h-field" min="0" max="30" step="0.1"></label>
    <label><span></span> <input type="number" class="h-field" min="0" max="30" step="0.1"></label></p><p class="h-chips"></p></form>`);
  const words = form.querySelector("textarea"), pauses = form.querySelectorAll("input"), labels = form.querySelectorAll("label span");
  form.setAttribute("aria-label", t("edit.edit-n", "Edit part {n}", { n }));
  const named = nameLine(row, line.words);
  form.dataset.line = named;
  words.value = unsent.get(named) ?? line.words;
  const discard = makeButton(t("voices.discard", "Discard"), () => {
    unsent.delete(named);
    close(row);
    tell(t("edit.discarded", "What you typed in part {n} is discarded.", { n: row.spoken.at + 1 }));
  }, "h-chip");
  const keepTyped = () => {
    if (words.value.trim() === line.words.trim()) unsent.delete(named);
    else unsent.set(named, words.value); // not only as the form closes: a list drawn anew takes it along
    discard.hidden = !unsent.has(named);
  };
  words.addEventListener("input", keepTyped);
  keepTyped();
  words.setAttribute("aria-label", t("edit.words", "Words of part {n}", { n }));
  for (const [place, name, seconds] of /** @type {[number, string, number][]} */ ([[0, t("edit.before", "Pause before, s"), line.before], [1, t("edit.after", "Pause after, s"), line.after]])) {
    text(labels[place], name);
    pauses[place].value = String(Math.round(seconds * 100) / 100);
    pauses[place].addEventListener("change", () => pauses[place].value !== "" && deed("pause", row, { after: place, seconds: Number(pauses[place].value), focus: ".h-form input" }, t("edit.paused", "The pause is set.")));
  }
  const changeWords = async (/** @type {boolean} */ now) => {
    const same = words.value.trim() === line.words.trim();
    if (!same && !(await deed("words", row, { words: words.value }, ""))) return;
    unsent.delete(named);
    close(row);
    if (now && !same) speak();
    else if (now) row.querySelector(".h-again")?.click();
  };
  form.querySelector(".h-chips").append(
    makeButton(t("edit.speak", "Speak it anew"), () => changeWords(true), "h-chip h-main"),
    makeButton(t("edit.later", "Change only the script"), () => changeWords(false), "h-chip"),
    makeButton(t("edit.up", "Move up"), () => move(row, true, ".h-edit"), "h-chip h-up"),
    makeButton(t("edit.down", "Move down"), () => move(row, false, ".h-edit"), "h-chip h-down"),
    discard,
    makeButton(t("force.close", "Close"), () => close(row), "h-chip"),
  );
  form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => event.preventDefault());
  form.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") close(row);
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) changeWords(true);
    else return;
    event.preventDefault();
    event.stopPropagation(); // neither stops a job nor begins the whole script
  });
  row.append(form);
  barEnds(row);
  row.querySelector(".h-edit").setAttribute("aria-expanded", "true");
  if (stayed) words.focus(); // whoever went elsewhere meanwhile keeps their place
}

/** @param {any} row @param {boolean} up @param {string} where */
const move = (row, up, where) => {
  const kept = close(row), moved = up ? t("edit.moved-up", "The part is moved up.") : t("edit.moved-down", "The part is moved down.");
  return deed(up ? "up" : "down", row, { focus: where }, sentences([moved, kept && said]));
};

// The takes that were there before, to be heard beside this one and chosen again.
/** @param {any} row @param {Line} part */
function drawTakes(row, part) {
  const takes = part.editable && live.state.charts ? part.takes ?? [] : [];
  let place = row.querySelector(".h-takes");
  if (!place && !takes.length) return;
  if (!place) row.querySelector(".h-sounding").append((place = el(`<details class="h-takes"><summary></summary><ul></ul></details>`)));
  place.hidden = !takes.length;
  text(place.firstElementChild, t("edit.takes", "{n} earlier {n:take|takes}", { n: takes.length }));
  list(place.lastElementChild, takes, (take) => take.url, (take) => {
    const line = el(`<li><div></div></li>`), number = takes.indexOf(take) + 1;
    const label = t("edit.play-take", "Play earlier take {take} of part {n}", { take: number, n: part.at + 1 });
    line.firstElementChild.append(makePlayer({ ...take, label }));
    if (take.text !== part.text) line.firstElementChild.append(Object.assign(document.createElement("p"), { className: "h-soft", textContent: take.text.replace(/\[[^[\]]{1,40}\] ?/g, "") }));
    const use = makeButton(t("edit.use", "Use this take"), async () => {
      const before = box().value;
      const view = await inTurn(() => act("take", { part: row.spoken.at, take: takes.findIndex((each) => each.url === take.url) }));
      if (!view) return;
      if (box().value !== before) keepReplaced("speak-text", view.text); // somebody typed meanwhile
      put(view.text);
      tell(t("edit.used", "The take is used; the other one stays beside it."));
      soon();
    }, "h-chip");
    use.setAttribute("aria-label", t("edit.use-n", "Use take {take} of part {n}, {time}", { take: number, n: part.at + 1, time: time(take.seconds, true) }));
    line.append(use);
    return line;
  });
}
