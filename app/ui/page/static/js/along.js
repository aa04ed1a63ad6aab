// Read along: the sentences of a result; the one that sounds is marked, and its word where that is known. Each starts the sound where it is said.
import { el, text } from "./elements.js";
import { ask } from "./hearth.js";
import { t } from "./words.js";

const still = matchMedia("(prefers-reduced-motion: reduce)");
const /** @type {Record<string, number>} */ STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/** @typedef {{ begin: number, end: number, row: HTMLElement, spans: { begin: number, span: HTMLElement }[] }} Sentence as it is drawn */

// The last of these that has begun; both lists are in order.
/** @param {{ begin: number }[]} all @param {number} seconds */
const last = (all, seconds) => {
  let from = 0, to = all.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (all[middle].begin <= seconds) from = middle + 1;
    else to = middle;
  }
  return from - 1;
};

/** @param {HTMLElement} player @param {number} id */
export const makeAlong = (player, id) => {
  const along = el(`<details class="h-along"><summary></summary><p class="h-soft"></p><div role="group"></div></details>`);
  const audio = /** @type {HTMLAudioElement} */ (player.querySelector("audio")), box = along.querySelector("div");
  let /** @type {Sentence[]} */ sentences = [], /** @type {Sentence | null} */ now = null, /** @type {HTMLElement | null} */ word = null, turn = 0;
  text(along.querySelector("summary"), t("along.title", "Read along"));
  text(along.querySelector("p"), t("along.how", "Choose a sentence to hear it from there; the arrow keys go from one to the next."));
  box.setAttribute("aria-label", t("along.title", "Read along"));

  const fill = async () => {
    const mine = ++turn, view = await ask(`hearth/along/${id}`);
    if (mine !== turn) return; // asked anew meanwhile: its words may be known by then
    now = word = null;
    sentences = view.sentences.map(({ begin, end, text: said, words }) => {
      const row = el(`<span role="button" tabindex="-1"></span>`);
      const spans = words.map(([each, from]) => ({ begin: from, span: Object.assign(document.createElement("span"), { textContent: each }) }));
      if (spans.length) row.append(...spans.flatMap(({ span }, place) => (place && !/^[\u3000-\uffef]/.test(span.textContent) ? [" ", span] : [span])));
      else row.textContent = said;
      return { begin, end, row, spans };
    });
    box.replaceChildren(...sentences.flatMap(({ row }) => [row, " "]));
    if (sentences.length) sentences[0].row.tabIndex = 0;
    draw();
  };

  /** @param {HTMLElement} row */
  const hold = (row) => {
    for (const each of box.querySelectorAll(`[tabindex="0"]`)) each.tabIndex = -1;
    row.tabIndex = 0;
  };

  function draw() {
    if (!along.open || !sentences.length) return;
    const seconds = audio.currentTime, begun = seconds > 0 || !audio.paused ? sentences[last(sentences, seconds)] : undefined;
    const next = begun && seconds < begun.end + 0.5 ? begun : null;
    const said = next && next.spans[last(next.spans, seconds)]?.span;
    if (next !== now) {
      now?.row.removeAttribute("aria-current");
      next?.row.setAttribute("aria-current", "true");
      now = next;
      if (now) show(now.row);
    }
    if (said === word) return;
    word?.classList.remove("h-now");
    said?.classList.add("h-now");
    word = said ?? null;
  }

  // Within its own box: the page stays where it is. Whoever goes through the sentences by keyboard is not led away.
  /** @param {HTMLElement} row */
  function show(row) {
    const elsewhere = box.contains(document.activeElement) && document.activeElement !== row;
    if (!elsewhere) hold(row);
    const above = row.offsetTop < box.scrollTop, below = row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight;
    if (!elsewhere && (above || below)) box.scrollTo({ top: row.offsetTop - box.clientHeight / 3, behavior: still.matches ? "auto" : "smooth" });
  }

  const follow = () => {
    draw();
    if (!audio.paused && along.isConnected) requestAnimationFrame(follow);
  };
  /** @param {Element | null} row */
  const begin = (row) => {
    const from = sentences.find((each) => each.row === row);
    if (!from) return;
    hold(from.row);
    audio.currentTime = from.begin + 0.01;
    audio.play();
  };
  box.addEventListener("click", (/** @type {MouseEvent & { target: HTMLElement }} */ event) => begin(event.target.closest("[role=button]")));
  box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const place = sentences.findIndex(({ row }) => row === document.activeElement), step = STEPS[event.key];
    if (place < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") begin(sentences[place].row);
    else if (step) {
      const { row } = sentences[Math.max(0, Math.min(sentences.length - 1, place + step))];
      hold(row);
      row.focus();
    } else return;
    event.preventDefault();
  });
  audio.addEventListener("play", follow);
  for (const each of ["seeked", "ended", "pause"]) audio.addEventListener(each, draw);
  along.addEventListener("toggle", () => along.open && !sentences.length && fill().catch(() => {}));
  const refresh = () => {
    sentences = [];
    if (along.open) fill().catch(() => {});
  };
  return { along, refresh };
};
