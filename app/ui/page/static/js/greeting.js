// The first start on one screen: this machine, what fits, one click to a first sound or picture, also of a model that came.
import { waitingDraft } from "./drafts.js";
import { el, makeButton, onPage, text } from "./elements.js";
import { area, ask, buttons, call, tabInView } from "./hearth.js";
import { getModel, onUse } from "./models.js";
import { sendSample } from "./rewrite.js";
import { firstSamples } from "./samples.js";
import { hearNext } from "./speak.js";
import { openTab } from "./tabs.js";
import { sentences, size, t, time, unbroken } from "./words.js";

let /** @type {GreetingView | null} */ view = null, asked = "", greeted = false;

async function done() {
  greeted = true;
  document.querySelectorAll("#h-greeting").forEach((each) => (each.hidden = true));
  await ask("hearth/greeting", { method: "POST" });
}

/** @param {string} name @param {StartTab} tab @param {string} field @param {string} words */
function start(name, tab, field, words) {
  if (tab === "speak") hearNext();
  done();
  openTab(tab);
  sendSample(field, words, name, buttons[tab].go);
}

/** @param {string} name @param {StartTab} tab @param {string} field @param {string} words */
const first = (name, tab, field, words) => makeButton(name, () => start(name, tab, field, words), "h-first");

// Once: the frame keeps its height while the machine is being asked, so that nothing below it moves.
/** @param {HTMLElement} element @param {GreetingView} greeting */
function frame(element, greeting) {
  const by = Object.fromEntries(greeting.models.map((each) => [each.id, each]));
  element.innerHTML = `<h2></h2><p class="h-machine-words"></p><div class="h-start"><div><h3></h3><p class="h-soft"></p><p class="h-go"></p></div><div><h3></h3><ul class="h-list"></ul></div></div><p class="h-chips"><button type="button"></button></p>`;
  text(element.querySelector("h2"), t("greeting.title", "Welcome. This is your machine:"));
  const [now, later] = element.querySelectorAll("h3");
  text(now, t("greeting.now", "Start now"));
  text(later, t("greeting.later", "Or download a better voice, or the large models"));
  text(element.querySelector(".h-start .h-soft"), t("greeting.starters", "Hearth includes two small models: a voice that reads any English text, and a painter of simple scenes. They run on any machine, without a download or an account."));
  const go = element.querySelector(".h-go");
  if (by["starter-voice"].here) go.append(first(t("greeting.speak", "Speak something"), "speak", "speak-text", firstSamples.script));
  if (by["starter-painter"].here) go.append(first(t("greeting.paint", "Paint something"), "paint", "paint-prompt", firstSamples.prompt));
  for (const each of offered(greeting)) {
    const line = el(`<li><b></b> <span class="h-badge"></span><p class="h-soft"></p><p class="h-soft h-fit"></p></li>`);
    text(line.querySelector("b"), each.title);
    const how = each.here ? t("greeting.here", "Already installed.") : t("greeting.size", "{size}, about {time} at 50 Mbit/s.", { size: size(each.download), time: time(each.seconds) });
    text(line.querySelector("p"), unbroken(sentences([each.facts[0], each.speaks, each.pace, how])));
    if (!each.here) line.append(makeButton(t("greeting.get", "Download {title}", { title: each.title }), async () => (await getModel(each.id)) && done(), "h-chip"));
    element.querySelector(".h-list").append(line);
  }
  text(element.querySelector(":scope > .h-chips button"), t("greeting.look", "Just look around"));
  element.querySelector(":scope > .h-chips button").addEventListener("click", () => (openTab(tabInView()), done()));
}

/** @param {GreetingView} greeting */
const offered = (greeting) => greeting.offered.flatMap((id) => greeting.models.find((each) => each.id === id) ?? []);

/** @param {HTMLElement} element @param {GreetingView} greeting */
function draw(element, greeting) {
  element.hidden = greeting.greeted;
  if (greeting.greeted) return;
  if (!element.firstElementChild) frame(element, greeting);
  text(element.querySelector(".h-machine-words"), unbroken(greeting.machine) || t("greeting.asking", "Checking what it can do…"));
  const lines = element.querySelectorAll(".h-list li");
  offered(greeting).forEach(({ fit }, place) => {
    const badge = lines[place].querySelector(".h-badge");
    badge.className = `h-badge ${fit?.level ?? ""}`;
    text(badge, fit?.word ?? "...");
    text(lines[place].querySelector(".h-fit"), unbroken(fit?.sentence ?? ""));
  });
}

// A voice that came speaks the first sample at once where nothing is written yet, once its tab has chosen it.
let /** @type {(() => unknown) | null} */ awaited = null;
export const modelChosen = () => {
  awaited?.();
  awaited = null;
};
onUse(({ id, kind, title }) => {
  const isVoice = kind === "speech", isBlank = () => !(document.querySelector("#speak-text textarea")?.value ?? waitingDraft("speak-text")).trim();
  if (isVoice && isBlank()) {
    hearNext();
    awaited = () => isBlank() && sendSample("speak-text", firstSamples.script, title, buttons.speak.go);
  }
  if (isVoice) call("speak.use", { model: id });
  else call("paint.use", { model: id });
  openTab(isVoice ? "speak" : "paint");
});

// Starting a job by hand dismisses the greeting too.
onPage("click", (event) => {
  if (view && !greeted && event.target.closest?.("#speak-go, #paint-go")) done();
});

area("#h-greeting", async (element, { strip }) => {
  const now = strip?.machine ? "known" : "waking";
  if (greeted || asked === now) return;
  asked = now;
  const answer = await ask("hearth/greeting").catch(() => null);
  if (greeted || asked !== now) return; // dismissed or asked anew meanwhile
  if (!answer) return void (asked = ""); // again with the next look
  [view, greeted] = [answer, answer.greeted];
  draw(element, view);
});
