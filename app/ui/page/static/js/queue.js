// The queue and interrupted jobs.
import { el, list, makeButton, onPage, show, text } from "./elements.js";
import { area, ask, live, post, redraw, soon } from "./hearth.js";
import { copyReport } from "./machine.js";
import { drawScript } from "./player.js";
import { sure } from "./sure.js";
import { apart, t } from "./words.js";

/** @param {string} job @param {string} what */
const act = (job, what) => post(`hearth/queue/${job}/${what}`);
const owner = () => Boolean(live.state.charts);

let begun = "";
// A job that has begun since the page last heard of it runs on, and the answer says so.
/** @param {QueueView[]} jobs */
async function remove(jobs) {
  begun = "";
  await Promise.all(jobs.map(async ({ id }) => (begun = (await (await act(id, "remove")).json().catch(() => ({}))).trouble ?? begun)));
  soon();
}

area("#h-strip", (element, { queue }) => {
  let button = element.querySelector(".h-waiting");
  if (!button) {
    button = makeButton("", open, "h-chip h-waiting");
    element.querySelector(".h-doing")?.after(button);
  }
  button.hidden = !queue?.length;
  text(button, t("queue.waiting", "{n} waiting", { n: queue?.length ?? 0 }));
});

// What a guest makes here is in no tab of the owner's: it is stopped where it is told of.
area("#h-strip", (element, { strip }) => {
  let button = element.querySelector(".h-stop-guest");
  if (!button) {
    button = makeButton("", () => act(button.dataset.job, "stop").then(soon), "h-chip h-stop-guest");
    element.querySelector(".h-doing")?.after(button);
  }
  button.hidden = !strip.of_guest;
  button.dataset.job = strip.job ?? "";
  const name = strip.guest_name;
  text(button, name ? t("strip.stop-named", "Stop the job of {name}", { name: apart(name) }) : t("strip.stop-guest", "Stop the guest's job"));
  button.title = button.textContent; // a long name is cut off
});

function open() {
  const dialog = el(`<dialog class="h-dialog h-queue" aria-labelledby="h-queue"><h2 id="h-queue"></h2><p class="h-soft" role="status"></p><ol class="h-list"></ol><form method="dialog" class="h-chips"><button class="h-chip"></button><button type="button" class="h-chip h-all"></button></form></dialog>`);
  text(dialog.querySelector("h2"), t("queue.title", "Queue"));
  text(dialog.querySelector("form button"), t("queue.close", "Close"));
  const all = dialog.querySelector(".h-all");
  text(all, t("queue.empty", "Clear queue"));
  all.addEventListener("click", async () => {
    const jobs = live.state.queue ?? [];
    if (await sure(t("queue.sure", "Remove {n} waiting {n:job|jobs}? This cannot be undone.", { n: jobs.length }), t("queue.empty", "Clear queue"))) remove(jobs);
  });
  begun = "";
  draw(dialog);
  show(dialog);
}

/** @param {HTMLElement} dialog */
function draw(dialog) {
  const queue = live.state.queue ?? [], none = !queue.length, making = live.state.making ? [live.state.making] : [];
  text(dialog.querySelector("p"), begun || (none ? t("queue.none", "The queue is empty.") : ""));
  dialog.querySelector(".h-all").hidden = none;
  list(dialog.querySelector("ol"), [...making, ...queue], (job) => job.id, (job) => {
    const row = el(`<li class="h-part"><span class="h-badge h-number"></span><div class="h-sounding"><div></div><p class="h-soft"></p></div><button type="button" class="h-chip"></button><button type="button" class="h-chip"></button></li>`);
    drawScript(row.querySelector(".h-sounding div"), job.text);
    text(row.querySelector(".h-sounding .h-soft"), job.facts);
    const [up, out] = row.querySelectorAll("button");
    text(up, t("queue.up", "Move up"));
    text(out, t("queue.remove", "Remove"));
    for (const button of [up, out]) button.setAttribute("aria-label", `${button.textContent}${t("word.colon", ": ")}${job.text}`);
    up.addEventListener("click", () => act(job.id, "up"));
    out.addEventListener("click", () => remove([job]));
    return row;
  }, (row, job) => {
    const [up, out] = row.querySelectorAll("button"), runs = !job.place; // it is stopped in its tab
    text(row.querySelector(".h-number"), runs ? t("queue.now", "now") : String(job.place));
    row.classList.toggle("h-now", runs);
    [up.hidden, up.disabled, out.hidden] = [runs || !owner(), job.place === 1, runs];
  });
}
area("dialog.h-queue", draw);

// What keeps all jobs from running takes the place of the interrupted jobs.
area("#h-strip", (element, { standing }) => {
  let banner = document.querySelector("#h-interrupted.h-standing:not(.h-notice)");
  if (!standing) return banner?.remove();
  if (banner?.dataset.cure !== standing.cure) {
    document.querySelector("#h-interrupted")?.remove();
    banner = el(`<div id="h-interrupted" class="h-standing" role="alert"><span></span></div>`);
    banner.dataset.cure = standing.cure;
    element.after(banner);
    const add = (/** @type {string} */ label, /** @type {() => unknown} */ run) => banner.append(makeButton(label, run, "h-chip"));
    const engine = async (/** @type {"again" | "repair"} */ deed) => {
      const answer = await ask(`hearth/engine/${deed}`, { method: "POST" });
      if (answer.text) banner.dataset.line = answer.text;
    };
    if (standing.cure === "repair") {
      add(t("cure.again", "Try again"), () => engine("again"));
      add(t("cure.repair", "Repair"), () => engine("repair"));
    }
    add(t("cure.report", "Copy report"), copyReport);
  }
  text(banner.firstElementChild, banner.dataset.line ?? standing.text);
});

// What was damaged and mended, and what the page itself tells: shown until it is read.
let /** @type {NoticeView[]} */ own = [];
area("#h-strip", (element, { notices, standing, pause }) => {
  let banner = document.querySelector("#h-interrupted.h-notice");
  const [notice] = [...(notices ?? []), ...own];
  if (standing || pause?.asks || !notice) return banner?.remove();
  if (!banner) {
    document.querySelector("#h-interrupted")?.remove();
    banner = el(`<div id="h-interrupted" class="h-standing h-notice" role="status"><span></span><button type="button" class="h-chip"></button></div>`);
    element.after(banner);
    const read = banner.querySelector("button");
    text(read, t("notice.read", "OK"));
    read.addEventListener("click", () => {
      if (banner.dataset.notice) return fetch("hearth/notices", { method: "POST", body: JSON.stringify({ id: banner.dataset.notice }) });
      own = [];
      redraw();
    });
  }
  banner.dataset.notice = notice.id;
  text(banner.firstElementChild, notice.text);
});

// Interrupted jobs: one line for all of them, two answers.
area("#h-strip", (element, { interrupted, notices, standing, pause }) => {
  let banner = document.querySelector("#h-interrupted:not(.h-paused)");
  if (standing || notices?.length || own.length) return;
  if (!interrupted || pause?.asks) return banner?.remove();
  if (!banner) {
    document.querySelector("#h-interrupted")?.remove();
    banner = el(`<div id="h-interrupted" role="status"><span></span><button type="button" class="h-chip"></button><button type="button" class="h-chip"></button></div>`);
    element.after(banner);
    const [on, off] = banner.querySelectorAll("button");
    on.addEventListener("click", goOn);
    off.addEventListener("click", letGo);
  }
  const [on, off] = banner.querySelectorAll("button"), several = interrupted.jobs.length > 1;
  text(on, several ? t("interrupted.on-all", "Resume all") : t("interrupted.on", "Resume"));
  text(off, several ? t("interrupted.off-all", "Discard all") : t("interrupted.off", "Discard"));
  text(banner.firstElementChild, interrupted.text);
});

// One after the other, so that they keep their order.
async function goOn() {
  for (const job of live.state.interrupted?.jobs ?? []) await act(job, "go-on");
  soon();
}
async function letGo() {
  const { jobs, kept } = live.state.interrupted ?? { jobs: [], kept: false };
  if (jobs.length > 1 && !(await sure(t("interrupted.sure", "Discard {n} interrupted {n:job|jobs}? Finished parts are kept.", { n: jobs.length }), t("interrupted.off-all", "Discard all")))) return;
  for (const job of jobs) await act(job, "let-go");
  if (kept) own = [{ id: "", text: t("interrupted.kept", "Discarded. What was finished of it is kept on the Shelf.") }];
  redraw();
}

// A stopped job goes on the same way, and those of a list with it, in their order.
onPage("click", async (event) => {
  const jobs = event.target.closest?.(".h-resume button")?.dataset.job;
  if (!jobs) return;
  for (const job of jobs.split(",")) await act(job, "go-on");
  soon();
});
