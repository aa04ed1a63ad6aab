// Pause: the chip in the strip and its dialog, the banner that says why jobs wait, and the question when the battery runs.
import { el, makeButton, show, text } from "./elements.js";
import { area, live, post, soon } from "./hearth.js";
import { t } from "./words.js";

const WHEN = { any: () => t("pause.any", "At any time"), hours: () => t("pause.within", "Only between"), away: () => t("pause.while-away", "Only while nobody uses this computer") };

/** @param {string} what @param {object} given @param {any} told where a refusal is shown */
async function act(what, given = {}, told = null) {
  const answer = await post(`hearth/pause/${what}`, given), { trouble } = await answer.json().catch(() => ({ trouble: t("share.silent", "Hearth did not respond; it may have been closed. Start it again, then try again.") }));
  if (told) [told.hidden, told.textContent] = [!trouble, trouble ?? ""];
  soon();
  return !trouble;
}

function open() {
  const view = live.state.pause;
  if (!view) return;
  const dialog = el(`<dialog class="h-dialog h-pausing" aria-labelledby="h-pause" aria-describedby="h-pause-why"><h2 id="h-pause"></h2><p class="h-soft" id="h-pause-why"></p><p class="h-trouble" role="alert" hidden></p>
    <p class="h-one"></p><fieldset><legend></legend></fieldset><form method="dialog"><button class="h-chip"></button></form></dialog>`);
  const [title, why, told, now, plan, close] = ["h2", ".h-soft", ".h-trouble", ".h-one", "fieldset", "form button"].map((each) => dialog.querySelector(each));
  text(title, t("pause.title", "Pause"));
  text(why, t("pause.why", "The running job stops within a moment, and the card and its memory are free. It goes on from its last step, also after a restart."));
  text(dialog.querySelector("legend"), t("pause.when", "When jobs run"));
  text(close, t("pause.close", "Close"));
  const until = el(`<input type="time" class="h-field" value="${view.end}">`);
  until.setAttribute("aria-label", t("pause.until-label", "Time at which jobs go on"));
  const hold = async (/** @type {{ until?: string }} */ given) => (await act("hold", given, told)) && dialog.close();
  const first = view.reason ? makeButton(t("pause.resume", "Resume now"), async () => (await act("resume", {}, told)) && dialog.close(), "h-chip h-go-on") : makeButton(t("pause.now", "Pause now"), () => hold({}), "h-chip h-go-on");
  const later = makeButton(t("pause.until-go", "Pause until"), () => hold({ until: until.value }), "h-chip");
  const name = () => later.setAttribute("aria-label", `${later.textContent}${t("word.colon", ": ")}${until.value}`); // it is read before the time
  until.addEventListener("input", name);
  name();
  now.append(first, later, until);
  const [begin, end] = [view.begin, view.end].map((each) => el(`<input type="time" class="h-field" value="${each}">`));
  begin.setAttribute("aria-label", t("pause.begin", "Jobs may begin at"));
  end.setAttribute("aria-label", t("pause.end", "Jobs wait from"));
  const send = () => act("plan", { when: dialog.querySelector("fieldset :checked").value, begin: begin.value, end: end.value }, told);
  for (const [when, word] of Object.entries(WHEN)) {
    const row = el(`<p><label><input type="radio" name="h-when" value="${when}"> <span></span></label></p>`);
    text(row.querySelector("span"), word());
    row.querySelector("input").checked = view.when === when;
    if (when === "hours") row.append(begin, el(`<span aria-hidden="true">–</span>`), end);
    plan.append(row);
  }
  if (view.plugged) { // the answer to the battery's question, to be taken back
    const row = el(`<p><label><input type="checkbox" checked> <span></span></label></p>`);
    text(row.querySelector("span"), t("pause.plugged-too", "Wait while this computer runs on its battery"));
    row.addEventListener("change", (/** @type {any} */ { target }) => act(target.checked ? "wait" : "go-on-battery", {}, told));
    plan.append(row);
  }
  plan.addEventListener("change", (/** @type {any} */ { target }) => (target.type === "radio" || dialog.querySelector('[value="hours"]').checked) && send());
  show(dialog);
  now.firstElementChild.focus();
}

// There is one banner: where another says something, the chip leads to what is paused.
const another = () => document.querySelector("#h-interrupted:not(.h-paused)");

area("#h-strip", (element, { strip, queue, pause }) => {
  let button = element.querySelector(".h-pause");
  if (!pause) return button?.remove();
  if (!button) {
    button = makeButton("", open, "h-chip h-pause");
    element.querySelector(".h-doing")?.after(button);
  }
  button.hidden = live.away || (pause.reason ? !another() : !(strip.job || queue?.length || pause.when !== "any"));
  text(button, pause.reason ? t("pause.paused", "Paused") : t("pause.button", "Pause"));
});

// Why jobs wait, or the question about the battery, for which other banners wait.
area("#h-strip", (element, { pause, standing }) => {
  const words = pause?.asks || pause?.reason;
  let banner = document.querySelector("#h-interrupted.h-paused");
  if (!words || standing || (!pause.asks && another())) return banner?.remove();
  const asks = String(Boolean(pause.asks));
  if (banner?.dataset.asks !== asks) {
    document.querySelector("#h-interrupted")?.remove();
    banner = el(`<div id="h-interrupted" class="h-paused" role="status"><span></span></div>`);
    banner.dataset.asks = asks;
    element.after(banner);
    if (pause.asks) banner.append(makeButton(t("pause.wait", "Pause until plugged in"), () => act("wait"), "h-chip"), makeButton(t("pause.go-on", "Continue"), () => act("go-on-battery"), "h-chip"));
    else banner.append(makeButton(t("pause.resume", "Resume now"), () => act("resume"), "h-chip"), makeButton(t("pause.change", "When jobs run…"), open, "h-chip"));
  }
  text(banner.firstElementChild, words);
});
