// Shelf: search as you type, one page at a time, by day.
import { drawAlbum, drawAlbumChoice, drawBefore, drawMarks, drawPicked, drawTags, markDeeds, move, placeInAlbum, shiftInAlbum, takeProject } from "./albums.js";
import { el, list, makeButton, onPage, onceFocused, text } from "./elements.js";
import { enlargeActs, enlargeButton, listEnlarging } from "./enlarge.js";
import { changeByWords, startFrom } from "./force.js";
import { area, ask, call, live, post, soon } from "./hearth.js";
import { madeWith, showPair, showPictures } from "./lightbox.js";
import { drawScript, makePlayer } from "./player.js";
import { fetchFile, sendButton } from "./send.js";
import { sure } from "./sure.js";
import { openTab } from "./tabs.js";
import { gb, size, t, time } from "./words.js";

const WAIT_MS = 180, DAY_MS = 86_400_000, LAST_S = 1e11, WORDS_MOST = 300, FORMATS = ["wav", "flac", "mp3", "ogg", "opus", "aac"];
const look = { words: "", kind: "", model: "", favourite: false, binned: false, skip: 0, album: 0, tag: "", since: "", until: "" };
/** @typedef {CreationView & { before?: boolean }} Creation before: what its script made earlier */
/** @typedef {[label: string, run: string | (() => unknown), kind?: string]} Row of a menu: what it does, or the address of a file */
const /** @type {Map<number, import("./albums.js").Picked>} */ picked = new Map(); // id -> the creation
const /** @type {Map<number, CreationView[]>} */ unfolded = new Map(); // id -> what its script made before it was edited
let /** @type {number[]} */ deleted = []; // ids since the tab was opened; Undo restores them all
let timer = 0, /** @type {ShelfView | null} */ page = null, seen = "";

const owner = () => Boolean(live.state.charts); // a guest sees what is theirs, and changes nothing here

// Two days the other way round mean what lies between them. They change places once they are left: while a year is typed, it is the year 2 first.
const days = () => (look.since && look.until ? [look.since, look.until].sort() : [look.since, look.until]);
/** @param {string} day @param {number} later by so many days */
const begins = (day, later) => {
  const midnight = new Date(`${day}T00:00`);
  midnight.setDate(midnight.getDate() + later); // some days have 23 hours
  return Math.min(LAST_S, Math.max(1, midnight.getTime() / 1000));
};

const query = () => {
  const values = new URLSearchParams({ words: look.words, kind: look.kind, model: look.model, skip: String(look.skip) });
  if (look.favourite) values.set("favourite", "1");
  if (look.binned) values.set("binned", "1");
  if (look.album) values.set("album", String(look.album));
  if (look.tag) values.set("tag", look.tag);
  const [since, until] = days();
  if (since) values.set("since", String(begins(since, 0)));
  if (until) values.set("until", String(begins(until, 1)));
  return values;
};

// What is looked for, on whichever page of it; and for which everything was selected.
const scope = () => {
  const values = query();
  values.delete("skip");
  return String(values);
};
let pickedAll = "";
const silent = { json: async () => ({ trouble: t("machines.silent", "Hearth did not respond.") }) };

let asked = 0;
async function refresh() {
  const turn = ++asked;
  const answer = await ask(`hearth/shelf?${query()}`);
  if (turn !== asked) return; // a later question's answer counts, whichever comes first
  page = answer;
  draw();
  for (const id of unfolded.keys()) unfold(id);
}

// What is folded away while it was asked for stays away.
/** @param {number} id */
async function unfold(id) {
  const { creations } = await ask(`hearth/shelf?earlier=${id}`).catch(() => ({ creations: [] }));
  if (!unfolded.has(id)) return;
  if (creations.length) unfolded.set(id, creations);
  else unfolded.delete(id);
  draw();
}

/** @param {number} id */
function toggle(id) {
  if (!unfolded.delete(id)) unfold((unfolded.set(id, []), id));
  draw();
}
/** @type {import("./albums.js").Shelf} */
const shelf = { page: () => /** @type {ShelfView} */ (page), look, picked, tell, show: refresh, change: (to) => (Object.assign(look, { skip: 0 }, to), refresh()) };
const later = () => {
  clearTimeout(timer);
  timer = setTimeout(refresh, WAIT_MS);
};

/** @param {HTMLElement} element */
function frame(element) {
  element.innerHTML = `<div class="h-tools"><input type="search" class="h-field"><select class="h-field h-kind"></select><select class="h-field h-model-pick"></select>
    <select class="h-field h-album-pick" hidden></select><span class="h-days"><label><span></span> <input type="date" max="9999-12-31" class="h-field"></label> <label><span></span> <input type="date" max="9999-12-31" class="h-field"></label></span>
    <label><input type="checkbox" class="h-fav"> <span></span></label><label><input type="checkbox" class="h-bin"> <span></span></label>
    <button type="button" class="h-chip h-empty-bin" hidden></button><button type="button" class="h-chip h-project" hidden></button><input type="file" accept=".zip" class="h-project-file" hidden></div>
    <p class="h-soft h-project-note" role="status"></p><p class="h-soft h-before" hidden></p>
    <div class="h-chips h-tag-row" role="group" hidden></div><section class="h-card h-album" hidden></section>
    <p class="h-chips h-pick-all"></p><div class="h-picked" hidden><div class="h-chips h-exports"></div><input type="text" class="h-field h-book-title" maxlength="120" hidden><button type="button" class="h-chip h-audiobook" hidden></button><button type="button" class="h-chip h-mp3" hidden></button><span class="h-soft h-cover" hidden></span><div class="h-marks"></div></div>
    <p class="h-trouble" role="alert" hidden></p><p class="h-soft h-count" role="status"></p><p class="h-soft h-none" role="status"></p><ul class="h-shelf"></ul><p class="h-chips h-pages"></p><p class="h-soft h-kept-parts"></p><div class="h-undo"><span role="status"></span></div>`;
  const search = element.querySelector("input[type=search]");
  search.placeholder = t("shelf.search", "Search your creations");
  search.setAttribute("aria-label", search.placeholder);
  search.addEventListener("input", () => ((look.words = search.value), (look.skip = 0), later()));
  const kinds = element.querySelector(".h-kind");
  kinds.setAttribute("aria-label", t("shelf.kind", "Type"));
  kinds.innerHTML = `<option value="">${t("shelf.all", "all types")}</option><option value="speech">${t("shelf.speech", "speech")}</option><option value="picture">${t("shelf.pictures", "pictures")}</option>`;
  kinds.addEventListener("change", () => ((look.kind = kinds.value), (look.skip = 0), refresh()));
  const models = element.querySelector(".h-model-pick");
  models.setAttribute("aria-label", t("shelf.model", "Model"));
  models.addEventListener("change", () => ((look.model = models.value), (look.skip = 0), refresh()));
  const [favourite, binned] = [element.querySelector(".h-fav"), element.querySelector(".h-bin")];
  text(favourite.nextElementSibling, t("shelf.favourites", "favourites"));
  text(binned.nextElementSibling, t("shelf.bin", "bin"));
  favourite.addEventListener("change", () => ((look.favourite = favourite.checked), (look.skip = 0), refresh()));
  binned.addEventListener("change", () => (picked.clear(), (look.binned = binned.checked), (look.skip = 0), refresh()));
  const albums = element.querySelector(".h-album-pick");
  albums.setAttribute("aria-label", t("album.label", "Album"));
  albums.addEventListener("change", () => shelf.change({ album: Number(albums.value) }));
  const between = element.querySelector(".h-days"), [since, until] = between.querySelectorAll("input");
  text(since.previousElementSibling, t("shelf.since", "from"));
  since.setAttribute("aria-label", t("shelf.since-day", "Show what was made from this day on"));
  text(until.previousElementSibling, t("shelf.until", "up to"));
  until.setAttribute("aria-label", t("shelf.until-day", "Show what was made up to this day"));
  for (const each of [since, until]) each.addEventListener("change", () => shelf.change({ since: since.value, until: until.value }));
  between.addEventListener("focusout", (/** @type {FocusEvent & { relatedTarget: Node | null }} */ { relatedTarget }) => {
    if (!between.contains(relatedTarget)) [since.value, until.value] = [look.since, look.until] = days();
  });
  for (const each of [models, favourite.parentElement, binned.parentElement, element.querySelector(".h-project")]) each.hidden = !owner();
  const file = element.querySelector(".h-project-file"), project = element.querySelector(".h-project");
  text(project, t("project.open", "Open a project file"));
  project.addEventListener("click", () => file.click());
  file.addEventListener("change", () => openProject(file.files[0]).finally(() => (file.value = "")));
  const [book, mp3] = [element.querySelector(".h-audiobook"), element.querySelector(".h-mp3")];
  book.addEventListener("click", () => saveJoined(book, "audiobook"));
  mp3.addEventListener("click", () => saveJoined(mp3, "mp3"));
  const empty = element.querySelector(".h-empty-bin");
  empty.addEventListener("click", async () => {
    if (!(await sure(t("shelf.sure", "Permanently delete everything in the bin?"), t("shelf.empty-bin", "Empty bin")))) return;
    await tell(await post("hearth/shelf/empty"));
    picked.clear();
    undoable([]);
    await refresh();
    follow(binned, empty);
  });
}

/** @param {File} file */
export async function openProject(file) {
  picked.clear();
  await refresh();
  const note = document.querySelector("#h-shelf .h-project-note");
  text(note, t("project.reading", "Reading {name}…", { name: file.name }));
  text(note, await takeProject(shelf, file).catch(() => silent.json().then(({ trouble }) => trouble)));
  for (const [field, value] of [["input[type=search]", ""], [".h-kind", ""]]) document.querySelector(`#h-shelf ${field}`).value = value;
  for (const day of document.querySelectorAll("#h-shelf .h-days input")) day.value = "";
  for (const box of document.querySelectorAll("#h-shelf :is(.h-fav, .h-bin)")) box.checked = false;
}

// Give the focus to what has taken a pressed button's place; whoever went elsewhere meanwhile keeps theirs.
/** @param {HTMLElement | null} element @param {Element | null} from */
function follow(element, from = document.body) {
  if ([from, document.body].some((each) => each === document.activeElement)) element?.focus({ preventScroll: true });
}

// Moving to the bin needs no confirmation: it can be undone.
/** @param {number[]} ids @param {Element | null} [from] */
function undoable(ids, from) {
  deleted = ids;
  const note = document.querySelector("#h-shelf .h-undo");
  if (!note) return;
  note.querySelector("button")?.remove();
  text(note.firstElementChild, ids.length ? t("shelf.deleted", "Moved to the bin: {n}.", { n: ids.length }) : "");
  if (!ids.length) return;
  const undo = makeButton(t("shelf.undo", "Undo"), async () => {
    const back = deleted;
    undoable([]);
    const { done } = owner() ? await move(shelf, "restore", back) : await restoreOwn(back);
    undoable(back.filter((id) => !done.includes(id)));
    await refresh();
    follow(document.querySelector(`#h-shelf [data-key="${back[0]}"] .h-delete`));
  }, "h-chip");
  note.append(undo); // beside what is said: within it, a screen reader would name it once more than the focus does
  follow(undo, from);
}

// A guest has them back one by one.
/** @param {number[]} ids */
async function restoreOwn(ids) {
  const /** @type {number[]} */ done = [];
  for (const id of ids) {
    const answer = await post(`hearth/shelf/${id}/restore`).catch(() => null);
    if (await tell(answer ?? silent)) break;
    done.push(id);
  }
  return { done };
}

// Show what stands in the way, if anything does; return it.
/** @param {Pick<Response, "json">} answer */
async function tell(answer) {
  const trouble = document.querySelector("#h-shelf .h-trouble");
  const { trouble: words } = await answer.json();
  trouble.hidden = !words;
  text(trouble, words ?? "");
  return words;
}

/** @param {number} id @param {string} name */
async function act(id, name) {
  const from = document.activeElement;
  const answer = await post(`hearth/shelf/${id}/${name}`);
  const words = await tell(answer);
  if (name === "delete" && !words) {
    picked.delete(id);
    undoable([...new Set([...deleted, id])], from);
  }
  if (name === "restore" && deleted.includes(id)) undoable([]);
  await refresh();
}

/** @param {"delete" | "restore"} deed */
async function movePicked(deed) {
  const from = document.activeElement, { moved, done } = await move(shelf, deed, [...picked.keys()]);
  for (const id of done) picked.delete(id);
  undoable(deed === "delete" ? [...new Set([...deleted, ...moved])] : [], from);
  await refresh();
}

// All that is found, of all pages.
async function pickAll() {
  const from = document.activeElement, of = scope(), answer = await ask(`hearth/shelf/all?${of}`).catch(() => null);
  await tell(answer ? { json: async () => ({}) } : silent);
  if (!answer || of !== scope()) return; // something else is looked for meanwhile
  pickedAll = of;
  for (const each of answer.creations) picked.set(each.id, page?.creations.find(({ id }) => id === each.id) ?? picked.get(each.id) ?? each);
  draw();
  follow(document.querySelector("#h-shelf .h-marks .h-chips button:last-child"), from);
}

function draw() {
  const element = document.querySelector("#h-shelf");
  if (!element || !page) return;
  if (!element.firstElementChild) frame(element);
  const models = element.querySelector(".h-model-pick");
  const options = [`<option value="">${t("shelf.all-models", "all models")}</option>`, ...page.models.map(({ id }) => `<option value="${id.replace(/"/g, "&quot;")}"></option>`)].join("");
  if (models.dataset.drawn !== options) {
    models.dataset.drawn = models.innerHTML = options;
    page.models.forEach(({ title }, i) => text(models.options[i + 1], title));
    models.value = look.model;
  }
  const none = !page.creations.length;
  const narrowed = look.words || look.kind || look.model || look.favourite || look.album || look.tag || look.since || look.until;
  text(element.querySelector(".h-none"), !none ? "" : narrowed
    ? t("shelf.nothing", "No matching creations.") : look.binned ? t("shelf.bin-empty", "The bin is empty.") : t("shelf.empty", "Everything you create is saved here with its settings."));
  text(element.querySelector(".h-count"), narrowed && !none ? t("shelf.found", "{n} {n:creation|creations} found", { n: page.count }) : "");
  const empty = element.querySelector(".h-empty-bin");
  empty.hidden = !look.binned || none;
  text(empty, t("shelf.empty-bin", "Empty bin"));
  drawAlbumChoice(element.querySelector(".h-album-pick"), shelf);
  drawTags(element.querySelector(".h-tag-row"), shelf);
  drawAlbum(element.querySelector(".h-album"), shelf);
  drawBefore(element.querySelector(".h-before"), shelf);
  list(element.querySelector(".h-shelf"), (isOrdered() ? inOrder : byDay)(page.creations), (each) => ("day" in each ? `day ${each.day}` : `${each.id}${each.gone ? " gone" : ""}`), make, update);
  const pages = element.querySelector(".h-pages");
  pages.innerHTML = "";
  const turn = (/** @type {string} */ label, /** @type {number} */ skip) => pages.append(makeButton(label, () => ((look.skip = skip), refresh())));
  if (look.skip) turn(t("shelf.newer", "Newer"), Math.max(0, look.skip - 60));
  if (page.more) turn(t("shelf.older", "Older"), look.skip + 60);
  // What the parts take, and that the oldest go: only the owner's disk.
  const { scripts, bytes = 0, most_bytes = 0 } = page.kept ?? {};
  text(element.querySelector(".h-kept-parts"), !scripts ? "" : t("shelf.kept", "Parts of {n} {n:script|scripts} are kept to be heard, redone and resumed: {now} of at most {most}. The oldest go first.", { n: scripts, now: size(bytes), most: size(most_bytes) }));
  zip();
}

// After a creation stands what its script made before, where that is unfolded and not on the page by itself.
/** @param {CreationView} creation @returns {Creation[]} */
const withEarlier = ({ id, earlier }) => {
  const rest = (earlier && unfolded.get(id)) || [];
  return rest.filter((each) => !page?.creations.some((one) => one.id === each.id)).map((each) => ({ ...each, before: true }));
};

// Creations with a line before those of each day, and what is unfolded behind them.
/** @param {CreationView[]} creations */
const byDay = (creations) => creations.flatMap((each, i) => {
  const [day, before] = [each, creations[i - 1]].map((one) => one && dayOf(one));
  return [...(day === before ? [] : [{ day }]), each, ...withEarlier(each)];
});
// An album that has an order of its own is moved about in where all of it is shown.
const isOrdered = () => Boolean(look.album && page?.albums.find(({ id }) => id === look.album)?.ordered);
const isMoved = () => isOrdered() && owner() && !(look.words || look.kind || look.model || look.favourite || look.binned || look.tag || look.since || look.until);
/** @param {CreationView[]} creations */
const inOrder = (creations) => creations.flatMap((each) => [each, ...withEarlier(each)]);
/** @param {CreationView} creation */
const dayOf = ({ created_s }) => {
  const made = new Date(created_s * 1000), ago = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(made).setHours(0, 0, 0, 0)) / DAY_MS);
  if (ago === 0) return t("shelf.today", "Today");
  if (ago === 1) return t("shelf.yesterday", "Yesterday");
  return made.toLocaleDateString(document.documentElement.lang, { dateStyle: "full" });
};

// A zip holds as many as go at once; of more, each part has a link.
/** @param {HTMLElement} element */
function drawExports(element) {
  const ids = [...picked.keys()], most = page?.at_once ?? ids.length, drawn = `${isOrdered() && look.album} ${ids.join()}`;
  if (element.dataset.drawn === drawn) return;
  element.dataset.drawn = drawn;
  element.replaceChildren();
  for (let begin = 0; begin < ids.length; begin += most) {
    const part = ids.slice(begin, begin + most).join(), of = { n: ids.length, from: begin + 1, to: Math.min(begin + most, ids.length) }, whole = ids.length <= most;
    const [link, told] = ["h-zip", "h-told"].map((kind) => el(`<a class="h-chip ${kind}" download="hearth.zip"></a>`));
    const of_album = isOrdered() ? `&album=${look.album}` : "";
    link.href = `hearth/export?ids=${part}${of_album}`;
    text(link, whole ? t("shelf.export", "Export {n} as a zip", of) : t("shelf.export-part", "Export {from} to {to} of {n} as a zip", of));
    told.href = `hearth/export?settings=1&ids=${part}${of_album}`;
    text(told, whole ? t("shelf.export-told", "Export with settings") : t("shelf.export-told-part", "Export {from} to {to} with settings", of));
    element.append(link, told);
  }
}

function zip() {
  drawExports(document.querySelector("#h-shelf .h-exports"));
  const all = document.querySelector("#h-shelf .h-pick-all"), { creations = [], count = 0 } = page ?? {};
  all.hidden = !owner() || !count || (picked.size >= count && creations.every(({ id }) => picked.has(id)) && (count === creations.length || pickedAll === scope()));
  if (!all.firstElementChild) all.append(makeButton("", pickAll, "h-chip"));
  text(all.firstElementChild, t("shelf.pick-all", "Select all {n}", { n: count }));
  document.querySelector("#h-shelf .h-picked").hidden = !picked.size;
  const pair = /** @type {CreationView[]} */ ([...picked.values()].filter((each) => each.kind === "picture" && each.url && !each.gone));
  const /** @type {[string, () => unknown][]} */ deeds = pair.length === 2 && picked.size === 2 ? [[t("shelf.compare", "Compare"), () => showPair(pair[0], pair[1])]] : [];
  deeds.push(look.binned ? [t("shelf.restore-n", "Restore {n}", { n: picked.size }), () => movePicked("restore")] : [t("shelf.delete-n", "Delete {n}", { n: picked.size }), () => movePicked("delete")]);
  drawPicked(document.querySelector("#h-shelf .h-marks"), shelf, deeds);
  for (const box of document.querySelectorAll("#h-shelf .h-pick input")) box.checked = picked.has(box.closest(".h-creation").each?.id);
  const book = document.querySelector("#h-shelf .h-audiobook"), mp3 = document.querySelector("#h-shelf .h-mp3"), hint = document.querySelector("#h-shelf .h-cover");
  const sounds = [...picked.values()].filter((each) => each.kind === "speech").length, pictures = picked.size - sounds;
  book.hidden = !sounds || pictures > 1; // one picture is its cover
  text(book, t("shelf.audiobook", "Save as an audiobook"));
  mp3.hidden = sounds !== 1 || pictures !== 1;
  text(mp3, t("shelf.mp3", "Save as an MP3 with this cover"));
  hint.hidden = !sounds || pictures > 0;
  text(hint, t("shelf.cover", "Select a picture too, and it becomes the cover."));
  const title = document.querySelector("#h-shelf .h-book-title");
  title.hidden = book.hidden;
  title.placeholder = t("shelf.book-title", "Title");
  title.setAttribute("aria-label", title.placeholder);
}

/** @param {HTMLButtonElement} target @param {"audiobook" | "mp3"} kind */
async function saveJoined(target, kind) {
  target.disabled = true;
  await tell({ json: async () => ({}) });
  text(target, t("shelf.joining", "Joining\u2026"));
  const title = document.querySelector("#h-shelf .h-book-title").value;
  const refused = await fetchFile(`hearth/export?${new URLSearchParams({ [kind]: "1", ids: [...picked.keys()].join(), title })}`).catch(() => silent);
  if (refused) await tell(refused);
  target.disabled = false;
  zip();
}

// As much of a text as a card shows: who listens to the page would hear a whole chapter at each card.
/** @param {string} words */
const begin = (words) => (words.length > WORDS_MOST ? `${words.slice(0, words.lastIndexOf(" ", WORDS_MOST) + 1 || WORDS_MOST).trimEnd()}\u2026` : words);

// Who goes from button to button hears which creation each is of.
const NAME_MOST = 60;
/** @param {CreationView} creation */
const shortly = ({ named, text: words }) => named || (words.length > NAME_MOST ? `${words.slice(0, NAME_MOST).trimEnd()}\u2026` : words);
/** @param {HTMLElement} button */
const named = (button) => (button.dataset.deed = button.textContent ?? "", button);
/** @param {HTMLElement} card @param {CreationView} each */
function nameButtons(card, each) {
  const name = (/** @type {HTMLElement} */ button, /** @type {string} */ label) => button.setAttribute("aria-label", `${label}${t("word.colon", ": ")}${shortly(each)}`);
  name(card.querySelector(".h-star"), t("shelf.favourite", "Favourite"));
  name(card.querySelector(".h-pick input"), t("shelf.pick", "Select for export"));
  for (const button of card.querySelectorAll("[data-deed]")) name(button, button.dataset.deed);
}

/** @param {Creation | { day: string }} each */
function make(each) {
  if ("day" in each) {
    const line = el(`<li class="h-day"><h2></h2></li>`);
    text(line.firstElementChild, each.day);
    return line;
  }
  const card = el(`<li class="h-card h-creation">${each.kind === "picture" && !each.gone ? `<button type="button" class="h-look"><img loading="lazy" alt=""></button>` : ""}
    <p class="h-named" hidden></p><div class="h-beside"><i class="h-grip" draggable="true" aria-hidden="true" hidden>\u22ee\u22ee</i><p class="h-words"></p><button type="button" class="h-star"></button></div>
    <div class="h-beside"><p class="h-soft h-facts"></p><label class="h-pick"><input type="checkbox"></label></div><p class="h-tags" hidden></p><p class="h-badge careful h-odd"></p><div class="h-chips h-does"></div></li>`);
  const pick = card.querySelector("input");
  pick.parentElement.title = t("shelf.pick", "Select for export");
  pick.parentElement.hidden = !owner();
  pick.checked = picked.has(each.id);
  pick.addEventListener("change", () => (pick.checked ? picked.set(each.id, each) : picked.delete(each.id), zip()));
  const image = card.querySelector("img");
  if (image) {
    image.src = each.url;
    image.alt = begin(each.text);
    card.querySelector(".h-look").addEventListener("click", () => showFull(each));
  } else if (!each.gone) {
    card.prepend(makePlayer({ ...each, label: `${t("shelf.play", "Play")}${t("word.colon", ": ")}${shortly(each)}` }));
  }
  for (const [kind, hear] of Object.entries({ dragstart: carry, dragover: carryOver, dragleave: carryOff, dragend: carryOff, drop: letDown, keydown: shiftByKey })) card.addEventListener(kind, hear);
  card.querySelector(".h-star").addEventListener("click", () => act(each.id, card.each.favourite ? "plain" : "favourite"));
  return card;
}

// A creation is dragged by its picture or its grip to where another one is, or goes by keys and buttons. On the rest of a card text is selected.
let /** @type {any} */ carried = null;
/** @param {DragEvent & { currentTarget: any, target: any }} event */
function carry(event) {
  const gripped = event.target.classList?.contains("h-grip"); // selected text is dragged, too, and has no classes
  if ((event.target.localName !== "img" && !gripped) || event.currentTarget.each.before) return;
  carried = event.currentTarget;
  if (gripped) event.dataTransfer?.setDragImage(carried, 16, 16);
  event.dataTransfer?.setData("text/x-hearth-creation", String(carried.each.id));
}
/** @param {any} event */
function carryOver(event) {
  if (!carried || carried === event.currentTarget || !isMoved()) return;
  event.preventDefault();
  event.currentTarget.classList.add("h-onto");
}
/** @param {any} event */
function carryOff(event) {
  event.currentTarget.classList.remove("h-onto");
  if (event.type === "dragend") carried = null;
}
/** @param {any} event */
function letDown(event) {
  carryOff(event);
  if (!carried || !isMoved()) return;
  event.preventDefault();
  event.stopPropagation(); // it is no file
  if (carried !== event.currentTarget) placeInAlbum(shelf, carried.each.id, event.currentTarget.each.id);
}
const /** @type {Record<string, number>} */ SHIFTS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
/** @param {KeyboardEvent & { currentTarget: any, target: any }} event */
function shiftByKey(event) {
  const by = event.altKey && !event.ctrlKey && !event.metaKey && isMoved() && SHIFTS[event.key];
  if (!by || event.currentTarget.each.before || event.target.matches("input, textarea, select, summary")) return;
  event.preventDefault(); // else the browser goes back
  shiftInAlbum(shelf, event.currentTarget.each.id, by);
}

/** @param {Creation} each */
const showFull = (each) => {
  const pictures = page?.creations.filter((one) => one.kind === "picture" && !one.gone) ?? [];
  showPictures(pictures, pictures.findIndex(({ id }) => id === each.id), (one) => [
    [t("shelf.reuse", "Reuse settings"), () => reuse(one)],
    [t("shelf.alike", "More like this"), () => alike(one)],
    ...enlargeActs(one),
  ]);
};

/** @param {any} card @param {Creation | { day: string }} each */
function update(card, each) {
  if ("day" in each) return;
  fill(card, each);
  nameButtons(card, each);
}

/** @param {any} card @param {Creation} each */
function fill(card, each) {
  card.each = each;
  card.classList.toggle("h-earlier", Boolean(each.before));
  drawScript(card.querySelector(".h-words"), begin(each.text));
  card.querySelector(".h-words").title = begin(each.text);
  drawMarks(card, each, shelf);
  const star = card.querySelector(".h-star");
  star.hidden = each.binned || !owner();
  text(star, each.favourite ? "\u2605" : "\u2606");
  star.setAttribute("aria-pressed", each.favourite);
  star.title = t("shelf.favourite", "Favourite");
  const when = new Date(each.created_s * 1000).toLocaleTimeString(document.documentElement.lang, { timeStyle: "short" });
  const facts = [...(each.before ? [t("shelf.earlier", "earlier"), dayOf(each)] : []), when, each.maker, each.machine, each.title, each.seconds ? time(each.seconds, true) : "", madeWith(each)];
  text(card.querySelector(".h-facts"), facts.filter(Boolean).join(" · "));
  card.querySelector(".h-facts").title = [each.speed, each.highest ? `${gb(each.highest)} GB` : ""].filter(Boolean).join(" · "); // for whoever asks
  const odd = card.querySelector(".h-odd");
  odd.hidden = !each.condition && each.whole;
  text(odd, each.condition || t("shelf.part", "stopped early"));
  const does = card.querySelector(".h-does");
  const enlarging = listEnlarging().split(",").includes(String(each.id));
  const moves = isMoved() && !each.before, grip = card.querySelector(".h-grip");
  Object.assign(grip, { hidden: !moves, title: t("album.drag", "Drag it to where another one is") });
  const state = `${moves} ${each.binned} ${each.parts} ${each.earlier} ${unfolded.has(each.id)} ${enlarging}`;
  if (does.dataset.drawn === state) return;
  does.dataset.drawn = state;
  const held = does.contains(document.activeElement) ? document.activeElement?.className : "";
  does.innerHTML = "";
  const add = (/** @type {string} */ label, /** @type {() => unknown} */ run) => does.appendChild(named(makeButton(label, run)));
  if (each.binned) return add(t("shelf.restore", "Restore"), () => act(each.id, "restore"));
  if (moves) for (const [label, by] of /** @type {[string, number][]} */ ([[t("album.earlier", "Move earlier"), -1], [t("album.later", "Move later"), 1]])) {
    add(label, () => shiftInAlbum(shelf, each.id, by)).classList.add("h-moves");
  }
  add(t("shelf.reuse", "Reuse settings"), () => reuse(each));
  if (each.parts) add(t("shelf.parts", "Open its parts"), () => (openTab("speak"), call("speak.open", { creation: each.id }), soon()));
  if (!each.gone) {
    const save = el(`<a class="h-chip" download></a>`);
    save.href = `${each.url}?download=1`;
    text(save, t("shelf.download", "Download"));
    does.append(named(save), ...sendButton(save));
  }
  if (enlarging) does.append(enlargeButton(each, "h-chip"));
  const rest = listMore(card, each), remove = () => act(each.id, "delete");
  const files = rest.filter(([, run]) => typeof run === "string");
  if (!owner()) {
    for (const [label, run] of rest) if (typeof run !== "string") add(label, run);
    add(t("shelf.delete", "Delete"), remove).classList.add("h-delete");
    if (files.length) does.append(makeMenu(files));
    return offerEarlier(does, each, held);
  }
  add(t("shelf.delete", "Delete"), remove).classList.add("h-delete");
  // On a phone pictures stand two in a row, and all there is to do is in the menu.
  const /** @type {Row[]} */ narrow = [[t("shelf.reuse", "Reuse settings"), () => reuse(each), "h-narrow"]];
  if (!each.gone) narrow.push([t("shelf.download", "Download"), `${each.url}?download=1`, "h-narrow"]);
  narrow.push([t("shelf.delete", "Delete"), remove, "h-narrow"]);
  does.append(makeMenu([...(each.kind === "picture" ? narrow : []), ...rest]));
  offerEarlier(does, each, held);
}

// Whoever pressed it keeps the focus, though it is drawn anew.
/** @param {HTMLElement} does @param {Creation} each @param {string | undefined} held */
function offerEarlier(does, each, held) {
  if (!each.earlier) return;
  const fold = makeButton(t("shelf.earlier-n", "{n} earlier {n:result|results}", { n: each.earlier }), () => toggle(each.id), "h-fold");
  fold.setAttribute("aria-expanded", String(unfolded.has(each.id)));
  does.append(fold);
  if (held === fold.className) fold.focus({ preventScroll: true });
}

// What is seldom wanted of a creation: a text is an address, anything else is done.
/** @param {HTMLElement} card @param {Creation} each */
function listMore(card, each) {
  const /** @type {Row[]} */ rows = [], picture = each.kind === "picture", own = picture && owner();
  if (picture && !each.gone) rows.push([t("canvas.start", "Use as starting picture"), () => (openTab("paint"), startFrom(each))]);
  if (own && !each.gone) rows.push([t("canvas.edit", "Change by words"), () => (openTab("paint"), changeByWords(each))]);
  if (picture) rows.push(...enlargeActs(each));
  if (own) rows.push([t("shelf.alike", "More like this"), () => alike(each)]);
  rows.push(...markDeeds(card, shelf));
  if (owner()) rows.push([t("shelf.folder", "Show in folder"), () => act(each.id, "reveal")]);
  const formats = each.kind === "speech" ? FORMATS.filter((format) => !each.name.endsWith(`.${format}`)) : own ? ["jpeg", "webp"] : [];
  for (const format of each.gone ? [] : formats) rows.push([t("shelf.as", "Download as {format}", { format: format.toUpperCase() }), `${each.url}?download=1&format=${format}`]);
  for (const format of each.subtitles ? ["srt", "vtt"] : []) rows.push([t("shelf.subtitles", "Subtitles ({format})", { format: format.toUpperCase() }), `${each.url}?format=${format}`]);
  return rows;
}

/** @param {Row[]} rows */
function makeMenu(rows) {
  const menu = el(`<details class="h-menu"><summary class="h-chip"></summary><div></div></details>`), inside = menu.lastElementChild;
  text(menu.firstElementChild, t("shelf.more", "More"));
  named(menu.firstElementChild);
  for (const [label, run, kind = ""] of rows) {
    const made = typeof run === "string" ? el(`<a download class="${kind}"></a>`) : makeButton(label, run, kind);
    if (typeof run === "string") [made.href, made.textContent] = [run, label];
    inside.append(made);
  }
  inside.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    if (event.target === inside) return;
    menu.firstElementChild.focus(); // it has the focus again once a field or a dialog is left
    onceFocused(() => (menu.open = false));
  }, true);
  // It ends where its button does, and further right where it would begin left of the card's buttons, which may be left of the screen.
  menu.addEventListener("toggle", () => {
    const room = menu.getBoundingClientRect().right - menu.parentElement.getBoundingClientRect().left;
    inside.style.setProperty("--h-right", `${Math.min(0, room - inside.offsetWidth)}px`);
    if (menu.open) inside.scrollIntoView({ block: "nearest" });
  });
  menu.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation(); // it stops no job
    menu.open = false;
    menu.firstElementChild.focus();
  });
  return menu;
}
onPage("click", ({ target }) => {
  for (const menu of document.querySelectorAll(".h-menu[open]")) if (!menu.contains(target)) menu.open = false;
});

/** @param {CreationView} creation */
const alike = ({ id }) => (openTab("paint"), call("paint.alike", { creation: id }));

/** @param {CreationView} each */
function reuse(each) {
  const picture = each.kind === "picture";
  openTab(picture ? "paint" : "speak");
  if (picture) call("paint.restore", { creation: each.id });
  else call("speak.restore", { creation: each.id });
}

// Refresh when the tab opens and when a job has ended.
area("#h-shelf", (element, { speech, picture }) => {
  if (!element.offsetParent) {
    if (deleted.length) undoable([]);
    return void (seen = "");
  }
  const now = `shown ${speech?.job} ${speech?.results.length} ${picture?.job} ${picture?.results.length} ${listEnlarging()}`;
  if (now !== seen) refresh();
  seen = now;
});
