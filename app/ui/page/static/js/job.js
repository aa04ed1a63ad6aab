// What speech and picture jobs share: progress, remarks, failures.
import { el, list, onPage, text } from "./elements.js";
import { area, buttons, fill, live, post, redraw } from "./hearth.js";
import { rewrite } from "./rewrite.js";
import { nameKeys, t } from "./words.js";

const notes = new Map(), stopping = new Set(), retrying = new Set();

// Per-step progress is visual only; screen readers hear what is new.
export const jobFrame = `<div class="h-title"><h2></h2><p class="h-soft h-now"></p></div><p class="h-heard" role="status"></p><div class="h-share h-idle"><i></i></div>`;
export const jobSaid = `<ul class="h-said"></ul><p class="h-soft h-lately" role="status" hidden></p><p class="h-trouble h-broke" role="alert" hidden></p><p class="h-chips h-resume" hidden><button type="button"></button></p>`;

// Said of a stopped job: results are kept only where there are some.
/** @param {unknown} kept */
export const stopped = (kept) => (kept ? t("canvas.stopped", "stopped; finished results are kept") : t("measuring.stopped", "stopped"));

// `doing`: shown where the job has no words of its own; `heard`: what is new, for screen readers.
/** @param {Element} element @param {SpeechView | PictureView} view @param {string} doing */
export const drawJob = (element, view, doing, heard = "") => {
  const { end } = view;
  if (end) stopping.delete(view.job);
  const asked_to_stop = !end && stopping.has(view.job) && t("job.stopping", "stopping…");
  const waits = view.place ? t("parts.waits", "number {n} in the queue", { n: view.place }) : "";
  text(element.querySelector(".h-now"), asked_to_stop || waits || view.doing || doing);
  text(element.querySelector(".h-heard"), asked_to_stop || waits || view.doing || (end ? doing : heard));
  const share = element.querySelector(".h-share");
  share.classList.toggle("h-idle", Boolean(end));
  share.firstElementChild.style.width = `${view.share * 100}%`;
  list(element.querySelector(".h-said"), view.said, (each) => each.text, (each) => {
    const line = el(`<li class="h-soft ${each.kind}"></li>`);
    line.textContent = each.text;
    return line;
  });
  const lately = element.querySelector(".h-lately");
  lately.hidden = !notes.has(view.job);
  text(lately, notes.get(view.job) ?? "");
  const trouble = element.querySelector(".h-trouble");
  trouble.hidden = end?.kind !== "failed";
  if (end?.kind === "failed") {
    trouble.dataset.cure = end.cure;
    trouble.dataset.code = end.code;
    text(trouble, end.text);
  }
  // A stopped job goes on after what it finished; the button is the owner's, as for an interrupted one.
  const resume = element.querySelector(".h-resume");
  resume.hidden = !(live.state.charts && end?.kind === "stopped" && view.parts.some((part) => "url" in part));
  resume.firstElementChild.dataset.job = view.job;
  text(resume.firstElementChild, t("interrupted.on", "Resume"));
};

// How a job ended that had done so before the page came is no news: a screen reader told it with every load.
const OLD_MS = 1000;

// Build the frame of a job's card anew where the job is gone, as after a restart of the server: its rows would stay as they were.
/** @param {HTMLElement} element @param {SpeechView | PictureView | null | undefined} view @param {string} html */
export const jobCard = (element, view, html) => {
  const gone = element.dataset.job && !view;
  element.dataset.job = view?.job ?? "";
  if (element.firstElementChild && !gone) return false;
  element.innerHTML = html;
  if (view?.end) {
    const heard = element.querySelector(".h-heard");
    heard.role = null;
    setTimeout(() => (heard.role = "status"), OLD_MS);
  }
  return true;
};

// Retry with smaller settings and show them in the fields. A second press would make the smaller job smaller still.
/** @param {Kind} kind */
export const retrySmaller = async (kind) => {
  if (retrying.has(kind)) return;
  retrying.add(kind);
  await retryOnce(kind).finally(() => retrying.delete(kind));
};
/** @param {Kind} kind */
const retryOnce = async (kind) => {
  const before = live.state[kind]?.job;
  const answer = await post(`hearth/smaller/${kind}`);
  const { trouble, text: words, request } = await answer.json();
  if (kind === "speech" && request) rewrite("speak-text", request.text, t("job.shorter", "The script is now its shorter form."));
  if (kind === "picture" && request) for (const [side, field] of [["width", "paint-width"], ["height", "paint-height"]]) fill(field, request[side]);
  for (let tries = 0; !trouble && live.state[kind]?.job === before && tries < 50; tries++) await new Promise((go) => setTimeout(go, 100));
  notes.set(live.state[kind]?.job, trouble ?? words);
};

// Enable Stop only while a job runs or was just started, and nobody has pressed it.
for (const [tab, kind] of /** @type {[StartTab, Kind][]} */ ([["speak", "speech"], ["paint", "picture"]])) {
  area(`button#${buttons[tab].stop}`, (button, { [kind]: job }) => (button.disabled = !job || Boolean(job.end) || stopping.has(job.job)));
}

onPage("click", (event) => {
  const tab = event.target.closest?.("#speak-stop, #paint-stop")?.id;
  if (!tab) return;
  stopping.add(live.state[tab === "speak-stop" ? "speech" : "picture"]?.job);
  redraw(); // not with the next answer
});

// The keyboard shortcuts, named as on this system.
area(".h-keys", (element) => {
  if (element.childElementCount) return;
  element.innerHTML = `<kbd></kbd> <span></span> <kbd>Esc</kbd> <span></span>`;
  text(element.firstElementChild, nameKeys("Ctrl Enter"));
  const [begins, stops] = element.querySelectorAll("span");
  text(begins, t("job.begins", "starts"));
  text(stops, t("job.stops", "stops"));
});

// On narrow screens, scroll the result into view once a job starts; and again until it ends or somebody touches the page, as what comes into the page
// above it, the voices of a cast say, pushes it down.
let /** @type {{ tab: StartTab, before?: string } | null} */ sought = null;
/** @param {StartTab} tab */
function seek(tab) {
  const made = document.querySelector(tab === "speak" ? "#h-parts" : "#h-canvas");
  if (made && made.getBoundingClientRect().top > 0.7 * innerHeight) made.scrollIntoView({ block: "center", behavior: "smooth" });
}
onPage("click", (event) => {
  const tab = /** @type {StartTab | undefined} */ (event.target.closest?.("#speak-go, #paint-go")?.id.slice(0, 5));
  if (!tab) return;
  document.querySelector(`button#${buttons[tab].stop}`).disabled = false;
  sought = { tab, before: live.state[tab === "speak" ? "speech" : "picture"]?.job };
  seek(tab);
});
area("#h-parts, #h-canvas", (_, { speech, picture }) => {
  const view = sought?.tab === "speak" ? speech : picture;
  if (!sought || !view || view.job === sought.before) return;
  seek(sought.tab);
  if (view.end) sought = null;
});
for (const touch of /** @type {(keyof DocumentEventMap)[]} */ (["pointerdown", "wheel", "keydown"])) onPage(touch, () => (sought = null));
