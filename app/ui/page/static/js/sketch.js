// The starting picture on Paint: chosen, dropped or pasted, painted over by mouse, pen, finger or keys, and framed larger or smaller.
import { describe } from "./describe.js";
import { Drawn, INK, reframe, shaped, sized } from "./drawn.js";
import { el, list, makeButton, onPage, text } from "./elements.js";
import { area, call, live } from "./hearth.js";
import { buildPicking, findThing, quiet, showPicking, tellPicked } from "./pick.js";
import { changeStart, start } from "./picture.js";
import { Reading } from "./reading.js";
import { t } from "./words.js";

/**
 * @typedef {"brush" | "eraser" | "lasso" | "pick" | "frame" | "move"} Tool
 * @typedef {import("./drawn.js").Deed} Deed
 * @typedef {import("./drawn.js").Frame} Frame
 * @typedef {import("./drawn.js").Point} Point
 * @typedef {{ clientX: number, clientY: number }} At
 * @typedef {{ moves: { x: number, y: number }, from: At, frame?: undefined, deed?: undefined, room?: undefined, picks?: undefined }} Moving
 * @typedef {{ frame: Frame, first: Frame, grip: string, from: Point, room: { scale: number, x: number, y: number }, moves?: undefined, deed?: undefined, picks?: undefined }} Framing
 * @typedef {{ deed: Extract<Deed, { points: Point[] }>, moves?: undefined, frame?: undefined, room?: undefined, picks?: undefined }} Stroking
 * @typedef {{ picks: Point, away: boolean, moves?: undefined, frame?: undefined, deed?: undefined, room?: undefined }} Picking
 */
const PIXELS_MOST = 12_000_000, SIDE_MOST = 8192; // of a picture as it is edited, where a larger one is scaled down; a frame has such sides, too
const SEEN = 0.6, BEYOND = 0.2, GRIP = 14, CROSS = 12, ZOOM_MOST = 16, STEP = 8;
const PEN_END = 5; // the button that a pen tells when it is turned around: its other end takes paint away
const SIZES = { least: 4, most: 400, first: 48 }; // of the brush, in thousandths of the picture's longer side
const SHAPES = [[1, 1], [4, 3], [3, 2], [16, 9], [3, 4], [2, 3], [9, 16]]; // of a frame, as they are offered
const /** @type {Record<string, Tool>} */ KEYS = { b: "brush", e: "eraser", l: "lasso", p: "pick", f: "frame", m: "move" };
const /** @type {Record<Tool, () => string>} */ NAMES = {
  brush: () => t("sketch.brush", "Brush"), eraser: () => t("sketch.eraser", "Eraser"), lasso: () => t("sketch.lasso", "Lasso"),
  pick: () => t("sketch.pick", "Pick by a click"), frame: () => t("sketch.frame", "Frame"), move: () => t("sketch.move", "Move"),
};
const /** @type {Record<Tool, () => string>} */ HINTS = {
  brush: () => t("sketch.brush-how", "Paint over the area to change. If you paint nothing, the whole picture is used as the starting point."),
  eraser: () => t("sketch.eraser-how", "Take paint away."),
  lasso: () => t("sketch.lasso-how", "Draw around an area to fill it. By keys, arrows move the cross, Space sets a corner, Enter fills what lies between them, and Escape takes them back."),
  pick: () => t("sketch.pick-how", "Click on a thing, and all of it is painted over; with Alt its paint is taken away. By keys, arrows move the cross and Enter picks what it lies on."),
  frame: () => t("sketch.frame-how", "Drag an edge or a corner outwards to paint beyond the picture: the result is as large as the frame. Or inwards, to use a part of it. By keys, an arrow moves that edge outwards, with Alt inwards."),
  move: () => t("sketch.move-how", "Drag the picture. The wheel or two fingers make it larger or smaller."),
};

let /** @type {ImageBitmap | null} */ picture = null, /** @type {Drawn | null} */ drawn = null, /** @type {Tool} */ tool = "brush";
let size = SIZES.first, view = { zoom: 1, x: 0, y: 0 }, /** @type {Moving | Framing | Stroking | Picking | null} */ going = null, /** @type {Point | null} */ cursor = null;
let ring = false; // whether the brush's size is seen: while it is over the sheet, goes by keys or is being set
let away = false, /** @type {Drawn | null} */ looking = null; // whether picking takes paint away; on which picture a thing is looked for
let /** @type {Point[]} */ corners = []; // of an area that keys draw around
const /** @type {Map<number, PointerEvent>} */ touching = new Map(); // pointers that are down, by their number

export const startReading = new Reading();
const place = () => document.querySelector("#h-sketch"), sheet = () => place()?.querySelector("canvas");
const brushWidth = () => (drawn ? (size / 1000) * Math.max(drawn.width, drawn.height) : 0);

// From a picture to where it lies on the sheet, and back.
const room = () => {
  const { x, y, width, height } = drawn?.frame ?? { x: 0, y: 0, width: 1, height: 1 }, canvas = sheet(), left = Math.min(0, x), top = Math.min(0, y);
  const wide = Math.max(x + width, drawn?.width ?? 1) - left, high = Math.max(y + height, drawn?.height ?? 1) - top;
  const scale = Math.min((canvas.clientWidth - 2 * GRIP) / wide, (canvas.clientHeight - 2 * GRIP) / high) * view.zoom;
  return { scale, x: (canvas.clientWidth - wide * scale) / 2 - left * scale + view.x, y: (canvas.clientHeight - high * scale) / 2 - top * scale + view.y };
};
/** @param {At} event */
const toPicture = (event) => {
  const box = sheet().getBoundingClientRect(), { scale, x, y } = going?.room ?? room();
  return { x: (event.clientX - box.left - x) / scale, y: (event.clientY - box.top - y) / scale };
};

function draw() {
  const canvas = sheet();
  if (!canvas?.clientWidth) return;
  const dense = devicePixelRatio || 1, brush = canvas.getContext("2d");
  [canvas.width, canvas.height] = [canvas.clientWidth * dense, canvas.clientHeight * dense];
  if (!picture || !drawn) return;
  const { scale, x, y } = going?.room ?? room(), frame = going?.frame ?? drawn.frame;
  brush.setTransform(dense * scale, 0, 0, dense * scale, dense * x, dense * y);
  brush.drawImage(picture, 0, 0, drawn.width, drawn.height);
  brush.globalAlpha = SEEN;
  brush.drawImage(drawn.mask, 0, 0, drawn.width, drawn.height);
  brush.strokeStyle = brush.fillStyle = INK;
  brush.save();
  brush.globalAlpha = BEYOND; // what lies beyond the picture is painted, too
  brush.beginPath();
  brush.rect(frame.x, frame.y, frame.width, frame.height);
  brush.rect(0, 0, drawn.width, drawn.height);
  brush.clip("evenodd");
  brush.fillRect(frame.x, frame.y, frame.width, frame.height);
  brush.restore();
  brush.globalAlpha = 1;
  brush.lineWidth = 1.5 / scale;
  const around = going?.deed?.deed === "lasso" ? going.deed.points : corners.length && cursor ? [...corners, cursor] : [];
  brush.beginPath();
  for (const point of around) brush.lineTo(point.x, point.y);
  brush.stroke();
  if (tool === "frame" || drawn.framed) {
    brush.strokeRect(frame.x, frame.y, frame.width, frame.height);
    const side = GRIP / 2 / scale;
    if (tool === "frame") for (const [gx, gy] of grips(frame)) brush.fillRect(gx - side / 2, gy - side / 2, side, side);
  }
  if (cursor && ring && tool !== "move" && tool !== "frame") {
    const reach = CROSS / scale;
    brush.beginPath();
    if (tool !== "pick" && tool !== "lasso") brush.arc(cursor.x, cursor.y, Math.max(brushWidth() / 2, 4 / scale), 0, 7);
    else for (const [wide, high] of [[reach, 0], [0, reach]]) (brush.moveTo(cursor.x - wide, cursor.y - high), brush.lineTo(cursor.x + wide, cursor.y + high));
    for (const [colour, wide] of /** @type {[string, number][]} */ ([["white", 3.5], [INK, 1.5]])) { // seen on any picture
      Object.assign(brush, { strokeStyle: colour, lineWidth: wide / scale });
      brush.stroke();
    }
  }
}
const paints = () => tool === "brush" || tool === "eraser";
/** @param {boolean} seen */
const showRing = (seen) => {
  if (seen && drawn) cursor ??= { x: drawn.width / 2, y: drawn.height / 2 };
  ring = seen;
  draw();
};
/** @param {Frame} frame */
const grips = ({ x, y, width, height }) => [0, 0.5, 1].flatMap((across) => [0, 0.5, 1].map((down) => [x + across * width, y + down * height])).filter((_, at) => at !== 4);

// Which sides of the frame lie under a point, as "left top".
/** @param {Point} point */
function gripAt(point) {
  if (!drawn) return "";
  const { x, y, width, height } = drawn.frame, near = GRIP / room().scale;
  const within = (/** @type {number} */ value, /** @type {number} */ from, /** @type {number} */ length) => value > from - near && value < from + length + near;
  if (!within(point.x, x, width) || !within(point.y, y, height)) return "";
  const across = Math.abs(point.x - x) < near ? "left" : Math.abs(point.x - x - width) < near ? "right" : "";
  return `${across} ${Math.abs(point.y - y) < near ? "top" : Math.abs(point.y - y - height) < near ? "bottom" : ""}`.trim();
}

// What Paint would send has changed: it is kept, and told beside the button.
function changed() {
  if (!drawn || !start.now) return;
  const { frame, framed, grows, marked } = drawn, whole = drawn;
  draw();
  tools();
  if (place()?.firstElementChild) quiet(place());
  changeStart({
    ...start.now, marked, grows, frame: framed ? frame : null,
    mask: marked ? () => whole.maskOfFrame() : null, framed: framed ? () => whole.pictureOfFrame(/** @type {ImageBitmap} */ (picture)) : null, painted: whole.mask,
  });
}

/** @param {Deed} deed */
function act(deed) {
  drawn?.add(deed);
  changed();
}

/** Paint over the thing at a point, or take its paint away. @param {Point} point @param {boolean} takes */
async function pick({ x, y }, takes) {
  const on = drawn;
  if (!picture || !on || looking === on || x < 0 || y < 0 || x > on.width || y > on.height) return;
  looking = on;
  const thing = await findThing(place(), picture, x / on.width, y / on.height, () => drawn === on).finally(() => looking === on && (looking = null));
  if (!thing || drawn !== on) return; // another picture was opened meanwhile
  act({ deed: "thing", thing, away: takes });
  tellPicked(place(), takes, on.share);
}

/** Open a picture that is here or comes, and what was drawn over it before. @param {Blob | Promise<Blob | null>} given @param {string} name @param {{ mask?: Blob | null, frame?: Frame | null }} [before] */
export const openStart = (given, name, before = {}) =>
  startReading.begin(given, name, (blob) => opening(blob, before.mask), (blob, [opened, painted]) => {
    picture = opened;
    drawn = new Drawn(opened.width, opened.height, painted);
    if (before.frame) drawn.add({ deed: "frame", frame: before.frame });
    [view, cursor, corners] = [{ zoom: 1, x: 0, y: 0 }, null, []];
    changeStart({ name, picture: blob });
    call("paint.unfold");
    show();
    changed();
  });

/** @param {Blob} blob @param {Blob | null | undefined} mask @returns {Promise<[ImageBitmap, ImageBitmap | null]>} */
async function opening(blob, mask) {
  let opened = await createImageBitmap(blob, { imageOrientation: "from-image" });
  const scale = Math.min(1, Math.sqrt(PIXELS_MOST / (opened.width * opened.height)), SIDE_MOST / Math.max(opened.width, opened.height));
  if (scale < 1) opened = await createImageBitmap(opened, { resizeWidth: Math.round(opened.width * scale), resizeHeight: Math.round(opened.height * scale), resizeQuality: "high" });
  return [opened, mask ? await createImageBitmap(mask).catch(() => null) : null];
}

export function closeStart() {
  startReading.stop();
  picture = drawn = null;
  changeStart(null);
  show();
}

/** @param {File | null | undefined} file */
const open = (file) => file && openStart(file, file.name);

/** @param {PointerEvent} event */
function begin(event) {
  if (event.pointerType === "touch" && [...touching.values()].some((each) => each.pointerType === "pen")) return; // the hand that holds the pen
  if (event.pointerType === "pen" && touching.size) letGo();
  touching.set(event.pointerId, event);
  sheet().setPointerCapture(event.pointerId);
  const turned = event.button === PEN_END;
  if (!drawn || (event.button > 1 && !turned)) return;
  if (touching.size > 1) {
    going = null; // two fingers move and zoom
    drawn.replay();
    return draw();
  }
  const point = toPicture(event), grip = tool === "frame" ? gripAt(point) : "";
  [cursor, ring, corners] = [point, true, []];
  if (tool === "move" || event.button === 1) going = { moves: { ...view }, from: event };
  else if (tool === "pick") going = { picks: point, away: turned || away !== event.altKey };
  else if (tool === "frame") going = grip ? { grip, from: point, frame: drawn.frame, first: drawn.frame, room: room() } : null;
  else going = { deed: { deed: turned ? "eraser" : tool, size: brushWidth(), points: [point] } };
  if (going?.deed && going.deed.deed !== "lasso") drawn.draw(going.deed);
  draw();
}

/** @param {PointerEvent} event */
function move(event) {
  if (!drawn) return;
  const before = touching.get(event.pointerId);
  if (!before) {
    if (event.pointerType !== "touch" && paints()) (cursor = toPicture(event)), showRing(true); // where a cross of the keys lies, a click is not
    if (tool === "frame") sheet().style.cursor = { "left": "ew-resize", "right": "ew-resize", "top": "ns-resize", "bottom": "ns-resize", "left top": "nwse-resize", "right bottom": "nwse-resize", "right top": "nesw-resize", "left bottom": "nesw-resize" }[gripAt(toPicture(event))] ?? "default";
    return;
  }
  touching.set(event.pointerId, event);
  if (touching.size === 2) {
    const [other] = [...touching.values()].filter((each) => each.pointerId !== event.pointerId);
    const apart = (/** @type {At} */ one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    zoom(apart(event) / Math.max(1, apart(before)), event);
    view = { ...view, x: view.x + (event.clientX - before.clientX) / 2, y: view.y + (event.clientY - before.clientY) / 2 };
    return draw();
  }
  if (!going) return;
  if (going.moves) view = { ...view, x: going.moves.x + event.clientX - going.from.clientX, y: going.moves.y + event.clientY - going.from.clientY };
  else if (going.frame) {
    const point = toPicture(event);
    going.frame = reframe(going.first, going.grip, point.x - going.from.x, point.y - going.from.y, SIDE_MOST);
  } else if (going.deed) {
    for (const each of event.getCoalescedEvents?.() ?? [event]) going.deed.points.push(toPicture(each));
    going.deed.points.push((cursor = toPicture(event)));
    if (going.deed.deed !== "lasso") drawn.draw({ ...going.deed, points: going.deed.points.slice(-3) });
  }
  draw();
}

// A hand that lies there before its pen does has drawn nothing.
function letGo() {
  touching.clear();
  going = null;
  drawn?.replay();
}

/** @param {PointerEvent} event */
function end(event) {
  if (!touching.delete(event.pointerId)) return;
  const done = going;
  going = null;
  if (!drawn || !done) return;
  if (event.type === "pointercancel") {
    drawn.replay();
    draw();
  } else if (done.picks) pick(done.picks, done.away);
  else if (done.frame) act({ deed: "frame", frame: done.frame });
  else if (done.deed) {
    drawn.replay(); // a stroke in pieces would be drawn darker where they meet
    act(done.deed);
  }
}

/** @param {number} times @param {At | null} event */
function zoom(times, event = null) {
  const canvas = sheet(), box = canvas.getBoundingClientRect(), before = room();
  const [x, y] = event ? [event.clientX - box.left, event.clientY - box.top] : [canvas.clientWidth / 2, canvas.clientHeight / 2];
  const at = { x: (x - before.x) / before.scale, y: (y - before.y) / before.scale };
  view = { ...view, zoom: Math.min(ZOOM_MOST, Math.max(1, view.zoom * times)) };
  if (view.zoom === 1) view = { zoom: 1, x: 0, y: 0 };
  else {
    const after = room();
    view = { ...view, x: view.x + x - (after.x + at.x * after.scale), y: view.y + y - (after.y + at.y * after.scale) };
  }
  draw();
}

// By keys: arrows move the brush or an edge of the frame, Space paints, letters choose a tool. All but those that a button or a slider takes itself
// count beside the sheet, too: there Ctrl Z would take back what was typed last elsewhere. A number is typed, and letters go through the list of shapes.
/** @param {KeyboardEvent & { target: any }} event */
function key(event) {
  const { key: pressed, shiftKey, ctrlKey, metaKey, altKey } = event;
  if (event.target.matches(ctrlKey || metaKey ? "[type=number]" : "[type=number], select")) return;
  if (!drawn || (event.target !== sheet() && (pressed.startsWith("Arrow") || pressed === "Enter" || pressed === " "))) return;
  const far = (shiftKey ? 10 : 1) * STEP / room().scale;
  const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[pressed];
  const asked = pressed.toLowerCase();
  if (ctrlKey || metaKey) {
    if (asked === "z") shiftKey ? drawn.redo() : drawn.undo();
    else if (asked === "y") drawn.redo();
    else return;
    changed();
  } else if (tool === "pick" && (pressed === "Enter" || pressed === " ")) pick((cursor ??= { x: drawn.width / 2, y: drawn.height / 2 }), away !== altKey);
  else if (arrow && tool === "frame") {
    const [dx, dy] = arrow.map((each) => each * (altKey ? -far : far)); // that side moves outwards, with Alt inwards
    act({ deed: "frame", frame: reframe(drawn.frame, arrow[0] ? (arrow[0] < 0 ? "left" : "right") : arrow[1] < 0 ? "top" : "bottom", dx, dy, SIDE_MOST) });
  } else if (altKey) return;
  else if (arrow) {
    const [dx, dy] = arrow.map((each) => each * far);
    if (tool === "move") view = { ...view, x: view.x - dx * room().scale, y: view.y - dy * room().scale };
    else cursor = { x: Math.min(drawn.width, Math.max(0, (cursor?.x ?? drawn.width / 2) + dx)), y: Math.min(drawn.height, Math.max(0, (cursor?.y ?? drawn.height / 2) + dy)) };
    showRing(true);
  } else if (pressed === " " && (tool === "brush" || tool === "eraser")) {
    cursor ??= { x: drawn.width / 2, y: drawn.height / 2 };
    act({ deed: tool, size: brushWidth(), points: [cursor] });
  } else if (tool === "lasso" && (pressed === " " || pressed === "Enter" || (pressed === "Escape" && corners.length))) corner(pressed);
  else if (KEYS[asked]) choose(KEYS[asked]);
  else if (asked === "i") act({ deed: "invert" });
  else if (pressed === "[" || pressed === "]") resize(size * (pressed === "[" ? 0.8 : 1.25));
  else if (pressed === "+" || pressed === "=" || pressed === "-") zoom(pressed === "-" ? 0.8 : 1.25);
  else if (pressed === "0") zoom(0);
  else return;
  event.preventDefault();
}

/** Set a corner of an area, fill it, or take its corners back. @param {string} pressed */
function corner(pressed) {
  if (!drawn) return;
  cursor ??= { x: drawn.width / 2, y: drawn.height / 2 };
  const around = [...corners, cursor];
  corners = pressed === " " ? around : [];
  if (pressed === "Enter" && around.length > 2) act({ deed: "lasso", size: brushWidth(), points: around });
  else draw();
}

/** @param {number} asked */
function resize(asked) {
  size = Math.round(Math.min(SIZES.most, Math.max(SIZES.least, asked)));
  tools();
  showRing(true);
}

/** Give the frame a shape or a size, in the middle. @param {Frame} frame */
const setFrame = (frame) => act({ deed: "frame", frame });

/** @param {Tool} asked */
function choose(asked) {
  if (asked === "pick" && !live.state?.charts) return; // guests have none
  if (asked === "pick" && tool !== "pick") away = tool === "eraser";
  [tool, corners] = [asked, []];
  tools();
  draw();
}

// Buttons and hint follow what is chosen and what can be undone.
function tools() {
  const card = place();
  if (!card?.firstElementChild) return;
  for (const button of card.querySelectorAll("[data-tool]")) button.setAttribute("aria-pressed", button.dataset.tool === tool);
  for (const own of card.querySelectorAll("[data-tool=pick], [data-describe]")) own.hidden = !live.state?.charts; // guests have neither
  showPicking(card, tool === "pick", away);
  card.querySelector("[data-undo]").disabled = !drawn?.deeds.length;
  card.querySelector("[data-redo]").disabled = !drawn?.undone.length;
  const range = card.querySelector("input[type=range]");
  range.value = String(Math.round(100 * Math.log(size / SIZES.least) / Math.log(SIZES.most / SIZES.least)));
  range.parentElement.hidden = !paints();
  const framing = card.querySelector(".h-framing"), select = framing.querySelector("select");
  framing.hidden = tool !== "frame";
  if (drawn) {
    const { width, height } = drawn.frame, like = SHAPES.findIndex(([wide, high]) => Math.abs(width - (height * wide) / high) < 1);
    select.value = String(like);
    for (const [i, field] of [...framing.querySelectorAll("input")].entries()) if (field !== document.activeElement) field.value = String([width, height][i]);
  }
  text(card.querySelector(".h-hint"), HINTS[tool]());
  sheet().style.cursor = tool === "move" ? "grab" : tool === "frame" ? "default" : "crosshair";
}

function show() {
  const card = place();
  if (!card?.firstElementChild) return;
  card.querySelector(".h-empty").hidden = Boolean(picture);
  card.querySelector(".h-drawing").hidden = !picture;
  tools();
  draw();
}

/** @param {HTMLElement} card */
function build(card) {
  card.append(...el(`<div><button type="button" class="h-empty"></button><input type="file" accept="image/*" hidden>
    <div class="h-drawing" hidden><div class="h-chips h-tools" role="toolbar"></div><label class="h-soft h-brush-size"><span></span><input type="range" min="0" max="100"></label>
    <div class="h-soft h-framing" hidden><select class="h-field"></select><input type="number" class="h-field" min="64" max="${SIDE_MOST}"> × <input type="number" class="h-field" min="64" max="${SIDE_MOST}"></div>
    <canvas tabindex="0" role="application"></canvas><p class="h-soft h-hint" role="status"></p><div class="h-picking" hidden></div><div class="h-chips h-deeds"></div></div></div>`).children);
  const canvas = card.querySelector("canvas"), file = card.querySelector("input[type=file]"), range = card.querySelector("input[type=range]");
  text(card.querySelector(".h-empty"), matchMedia("(hover: none)").matches ? t("file.tap", "Tap to choose a file") : t("sketch.choose", "Drop a picture here, paste one, or press to choose one"));
  card.querySelector(".h-empty").addEventListener("click", () => file.click());
  file.addEventListener("change", () => (open(file.files[0]), (file.value = "")));
  card.querySelector(".h-tools").setAttribute("aria-label", t("sketch.tools", "Tools"));
  list(card.querySelector(".h-tools"), /** @type {Tool[]} */ (Object.keys(NAMES)), String, (each) => {
    const made = makeButton(NAMES[each](), () => choose(each), "h-chip");
    const letter = Object.keys(KEYS).find((one) => KEYS[one] === each) ?? "";
    Object.assign(made, { title: `${NAMES[each]()} (${letter.toUpperCase()})` }).setAttribute("aria-keyshortcuts", letter.toUpperCase());
    made.dataset.tool = each;
    return made;
  });
  buildPicking(card.querySelector(".h-picking"), () => ((away = !away), tools()));
  text(range.previousElementSibling, t("sketch.size", "Brush size"));
  range.addEventListener("blur", () => showRing(false));
  const framing = card.querySelector(".h-framing"), select = framing.querySelector("select"), sides = [...framing.querySelectorAll("input")];
  select.append(new Option(t("sketch.own-shape", "Own shape"), "-1"), ...SHAPES.map(([wide, high], i) => new Option(`${wide}:${high}`, String(i))));
  select.setAttribute("aria-label", t("sketch.shape", "Shape of the frame"));
  for (const [i, name] of [t("sketch.frame-width", "Width of the frame"), t("sketch.frame-height", "Height of the frame")].entries()) sides[i].setAttribute("aria-label", name);
  select.addEventListener("change", () => {
    const [wide, high] = SHAPES[select.value] ?? [0, 0];
    if (drawn) setFrame(wide ? shaped(drawn.whole, wide / high, SIDE_MOST) : drawn.whole);
  });
  for (const side of sides) side.addEventListener("change", () => {
    const [wide, high] = sides.map((each) => Number(each.value));
    if (!drawn || !wide || !high) return tools();
    setFrame(sized(drawn.frame, wide, high, SIDE_MOST));
    side.value = String(drawn.frame[side === sides[0] ? "width" : "height"]); // what is too small or too large is as it may be
  });
  range.addEventListener("input", () => resize(SIZES.least * (SIZES.most / SIZES.least) ** (range.value / 100)));
  canvas.setAttribute("aria-label", live.state?.charts ? t("sketch.canvas-pick", "Starting picture. Arrow keys move the brush, Space paints, B, E, L, P, F and M choose a tool, I inverts, Ctrl+Z undoes.") : t("sketch.canvas", "Starting picture. Arrow keys move the brush, Space paints, B, E, L, F and M choose a tool, I inverts, Ctrl+Z undoes."));
  /** @param {string} label @param {() => unknown} run */
  const deed = (label, run, name = "") => {
    const made = makeButton(label, run, "h-chip");
    if (name) made.dataset[name] = "";
    card.querySelector(".h-deeds").append(made);
  };
  deed(t("sketch.undo", "Undo"), () => (drawn?.undo(), changed()), "undo");
  deed(t("sketch.redo", "Redo"), () => (drawn?.redo(), changed()), "redo");
  deed(t("sketch.invert", "Invert"), () => act({ deed: "invert" }));
  deed(t("sketch.clear", "Clear all"), () => act({ deed: "clear" }));
  deed(t("sketch.fit", "Fit to view"), () => zoom(0));
  deed(t("describe.start", "Put into words"), () => start.now && describe(start.now.picture, start.now.name), "describe");
  deed(t("sketch.other", "Another picture"), () => file.click());
  deed(t("force.remove", "Remove"), closeStart);
  for (const [kind, hear] of Object.entries({ pointerdown: begin, pointermove: move, pointerup: end, pointercancel: end, pointerleave: () => showRing(false), blur: () => showRing(false), focus: draw })) canvas.addEventListener(kind, hear);
  card.querySelector(".h-drawing").addEventListener("keydown", key);
  canvas.addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
    if (tool !== "move" && !event.ctrlKey) return; // else the page is scrolled
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event);
  }, { passive: false });
  card.addEventListener("dragover", (event) => event.preventDefault());
  card.addEventListener("drop", (event) => (event.preventDefault(), open([...(event.dataTransfer?.files ?? [])][0])));
  new ResizeObserver(draw).observe(canvas);
  show();
}

area("#h-sketch", (card) => card.firstElementChild || build(card));
onPage("paste", (event) => {
  const file = [...(event.clipboardData?.files ?? [])].find((each) => each.type.startsWith("image/"));
  if (file && place()?.offsetParent && !event.target.closest?.("input, textarea")) open(file);
});
