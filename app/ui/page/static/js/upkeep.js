// Upkeep, on the Machine tab: newer versions, looked for once the owner agrees, and extras; both are made beside the window.
import { copies } from "./copies.js";
import { el, list, makeButton, text } from "./elements.js";
import { area, ask, post, redraw } from "./hearth.js";
import { sure } from "./sure.js";
import { sentences, size, t } from "./words.js";

const SOON_MS = 1000, SELDOM_MS = 60_000;
let /** @type {UpkeepView | null} */ latest = null, asked = 0, acting = "", trouble = "", acts = 0;

async function load() {
  asked = Date.now();
  const before = acts, view = await ask("hearth/upkeep").catch(() => latest);
  if (before !== acts) return; // a press is newer
  latest = view;
  redraw();
}

// A press is answered with the view that it leads to.
/** @param {string} what */
async function act(what, given = {}) {
  if (acting) return;
  [acting, trouble] = [what, ""];
  acts++;
  redraw();
  const answer = await post(`hearth/upkeep/${what}`, given).catch(() => null);
  const said = (await answer?.json().catch(() => null)) ?? { trouble: t("machines.silent", "Hearth did not respond.") };
  [acting, trouble, asked] = ["", said.trouble ?? "", Date.now()];
  if (!said.trouble) latest = said;
  redraw();
}

// What a press leads to, before it does.
/** @param {UpkeepView} view */
const beside = (view) => paragraphs(
  t("upkeep.beside", "This is made and tested beside the Hearth that runs, which goes on meanwhile: it takes some minutes and up to {size} of disk. If anything fails, nothing changes.", { size: size(view.environment) }),
  view.undo ? t("upkeep.gives-up", "The version before the last update may be removed for it.") : "",
);
/** @param {string[]} all */
const paragraphs = (...all) => all.filter(Boolean).join("\n\n");

async function update() {
  if (!latest?.newer) return;
  const { version, bytes } = latest.newer;
  const question = paragraphs(t("upkeep.update-sure", "Update to Hearth {version}? {size} are downloaded, and more where it needs newer packages.", { version, size: size(bytes) }), beside(latest), t("upkeep.back", "Then a restart takes it, and you can go back to this version."));
  if (await sure(question, t("upkeep.update", "Update"), "h-go-on")) act("update");
}

/** @param {ExtraView | undefined} extra */
async function add(extra) {
  if (!latest || !extra) return;
  const question = paragraphs(t("upkeep.add-sure", "Add {name}? About {size} are downloaded; licence: {licence}.", { name: extra.title, size: size(extra.bytes), licence: extra.licence }), beside(latest), t("upkeep.add-then", "Then a restart takes it."));
  if (await sure(question, t("upkeep.add", "Add"), "h-go-on")) act("add", { extra: extra.name });
}

async function restart() {
  const question = t("upkeep.restart-sure", "Restart Hearth now? It closes and opens again. A running job is interrupted, and can be continued from its last finished part.");
  if (await sure(question, t("upkeep.restart", "Restart now"), "h-go-on")) act("restart");
}

async function goBack() {
  const question = t("upkeep.back-sure", "Go back to the version before the last update? Hearth closes and opens again with it. Your creations, models and settings stay. A running job is interrupted, and can be continued from its last finished part.");
  if (await sure(question, t("upkeep.go-back", "Go back"), "h-go-on")) act("back");
}

/** @param {HTMLElement} element */
function frame(element) {
  element.innerHTML = `<h2></h2><p class="h-soft h-version"></p>
    <div class="h-may-look" role="group"><p></p><p class="h-chips"></p></div>
    <p class="h-looks"><label><input type="checkbox" role="switch"> <span></span></label></p>
    <div class="h-newer"><p><b></b></p><details><summary></summary><pre tabindex="0"></pre></details></div>
    <p class="h-trouble" role="alert"></p><p class="h-work"></p><p class="h-heard" role="status"></p><p class="h-chips h-does"></p>
    <h3></h3><p class="h-soft h-extras-how"></p><ul class="h-list h-extras"></ul>`;
  const part = (/** @type {string} */ selector) => element.querySelector(selector);
  text(part("h2"), t("upkeep.title", "Updates and extras"));
  part(".h-may-look .h-chips").append(makeButton(t("upkeep.may-look", "Yes, once a day"), () => act("may-look"), "h-chip"), makeButton(t("upkeep.may-not", "No"), () => act("may-not-look"), "h-chip"));
  part(".h-looks input").addEventListener("change", (/** @type {any} */ event) => act(event.target.checked ? "may-look" : "may-not-look"));
  text(part(".h-looks span"), t("upkeep.looks", "Look once a day for a newer version"));
  part(".h-does").append(
    makeButton(t("upkeep.restart", "Restart now"), restart, "h-chip h-restart"), makeButton("", update, "h-chip h-update"),
    makeButton(t("sure.no", "Cancel"), () => act("cancel"), "h-chip h-cancel"), makeButton(t("upkeep.look", "Look now"), () => act("look"), "h-chip h-look-now"),
    makeButton(t("upkeep.version-before", "Back to the version before…"), goBack, "h-chip h-go-back"),
  );
  text(part("h3"), t("upkeep.extras", "Extras"));
  text(part(".h-extras-how"), t("upkeep.extras-how", "Hearth works without these. What is added stays over updates."));
}

/** @param {HTMLElement} element @param {UpkeepView} view */
function drawVersions(element, view) {
  const part = (/** @type {string} */ selector) => element.querySelector(selector), { fixed, newer, looks, ready, work } = view;
  text(part(".h-version"), sentences([t("upkeep.version", "This is Hearth {version}.", { version: view.version }), fixed || (!newer && (view.looking ? t("upkeep.looking", "Looking …") : view.told))]));
  part(".h-may-look").hidden = Boolean(fixed) || looks != null;
  text(part(".h-may-look p"), t("upkeep.may", "May Hearth look for a newer version, once a day? It asks {place} and sends nothing about you or your work. Nothing is installed without your press.", { place: view.place }));
  part(".h-looks").hidden = Boolean(fixed) || looks == null;
  part(".h-looks input").checked = acting.startsWith("may") ? acting === "may-look" : Boolean(looks);
  part(".h-newer").hidden = !newer || Boolean(ready);
  if (newer) {
    text(part(".h-newer b"), t("upkeep.newer", "Hearth {version} is there.", { version: newer.version }));
    text(part(".h-newer summary"), t("upkeep.notes", "What is new"));
    text(part(".h-newer pre"), newer.notes);
    text(part(".h-update"), t("upkeep.update-to", "Update to {version}", { version: newer.version }));
  }
  const busy = work.length > 0, wrong = trouble || (!busy && view.failed);
  part(".h-trouble").hidden = !wrong;
  text(part(".h-trouble"), wrong || "");
  const said = busy ? t("upkeep.making", "Preparing beside what runs") : ready ? sentences([ready, t("upkeep.ready-how", "A restart takes it.")]) : "";
  text(part(".h-heard"), said); // the clock beside it would be read out each second
  text(part(".h-work"), [said, ...work].join(" · "));
  part(".h-restart").hidden = busy || !ready;
  part(".h-update").hidden = busy || Boolean(ready) || !newer;
  part(".h-cancel").hidden = !busy;
  part(".h-go-back").hidden = busy || Boolean(ready) || !view.back;
  part(".h-look-now").hidden = busy || Boolean(fixed) || Boolean(ready) || looks == null;
  for (const button of element.querySelectorAll(".h-does button, .h-may-look button")) button.disabled = Boolean(acting) || (button.matches(".h-look-now") && view.looking);
}

/** @param {ExtraView} extra */
function makeExtra(extra) {
  const row = el(`<li class="h-part"><span class="h-sounding"><b></b> <span class="h-badge right"></span><br><span class="h-soft"></span><br><span class="h-soft h-costs"></span></span></li>`);
  const button = makeButton(t("upkeep.add", "Add"), () => add(latest?.extras.find((each) => each.name === extra.name)), "h-chip");
  button.setAttribute("aria-label", `${button.textContent}${t("word.colon", ": ")}${extra.title}`);
  row.append(button, el("<code></code>"));
  if (extra.name === "mcp") row.append(makeAssistants());
  return row;
}

// The switch that lets assistants in from the next start on, and where they find Hearth.
function makeAssistants() {
  const form = el(`<div class="h-form h-assistants"><p><label><input type="checkbox" role="switch"> <span></span></label></p><p class="h-soft h-fixed"></p>
    <p class="h-anew"><span></span> </p><p class="h-at"><span class="h-soft"></span><br><code></code> <button type="button" class="h-chip"></button></p></div>`);
  const part = (/** @type {string} */ selector) => form.querySelector(selector);
  part("input").addEventListener("change", (/** @type {any} */ event) => act(event.target.checked ? "assistants" : "no-assistants"));
  text(part("label span"), t("upkeep.assistants", "Let assistants on this computer speak and paint"));
  text(part(".h-anew span"), t("upkeep.ready-how", "A restart takes it."));
  part(".h-anew").append(makeButton(t("upkeep.restart", "Restart now"), restart, "h-chip"));
  text(part(".h-at span"), t("upkeep.assistants-at", "Where an assistant asks for an MCP server, give it this address. The help says more."));
  copies(part(".h-at button"), part("code"));
  return form;
}

/** @param {HTMLElement} form @param {AssistantsView} view */
function drawAssistants(form, { wanted, address, fixed }) {
  const part = (/** @type {string} */ selector) => /** @type {any} */ (form.querySelector(selector));
  part("input").checked = acting.endsWith("assistants") ? acting === "assistants" : wanted || Boolean(address && fixed);
  part("input").disabled = Boolean(fixed || acting);
  text(part(".h-fixed"), fixed);
  part(".h-anew").hidden = Boolean(fixed) || wanted === Boolean(address);
  part(".h-anew button").disabled = Boolean(acting || latest?.work.length);
  part(".h-at").hidden = !address;
  text(part("code"), address);
}

/** @param {HTMLElement} row @param {ExtraView} extra */
function drawExtra(row, extra) {
  const busy = Boolean(latest?.work.length || acting);
  text(row.querySelector("b"), extra.title);
  text(row.querySelector(".h-badge"), extra.here ? t("upkeep.here", "added") : "");
  row.querySelector(".h-badge").hidden = !extra.here;
  text(row.querySelector(".h-soft"), extra.why);
  text(row.querySelector(".h-costs"), `${size(extra.bytes)} · ${extra.licence}`);
  row.querySelector("button").hidden = extra.here || Boolean(extra.command);
  row.querySelector("button").disabled = busy;
  row.querySelector("code").hidden = extra.here || !extra.command;
  text(row.querySelector("code"), extra.command);
  const assistants = /** @type {HTMLElement | null} */ (row.querySelector(".h-assistants"));
  if (assistants && latest) {
    assistants.hidden = !extra.here;
    drawAssistants(assistants, latest.assistants);
  }
}

area("#h-upkeep", (element) => {
  const wait = latest?.work.length || latest?.looking ? SOON_MS : SELDOM_MS;
  if (element.offsetParent && !acting && Date.now() - asked > wait) load();
  if (!latest) return;
  if (!element.firstElementChild) frame(element);
  drawVersions(element, latest);
  list(element.querySelector(".h-extras"), latest.extras, (each) => each.name, makeExtra, drawExtra);
});

export const showExtras = () => document.querySelector("#h-upkeep")?.scrollIntoView({ block: "center" });

// Where another card lacks an extra, it leads here.
/** @param {string} name */
export const offerExtra = (name) => {
  const extra = latest?.extras.find((each) => each.name === name);
  showExtras();
  if (extra && !extra.command && !latest?.work.length) add(extra);
};
