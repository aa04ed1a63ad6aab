// Paint: the picture while it is painted, the results, comparing two, and the grid.
import { checked, drawProblems } from "./check.js";
import { el, list, makeButton, text } from "./elements.js";
import { enlargeActs, enlargeButton } from "./enlarge.js";
import { changeByWords, guideBy, likeIt, startFrom } from "./force.js";
import { area, call, live, post, redraw, soon } from "./hearth.js";
import { drawJob, jobCard, jobFrame, jobSaid, stopped } from "./job.js";
import { madeWith, showPair, showPictures } from "./lightbox.js";
import { offerSamples } from "./rewrite.js";
import { prompts } from "./samples.js";
import { sendButton } from "./send.js";
import { t, time } from "./words.js";

let /** @type {{ job?: string, at: number, kept: boolean, cell?: number } | null} */ shown = null, /** @type {PictureResultView | null} */ compared = null;
let weighed = "", known = false;

area("#h-samples", (element) => offerSamples(element, t("paint.samples", "Sample prompts"), prompts(), "paint-prompt"));

const prompt = checked("paint-prompt", "picture", ({ problems }) => {
  const element = document.querySelector("#h-prompt");
  if (element) drawProblems(element, problems);
}, { negative: "paint-negative" });
export const paintedBy = prompt.again;
area("#h-prompt", () => prompt.look());

// There is no forecast until the engine has told what machine this is. Guests are never told.
area("#h-canvas", (_, { strip }) => {
  if (known || !strip?.machine) return;
  known = true;
  call("paint.forecast");
});

area("#h-canvas", (element, { picture, grid }) => {
  const frame = `${jobFrame}<div class="h-easel"><button type="button" class="h-enlarge" hidden><img alt="" hidden></button><p class="h-soft"></p></div><p class="h-soft h-made"></p>
    <div class="h-chips h-acts"></div><div class="h-thumbs" role="group"></div><figure class="h-guided" hidden><img alt=""><figcaption class="h-soft"></figcaption></figure>${jobSaid}`;
  if (jobCard(element, picture, frame)) {
    text(element.querySelector("h2"), t("canvas.title", "Picture"));
    element.querySelector(".h-enlarge").addEventListener("click", () => showFull());
  }
  const image = element.querySelector("img"), enlarge = image.parentElement, empty = element.querySelector(".h-easel p");
  text(empty, picture ? "" : t("canvas.empty", "Your picture will appear here, starting with the first steps."));
  if (!picture) return;
  const { end } = picture;
  if (end && weighed !== picture.job) {
    weighed = picture.job;
    if (live.state.charts) call("paint.forecast"); // guests have none
  }
  const /** @type {{ url: string, id?: number }[]} */ done = picture.results.length ? picture.results : picture.parts;
  // A picture of a grid or of a list stays in view while that is painted on, and no longer than it is there.
  const cell = [...(grid?.cells.flatMap(({ result }) => result ?? []) ?? []), ...picture.listed].find(({ id }) => id === shown?.cell);
  if (!shown || (shown.job === picture.job ? shown.cell && !cell : !(cell && (grid?.latest || picture.listed.includes(cell))))) shown = { job: picture.job, at: 0, kept: false };
  const running = !end && picture.preview;
  const place = shown.kept ? shown.at : done.length - 1;
  const other = cell ?? (end && !done.length ? picture.listed.at(-1) : undefined), result = other ?? picture.results[place];
  const strip = picture.listed.length ? [...picture.listed, ...(end ? [] : done)] : done, pressed = other ?? done[place];
  const source = running && !shown.kept ? picture.preview : pressed?.url ?? picture.preview;
  image.hidden = enlarge.hidden = !source;
  enlarge.disabled = !result;
  enlarge.title = result ? t("lightbox.open", "Show in full") : "";
  text(element.querySelector(".h-made"), result ? madeWith(result) : "");
  element.querySelector(".h-easel").hidden = !source && Boolean(end); // a failure is shown instead, or all was deleted
  if (source && image.getAttribute("src") !== source) image.src = source;
  image.alt = result?.text || t("canvas.alt", "Generated picture");
  image.classList.toggle("h-rough", Boolean(running && source === picture.preview));
  const closing = end?.kind === "finished" ? t("canvas.done", "{n} {n:picture|pictures} in {time}", { n: end.made, time: time(end.elapsed_s, true) }) : end?.kind === "stopped" ? stopped(strip.length) : "";
  const above = [...document.querySelectorAll("#h-prompt li span")].map((line) => line.textContent);
  const said = picture.said.filter((each) => !above.includes(each.text)); // once is enough
  drawJob(element, { ...picture, said }, picture.rate || closing);
  drawLeft(element.querySelector(".h-resume"), picture);
  drawActs(element.querySelector(".h-acts"), result);
  const guided = element.querySelector(".h-guided"), map = guided.querySelector("img");
  guided.hidden = !picture.guide;
  if (picture.guide && map.getAttribute("src") !== picture.guide) map.src = picture.guide;
  text(guided.querySelector("figcaption"), t("canvas.guided", "Guided by this map"));
  list(element.querySelector(".h-thumbs"), strip.length > 1 ? strip : [], (each) => each.url, (each) => {
    const thumb = el(`<button type="button" class="h-thumb"><img alt="" loading="lazy"></button>`);
    thumb.firstElementChild.src = each.url;
    return thumb;
  }, (thumb, each) => {
    const own = done.findIndex(({ url }) => url === each.url);
    thumb.setAttribute("aria-label", t("canvas.thumb", "Show picture {n}", { n: strip.indexOf(each) + 1 }));
    thumb.setAttribute("aria-pressed", each.url === pressed?.url);
    thumb.onclick = () => {
      shown = { job: picture.job, at: Math.max(0, own), kept: true, ...(own < 0 && { cell: each.id }) };
      redraw();
    };
  });
});

// Of a list of prompts that was stopped, what was not painted goes on together, after what is left of the picture itself.
/** @param {any} resume @param {PictureView} picture */
function drawLeft(resume, { job, left }) {
  if (!left.length || !live.state.charts) return;
  const button = resume.firstElementChild, jobs = [...new Set([...(resume.hidden ? [] : [job]), ...left])];
  resume.hidden = false;
  button.dataset.job = jobs.join();
  text(button, t("canvas.left", "Paint the {n} {n:picture|pictures} of the list that {n:is|are} left", { n: jobs.length }));
}

function showFull() {
  const { results = [], listed = [] } = live.state.picture ?? {}, cells = live.state.grid?.cells.flatMap(({ result }) => result ?? []) ?? [];
  const id = shown?.cell ?? (results.length ? results[shown?.kept ? shown.at : results.length - 1] : listed.at(-1))?.id;
  const pictures = [listed, shown?.cell ? cells : [], results].find((each) => each.some((one) => one.id === id)) ?? [];
  showPictures(pictures, pictures.findIndex((one) => one.id === id), (one) => [
    [t("canvas.reuse", "Reuse settings"), () => call("paint.restore", { creation: one.id })],
    ...enlargeActs(one),
  ]);
}

/** @param {HTMLElement} element @param {PictureResultView | null | undefined} result */
function drawActs(element, result) {
  if (element.dataset.drawn === String(result?.id)) return;
  element.dataset.drawn = String(result?.id);
  element.innerHTML = "";
  if (!result) return;
  const save = el(`<a class="h-chip" download></a>`);
  save.href = `${result.url}?download=1`;
  text(save, t("canvas.download", "Download"));
  element.append(
    save, ...sendButton(save),
    makeButton(t("canvas.reuse", "Reuse settings"), () => call("paint.restore", { creation: result.id })),
    makeButton(t("canvas.start", "Use as starting picture"), () => startFrom(result)),
    ...(live.state.charts ? [enlargeButton(result), makeButton(t("canvas.edit", "Change by words"), () => changeByWords(result)), makeButton(t("canvas.guide", "Use as guide"), () => guideBy(result)), makeButton(t("canvas.reference", "Use as reference"), () => likeIt(result))] : []), // guests have none
    compareButton(result),
  );
}

/** @param {PictureResultView} result */
function compareButton(result) {
  const selected = compared?.id === result.id, second = compared && !selected;
  const made = makeButton(second ? t("canvas.compare-with", "Compare with the selected picture") : t("canvas.mark", "Select to compare"), () => compare(result));
  if (!second) made.setAttribute("aria-pressed", selected);
  return made;
}

/** @param {PictureResultView} result */
function compare(result) {
  const first = compared, acts = document.querySelector("#h-canvas .h-acts");
  compared = first ? null : result;
  acts.dataset.drawn = "";
  redraw();
  acts.lastElementChild?.focus(); // the button that was pressed is gone
  if (first && first.id !== result.id) showPair(first, result);
}

// The latest grid stands open; later pictures fold it. A cell that is pressed is shown above.
area("#h-grid", (element, { grid }) => {
  element.hidden = !grid;
  if (!grid) return;
  const drawn = JSON.stringify([grid, shown?.cell]);
  if (element.dataset.drawn === drawn) return;
  const open = element.dataset.latest === String(grid.latest) ? element.firstElementChild?.open ?? grid.latest : grid.latest;
  const focused = [...element.querySelectorAll("td")].indexOf(document.activeElement?.closest("#h-grid td"));
  Object.assign(element.dataset, { drawn, latest: grid.latest });
  const cell = (/** @type {CellView} */ { result, preview, failed }) => (result ? `<button type="button" class="h-thumb"><img src="${result.url}" alt=""></button>` : preview ? `<img src="${preview}" alt="">` : `<span class="h-soft">${failed ? "–" : "…"}</span>`);
  const rows = grid.rows.map((_, y) => `<tr><th scope="row"></th>${grid.columns.map((__, x) => `<td>${cell(grid.cells[y * grid.columns.length + x])}</td>`).join("")}</tr>`);
  element.innerHTML = `<details><summary><h2></h2></summary><div class="h-scroll"><table><thead><tr><td></td>${grid.columns.map(() => `<th scope="col"></th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table></div><p class="h-chips"></p></details>`;
  element.firstElementChild.open = open;
  text(element.querySelector("h2"), t("grid.title", "{across} in columns, {down} in rows", grid));
  for (const [i, head] of element.querySelectorAll("thead th").entries()) text(head, grid.columns[i]);
  for (const [i, head] of element.querySelectorAll("tbody th").entries()) text(head, grid.rows[i]);
  for (const [i, place] of element.querySelectorAll("tbody td").entries()) {
    const { result } = grid.cells[i], button = place.querySelector("button");
    if (!result) continue;
    button.setAttribute("aria-label", t("grid.cell", "Show the picture at {column}, {row}", { column: grid.columns[i % grid.columns.length], row: grid.rows[Math.floor(i / grid.columns.length)] }));
    button.setAttribute("aria-pressed", shown?.cell === result.id);
    button.addEventListener("click", () => {
      shown = { job: live.state.picture?.job, at: 0, kept: true, cell: result.id };
      redraw();
      document.querySelector("#h-canvas").scrollIntoView({ block: "nearest", behavior: "smooth" });
    });
  }
  element.querySelectorAll("td")[focused]?.querySelector("button")?.focus({ preventScroll: true }); // the button that was pressed is gone
  if (grid.cells.every((each) => each.result || each.failed)) {
    const sheet = el(`<a class="h-chip" href="hearth/sheet" download="contact sheet.png"></a>`);
    text(sheet, t("grid.sheet", "Contact sheet"));
    element.querySelector(".h-chips").append(sheet);
  }
  if (grid.stopped.length && live.state.charts) {
    const resume = makeButton(t("interrupted.on", "Resume"), async () => {
      resume.disabled = true;
      try {
        for (const job of grid.stopped) await post(`hearth/queue/${job}/go-on`);
      } finally {
        resume.disabled = false;
        soon();
      }
    }, "h-chip");
    element.querySelector(".h-chips").append(resume);
  }
});
