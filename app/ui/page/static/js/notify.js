// Tell me when it is done: the tab's title, a chime, the system's notification with the picture, where the system shows one, and a message to one's own phone.
import { makeButton, onPage, text } from "./elements.js";
import { area, ask, live, page, post } from "./hearth.js";
import { t } from "./words.js";

/** @param {string} what */
const deed = (what, given = {}) => post(`hearth/notify/${what}`, given);

// Both of the page's are off by default.
const wished = () => localStorage.getItem("hearth_chime") === "on";
/** @type {Record<string, string>} */
const running = {};
let done = false; // while nobody looked
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) done = false;
});
onPage("click", (event) => {
  if (event.target.closest?.('[data-h-act="chime"]')) {
    if (!mute) localStorage.setItem("hearth_chime", wished() ? "off" : "on"); // else it is the press that was asked for
    if (wished()) {
      chime();
      window.Notification?.requestPermission();
    }
    const on = wished();
    if (live.state?.charts) deed(on ? "chime" : "no-chime");
  }
});
// Without a page the server tells, by the system's notification: it has to know that this one goes.
addEventListener("pagehide", () => live.state?.charts && post("hearth/notify/left", { page }, { keepalive: true }).catch(() => {}));
// A page that was not pressed yet since it was loaded may not sound, unless the browser lets this one: then the probe runs by itself.
let probe = wished() && window.AudioContext ? new AudioContext() : null;
const isMute = () => wished() && probe?.state === "suspended" && navigator.userActivation?.hasBeenActive === false;
let mute = false, mirrored = false; // an older page, or one of another browser, kept the wish to itself
area('[data-h-act="chime"]', (button) => {
  mute = isMute();
  const name = t("chime.label", "Chime when a job is done");
  if (!mute) {
    probe?.close();
    probe = null;
  }
  button.setAttribute("aria-pressed", wished());
  button.title = mute ? `${name}. ${t("chime.mute", "The browser lets this page sound once you have clicked or typed in it.")}` : name;
  button.setAttribute("aria-label", button.title);
  text(button, mute ? `\u266a ${t("chime.press", "click once")}` : "\u266a");
  if (!mirrored && live.state?.charts && wished()) deed("chime");
  mirrored ||= Boolean(live.state);
});
// How far the work of this page is, where a tab shows it; the window of its own has its own title.
area("#h-strip", (_, { strip, speech, picture }) => {
  const view = [speech, picture].find((each) => each && !each.end && each.job === strip.job);
  const told = view ? `${Math.floor(100 * (view.share ?? 0))}%` : done ? t("chime.done", "Done.") : "";
  const title = told ? `${told} · Hearth` : "Hearth";
  if (document.title !== title) document.title = title;
});
area("#h-strip", (_, { speech, picture }) => {
  for (const [kind, view] of Object.entries({ speech, picture })) {
    if (!view) continue;
    if (running[kind] === view.job && view.end) {
      done = document.hidden;
      if (wished()) {
        chime();
        if (document.hidden) showNotice(view);
      }
      running[kind] = "";
    } else if (!view.end) running[kind] = view.job;
  }
});
function chime() {
  const context = new AudioContext(), now = context.currentTime;
  for (const [pitch, at] of [[659, 0], [880, 0.16]]) {
    const tone = context.createOscillator(), loud = context.createGain();
    tone.frequency.value = pitch;
    loud.gain.setValueAtTime(0.12, now + at);
    loud.gain.exponentialRampToValueAtTime(0.0001, now + at + 0.7);
    tone.connect(loud).connect(context.destination);
    tone.start(now + at);
    tone.stop(now + at + 0.7);
  }
}

// By the page, else by the server, as a web view may have no notifications; guests have the page's alone.
/** @param {SpeechView | PictureView} view */
function showNotice(view) {
  const [made] = view.results, icon = made?.url && view === live.state.picture ? made.url : "hearth/static/icon-64.png";
  if (window.Notification?.permission === "granted") new Notification("Hearth", { body: t("chime.done", "Done."), icon });
  else if (live.state.charts) post("hearth/notify/show", { job: view.job });
}

let /** @type {PhoneView | null} */ card = null, asked = false, turn = 0, /** @type {Promise<boolean> | null} */ keeping = null; // whether it was kept
const forms = { ntfy: () => "ntfy", webhook: () => t("notify.webhook", "Webhook (JSON)") };

/** @param {"keep" | "try" | "forget"} what @param {object} given @param {HTMLElement} element */
async function act(what, given, element) {
  const mine = ++turn, field = element.querySelector("form input"), written = field.value, answer = await deed(what, given).catch(() => null);
  const said = (await answer?.json().catch(() => null)) ?? { trouble: t("machines.silent", "Hearth did not respond.") };
  if (what === "keep" && !said.trouble && field.value === written) field.value = "";
  if (mine !== turn && !(what === "keep" && said.trouble)) return !said.trouble; // a test takes seconds: what was pressed meanwhile counts
  const told = element.querySelector(".h-trouble");
  [told.hidden, told.textContent] = [!said.trouble, said.trouble ?? ""];
  if (!said.trouble) card = said;
  text(element.querySelector(".h-told"), said.trouble ? "" : { keep: t("notify.kept", "Saved."), try: t("notify.sent", "Sent."), forget: t("notify.off", "Nothing is sent any more.") }[what]);
  draw(element);
  return !said.trouble;
}

/** An address is tried as it was kept: a refused one is not covered by "Sent." to the one before. @param {HTMLElement} element */
async function keep(element) {
  const part = (/** @type {string} */ selector) => element.querySelector(selector);
  const mine = (keeping = act("keep", { address: part("form input").value, kind: part("select").value, titles: part("[type=checkbox]").checked }, element));
  await mine;
  if (keeping === mine) keeping = null;
}
/** @param {HTMLElement} element */
const tryIt = async (element) => ((await keeping) ?? true) && act("try", {}, element);

/** @param {HTMLElement} element */
function frame(element) {
  element.innerHTML = `<h2></h2><p class="h-soft"></p><p class="h-trouble" role="alert" hidden></p><form><p class="h-one"><select class="h-field"></select><input type="password" class="h-field" autocomplete="off" spellcheck="false"></p>
    <p><label><input type="checkbox"> <span></span></label></p><p class="h-chips"><button class="h-chip"></button></p></form><p class="h-soft h-told" role="status"></p>`;
  const part = (/** @type {string} */ selector) => element.querySelector(selector);
  text(part("h2"), t("notify.title", "Tell my phone when it is done"));
  text(part(".h-soft"), t("notify.why", "After work of more than a minute Hearth writes to an address of yours: a topic of ntfy (its free app shows it on the phone), or a webhook. Nothing is sent before one is set."));
  text(part("label span"), t("notify.titles", "Also send the first words of what was made"));
  text(part("form button"), t("notify.keep", "Save"));
  part("select").setAttribute("aria-label", t("notify.form", "Kind of address"));
  part("form input").setAttribute("aria-label", t("notify.address", "Address"));
  for (const [form, name] of Object.entries(forms)) part("select").append(new Option(name(), form));
  part("form").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    keep(element);
  });
  part("form .h-chips").append(makeButton(t("notify.try", "Send a test"), () => tryIt(element), "h-chip"), makeButton(t("notify.forget", "Remove"), () => act("forget", {}, element), "h-chip h-danger"));
}

/** @param {HTMLElement} element */
function draw(element) {
  if (!card) return;
  const part = (/** @type {string} */ selector) => element.querySelector(selector);
  if (!element.firstElementChild) {
    frame(element);
    [part("select").value, part("[type=checkbox]").checked] = [card.kind, card.titles];
  }
  part("form input").placeholder = card.address || "https://ntfy.sh/\u2026";
  for (const button of [...element.querySelectorAll("form .h-chips button")].slice(1)) button.hidden = !card.address;
}

area("#h-notify", async (element) => {
  if (!element.firstElementChild) draw(element);
  if (asked || !element.offsetParent) return;
  asked = true;
  card = await ask("hearth/notify").catch(() => null);
  asked = Boolean(card);
  draw(element);
});
