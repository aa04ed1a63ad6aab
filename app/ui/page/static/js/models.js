// Models: one card each; poll downloads once a second while the tab is open.
import { el, list, makeButton, text } from "./elements.js";
import { drawFound } from "./found.js";
import { area, ask, inOrder, post } from "./hearth.js";
import { copyReport } from "./machine.js";
import { sure } from "./sure.js";
import { openTab } from "./tabs.js";
import { decimal, sentences, size, t, time } from "./words.js";

const LOOK_MS = 1000;
const /** @type {Record<string, () => string>} */ USES = { speech: () => t("models.speak-with", "Speak with it"), picture: () => t("models.paint-with", "Paint with it") };
let /** @type {ModelsView | null} */ page = null, /** @type {Map<string, DownloadView>} */ moves = new Map(), shown = false, known = false;
const askModels = inOrder("hearth/models"), askDownloads = inOrder("hearth/downloads");
let presses = 0; // of what downloads

/** @param {string} name */
const whole = (name) => name.replaceAll("-", "-\u2060"); // no line ends at such a hyphen
/** @param {string} id */
const moving = (id) => ["queued", "running"].includes(moves.get(id)?.state ?? "");

// Run an owner's action; return its trouble in words. The value travels in the body, as a token must not appear in a URL.
/** @param {string} name @returns {Promise<string>} */
export const deed = async (name, value = "") => {
  const answer = await post(`hearth/models/${name}`, { value });
  const { trouble = "" } = answer.headers.get("content-type")?.includes("json") ? await answer.json() : {};
  return trouble || (answer.ok ? "" : t("models.refused", "Hearth refused the request (status {status}). Reload the page and try again.", { status: answer.status }));
};
/** @param {string} name @param {HTMLFormElement | null} form */
const act = async (name, value = "", form = null) => {
  const trouble = await deed(name, value);
  say(trouble, form);
  await look();
  if (name !== "pause") await refresh();
  return trouble;
};
// Ask where the person is: how much, under which licence, how long, and whether anything can come now.
/** @param {string} id */
async function agreed(id) {
  const mine = ++presses, { title, bytes, because, licence, seconds, measured, trouble } = await ask(`hearth/offer?model=${encodeURIComponent(id)}`);
  if (mine !== presses) return false; // the second press asks
  const span = { time: time(seconds) };
  const long = measured ? t("models.on-line", "about {time} on this line", span) : t("models.at-50", "about {time} at 50 Mbit/s", span);
  const facts = t("models.offer", "Download {title}? Size: {size}, {long}.", { title, size: size(bytes), long });
  const terms = licence && t("models.under", "Licence: {licence}.", { licence });
  return sure(sentences([facts, because, terms, trouble]), t("models.get", "Download"), "h-go-on");
}
/** @param {string} id */
const got = async (id) => (await agreed(id)) && act("get", id);
let /** @type {(model: ModelView) => void} */ use = () => {}, aimed = "";
// Whoever knows the tabs says how a model is used there: they import this file.
/** @param {(model: ModelView) => void} run */
export const onUse = (run) => (use = run);
// Return whether it was begun.
/** @param {string} id */
export const getModel = async (id) => {
  if (!(await agreed(id))) return false;
  aimed = id;
  openTab("models");
  await act("get", id);
  return true;
};

// What went wrong stands in the form it was asked in, else above the cards: the page is longer than a screen.
/** @param {string} words @param {HTMLFormElement | null} form */
function say(words, form) {
  for (const line of document.querySelectorAll("#h-models .h-wrong-now")) {
    line.hidden = !words || line.closest("form") !== form;
    text(line, line.hidden ? "" : words);
    if (!line.hidden) line.scrollIntoView({ block: "nearest" });
  }
}

async function refresh() {
  const answer = await askModels();
  if (!answer) return;
  page = answer;
  draw();
  await drawFound(document.querySelector("#h-models .h-found"), act);
}
async function look() {
  const answer = await askDownloads();
  if (!answer) return;
  const before = [...moves.values()].filter(({ state }) => state === "done").length;
  moves = new Map(answer.downloads.map((each) => [each.model, each]));
  if ([...moves.values()].filter(({ state }) => state === "done").length !== before) await refresh();
  else draw();
}

/** @param {HTMLElement} element */
function frame(element) {
  element.innerHTML = `<h2 class="h-heard"></h2><p class="h-trouble h-wrong-now" role="alert" hidden></p><p class="h-soft h-where"></p><section class="h-card h-found"></section><ul class="h-models"></ul>
    <div class="h-doors"><form class="h-card h-add"><h2></h2><p class="h-soft"></p><p class="h-one"><input type="text" class="h-field" autocomplete="off" spellcheck="false"><button class="h-chip"></button></p><p class="h-trouble h-wrong-now" role="alert" hidden></p><ul class="h-list"></ul></form>
    <form class="h-card h-token"><h2></h2><p class="h-soft"></p><p class="h-one"><input type="password" class="h-field" autocomplete="off" spellcheck="false"><button class="h-chip"></button></p><p class="h-trouble h-wrong-now" role="alert" hidden></p><p class="h-soft h-has" role="status"></p></form></div>`;
  text(element.querySelector("h2"), t("tab.models", "Models"));
  const [add, token] = [element.querySelector(".h-add"), element.querySelector(".h-token")];
  text(add.querySelector("h2"), t("models.own", "Add your own model"));
  text(add.querySelector("p"), t("models.own-how", "Choose a diffusers folder, a folder of a voice, or a single .safetensors or .gguf file. Hearth uses it from where it is."));
  text(add.querySelector("button"), t("models.add", "Add"));
  add.querySelector("input").setAttribute("aria-label", t("models.path", "Full path on this machine"));
  add.querySelector("input").placeholder = t("models.path", "Full path on this machine");
  add.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const input = add.querySelector("input"), path = input.value;
    if (!(await act("add", path, add)) && input.value === path) input.value = "";
  });
  text(token.querySelector("h2"), t("token.title", "Access token for gated models"));
  token.querySelector("p").innerHTML = `<span></span> <a href="https://huggingface.co/settings/tokens" target="_blank" rel="noreferrer">huggingface.co/settings/tokens</a>`;
  text(token.querySelector("span"), t("token.how", "Some models require you to accept their terms first. Accept them on the model's page, create a token with read access and paste it here. It is stored where Hugging Face's own tools keep it and sent only to Hugging Face."));
  text(token.querySelector("button"), t("token.keep", "Save"));
  token.querySelector("input").setAttribute("aria-label", t("token.label", "Access token"));
  token.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const input = token.querySelector("input"), value = input.value;
    input.value = "";
    if (value) await act("token", value, token);
  });
  token.addEventListener("click", (/** @type {any} */ event) => event.target.closest(".h-forget") && act("token-away", "", token));
}

function draw() {
  const element = document.querySelector("#h-models");
  if (!element || !page) return;
  if (!element.firstElementChild) frame(element);
  text(element.querySelector(".h-where"), t("models.where", "Models are stored in {folder} ({free} free).", { folder: page.folder, free: size(page.free) }));
  list(element.querySelector(".h-models"), page.models, (each) => each.id, make, update);
  list(element.querySelector(".h-add .h-list"), page.missing, (each) => each.path, (each) => {
    const line = el(`<li class="h-soft"><span></span> <button type="button" class="h-chip"></button></li>`);
    text(line.querySelector("button"), t("models.forget", "Remove from list"));
    line.querySelector("button").addEventListener("click", () => act("forget", each.path));
    return line;
  }, (line, each) => text(line.querySelector("span"), each.trouble));
  // The card that somebody was sent to; the tab may come later than the answer.
  const card = aimed && element.offsetParent && element.querySelector(`[data-key="${CSS.escape(aimed)}"]`);
  if (card) {
    aimed = "";
    card.scrollIntoView({ block: "center" });
  }
  const has = element.querySelector(".h-has");
  if (has.dataset.drawn !== String(page.token)) {
    has.dataset.drawn = String(page.token);
    has.innerHTML = page.token ? `<span></span> <button type="button" class="h-chip h-forget"></button>` : "";
    text(has.querySelector("span"), t("token.there", "A token is saved."));
    text(has.querySelector("button"), t("token.forget", "Remove token"));
  }
}

function make() {
  return el(`<li class="h-card h-model-card"><h3></h3><p class="h-badges"><span class="h-badge h-fit"></span><span class="h-badge h-here right"></span></p><p class="h-soft h-because"></p>
    <div class="h-facts"></div><p class="h-soft h-size"></p><div class="h-share" role="progressbar" aria-valuemin="0" aria-valuemax="100" hidden><i></i></div>
    <p class="h-soft h-how" hidden></p><p class="h-trouble" role="alert" hidden></p><p class="h-chips h-does"></p></li>`);
}

/** @param {HTMLElement} card @param {ModelView} each */
function update(card, each) {
  /** @type {Record<string, string>} */
  const kinds = { speech: t("models.speech", "speech"), picture: t("models.picture", "pictures"), hearing: t("models.hearing", "hearing"), seeing: t("models.seeing", "reads pictures"), enlarging: t("models.enlarging", "enlarges") };
  const move = moves.get(each.id), open = move && move.state !== "done" ? move : null;
  text(card.querySelector("h3"), each.title);
  const fit = card.querySelector(".h-fit");
  fit.className = `h-badge h-fit ${each.fit?.level ?? ""}`;
  text(fit, each.fit?.word ?? t("models.unknown", "not known yet"));
  const here = card.querySelector(".h-here");
  here.hidden = !each.here;
  text(here, each.starter ? t("models.built-in", "included with Hearth") : t("models.installed", "installed"));
  text(card.querySelector(".h-because"), each.fit ? sentences([each.fit.sentence, ...each.fit.cures]) : t("models.starting", "The engine is still starting; you will see in a moment whether this model fits."));
  list(card.querySelector(".h-facts"), each.facts, (fact) => fact, (fact) => Object.assign(el("<p></p>"), { textContent: fact }));
  const sizes = each.away ? "" : each.here || !each.download ? each.bytes && t("models.takes", "{size} on this disk", { size: size(each.bytes) }) : t("models.about", "about {size} to download", { size: size(each.download) });
  text(card.querySelector(".h-size"), [kinds[each.kind], sizes, whole(each.licence), each.path].filter(Boolean).join(" · "));
  const share = card.querySelector(".h-share"), done = move ? (100 * move.done_bytes) / Math.max(1, move.total_bytes) : 0;
  share.hidden = !open;
  share.firstElementChild.style.width = `${done}%`;
  share.setAttribute("aria-valuenow", Math.round(done));
  share.setAttribute("aria-label", each.title);
  const how = card.querySelector(".h-how");
  how.hidden = !open && !move?.sentence;
  if (!open) text(how, move?.sentence ?? "");
  else {
    const speed = open.rate ? `${decimal(open.rate / 1e6, 1)} MB/s` : "";
    const left = open.eta_s != null ? t("models.left", "{time} left", { time: time(open.eta_s) }) : "";
    const note = open.state === "running" ? open.sentence : "";
    text(how, [open.word, t("models.of", "{done} of {total}", { done: size(open.done_bytes), total: size(open.total_bytes) }), speed, left, note].filter(Boolean).join(" · "));
  }
  const trouble = card.querySelector(".h-trouble");
  const wrong = move?.state === "failed" ? move.sentence : each.away;
  trouble.hidden = !wrong;
  text(trouble, wrong);
  does(card.querySelector(".h-does"), each, move);
}

/** @param {HTMLElement} element @param {ModelView} each @param {DownloadView | undefined} move */
function does(element, each, move) {
  const state = `${move?.state} ${move?.cure} ${each.here} ${each.away} ${each.bytes > 0} ${each.lacks} ${each.download} ${page?.token}`;
  if (element.dataset.drawn === state) return;
  element.dataset.drawn = state;
  const held = element.contains(document.activeElement);
  element.innerHTML = "";
  const add = (/** @type {string} */ label, /** @type {() => unknown} */ run) => {
    const made = makeButton(label, run);
    made.setAttribute("aria-label", `${label}${t("word.colon", ": ")}${each.title}`);
    element.append(made);
  };
  if (moving(each.id)) add(t("models.pause", "Pause"), () => act("pause", each.id));
  else if (move && move.state !== "done") add(t("models.go-on", "Resume"), () => act("get", each.id));
  else if (each.lacks) add(t("models.get-configs", "Download what it lacks ({size})", { size: size(each.download) }), () => got(each.id));
  else if (!each.here && !each.away && each.download) add(t("models.get", "Download"), () => got(each.id));
  if (move?.cure === "report") add(t("cure.report", "Copy report"), copyReport);
  if (move?.cure === "token") add(t("token.paste", "Paste a token"), () => document.querySelector(".h-token input").focus());
  if (each.gate && !each.here) {
    const terms = el(`<a class="h-chip" target="_blank" rel="noreferrer"></a>`);
    terms.href = each.gate;
    text(terms, t("models.terms", "Terms"));
    element.append(terms);
  }
  if (each.here && USES[each.kind]) add(USES[each.kind](), () => use(each));
  if (each.here) add(t("models.folder", "Show in folder"), () => act("where", each.id));
  if (each.local) add(t("models.off-list", "Remove from list"), () => act("forget", each.id));
  else if (!each.starter && (each.bytes || move)) add(t("models.remove", "Delete"), async () => (await sure(t("models.sure", "Delete {title} from this disk?", { title: each.title }), t("models.remove", "Delete"))) && act("remove", each.id));
  if (held && !element.contains(document.activeElement)) element.querySelector("button")?.focus({ preventScroll: true }); // keep keyboard focus where it was
}

// Refresh when the tab opens, when the machine is known, and when a download is done.
area("#h-models", (element, { strip }) => {
  const now = Boolean(element.offsetParent);
  if (now && (!shown || known !== Boolean(strip.machine))) {
    known = Boolean(strip.machine);
    look().then(refresh);
  }
  shown = now;
});
setInterval(() => shown && !document.hidden && [...moves.values()].some(({ state }) => state !== "done") && look(), LOOK_MS);
