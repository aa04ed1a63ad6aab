// Albums, tags and names on the Shelf: what is chosen above the creations, and what is done with those that are selected.
import { draftsSaved, keepEarlier } from "./drafts.js";
import { el, list, makeButton, onceFocused, text } from "./elements.js";
import { live, post } from "./hearth.js";
import { sure } from "./sure.js";
import { t } from "./words.js";

const NEW = "new", TAGS = 12;

/**
 * What the Shelf shows, how it is shown anew, and where a refusal is told.
 * @typedef {{ page: () => ShelfView, look: { album: number, tag: string }, change: (to: object) => unknown, show: () => unknown, tell: (answer: Pick<Response, "json">) => Promise<string>, picked: Map<number, Picked> }} Shelf
 * @typedef {PickedView & Partial<CreationView>} Picked more is known of it if it was on a page
 */

/** Ask for something to be done; with more ids than go at once, in several requests. @param {Shelf} shelf @param {string} name @param {{ ids?: Iterable<number>, album?: number, value?: string }} [with_] */
async function deed(shelf, name, { ids = [], album = 0, value = "" } = {}) {
  const left = [...ids];
  for (;;) {
    const answer = await post(`hearth/albums/${name}`, { ids: left.splice(0, shelf.page().at_once).join(), album, value });
    const said = await answer.clone().json().catch(() => ({}));
    if (await shelf.tell(answer)) return null;
    if (!left.length) return said;
  }
}

/** Move creations into the bin, or out of it. What was moved counts, also where something stands in the way; `done`: nothing stands there any more. @param {Shelf} shelf @param {"delete" | "restore"} name @param {number[]} ids */
export async function move(shelf, name, ids) {
  const left = [...ids], /** @type {number[]} */ moved = [], /** @type {number[]} */ done = [];
  while (left.length) {
    const now = left.splice(0, shelf.page().at_once), answer = await post(`hearth/albums/${name}`, { ids: now.join() }).catch(() => null);
    const said = (await answer?.json().catch(() => null)) ?? { trouble: t("machines.silent", "Hearth did not respond.") };
    moved.push(...(said.moved ?? []));
    done.push(...(said.trouble ? said.moved ?? [] : now));
    if (await shelf.tell({ json: async () => said })) break;
  }
  return { moved, done };
}

/**
 * Ask for a few words in place, under what was pressed. Esc takes them back; what is refused stays to be mended.
 * @param {HTMLElement} under
 * @param {string} label
 * @param {string} value
 * @param {(value: string) => Promise<unknown>} keep
 * @param {string[]} [known]
 */
function askWords(under, label, value, keep, known = []) {
  under.querySelector("form.h-asks")?.remove();
  const form = el(`<form class="h-one h-asks"><input type="text" class="h-field" maxlength="200" autocomplete="off"><button class="h-chip"></button></form>`);
  const input = form.querySelector("input"), from = /** @type {HTMLElement} */ (document.activeElement);
  const leave = () => {
    const stayed = [form.querySelector(":focus"), document.body].includes(document.activeElement); // whoever went elsewhere meanwhile keeps their place
    if (stayed) (from.isConnected ? from : under.querySelector("select, button"))?.focus(); // a bar may be drawn anew by then
    onceFocused(() => form.remove());
  };
  input.value = value;
  input.setAttribute("aria-label", label);
  input.placeholder = label;
  text(form.querySelector("button"), t("token.keep", "Save"));
  if (known.length) {
    const offered = el(`<datalist></datalist>`);
    offered.id = `offered-${Date.now()}`;
    for (const each of known) offered.append(new Option(each));
    form.append(offered);
    input.setAttribute("list", offered.id);
  }
  form.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation(); // it stops no job
    leave();
  });
  form.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (await keep(input.value)) leave();
  });
  under.append(form);
  input.focus();
  input.select();
}

// Draw a bar anew around what somebody types into it, and go on typing.
/** @param {any} bar @param {string} html */
function frame(bar, html, keeps = true) {
  const asks = keeps ? bar.querySelector("form.h-asks") : null, held = asks?.querySelector(":focus");
  bar.innerHTML = html;
  if (asks) bar.append(asks);
  held?.focus({ preventScroll: true });
}

/** The album to look into, among the other choices above the creations. @param {any} select @param {Shelf} shelf */
export function drawAlbumChoice(select, shelf) {
  const { albums } = shelf.page(), { look } = shelf;
  const names = [["0", t("album.all", "all albums")], ...albums.map(({ id, name, count }) => [String(id), t("album.named", "{name} ({count})", { name, count })])];
  const drawn = JSON.stringify(names);
  if (select.dataset.drawn !== drawn) {
    select.dataset.drawn = drawn;
    select.replaceChildren(...names.map(([id, name]) => new Option(name, id)));
  }
  if (look.album && !albums.some(({ id }) => id === look.album)) look.album = 0;
  select.value = look.album;
  select.hidden = !albums.length;
}

/** Tags to choose from, the most used first; the one that is chosen always. @param {any} row @param {Shelf} shelf */
export function drawTags(row, shelf) {
  const { tags } = shelf.page(), { look } = shelf;
  const shown = [...new Set([...(look.tag ? [look.tag] : []), ...tags.slice(0, TAGS)])];
  row.hidden = !shown.length;
  row.setAttribute("aria-label", t("tags.label", "Tags"));
  list(row, shown, (tag) => tag, (tag) => makeButton(tag, () => shelf.change({ tag: look.tag === tag ? "" : tag })), (chip, tag) => chip.setAttribute("aria-pressed", look.tag === tag));
}

/** The album that is looked into: renamed, removed, and with the script and the prompt of the work that it belongs to. @param {any} bar @param {Shelf} shelf */
export function drawAlbum(bar, shelf) {
  const album = shelf.page().albums.find(({ id }) => id === shelf.look.album);
  bar.hidden = !album;
  if (!album) return void (bar.dataset.drawn = bar.innerHTML = "");
  const drawn = JSON.stringify(album);
  if (bar.dataset.drawn === drawn) return;
  frame(bar, `<h2></h2><p class="h-soft"></p><div class="h-chips"></div>`, bar.dataset.album === String(album.id));
  Object.assign(bar.dataset, { drawn, album: album.id });
  text(bar.querySelector("h2"), album.name);
  text(bar.querySelector("p"), album.kept ? t("album.project", "With the script, the prompt and the settings of your work on it.") : t("album.plain", "An album. It can also keep the script, the prompt and the settings that you work with: then it is a project."));
  /** @param {string} label @param {() => unknown} run */
  const add = (label, run) => bar.querySelector(".h-chips").append(makeButton(label, run, "h-chip"));
  add(t("album.rename", "Rename album"), () => askWords(bar, t("album.name-of", "Name of the album"), album.name, async (value) => (await deed(shelf, "rename", { album: album.id, value })) && (await shelf.change({}), true)));
  add(t("album.keep", "Keep my drafts in it"), () => keepWork(bar, shelf, album));
  if (album.kept) add(t("album.open", "Open its drafts"), () => openWork(shelf, album));
  add(album.ordered ? t("album.newest", "Newest first") : t("album.order", "Own order"), async () => (await deed(shelf, "order", { album: album.id, value: album.ordered ? "" : "own" })) && shelf.change({}));
  const save = el(`<a class="h-chip" download></a>`);
  save.href = `hearth/project?${new URLSearchParams({ album: String(album.id) })}`;
  save.title = t("project.save-how", "With its creations, and of a project the script, the cast, its voices and the settings: to be opened on another computer.");
  text(save, t("project.save", "Save as one file"));
  save.addEventListener("click", async () => text(document.querySelector("#h-shelf .h-project-note"), (await deed(shelf, "left", { album: album.id }))?.note ?? ""));
  bar.querySelector(".h-chips").append(save);
  add(t("album.remove", "Remove album"), async () => {
    if (!(await sure(t("album.sure", "Remove the album “{name}”? Its creations stay on the shelf; drafts that are kept in it go.", { name: album.name }), t("album.remove", "Remove album")))) return;
    if (await deed(shelf, "remove", { album: album.id })) shelf.change(shelf.look.album === album.id ? { album: 0 } : {});
  });
}

/** @param {HTMLElement} bar @param {Shelf} shelf @param {AlbumView} album */
async function keepWork(bar, shelf, album) {
  if (album.kept && !(await sure(t("album.again", "Replace the drafts that “{name}” keeps by those of now?", { name: album.name }), t("album.replace", "Replace"), "h-go-on"))) return;
  await draftsSaved();
  if (!(await deed(shelf, "keep", { album: album.id }))) return;
  await shelf.change({});
  if (shelf.look.album === album.id) text(bar.querySelector("p"), t("album.kept", "Your script, prompt and settings are kept in it."));
}

// The fields come with the page: their texts of before stand beside the samples as earlier ones.
/** @param {Shelf} shelf @param {AlbumView} album */
async function openWork(shelf, album) {
  if (!(await sure(t("album.opening", "Open the script, the prompt and the settings of “{name}”? Yours are kept, and come back at a press here.", { name: album.name }), t("album.open", "Open its drafts"), "h-go-on"))) return;
  await draftsSaved();
  await bring(await deed(shelf, "open", { album: album.id }));
}

/** @param {{ drafts: Record<string, string> } | null} answer */
async function bring(answer) {
  if (!answer) return;
  /** @param {string} id */
  const box = (id) => document.querySelector(`#${id} textarea, #${id} input`);
  const mine = Object.keys(answer.drafts).filter((id) => box(id)?.value.trim() && box(id).value !== answer.drafts[id]);
  keepEarlier(Object.fromEntries(mine.map((id) => [id, [box(id).value]])));
  await post("hearth/drafts", answer.drafts);
  const own = JSON.parse(sessionStorage.getItem("hearth_drafts") ?? "{}");
  sessionStorage.setItem("hearth_drafts", JSON.stringify({ ...own, ...answer.drafts }));
  location.reload();
}

/** What Speak and Paint held before a project was opened, and how it comes back. @param {any} line @param {Shelf} shelf */
export function drawBefore(line, shelf) {
  const { before } = shelf.page();
  line.hidden = before == null;
  if (line.hidden || line.dataset.drawn === before) return;
  line.dataset.drawn = before;
  line.innerHTML = `<span></span> `;
  text(line.firstElementChild, before ? t("album.before", "What you worked on in “{name}” is kept.", { name: before }) : t("album.before-own", "What you worked on before you opened a project is kept."));
  line.append(makeButton(t("album.back", "Bring it back"), async () => (await draftsSaved(), bring(await deed(shelf, "back"))), "h-chip"));
}

/** Take in a project that somebody saved as one file, and show it. @param {Shelf} shelf @param {File} file */
export async function takeProject(shelf, file) {
  const form = new FormData();
  form.append("file", file);
  const answer = await fetch("hearth/project", { method: "POST", body: form, credentials: "same-origin" }), said = await answer.clone().json();
  if (await shelf.tell(answer)) return "";
  await shelf.change({ album: said.album, words: "", kind: "", model: "", tag: "", since: "", until: "", favourite: false, binned: false });
  return said.note;
}

/** What is done with the creations that are selected. @param {any} bar @param {Shelf} shelf @param {[string, () => unknown][]} more */
export function drawPicked(bar, shelf, more) {
  const { picked } = shelf, { albums, tags } = shelf.page();
  bar.hidden = !picked.size;
  const drawn = JSON.stringify([[...picked.keys()], albums, shelf.look.album, more.map(([label]) => label)]);
  if (bar.hidden || bar.dataset.drawn === drawn) return;
  bar.dataset.drawn = drawn;
  frame(bar, `<p role="status"></p><select class="h-field"></select><div class="h-chips"></div>`);
  text(bar.querySelector("p"), t("shelf.picked", "{n} selected", { n: picked.size }));
  const select = bar.querySelector("select");
  select.setAttribute("aria-label", t("album.put", "Put into an album"));
  select.append(new Option(t("album.put", "Put into an album"), ""), ...albums.map(({ id, name }) => new Option(name, String(id))), new Option(t("album.new", "New album…"), NEW));
  const ids = () => picked.keys();
  select.addEventListener("change", async () => {
    const { value: chosen } = select;
    select.value = "";
    if (chosen === NEW) askWords(bar, t("album.name-of", "Name of the album"), "", async (value) => (await deed(shelf, "make", { ids: ids(), value })) && (await shelf.change({}), true));
    else if (chosen && (await deed(shelf, "put", { ids: ids(), album: Number(chosen) }))) shelf.change({});
  });
  /** @param {string} label @param {() => unknown} run */
  const add = (label, run) => bar.querySelector(".h-chips").append(makeButton(label, run, "h-chip"));
  if (shelf.look.album) add(t("album.take", "Take out of this album"), async () => {
    const taken = [...ids()];
    if (!(await deed(shelf, "take", { ids: taken, album: shelf.look.album }))) return;
    for (const id of taken) picked.delete(id); // others may have been ticked meanwhile
    shelf.change({});
  });
  add(t("tags.add", "Add tags"), () => askWords(bar, t("tags.words", "Tags, with commas between them"), "", async (value) => (await deed(shelf, "tag", { ids: ids(), value })) && (await shelf.change({}), true), tags));
  for (const [label, run] of more) add(label, run);
  add(t("shelf.pick-none", "Select none"), () => (picked.clear(), shelf.change({})));
}

/** Move a creation by a place within the album that is looked into. @param {Shelf} shelf @param {number} id @param {number} by */
export const shiftInAlbum = async (shelf, id, by) => (await deed(shelf, "shift", { ids: [id], album: shelf.look.album, value: String(by) })) && shelf.show();
/** Move it to where another one is. @param {Shelf} shelf @param {number} id @param {number} other */
export const placeInAlbum = async (shelf, id, other) => (await deed(shelf, "place", { ids: [id], album: shelf.look.album, value: String(other) })) && shelf.show();

/** A creation's own name, its tags, and how they are changed. @param {any} card @param {CreationView} each @param {Shelf} shelf */
export function drawMarks(card, each, shelf) {
  const title = card.querySelector(".h-named"), tags = card.querySelector(".h-tags");
  text(title, each.named ?? "");
  title.hidden = !each.named;
  tags.hidden = !each.tags?.length;
  list(tags, each.tags ?? [], (tag) => tag, (tag) => {
    const chip = el(`<span class="h-tag"><button type="button"></button><button type="button" class="h-away">×</button></span>`), [look, away] = chip.children;
    text(look, tag);
    look.title = t("tags.look", "Show all with this tag");
    look.addEventListener("click", () => shelf.change({ tag }));
    away.setAttribute("aria-label", t("tags.remove", "Remove the tag {tag}", { tag }));
    away.addEventListener("click", async () => (await deed(shelf, "untag", { ids: [each.id], value: tag })) && shelf.change({}));
    return chip;
  });
}

/** @param {any} card @param {Shelf} shelf @returns {[string, () => unknown][]} */
export const markDeeds = (card, shelf) => !live.state.charts ? [] : [
  [t("shelf.rename", "Rename"), () => askWords(card, t("shelf.name-of", "Name of this creation"), card.each.named, async (value) => (await deed(shelf, "name", { ids: [card.each.id], value })) && (await shelf.change({}), true))],
  [t("tags.add", "Add tags"), () => askWords(card, t("tags.words", "Tags, with commas between them"), "", async (value) => (await deed(shelf, "tag", { ids: [card.each.id], value })) && (await shelf.change({}), true), shelf.page().tags)],
];
