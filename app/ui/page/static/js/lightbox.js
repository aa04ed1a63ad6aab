// Pictures in full: one after the other by key, enlarged by key, wheel and two fingers; and two laid over each other, with a line to drag.
import { el, makeButton, show, text } from "./elements.js";
import { t } from "./words.js";

const STEP = 1.25, LARGEST = 16, SAME_SHAPE = 0.01;

/** @typedef {MadeView & { url: string, text?: string, named?: string }} Shown */

/** What a picture was made with, in a line: its seed and its size. @param {MadeView} each */
export const madeWith = (each) =>
  [each.width && `${each.width} × ${each.height}`, each.seed != null && t("force.seed", "seed {seed}", { seed: each.seed })].filter(Boolean).join(" · ");

/**
 * Show pictures in full, beginning with one of them. `acts`: what can be done with the one in view.
 * @template {Shown} P
 * @param {P[]} pictures
 * @param {number} at
 * @param {(picture: P) => [string, () => unknown][]} acts
 */
export function showPictures(pictures, at, acts = () => []) {
  const box = el(`<dialog class="h-lightbox"><div class="h-stage" tabindex="-1"><img alt="" draggable="false"></div>
    <div class="h-caption"><p class="h-words"></p><p class="h-soft" role="status"></p></div>
    <div class="h-chips"></div></dialog>`);
  const stage = box.querySelector(".h-stage"), image = box.querySelector("img"), [words, facts] = box.querySelectorAll(".h-caption p"), chips = box.querySelector(".h-chips");
  box.setAttribute("aria-label", t("lightbox.title", "Picture in full"));
  let zoom = 1, x = 0, y = 0;
  /** @type {Map<number, PointerEvent>} */
  const fingers = new Map();

  const place = () => {
    const most = [(image.clientWidth * zoom - stage.clientWidth) / 2, (image.clientHeight * zoom - stage.clientHeight) / 2].map((each) => Math.max(0, each));
    [x, y] = [x, y].map((each, i) => Math.min(most[i], Math.max(-most[i], each)));
    image.style.transform = `translate(${x}px, ${y}px) scale(${zoom})`;
    stage.classList.toggle("h-zoomed", zoom > 1);
  };
  // What lies under the pointer stays there.
  const zoomTo = (/** @type {number} */ wanted, left = 0, top = 0) => {
    const now = Math.min(LARGEST, Math.max(1, wanted));
    [x, y] = [left - (left - x) * (now / zoom), top - (top - y) * (now / zoom)];
    zoom = now;
    place();
  };
  const from = (/** @type {{ clientX: number, clientY: number }} */ { clientX, clientY }) => {
    const { left, top, width, height } = stage.getBoundingClientRect();
    return [clientX - left - width / 2, clientY - top - height / 2];
  };
  const go = (/** @type {number} */ to) => {
    at = (to + pictures.length) % pictures.length;
    const each = pictures[at];
    [zoom, x, y] = [1, 0, 0];
    place();
    image.src = each.url;
    image.alt = each.text ?? "";
    text(words, each.named || each.text || "");
    const place_ = pictures.length > 1 ? t("lightbox.place", "{n} of {total}", { n: at + 1, total: pictures.length }) : "";
    text(facts, [place_, madeWith(each)].filter(Boolean).join(" · "));
    const held = [...chips.children].indexOf(document.activeElement);
    chips.innerHTML = "";
    if (pictures.length > 1) {
      named("\u2190", t("lightbox.before", "Picture before"), () => go(at - 1));
      named("\u2192", t("lightbox.next", "Next picture"), () => go(at + 1));
    }
    named("+", t("lightbox.larger", "Zoom in"), () => zoomTo(zoom * STEP));
    named("\u2212", t("lightbox.smaller", "Zoom out"), () => zoomTo(zoom / STEP));
    if (document.fullscreenEnabled) chips.append(makeButton(t("lightbox.full", "Full screen"), fill, "h-chip"));
    for (const [label, run] of acts(each)) chips.append(makeButton(label, () => (box.close(), run()), "h-chip"));
    chips.append(makeButton(t("compare.close", "Close"), () => box.close(), "h-chip"));
    chips.children[held]?.focus();
  };
  const named = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {() => unknown} */ run) => {
    const made = makeButton(sign, run, "h-chip");
    made.setAttribute("aria-label", label);
    made.title = label;
    chips.append(made);
  };
  const fill = () => (document.fullscreenElement ? document.exitFullscreen() : box.requestFullscreen().catch(() => {}));

  /** @type {Record<string, () => unknown>} */
  const keys = {
    ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1), Home: () => go(0), End: () => go(pictures.length - 1),
    "+": () => zoomTo(zoom * STEP), "=": () => zoomTo(zoom * STEP), "-": () => zoomTo(zoom / STEP), 0: () => zoomTo(1), f: fill,
  };
  box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const run = !event.ctrlKey && !event.metaKey && !event.altKey && keys[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  });
  stage.addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
    event.preventDefault();
    zoomTo(zoom * (event.deltaY < 0 ? STEP : 1 / STEP), ...from(event));
  }, { passive: false });
  stage.addEventListener("dblclick", (/** @type {MouseEvent} */ event) => (zoom > 1 ? zoomTo(1) : zoomTo(Math.max(2, image.naturalWidth / image.clientWidth), ...from(event))));
  let swept = 0; // how far one finger went over a picture that is not enlarged
  stage.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    stage.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
    swept = 0;
  });
  stage.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const [other] = [...fingers.values()].filter((each) => each.pointerId !== event.pointerId);
    fingers.set(event.pointerId, event);
    if (other) {
      const apart = (/** @type {PointerEvent} */ one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      return zoomTo((zoom * apart(event)) / Math.max(1, apart(before)), ...from({ clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 }));
    }
    if (zoom === 1) return void (swept += event.clientX - before.clientX);
    [x, y] = [x + event.clientX - before.clientX, y + event.clientY - before.clientY];
    place();
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    stage.addEventListener(kind, (/** @type {PointerEvent} */ event) => {
      fingers.delete(event.pointerId);
      if (kind === "pointerup" && event.pointerType === "touch" && !fingers.size && Math.abs(swept) > 60) go(at - Math.sign(swept));
      swept = 0;
    });
  }
  image.addEventListener("load", place);
  show(box);
  go(at);
  stage.focus();
}

/** Lay two pictures over each other. @param {Shown} first @param {Shown} second */
export function showPair(first, second) {
  const pair = el(`<dialog class="h-compare"><div class="h-over"><img alt="" draggable="false"><img alt="" draggable="false"><i aria-hidden="true"></i></div>
    <input type="range" min="0" max="100" value="50"><div class="h-sides"><p></p><p></p></div><form method="dialog"><button class="h-chip"></button></form></dialog>`);
  const [under, over] = pair.querySelectorAll("img"), area = pair.querySelector(".h-over"), line = pair.querySelector("i"), range = pair.querySelector("input");
  [under.src, over.src] = [first.url, second.url];
  pair.querySelectorAll(".h-sides p").forEach((/** @type {HTMLElement} */ side, /** @type {number} */ i) => text(side, [["A", "B"][i], madeWith([first, second][i])].filter(Boolean).join(" · ")));
  range.setAttribute("aria-label", t("compare.range", "Position of the dividing line"));
  const cut = () => {
    over.style.clipPath = `inset(0 0 0 ${range.value}%)`;
    line.style.left = `${range.value}%`;
  };
  range.addEventListener("input", cut);
  const follow = (/** @type {PointerEvent} */ event) => {
    const { left, width } = area.getBoundingClientRect();
    range.value = String(Math.round((100 * (event.clientX - left)) / width));
    cut();
  };
  area.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    event.preventDefault();
    area.setPointerCapture(event.pointerId);
    range.focus();
    follow(event);
  });
  area.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => area.hasPointerCapture(event.pointerId) && follow(event));
  // Of another shape, one would lie beyond the other's edge: they stand side by side.
  const fit = () => {
    const [one, other] = [under, over].map((each) => each.naturalWidth / each.naturalHeight);
    if (!one || !other) return;
    area.style.setProperty("--h-ratio", String(one));
    const apart = Math.abs(one / other - 1) > SAME_SHAPE;
    pair.classList.toggle("h-apart", apart);
    range.hidden = line.hidden = apart;
    if (apart && !pair.contains(document.activeElement)) pair.querySelector("button").focus();
  };
  for (const each of [under, over]) each.addEventListener("load", fit);
  cut();
  text(pair.querySelector("button"), t("compare.close", "Close"));
  show(pair);
  range.focus();
}
