// Several machines, on the Machine tab: those that help this one, and the one that this one helps.
import { copies } from "./copies.js";
import { el, list, makeButton, text } from "./elements.js";
import { area, live, post, redraw, take } from "./hearth.js";
import { sure } from "./sure.js";
import { offerExtra } from "./upkeep.js";
import { t, time } from "./words.js";

/** @param {number} seconds */
const minutes = (seconds) => Math.max(1, Math.ceil(seconds / 60));
let waiting = "", trouble = "";

// The machine that this one helps.
const helped = () => {
  const { machines } = live.state;
  return machines && "lending" in machines ? machines.lending : null;
};

// One act at a time: some take seconds. What a press changes is drawn from its answer.
/** @param {string} what */
async function act(what, given = {}) {
  if (waiting) return false;
  [waiting, trouble] = [what, ""];
  redraw();
  const answer = await post(`hearth/machines/${what}`, given).catch(() => null);
  const said = (await answer?.json().catch(() => null)) ?? { trouble: t("machines.silent", "Hearth did not respond.") };
  [waiting, trouble] = ["", said.trouble ?? ""];
  if (said.machines && live.state) take({ machines: said.machines });
  redraw();
  return !said.trouble;
}

const title = () => `<h2></h2><p class="h-soft"></p>`;
/** @param {HTMLElement} element */
function head(element) {
  text(element.querySelector("h2"), t("machines.title", "Several machines"));
  text(element.querySelector("p"), t("machines.why", "Computers that you trust can share the work of pictures and speech. They talk to each other directly, encrypted, with no account. Nothing listens until you switch it on."));
}

// Without the extra: how to add it.
/** @param {HTMLElement} element @param {string} command @param {boolean} adds */
function drawLack(element, command, adds) {
  if (element.dataset.drawn !== "lack") {
    element.dataset.drawn = "lack";
    if (adds) {
      element.innerHTML = `${title()}<p class="h-how"></p><p class="h-chips"></p>`;
      head(element);
      text(element.querySelector(".h-how"), t("machines.adds", "This needs an extra, which Hearth adds beside what runs."));
      element.querySelector(".h-chips").append(makeButton(t("machines.add", "Add it"), () => offerExtra("machines"), "h-chip"));
      return;
    }
    element.innerHTML = `${title()}<p class="h-how"></p><p class="h-one"><code></code> <button type="button" class="h-chip"></button></p>`;
    head(element);
    text(element.querySelector(".h-how"), t("machines.lacks", "This needs an extra. Close Hearth, run this in a terminal, and start Hearth again:"));
    copies(element.querySelector("button"), element.querySelector("code"));
  }
  if (!adds) text(element.querySelector("code"), command);
}

/** @param {HTMLElement} element */
function frame(element) {
  element.dataset.drawn = "all";
  element.innerHTML = `${title()}<p class="h-trouble" role="alert" hidden></p>
    <p><label><input type="checkbox" role="switch" class="h-use"> <span></span></label> <span class="h-soft h-busy" role="status"></span></p>
    <div class="h-using"><ul class="h-list h-helpers"></ul><p class="h-soft h-none"></p><p class="h-news" role="status"></p>
      <div class="h-code" role="group"><p></p><div class="h-link"><div class="h-qr" role="img"></div><div><p><code></code></p><p class="h-chips"><button type="button" class="h-chip"></button> <button type="button" class="h-chip"></button></p><p class="h-soft h-left"></p></div></div><p class="h-soft h-near"></p></div>
      <p class="h-chips"><button type="button" class="h-chip h-more"></button></p></div>
    <h3></h3><form class="h-lend"><p class="h-one"><input type="text" class="h-field" autocomplete="off" autocapitalize="characters" spellcheck="false"> <button class="h-chip"></button></p><p class="h-chips h-mains"></p><p><label><input type="checkbox" class="h-seen"> <span></span></label></p></form>
    <div class="h-lending"><p class="h-doing" role="status"></p><p class="h-soft h-done"></p><p><label><input type="checkbox" class="h-fetch"> <span></span></label></p><p class="h-soft h-lacked"></p><p class="h-chips"><button type="button" class="h-chip"></button> <button type="button" class="h-chip"></button></p></div>`;
  head(element);
  const part = (/** @type {string} */ selector) => element.querySelector(selector);
  text(part("label span"), t("machines.use", "Use other computers"));
  part(".h-use").addEventListener("change", (/** @type {any} */ event) => act(event.target.checked ? "use" : "use-not"));
  text(part(".h-none"), t("machines.none", "No other computer helps yet."));
  text(part(".h-code > p"), t("machines.code-how", "On the other computer, open Hearth's Machine tab and enter this code under \"Help another computer\", or run in its folder: python3 start.py lend CODE"));
  part(".h-code").setAttribute("aria-label", t("machines.code", "Code for one computer"));
  part(".h-qr").setAttribute("aria-label", t("machines.qr", "QR code of the code"));
  const [copy, withdraw] = part(".h-code").querySelectorAll("button");
  copies(copy, part(".h-code code"));
  text(withdraw, t("machines.withdraw", "Withdraw"));
  withdraw.addEventListener("click", () => act("withdraw-code"));
  text(part(".h-more"), t("machines.more", "Add a computer"));
  part(".h-more").addEventListener("click", () => act("show-code"));
  text(part("h3"), t("machines.lend", "Help another computer"));
  const code = part(".h-lend input");
  code.placeholder = t("machines.enter", "The other computer's code");
  code.setAttribute("aria-label", code.placeholder);
  text(part(".h-lend button"), t("machines.help", "Help"));
  part(".h-lend").addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (!code.value.trim()) {
      trouble = t("machines.no-code", "Type the code that the other computer shows: its Machine tab, \"Add a computer\".");
      code.focus();
      return redraw();
    }
    if (await act("lend", { code: code.value })) code.value = "";
  });
  text(part(".h-fetch + span"), t("machines.fetch", "Fetch the models that it uses, while 10 GB stay free here"));
  part(".h-fetch").addEventListener("change", (/** @type {any} */ event) => act(event.target.checked ? "fetch" : "fetch-not"));
  text(part(".h-seen + span"), t("machines.be-seen", "Show in this network that this computer would help, and find those that ask"));
  part(".h-seen").addEventListener("change", (/** @type {any} */ event) => act(event.target.checked ? "be-seen" : "be-seen-not"));
  const [pause, end] = part(".h-lending").querySelectorAll("button");
  pause.addEventListener("click", () => {
    const main = helped();
    act(main?.paused ? "help-on" : "pause");
  });
  text(end, t("machines.end", "Help no more"));
  end.addEventListener("click", async () => {
    const main = helped()?.main;
    if (await sure(t("machines.end-sure", "Help {name} no more? It takes a new code to help it again.", { name: main }), t("machines.end", "Help no more"))) act("lend-not");
  });
}

// What is found in the network saves the address only; the letters of the code have to be typed.
function makeMain() {
  const button = el(`<button type="button" class="h-chip"></button>`);
  button.addEventListener("click", () => {
    const field = button.closest("form").querySelector("input");
    field.value = button.dataset.address;
    field.focus();
  });
  return button;
}

/** @param {HTMLElement} element @param {NearbyView} nearby @param {UsingView | null} using */
function drawNearby(element, nearby, using) {
  const part = (/** @type {string} */ selector) => element.querySelector(selector);
  part(".h-seen").closest("p").hidden = Boolean(using);
  part(".h-seen").checked = waiting.startsWith("be-seen") ? waiting === "be-seen" : nearby.seen;
  text(part(".h-near"), nearby.lend.length ? t("machines.near", "These in this network would help: {names}", { names: nearby.lend.join(t("word.comma", ", ")) }) : "");
  list(part(".h-mains"), nearby.mains, (each) => each.address, makeMain, (button, each) => {
    button.dataset.address = each.address;
    text(button, t("machines.of", "Code of {name}", { name: each.name }));
  });
}

/** @param {HTMLElement} element @param {UsingView | null} using */
function drawUsing(element, using) {
  const part = (/** @type {string} */ selector) => element.querySelector(selector);
  part(".h-using").hidden = !using;
  if (!using) return;
  part(".h-none").hidden = using.machines.length > 0;
  text(part(".h-news"), using.said);
  part(".h-code").hidden = !using.code;
  part(".h-more").hidden = Boolean(using.code);
  if (using.code) {
    text(part(".h-code code"), using.code.text);
    text(part(".h-code .h-left"), t("machines.left", "Works once, within {time}.", { time: time(60 * minutes(using.code.left_s)) }));
    if (part(".h-qr").dataset.of !== using.code.text) {
      part(".h-qr").dataset.of = using.code.text;
      part(".h-qr").innerHTML = using.code.qr;
    }
  }
  list(part(".h-helpers"), using.machines, (each) => each.id, makeMachine, drawMachine);
}

/** @param {HelperView} each */
function makeMachine(each) {
  const row = el(`<li class="h-part"><span class="h-sounding"><b></b> <span class="h-badge"></span><br><span class="h-soft"></span></span><button type="button" class="h-chip"></button><button type="button" class="h-chip"></button></li>`);
  const [rest, remove] = row.querySelectorAll("button");
  text(remove, t("machines.remove", "Remove"));
  rest.addEventListener("click", () => act(rest.dataset.resting ? "work" : "rest", { id: each.id }));
  remove.addEventListener("click", async () => {
    const asked = each.cluster
      ? t("machines.leave-sure", "Use {cluster} no more? All its computers go; it takes its address and files to use it again.", { cluster: each.cluster })
      : t("machines.remove-sure", "Remove {name}? It is disconnected now, and needs a new code to help again.", { name: each.name });
    if (await sure(asked, t("machines.remove", "Remove"))) act("remove", { id: each.id });
  });
  return row;
}

/** @param {HTMLElement} row @param {HelperView} each */
function drawMachine(row, each) {
  text(row.querySelector("b"), each.name);
  const badge = row.querySelector(".h-badge"), [rest, remove] = row.querySelectorAll("button");
  badge.className = `h-badge ${each.level}`;
  text(badge, each.doing);
  const done = each.done ? [t("machines.done", "{n} {n:task|tasks} done", { n: each.done })] : [];
  text(row.querySelector(".h-soft"), [...each.facts, ...done, each.why].filter(Boolean).join(" · "));
  rest.dataset.resting = each.resting ? "yes" : "";
  text(rest, each.resting ? t("machines.work", "Use again") : t("machines.rest", "Pause"));
  for (const button of [rest, remove]) button.setAttribute("aria-label", `${button.textContent}${t("word.colon", ": ")}${each.name}`);
}

/** @param {HTMLElement} element @param {LendingView | null} lending */
function drawLending(element, lending) {
  const part = (/** @type {string} */ selector) => element.querySelector(selector), helps = lending && !lending.removed;
  part(".h-lend").hidden = Boolean(helps);
  part(".h-lending").hidden = !lending;
  if (!lending) return;
  text(part(".h-doing"), lending.doing);
  text(part(".h-done"), lending.done ? t("machines.done", "{n} {n:task|tasks} done", { n: lending.done }) : "");
  const [pause, end] = part(".h-lending").querySelectorAll("button");
  pause.hidden = end.hidden = part(".h-fetch").closest("p").hidden = !helps;
  part(".h-fetch").checked = waiting.startsWith("fetch") ? waiting === "fetch" : lending.fetches;
  text(part(".h-lacked"), lending.lacked);
  text(pause, lending.paused ? t("machines.help-on", "Go on helping") : t("machines.pause", "Pause"));
}

area("#h-machines", (element, { machines }) => {
  if (!machines) return;
  if ("command" in machines) return drawLack(element, machines.command, machines.adds);
  if (element.dataset.drawn !== "all") frame(element);
  const part = (/** @type {string} */ selector) => element.querySelector(selector), use = part(".h-use");
  const wrong = trouble || machines.said;
  part(".h-trouble").hidden = !wrong;
  text(part(".h-trouble"), wrong);
  use.checked = waiting.startsWith("use") ? waiting === "use" : Boolean(machines.using);
  for (const button of element.querySelectorAll(".h-use, .h-more, .h-lend button")) button.disabled = Boolean(waiting) || machines.starting;
  /** @type {Record<string, string>} */
  const words = { use: t("machines.starting", "switching on…"), "use-not": t("machines.stopping", "switching off…"), lend: t("machines.joining", "asking the other computer…") };
  text(part(".h-busy"), words[waiting] ?? (machines.starting ? words.use : ""));
  drawUsing(element, machines.using);
  drawNearby(element, machines.nearby, machines.using);
  drawLending(element, machines.lending);
});
