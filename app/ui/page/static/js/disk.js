// The disk, on the Machine tab: what is large, double, long unused; moved to another disk or deleted, each saying first what it means.
import { el, list, makeButton, show, text } from "./elements.js";
import { area, ask, post, redraw } from "./hearth.js";
import { sure } from "./sure.js";
import { sentences, size, t } from "./words.js";

const SOON_MS = 1000, LARGE_BYTES = 50_000_000;
let /** @type {DiskView | null} */ view = null, asked = 0, turn = 0, acting = false, trouble = "", all = false;

async function load() {
  asked = Infinity; // one at a time
  const mine = ++turn, answer = await ask("hearth/disk").catch(() => view);
  if (mine !== turn) return; // a press came meanwhile, and its answer counts
  [view, asked] = [answer, Date.now()];
  redraw();
}

/** @param {string} what @param {object} [given] */
async function act(what, given = {}) {
  if (acting) return;
  [acting, trouble] = [true, ""];
  turn++;
  redraw();
  const answer = await post(`hearth/disk/${what}`, given).catch(() => null);
  const said = (await answer?.json().catch(() => null)) ?? { trouble: t("machines.silent", "Hearth did not respond.") };
  [acting, trouble, asked] = [false, said.trouble ?? "", Date.now()];
  if (!said.trouble) view = said;
  redraw();
}

/** @param {number} seconds */
const when = (seconds) => new Date(seconds * 1000).toLocaleDateString(document.documentElement.lang, { month: "long", year: "numeric" });

// Ask where to, or where it is; answer with the folder, or nothing.
/** @param {string} title @param {string} means @param {string} then @param {string} does @returns {Promise<string>} */
const choosePlace = (title, means, then, does) =>
  new Promise((answer) => {
    const dialog = el(`<dialog class="h-dialog h-to-disk" aria-labelledby="h-to-disk" aria-describedby="h-to-disk-why"><form method="dialog"><h2 id="h-to-disk"></h2><p id="h-to-disk-why"></p><label><span></span><select class="h-field"></select></label>
      <label><span></span><input type="text" class="h-field" autocomplete="off" spellcheck="false"></label><p class="h-soft"></p><button class="h-chip" value=""></button><button class="h-chip h-go-on" value="yes"></button></form></dialog>`);
    const [no, yes] = dialog.querySelectorAll("button"), [meaning, without] = dialog.querySelectorAll("p"), [known, typed] = dialog.querySelectorAll("label");
    const select = known.querySelector("select"), input = typed.querySelector("input"), places = view?.places ?? [];
    text(dialog.querySelector("h2"), title);
    text(meaning, means);
    text(without, then);
    for (const place of places) select.append(new Option(place, place));
    known.hidden = !places.length;
    text(known.querySelector("span"), t("disk.other", "Disk"));
    text(typed.querySelector("span"), t("disk.place", "Folder on another disk"));
    input.value = places[0] ?? "";
    select.addEventListener("change", () => (input.value = select.value));
    text(no, t("sure.no", "Cancel"));
    text(yes, does);
    dialog.addEventListener("close", () => answer(dialog.returnValue === "yes" ? input.value : ""));
    show(dialog);
    input.focus();
  });

/** @param {UseView} use */
async function move(use) {
  const means = t("disk.move-means", "{size} are copied and the copy compared; then a link stands in its place, so that Hearth, and other programs, find all as before.", { size: size(use.bytes) });
  const then = t("disk.move-without", "While that disk is not connected, Hearth says so. Nothing is forgotten, and all is there again once it is back.");
  const place = await choosePlace(t("disk.move-to", "Move to another disk: {name}", { name: use.title }), means, then, t("disk.move", "Move"));
  if (place) act("move", { name: use.name, place });
}

// A disk that came back under another letter, or at another place.
/** @param {UseView} use */
async function pointTo(use) {
  const means = t("disk.here-means", "Choose the disk that it lies on now. It was at {target}.", { target: use.target });
  const place = await choosePlace(t("disk.here-of", "Where is it now: {name}", { name: use.title }), means, t("disk.here-then", "Nothing is copied: Hearth looks there from now on."), t("disk.here", "It is here now"));
  if (place) act("here", { name: use.name, place });
}

/** @param {UseView} use */
async function bringBack(use) {
  const question = t("disk.back-sure", "Bring {name} back from {target}? {size} are copied and compared, then deleted there.", { name: use.title, target: use.target, size: size(use.bytes) });
  if (await sure(question, t("disk.back", "Bring back"), "h-go-on")) act("back", { name: use.name });
}

/** @param {UseView} use */
async function remove(use) {
  const /** @type {Record<string, string>} */ meanings = {
    bin: t("disk.bin-sure", "Delete all creations in the bin for good?"),
    parts: t("disk.parts-sure", "Delete the parts of all scripts that are done? Their results stay. No part of them can then be redone, and a script that changes is spoken anew as a whole."),
    damaged: t("disk.damaged-sure", "Delete the damaged files for good? Hearth no longer needs them; only a specialist could still read something out of them."),
  };
  const question = meanings[use.name] ?? sentences([t("models.sure", "Delete {title} from this disk?", { title: use.title }), use.why]);
  if (await sure(question, t("models.remove", "Delete"))) act("delete", { name: use.name });
}

/** @param {DoubleView} double */
async function joinDouble(double) {
  const question = t("disk.one-sure", "Keep {file} once? All its names stay where they are and lead to the same content. {size} become free; whoever changes one of them changes all.", { file: double.kept.split(/[\\/]/).at(-1), size: size(double.bytes) });
  if (await sure(question, t("disk.one", "Keep once"), "h-go-on")) act("one", { name: double.kept });
}

/** @param {HTMLElement} element */
function frame(element) {
  element.innerHTML = `<h2></h2><p class="h-soft h-free"></p><p class="h-trouble" role="alert"></p><p class="h-told" role="status"></p>
    <div class="h-moving"><p></p><div class="h-share" role="progressbar" aria-valuemin="0" aria-valuemax="100"><i></i></div></div>
    <p class="h-chips h-does"></p><ul class="h-list h-uses"></ul><p class="h-chips h-rest"></p><div class="h-twice"><h3></h3><ul class="h-list"></ul></div>`;
  const part = (/** @type {string} */ selector) => element.querySelector(selector);
  text(part("h2"), t("disk.title", "The disk"));
  part(".h-does").append(makeButton("", () => act("look"), "h-chip h-look"), makeButton(t("sure.no", "Cancel"), () => act("cancel"), "h-chip h-cancel"));
  part(".h-rest").append(makeButton("", () => ((all = !all), redraw()), "h-chip"));
  text(part("h3"), t("disk.twice", "There twice"));
}

/** @param {UseView} use */
function makeUse(use) {
  const row = el(`<li class="h-part"><span class="h-sounding"><b></b> <span class="h-figure"></span> <span class="h-badge careful"></span><br><span class="h-soft"></span><span class="h-soft h-path"></span></span><span class="h-chips"></span></li>`);
  const current = () => view?.uses.find((each) => each.name === use.name) ?? use;
  /** @param {string} label @param {string} look @param {(use: UseView) => unknown} run */
  const add = (label, look, run) => {
    const button = makeButton(label, () => run(current()), `h-chip ${look}`);
    button.setAttribute("aria-label", `${label}${t("word.colon", ": ")}${use.title}`);
    row.querySelector(".h-chips").append(button);
  };
  add(t("models.folder", "Show in folder"), "h-where", () => act("where", { name: use.name }));
  add(t("disk.move", "Move"), "h-move", move);
  add(t("disk.back", "Bring back"), "h-back", bringBack);
  add(t("disk.here", "It is here now"), "h-here", pointTo);
  add(t("models.remove", "Delete"), "h-danger h-delete", remove);
  return row;
}

/** @param {HTMLElement} row @param {UseView} use */
function drawUse(row, use) {
  const busy = acting || Boolean(view?.moving);
  text(row.querySelector("b"), use.title);
  text(row.querySelector(".h-figure"), use.away ? "" : size(use.bytes));
  const badge = row.querySelector(".h-badge");
  badge.hidden = !use.away && !use.unused;
  text(badge, use.away ? t("disk.not-connected", "not connected") : t("disk.unused", "unused since {month}", { month: when(use.used_s ?? 0) }));
  text(row.querySelector(".h-soft"), use.away || use.why);
  text(row.querySelector(".h-path"), use.target && !use.away ? t("disk.lies", "On another disk: {target}", { target: use.target }) : "");
  for (const [look, shown] of /** @type {[string, unknown][]} */ ([[".h-where", !use.away], [".h-move", use.movable && !use.away], [".h-back", use.target && !use.away], [".h-here", use.target && use.away], [".h-delete", use.deletes]])) {
    row.querySelector(look).hidden = !shown;
    row.querySelector(look).disabled = busy;
  }
}

/** @param {DoubleView} double */
function makeDouble(double) {
  const row = el(`<li class="h-part"><span class="h-sounding"><b></b><span class="h-soft"></span></span></li>`);
  text(row.querySelector("b"), size(double.bytes));
  for (const path of double.paths) row.querySelector(".h-soft").append(el("<br>"), path);
  if (double.ours) row.append(makeButton(t("disk.one", "Keep once"), () => joinDouble(double), "h-chip"));
  return row;
}

area("#h-disk", (element) => {
  const wait = view?.looking || view?.comparing || view?.moving;
  if (element.offsetParent && !acting && (!view || wait) && Date.now() - asked > SOON_MS) load();
  if (!view) return;
  if (!element.firstElementChild) frame(element);
  const part = (/** @type {string} */ selector) => element.querySelector(selector), { moving } = view, wrong = trouble || (view.failed && view.told);
  text(part(".h-free"), t("disk.free", "{size} are free where Hearth keeps its files ({folder}).", { size: size(view.free ?? 0), folder: view.folder }));
  [part(".h-trouble").hidden, part(".h-told").hidden] = [!wrong, Boolean(wrong)];
  text(part(".h-trouble"), wrong || "");
  text(part(".h-told"), wrong ? "" : view.looking ? t("disk.looking", "Measuring …") : view.comparing ? t("disk.comparing", "Looking for what is there twice …") : view.told);
  part(".h-moving").hidden = !moving;
  if (moving) {
    const share = Math.min(100, Math.round((100 * moving.done) / moving.total));
    text(part(".h-moving p"), t("disk.moving", "Moving {name}: {done} of {total}", { name: moving.title, done: size(moving.done), total: size(moving.total) }));
    part(".h-share i").style.width = `${share}%`;
    part(".h-share").setAttribute("aria-valuenow", share);
    part(".h-share").setAttribute("aria-label", moving.title);
  }
  text(part(".h-look"), view.known ? t("disk.again", "Look again") : t("disk.look", "Show what takes room"));
  part(".h-look").disabled = acting || view.looking || view.comparing || Boolean(moving);
  part(".h-cancel").hidden = !moving;
  const large = view.uses.filter((each) => each.bytes >= LARGE_BYTES || each.away || each.unused || each.target), seen = all || large.length < 3 ? view.uses : large;
  list(part(".h-uses"), seen, (each) => each.name, makeUse, drawUse);
  part(".h-rest").hidden = large.length < 3 || view.uses.length === large.length;
  text(part(".h-rest button"), all ? t("disk.less", "Only what is large") : t("disk.all", "Also what is small"));
  part(".h-twice").hidden = !view.doubles.length;
  list(part(".h-twice .h-list"), view.doubles, (each) => each.paths.join("\n"), makeDouble, (row) => {
    const button = row.querySelector("button");
    if (button) button.disabled = acting || Boolean(moving);
  });
});
