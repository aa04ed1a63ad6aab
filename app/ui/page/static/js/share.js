// Sharing: the owner's button in the head and its panel: link, password, time left, guests, limits.
import { copies, named } from "./copies.js";
import { el, list, makeButton, open, text } from "./elements.js";
import { area, ask, post } from "./hearth.js";
import { decide } from "./sure.js";
import { apart, sentences, t, time } from "./words.js";

const LOOK_MS = 3000;
const limits = () => [
  ["letters", t("share.letters", "Characters in a script")], ["side", t("share.side", "Pixels per side")], ["steps", t("share.steps", "Steps")],
  ["batch", t("share.batch", "Pictures per job")], ["waiting", t("share.waiting", "Jobs in the queue")],
  ["waiting_all", t("share.waiting-all", "Jobs of all guests in the queue (beyond it, one each)")], ["share", t("share.share", "Share of each hour (up to 1)")],
];
const /** @type {Record<string, () => [string, string]>} */ ways = {
  home: () => [t("share.home", "At home (Wi-Fi)"), t("share.home-why", "Phones and computers in your own network. Works without internet.")],
  link: () => [t("share.anywhere", "Anywhere"), t("share.anywhere-why", "By a link over the internet, through Gradio's server.")],
};
const /** @type {Record<string, string>} */ NEXT = { begin: "[data-copy=address]", end: ".h-begin button", "send-away": ".h-end" }; // focused after an act
let /** @type {HTMLDialogElement | null} */ panel = null, password = "", shown = "", timer = 0, acts = 0; // acts: begun and answered

// Only the owner's state has charts, and only the owner may share.
area(".h-switches", (element, { charts }) => {
  if (!charts || element.querySelector("[data-h-share]")) return;
  const chip = makeButton(t("share.button", "Share"), share);
  chip.dataset.hShare = "";
  chip.setAttribute("aria-haspopup", "dialog");
  element.prepend(chip);
});

function share() {
  panel ??= made();
  if (!panel.open) open(panel);
  look();
}

/** @returns {HTMLDialogElement} */
function made() {
  const dialog = el(`<dialog class="h-sharing" aria-labelledby="h-sharing-title" aria-describedby="h-sharing-why"><h2 id="h-sharing-title" tabindex="-1" autofocus></h2><p class="h-soft h-why" id="h-sharing-why"></p>
    <p class="h-trouble" role="alert" hidden></p>
    <div class="h-begin" hidden><fieldset><legend></legend></fieldset><label><span></span> <select></select></label> <button type="button" class="h-primary"></button></div>
    <div class="h-running" hidden><p class="h-left h-soft"></p><p class="h-trouble h-lost" role="alert" hidden></p><div class="h-link"><div><div class="h-qr" role="img"></div><p class="h-soft h-scan"></p></div><div>
      <p><b></b><br><code class="h-address"></code> <button type="button" class="h-chip" data-copy="address"></button></p>
      <p class="h-secret"><b></b><br><code></code> <button type="button" class="h-chip" data-copy="password"></button><br><span class="h-soft"></span></p><p class="h-soft h-advice"></p></div></div>
      <h3></h3><p class="h-soft h-none"></p><ul class="h-guests"></ul><button type="button" class="h-end"></button></div>
    <details><summary></summary><div class="h-limits"></div></details>
    <form method="dialog"><button class="h-chip"></button></form></dialog>`);
  const part = (/** @type {string} */ selector) => dialog.querySelector(selector);
  text(part("h2"), t("share.title", "Let others speak and paint here"));
  text(part(".h-why"), t("share.why", "They get a link and a password. They see only what they make themselves, and your own jobs always go first."));
  text(part(".h-begin legend"), t("share.where", "Where your guests are"));
  text(part(".h-begin > label span"), t("share.for", "Duration"));
  text(part(".h-begin button"), t("share.begin", "Create link"));
  text(part(".h-link b"), t("share.link", "Link"));
  text(part(".h-secret b"), t("share.password", "Password"));
  text(part("h3"), t("share.guests", "Guests"));
  text(part(".h-none"), t("share.nobody", "Nobody yet"));
  text(part(".h-scan"), t("share.scan", "A phone that scans this needs no password. It changes every minute."));
  text(part(".h-end"), t("share.end", "Stop sharing"));
  text(part("summary"), t("share.limits", "Guest limits"));
  text(part("form button"), t("share.close", "Close"));
  part(".h-qr").setAttribute("aria-label", t("share.qr", "QR code that lets in without the password"));
  for (const copy of dialog.querySelectorAll("[data-copy]")) copies(copy, copy.parentElement.querySelector("code"), copy.parentElement.querySelector("b").textContent);
  part(".h-begin button").addEventListener("click", () => act("begin", { hours: Number(part("select").value), at_home: part("fieldset input:checked")?.value === "home" }));
  part(".h-end").addEventListener("click", () => act("end"));
  for (const [name, label] of limits()) {
    const row = el(`<label><span></span> <input type="number" min="0" step="${name === "share" ? 0.05 : 1}"></label>`);
    row.dataset.limit = name;
    text(row.firstElementChild, label);
    row.lastElementChild.addEventListener("change", () => act("limits", { [name]: Number(row.lastElementChild.value) }));
    part(".h-limits").append(row);
  }
  dialog.addEventListener("close", () => clearTimeout(timer));
  document.body.append(dialog);
  return dialog;
}

/** @param {keyof typeof ways} way */
function choice(way) {
  const row = el(`<label><input type="radio" name="h-way" value="${way}" aria-labelledby="h-way-${way}" aria-describedby="h-way-${way}-why">
    <span><b id="h-way-${way}"></b><br><small class="h-soft" id="h-way-${way}-why"></small></span></label>`);
  const [name, why] = ways[way]();
  text(row.querySelector("b"), name);
  text(row.querySelector("small"), why);
  return row;
}

/** @param {string} what */
async function act(what, given = {}) {
  if (!panel) return;
  const busy = panel.querySelector(".h-begin button"), begins = what === "begin";
  if (begins) [busy.disabled, busy.textContent] = [true, t("share.making", "Creating the link…")];
  acts++;
  const answer = await post(`hearth/share/${what}`, given).catch(() => null);
  const silent = { trouble: t("share.silent", "Hearth did not respond; it may have been closed. Start it again, then try again.") };
  const view = (await answer?.json().catch(() => null)) ?? silent;
  acts++;
  if (begins) [busy.disabled, busy.textContent] = [false, t("share.begin", "Create link")];
  const part = (/** @type {string} */ selector) => panel?.querySelector(selector), trouble = part(".h-trouble");
  trouble.hidden = !view.trouble;
  text(trouble, view.trouble ?? "");
  if (!view.trouble) draw(view);
  const next = view.trouble ? begins && NEXT.end : NEXT[what]; // what was pressed is hidden, gone, or was shut
  if (next) part(next).focus();
}

/** @type {ShareView} */
const SHUT = { open: false, limits: {} };

async function look() {
  clearTimeout(timer);
  if (!panel?.open) return;
  const before = acts, view = await ask("hearth/share").catch(() => SHUT);
  if (before === acts || view.password) draw(view); // else a press is newer; the password comes once, with whichever answer
  timer = setTimeout(look, LOOK_MS);
}

/** @param {ShareView} view */
function draw(view) {
  const part = (/** @type {string} */ selector) => panel?.querySelector(selector);
  password = view.open ? (view.password ?? password) : "";
  part(".h-begin").hidden = view.open;
  part(".h-running").hidden = !view.open;
  if (!document.activeElement?.checkVisibility()) part("h2").focus(); // what had the focus is hidden by now
  const select = part("select");
  if (!view.open && !select.options.length) {
    for (const hours of view.hours ?? []) select.append(new Option(time(3600 * hours), String(hours)));
    for (const way of view.ways ?? []) part("fieldset").append(choice(way));
    (part("fieldset input") ?? {}).checked = true;
  }
  for (const row of panel?.querySelectorAll("[data-limit]") ?? []) {
    if (document.activeElement !== row.lastElementChild) row.lastElementChild.value = view.limits[row.dataset.limit] ?? "";
  }
  if (!view.open) return;
  text(part(".h-left"), t("share.left", "Ends in {time}", { time: time(view.left_s) }));
  part(".h-lost").hidden = !view.lost;
  text(part(".h-lost"), view.lost ?? "");
  text(part(".h-address"), view.address ?? "");
  if (shown !== view.qr) part(".h-qr").innerHTML = shown = view.qr ?? "";
  part(".h-qr svg")?.setAttribute("aria-hidden", "true");
  part(".h-secret").hidden = !password;
  text(part(".h-secret code"), password);
  const once = view.at_home ? t("share.once-home", "Shown only once. Tell it to your guests.") : t("share.once", "Shown only once. Send it separately from the link.");
  text(part(".h-secret .h-soft"), once);
  const plain = t("share.plain", "The connection is not encrypted: use it in a network whose people you trust.");
  part(".h-advice").hidden = !view.at_home;
  text(part(".h-advice"), view.at_home ? sentences([view.advice, view.address?.startsWith("http:") && plain]) : "");
  const { guests = [] } = view;
  part(".h-none").hidden = guests.length > 0;
  part(".h-guests").hidden = !guests.length;
  list(part(".h-guests"), guests, (each) => each.id, (each) => {
    const row = el(`<li><b dir="auto"></b> <span class="h-soft"></span> <button type="button" class="h-chip"></button></li>`);
    const name = each.name || t("share.unnamed", "unnamed guest");
    text(row.querySelector("b"), name);
    named(row.querySelector("button"), t("share.away", "Remove"), name);
    row.querySelector("button").addEventListener("click", async () => {
      const question = t("share.away-sure", "{name} is logged out, and their jobs stop. Whoever knows the password can come in again; with another password only the others in this list stay in. If this guest is in it twice, remove both.", { name: apart(name) });
      const chosen = await decide(question, [[t("share.away", "Remove"), "h-danger"], [t("share.away-for-good", "Remove and change the password"), "h-danger"]]);
      if (chosen >= 0) act("send-away", { id: each.id, for_good: chosen === 1 });
    });
    return row;
  }, (row, each) => text(row.querySelector("span"), t("share.seen", "joined {since} ago, last active {seen} ago", { since: time(each.since_s), seen: time(each.seen_s) })));
}
