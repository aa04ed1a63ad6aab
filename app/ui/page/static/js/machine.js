// Machine: the plan with its reasons, the chunk curve, the live charts, the self-test.
import { el, list, onPage, text } from "./elements.js";
import { area, ask, call, fill } from "./hearth.js";
import { decimal, gb, sentences, t, time } from "./words.js";

let model = "", as = "", asked = "", stamp = "", turn = 0, waits = false, testing = false;
let /** @type {MachineView | null} */ latest = null, /** @type {CheckedView | undefined} */ checked, /** @type {{ done: number, asked: number } | null} */ stopped = null;

/** @param {string | null} nextModel @param {string | null} nextAs */
export const lookAt = (nextModel, nextAs) => {
  [model, as] = [nextModel ?? model, nextAs ?? ""];
  refresh();
};

// The plan is of the model that was loaded last, until somebody chooses another.
let chosen = false, followed = "";
export const keepLooking = () => (chosen = true);

// Copy the report for a bug. The clipboard gets the promise at once: Safari forgets the press while the report is on its way.
export const copyReport = () => {
  const report = fetch("hearth/report", { credentials: "same-origin" }).then((answer) => answer.text());
  return navigator.clipboard.write([new ClipboardItem({ "text/plain": report.then((words) => new Blob([words], { type: "text/plain" })) })]);
};

// Only the last question's answer is drawn: an earlier one may come after it.
const wanted = () => `${model} ${as} ${stamp}`;
async function refresh() {
  const mine = ++turn;
  [asked, waits] = [wanted(), true];
  try {
    const answer = await ask(`hearth/machine?model=${encodeURIComponent(model)}&as=${encodeURIComponent(as)}`);
    if (mine !== turn) return;
    latest = answer;
    if (latest) draw(latest);
  } catch {
    if (mine === turn) asked = "";
  } finally {
    if (mine === turn) waits = false;
  }
}

/** @param {MachineView} view */
function draw(view) {
  const words = document.querySelector("#h-words");
  if (words) {
    words.innerHTML = `<h2></h2>${view.pretended ? '<p class="h-pretended"></p>' : ""}<p class="h-machine-words"></p><span class="h-badge"></span><ul class="h-facts">${view.facts.map((each) => `<li>${esc(each)}</li>`).join("")}</ul>`;
    text(words.querySelector("h2"), t("machine.title", "This machine"));
    text(words.querySelector(".h-pretended"), t("machine.pretended", "Simulated machine: nothing here describes this computer."));
    text(words.querySelector(".h-machine-words"), view.words);
    drawBadge(words.querySelector(".h-badge"), view);
  }
  drawPlan(view);
  drawCurve(view);
  drawSelftest(view);
}

// How far the check of this machine is; then what came of it. Where a self-test that was stopped is all that was ever asked, it says how far it came.
const checking = () => Boolean(!testing && checked?.total && checked.done < checked.total);
/** @param {HTMLElement} badge @param {MachineView} view */
function drawBadge(badge, view) {
  const { right, total } = view.selftest, part = stopped && total <= stopped.done;
  badge.className = `h-badge ${checking() || !total || (part && right === total) ? "" : right === total ? "right" : "careful"}`;
  if (checking()) return text(badge, t("machine.checking", "checking this machine while idle: {done} of {total}", checked));
  if (part) return text(badge, t("machine.part-tested", "self-test stopped at {done} of {asked}; {right} of {total} right so far", { ...stopped, right, total }));
  text(badge, total ? t("machine.tested", "checked: {right} of {total} right", { right, total }) : t("machine.untested", "not checked yet"));
}

/** @param {MachineView} view */
function drawPlan(view) {
  const element = document.querySelector("#h-plan");
  if (!element) return;
  element.dataset.seen = model;
  const named = view.other ? t("machine.other", "Another machine, not this computer: {machine}", { machine: view.other }) : view.simulated && t("plan.simulated", "Memory of the simulated {machine}", { machine: view.simulated });
  const other = named ? `<p class="h-pretended">${esc(named)}</p>` : "";
  if (view.trouble) return (element.innerHTML = `${other}<p class="h-trouble" role="alert">${esc(view.trouble)}</p>`);
  if (!view.plan) return;
  const rows = (/** @type {ChoiceView[]} */ all) => all.map((row) => `<tr><td>${esc(row.what)}</td><td>${esc(row.choice)}</td><td>${esc(row.because)}
    <div class="h-under"><span class="h-soft">${source(row)}</span>${rejected(row.rejected)}</div></td></tr>`).join("");
  const open = [...element.querySelectorAll("details")].map((each) => each.open);
  const first = view.plan.rows.filter((row) => row.first), rest = view.plan.rows.filter((row) => !row.first);
  const head = `<thead><tr><th scope="col">${t("plan.what", "setting")}</th><th scope="col">${t("plan.choice", "choice")}</th><th scope="col">${t("plan.because", "reason")}</th></tr></thead>`;
  element.innerHTML = `${other}${view.note ? `<p class="h-note">${esc(view.note)}</p>` : ""}${taught(view.learned ?? [])}<table class="h-table">${head}<tbody>${rows(first)}</tbody></table>
    <details><summary>${t("plan.rest", "More settings")}</summary><table class="h-table">${head}<tbody>${rows(rest)}</tbody></table></details>
    ${[...view.plan.warnings, ...view.plan.retired].map((each) => `<p class="h-soft">${esc(each)}</p>`).join("")}`;
  element.querySelectorAll("details").forEach((/** @type {HTMLDetailsElement} */ each, /** @type {number} */ i) => (each.open = Boolean(open[i])));
  element.querySelector(".h-learned button")?.addEventListener("click", (/** @type {any} */ event) => {
    event.target.disabled = true;
    call("machine.forget");
  });
}

// What failed runs of this model taught, with a button to forget it.
/** @param {string[]} learned */
const taught = (learned) => (!learned.length ? "" : `<div class="h-learned">${learned.map((each) => `<p>${esc(each)}</p>`).join("")}
  <p class="h-chips"><button type="button">${t("learned.forget", "Forget this")}</button> <span class="h-soft">${t("learned.how", "Hearth learned this from failed runs on this machine. If you forget it, the next run starts with the original settings.")}</span></p></div>`);

/** @type {Record<string, string>} */
const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
/** @param {string} words */
const esc = (words) => words.replace(/[&<>"]/g, (sign) => ESCAPED[sign]);
/** @param {{ source: string, link: string }} each */
const source = (each) => (each.link ? `<a href="${esc(each.link)}" target="_blank" rel="noreferrer">${esc(each.source)}</a>` : esc(each.source));
/** @param {RejectedView[]} all */
function rejected(all) {
  if (!all.length) return "";
  const lines = all.map((each) => `<li><b>${esc(each.option)}</b>${t("word.colon", ": ")}${each.objections.map((o) => `${esc(o.text)} <span class="h-soft">${source(o)}</span>`).join(" ")}</li>`);
  return `<details><summary class="h-soft">${t("plan.rejected", "rejected: {names}", { names: all.map((each) => each.option).join(t("word.comma", ", ")) })}</summary><ul>${lines.join("")}</ul></details>`;
}

// The curve: predicted memory (dashed), measured speed (solid), the current size, the budget. Its sizes line up with the slider's.
/** @param {MachineView} view */
function drawCurve(view) {
  const element = document.querySelector("#h-curve"), { curve } = view;
  if (!element || !curve) return;
  const W = element.clientWidth || 560, H = 208, side = 9, top = 32, bottom = 26;
  const x = (/** @type {number} */ i) => side + ((i + 1) * (W - 2 * side)) / curve.points.length; // left of the first: automatic
  const most = Math.max(...curve.points.map((p) => p.bytes));
  const y = (/** @type {number} */ share) => H - bottom - share * (H - top - bottom);
  const logs = curve.points.map((p) => Math.log2(p.bytes)), low = Math.min(...logs), high = Math.max(...logs);
  const memory = curve.points.map((_, i) => `${x(i)},${y((logs[i] - low) / (high - low || 1))}`).join(" ");
  const known = curve.points.flatMap(({ seconds }, i) => (seconds == null ? [] : [{ i, seconds }]));
  const fastest = Math.min(...known.map(({ seconds }) => seconds));
  const speed = known.map(({ i, seconds }) => `${x(i)},${y(fastest / seconds)}`).join(" ");
  const { budget } = curve, over = budget == null ? -1 : curve.points.findIndex((p) => p.bytes > budget);
  // What runs may lie between two sizes, each of which is twice the one before; of a size that is asked for none but the same is marked.
  const at = curve.at == null ? -1 : Math.min(curve.points.length - 1, Math.max(0, Math.log2(curve.at / curve.points[0].chunk)));
  const log_at = at < 0 ? 0 : logs[Math.floor(at)] + (at % 1) * (logs[Math.ceil(at)] - logs[Math.floor(at)]);
  const marked = curve.chunk == null ? 0 : 1 + curve.points.findIndex((p) => p.chunk === curve.chunk) || -1;
  const sizes = [t("curve.auto", "auto"), ...curve.points.map((p) => p.chunk)];
  const every = W / sizes.length < 48 ? 2 : 1; // on a phone every second size has room, the marked one among them
  const marks = sizes.map((size, i) => ((i - Math.max(0, marked)) % every ? "" : `<text class="${i === marked ? "here" : ""}" x="${i ? (i < sizes.length - 1 ? x(i - 1) : W) : 0}" y="${H - 4}" text-anchor="${i ? (i < sizes.length - 1 ? "middle" : "end") : "start"}">${size}</text>`)).join("");
  const megabytes = (/** @type {number} */ bytes) => Math.round(bytes / 2 ** 20);
  // On the left the memory of each line, on the right the time that a call takes there.
  const mib = (/** @type {number} */ share) => `${megabytes(2 ** (low + share * (high - low)))} MiB`;
  const ms = (/** @type {number} */ share) => `${decimal((1000 * fastest) / share, 1)} ms`;
  const axis = [0, 0.5, 1].map((share) => `<line class="ground" x1="0" x2="${W}" y1="${y(share)}" y2="${y(share)}"/><text class="axis" x="0" y="${y(share) - 4}">${mib(share)}</text>
    ${known.length && share ? `<text class="axis" x="${W}" y="${y(share) - 4}" text-anchor="end">${ms(share)}</text>` : ""}`).join("");
  const points = curve.points.map((p) => `${p.chunk}${t("word.colon", ": ")}${megabytes(p.bytes)} MiB`);
  const label = sentences([t("curve.label", "Memory and speed by chunk size:"), points.join(t("word.comma", ", "))]);
  document.querySelector("#machine-chunk input[type=range]")?.setAttribute("aria-valuetext", curve.chunk ?? t("word.automatic", "automatic"));
  element.innerHTML = `<h2>${t("curve.title", "Chunk size")} <span class="h-soft">${t("curve.at-once", "takes effect at once, even during a run")}</span></h2>${view.simulated ? `<p class="h-pretended">${esc(t("curve.simulated", "Memory of the simulated {machine}. Speed is measured on this computer, which stands in for it.", { machine: view.simulated }))}</p>` : ""}
    <p class="h-soft h-legend"><span><i class="h-key memory"></i>${t("curve.memory", "predicted score memory: {low} to {high} MiB", { low: megabytes(curve.points[0].bytes), high: megabytes(most) })}</span>
    <span><i class="h-key speed"></i>${known.length ? t("curve.speed", "measured speed; on the right, the time of a call") : t("curve.untuned", "speed not measured yet; press Tune for this model")}${curve.knee ? t("curve.knee", ", best size {knee}", { knee: curve.knee }) : ""}</span></p>${curve.knee && curve.knee !== curve.chunk && !curve.note ? `<p class="h-chips h-knee"><button type="button">${t("curve.use", "Use {knee}", { knee: curve.knee })}</button></p>` : ""}${curve.note ? `<p class="h-soft">${esc(curve.note)}</p>` : ""}${curve.runs ? `<p class="h-runs">${esc(curve.runs)}</p>` : ""}
    <svg class="h-plot" viewBox="0 0 ${W} ${H}" role="img" aria-label="${esc(label)}">
    ${over >= 0 ? `<rect class="swap" x="${x(over) - 18}" y="0" width="${W - x(over) + 18}" height="${H - bottom + 6}"/><text class="swap" x="${x(over) - 10}" y="12">${t("curve.over", "over the limit")}</text>` : ""}
    ${axis}<polyline class="memory" points="${memory}"/>${known.length ? `<polyline class="speed" points="${speed}"/>` : ""}
    ${at >= 0 ? `<line class="now" x1="${x(at)}" x2="${x(at)}" y1="${top}" y2="${H - bottom}"/><circle class="now" cx="${x(at)}" cy="${y((log_at - low) / (high - low || 1))}" r="5"/>` : ""}${marks}</svg>`;
}

// They come into the page when they are unfolded, which may be long after the answer.
area("#h-plan, #h-curve", (element) => {
  if (latest && !element.firstElementChild) element.id === "h-plan" ? drawPlan(latest) : drawCurve(latest);
});

onPage("click", (event) => event.target.closest?.(".h-knee button") && call("machine.knee"));

area("#h-chunk-now", (element, { strip }) => text(element, strip.chunk));

// Gradio's sliders fire release for pointers only; fire it for the keys that move them, too. Tab moves nothing.
onPage("keyup", (event) => {
  if (event.target.closest?.("#machine-chunk") && event.target.type === "range" && /^(Arrow|Page|Home|End)/.test(event.key)) event.target.dispatchEvent(new PointerEvent("pointerup", { bubbles: true }));
});

/** @param {MachineView} view */
function drawSelftest({ selftest: { parts, paths, rows } }) {
  const element = document.querySelector("#h-selftest");
  if (!element) return;
  if (!parts.length && !paths.length) {
    element.innerHTML = `<h2>${t("selftest.title", "Self-test")}</h2><p class="h-soft">${t("selftest.never", "While nothing else runs, Hearth checks whether this machine computes correctly; the button does it at once. What fails is avoided.")}</p>`;
    return;
  }
  const line = (/** @type {VerdictView} */ row) => `<tr><td><span class="h-badge ${row.passed ? "right" : "wrong"}">${row.passed ? t("selftest.right", "correct") : t("selftest.wrong", "wrong")}</span></td>
    <td>${esc(row.subject)}</td><td class="h-figure">${row.error ? row.error.toExponential(1) : ""}</td><td class="h-figure">${row.ms ? `${decimal(row.ms, 1)} ms` : ""}</td><td class="h-soft">${esc(row.words)}</td></tr>`;
  const table = (/** @type {VerdictView[]} */ all) => `<table class="h-table"><thead><tr><th scope="col">${t("selftest.outcome", "result")}</th><th scope="col">${t("selftest.what", "what")}</th><th scope="col">${t("selftest.error", "error")}</th><th scope="col">${t("selftest.time", "time")}</th><th scope="col">${t("selftest.words", "message")}</th></tr></thead><tbody>${all.map(line).join("")}</tbody></table>`;
  const lists = /** @type {[VerdictView[], string][]} */ ([
    [parts, t("selftest.parts", "Parts of the starter models, compared with the processor: {n}", { n: parts.length })],
    [paths, t("selftest.paths", "Linear layers, convolutions and paths of attention: {n}", { n: paths.length })],
    [rows, t("selftest.rows", "Known defects, tested here: {n}. Those marked wrong are worked around.", { n: rows.length })],
  ]);
  const open = [...element.querySelectorAll("details")].map((each) => each.open);
  element.innerHTML = `<h2>${t("selftest.title", "Self-test")}</h2>${lists.map(([all, title]) => `<details ${all.length ? "" : "hidden"}><summary>${title}</summary>${table(all)}</details>`).join("")}`;
  element.querySelectorAll("details").forEach((/** @type {HTMLDetailsElement} */ each, /** @type {number} */ i) => (each.open = Boolean(open[i])));
}

// Charts of the last minutes.
/** @type {["rate" | "process" | "device" | "allocated" | "swap", () => string][]} */
const LINES = [
  ["rate", () => t("chart.rate", "speed")], ["process", () => t("chart.process", "process memory")], ["device", () => t("chart.device", "device memory")],
  ["allocated", () => t("chart.allocated", "allocated by torch")], ["swap", () => t("chart.swap", "swap")],
];
// Numbers of marks that lie so near that they would stand in one another are one: 1–3.
const NEAR = 40;
/** @param {{ x: number }[]} marks */
function gather(marks) {
  const /** @type {{ x: number, from: number, to: number }[]} */ ticks = [];
  marks.forEach(({ x }, i) => {
    const before = ticks.at(-1);
    if (before && x - before.x < NEAR) before.to = i + 1;
    else ticks.push({ x, from: i + 1, to: i + 1 });
  });
  return ticks;
}
area("#h-charts", (element, { charts, strip }) => {
  if (!charts?.length || !element.offsetParent) return;
  const W = 620, H = 120, last = charts;
  if (!element.firstElementChild) element.innerHTML = `<h2></h2><div class="h-lines"></div><ol class="h-marks"></ol>`;
  text(element.querySelector("h2"), strip.memory?.stands_in ? t("charts.here", "Live, on this computer") : t("charts.title", "Live"));
  const marks = last.flatMap((each, i) => (each.marks ?? []).map((words) => ({ words, x: (i * W) / Math.max(1, last.length - 1) })));
  const drawn = marks.map(({ x }) => `<line class="mark" x1="${x}" x2="${x}" y1="0" y2="${H}"/>`).join("");
  const ticks = gather(marks).map(({ x, from, to }) => `<i style="left: ${(100 * x) / W}%">${from === to ? from : `${from}–${to}`}</i>`).join("");
  list(element.querySelector(".h-marks"), marks, ({ words }) => words, () => el(`<li class="h-soft"></li>`), (line, { words }) => text(line, words));
  const lines = LINES.filter(([name]) => last.some((each) => each[name]));
  // Frames and steps cannot share a scale: draw the unit measured last.
  const unit = last.findLast((each) => each.unit)?.unit;
  const valued = (/** @type {ChartPointView} */ each, /** @type {(typeof LINES)[0][0]} */ name) => (name === "rate" && each.unit !== unit ? 0 : each[name] ?? 0);
  const speed = (/** @type {number} */ rate) => (unit === "frames" ? t("rate.frames-alone", "{rate} frames/s", { rate: rate.toFixed(0) }) : t("rate.steps", "{rate} steps/s", { rate: decimal(rate, 1) }));
  list(element.querySelector(".h-lines"), lines, ([name]) => name, ([name]) => el(`<figure class="h-chart"><figcaption><span></span><b></b><span class="h-soft"></span></figcaption><div class="h-ticks" aria-hidden="true"></div><svg class="h-plot" viewBox="0 0 ${W} ${H}" preserveAspectRatio="none" aria-hidden="true"><g></g><line class="ground" x1="0" x2="${W}" y1="${H - 1}" y2="${H - 1}"/><polyline class="${name}"/></svg></figure>`), (figure, [name, title]) => {
    const top = Math.max(...last.map((each) => valued(each, name)), 1e-9);
    const now = valued(last[last.length - 1], name);
    const points = last.map((each, i) => `${(i * W) / Math.max(1, last.length - 1)},${H - 3 - (valued(each, name) / top) * (H - 8)}`).join(" ");
    figure.querySelector("polyline").setAttribute("points", points);
    figure.querySelector("g").innerHTML = drawn;
    figure.querySelector(".h-ticks").innerHTML = ticks;
    const shown = (/** @type {number} */ value) => (name === "rate" ? speed(value) : `${gb(value)} GB`);
    const [what, highest] = figure.querySelectorAll("span");
    text(what, title());
    text(figure.querySelector("b"), name === "rate" && !now ? t("chart.idle", "idle") : shown(now));
    text(highest, `${t("chart.highest", "peak")} ${shown(top)}`);
  });
});

// The fields follow a size that is set elsewhere, beside the picture say, until somebody touches them.
let inView = false, touched = false;
onPage("focusin", (event) => (touched ||= Boolean(event.target.closest?.("#machine-chunk, #machine-exact"))));
area("#h-curve", (element, { chunk }) => {
  const seen = Boolean(element.offsetParent);
  touched &&= inView && seen;
  inView = seen;
  const [exact, slider] = ["#machine-exact :is(input, textarea)", "#machine-chunk input[type=range]"].map((each) => document.querySelector(each));
  if (!seen || touched || !chunk || !exact || !slider || [exact, slider].includes(document.activeElement)) return;
  const size = chunk.size === "auto" ? "" : String(chunk.size);
  if (exact.value !== size) fill("machine-exact", size);
  if (Number(slider.value) !== chunk.step) fill("machine-chunk", chunk.step);
});

// Take a typed size on change only: an untouched field may hold an outdated size.
onPage("change", (event) => event.target.closest?.("#machine-exact") && call("machine.typed"));

// Progress of the self-test and Tune; one runs at a time.
area("#machine-test, #machine-tune", (button, { measuring }) => (button.disabled = Boolean(measuring && !measuring.end)));
area(".h-measuring", (element, { measuring }) => {
  const mine = measuring && measuring.kind === element.dataset.kind && (!measuring.end || measuring.end.kind !== "finished" || (measuring.said.length && measuring.kind === "Tune"));
  element.hidden = !mine;
  if (!mine) return;
  if (!element.firstElementChild) {
    element.innerHTML = `<div class="h-share"><i></i></div><p class="h-soft"></p><p class="h-heard" role="status"></p><p class="h-chips"><button type="button"></button></p>`;
    const stop = element.querySelector("button");
    text(stop, t("measuring.stop", "Stop"));
    stop.addEventListener("click", () => call("machine.stop"));
  }
  const { end, done, total } = measuring, share = element.querySelector(".h-share");
  share.hidden = element.querySelector(".h-chips").hidden = Boolean(end);
  share.firstElementChild.style.width = `${measuring.share * 100}%`;
  const left = { done, total, time: time(measuring.eta_s) };
  const counted = measuring.eta_s ? t("measuring.done-left", "{done} of {total}, about {time} left", left) : t("measuring.done", "{done} of {total}", left);
  const under_way = total ? counted : t("measuring.waits", "waiting for the engine");
  const stopped_at = total ? t("measuring.stopped-at", "stopped at {done} of {total}", { done, total }) : t("measuring.stopped", "stopped");
  const closing = end?.kind === "failed" ? end.text : end?.kind === "stopped" ? stopped_at : sentences(measuring.said.map((each) => each.text));
  text(element.querySelector("p"), end ? closing : under_way);
  text(element.querySelector(".h-heard"), end ? closing : "");
});

let ended = "";
area("#h-words", (element, { strip, measuring, checked: now_checked }) => {
  if (!element.offsetParent) return;
  const was = checking();
  checked = now_checked;
  testing = measuring?.kind === "SelfTest" && !measuring.end;
  const ends = measuring?.kind === "SelfTest" && measuring.end?.kind === "stopped" && measuring.total;
  stopped = ends ? { done: measuring.done, asked: measuring.total } : null;
  if (latest && checking()) drawBadge(element.querySelector(".h-badge"), latest);
  else if (was) asked = ""; // what was found may have changed the plan
  if (!model) model = element.dataset.model ?? "";
  if (!chosen && strip.model && strip.model !== followed) {
    followed = strip.model;
    call("machine.loaded");
  }
  stamp = strip.plan;
  const end = measuring?.end ? JSON.stringify(measuring.end) : "";
  if (wanted() !== asked || (end && end !== ended) || (!latest && strip.machine && !waits)) refresh();
  ended = end;
});
