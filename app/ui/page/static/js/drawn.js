// What was drawn over a starting picture: a list of deeds that can be undone, the mask and the frame that they make.

/**
 * @typedef {{ x: number, y: number, width: number, height: number }} Frame in the picture's pixels; larger than the picture, it is painted on
 * @typedef {{ x: number, y: number }} Point
 * @typedef {{ deed: "brush" | "eraser" | "lasso", size: number, points: Point[] } | { deed: "thing", thing: HTMLCanvasElement, away: boolean } | { deed: "invert" } | { deed: "clear" } | { deed: "frame", frame: Frame }} Deed
 */

export const INK = "rgb(232 89 12)"; // of the mask as it is seen; what is sent counts by its opacity alone
const AREA_MOST = 40_000_000; // pixels of a picture that the server takes (app/ui/access/uploads.py)
const MASK_MOST = 2048; // pixels a side: what is painted has no more
const OVERLAP = 1 / 24; // of the shorter side, painted anew on both sides of the picture's edge, so that no seam stays
const LEAST = 64; // pixels a side of a frame

/** @param {HTMLCanvasElement} canvas */
const brushOf = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
/** @param {number} width @param {number} height */
const newCanvas = (width, height) => Object.assign(document.createElement("canvas"), { width: Math.max(1, Math.round(width)), height: Math.max(1, Math.round(height)) });

export class Drawn {
  /** @type {Deed[]} */ deeds = [];
  /** @type {Deed[]} */ undone = [];

  /** @param {number} width @param {number} height of the picture @param {ImageBitmap | null} [before] a mask drawn before a reload */
  constructor(width, height, before = null) {
    this.width = width;
    this.height = height;
    this.before = before;
    this.scale = Math.min(1, MASK_MOST / Math.max(width, height));
    this.mask = newCanvas(width * this.scale, height * this.scale);
    this.replay();
  }

  /** @returns {Frame} */
  get whole() {
    return { x: 0, y: 0, width: this.width, height: this.height };
  }

  /** @returns {Frame} */
  get frame() {
    const last = this.deeds.findLast((each) => each.deed === "frame");
    return last?.deed === "frame" ? last.frame : this.whole;
  }

  get framed() {
    return Object.entries(this.whole).some(([side, value]) => this.frame[/** @type {keyof Frame} */ (side)] !== value);
  }

  /** @param {Deed} deed */
  add(deed) {
    this.deeds.push(deed);
    this.undone = [];
    this.draw(deed);
  }

  undo() {
    const last = this.deeds.pop();
    if (last) this.undone.push(last);
    this.replay();
  }

  redo() {
    const next = this.undone.pop();
    if (!next) return;
    this.deeds.push(next);
    this.draw(next);
  }

  replay() {
    const brush = brushOf(this.mask);
    brush.clearRect(0, 0, this.mask.width, this.mask.height);
    if (this.before) brush.drawImage(this.before, 0, 0, this.mask.width, this.mask.height);
    this.deeds.forEach((each) => this.draw(each));
  }

  /** @param {Deed} deed */
  draw(deed) {
    const brush = brushOf(this.mask);
    brush.save();
    brush.fillStyle = brush.strokeStyle = INK;
    if (deed.deed === "clear") brush.clearRect(0, 0, this.mask.width, this.mask.height);
    else if (deed.deed === "invert") {
      brush.globalCompositeOperation = "source-out";
      brush.fillRect(0, 0, this.mask.width, this.mask.height);
    } else if (deed.deed === "thing") {
      if (deed.away) brush.globalCompositeOperation = "destination-out";
      brush.drawImage(deed.thing, 0, 0, this.mask.width, this.mask.height);
    } else if (deed.deed !== "frame") {
      brush.scale(this.scale, this.scale);
      if (deed.deed === "eraser") brush.globalCompositeOperation = "destination-out";
      brush.beginPath();
      const [first, ...rest] = deed.points;
      brush.moveTo(first.x, first.y);
      const dab = { x: first.x + 0.01, y: first.y }; // a line without length is not drawn
      for (const { x, y } of rest.length ? rest : [dab]) brush.lineTo(x, y);
      if (deed.deed === "lasso") brush.fill();
      else Object.assign(brush, { lineWidth: deed.size, lineCap: "round", lineJoin: "round" }).stroke();
    }
    brush.restore();
  }

  /** Whether the frame reaches beyond the picture. */
  get grows() {
    const { x, y, width, height } = this.frame;
    return x < 0 || y < 0 || x + width > this.width || y + height > this.height;
  }

  /** Whether only a part is painted anew. */
  get marked() {
    return this.grows || this.share > 0;
  }

  /** How much of the picture is painted over. */
  get share() {
    const { data } = brushOf(this.mask).getImageData(0, 0, this.mask.width, this.mask.height);
    let painted = 0;
    for (let at = 3; at < data.length; at += 4) if (data[at]) painted++;
    return (4 * painted) / data.length;
  }

  /** The mask of the whole frame: what lies outside the picture is painted, too, with a little of its edge. */
  maskOfFrame() {
    const { x, y, width, height } = this.frame, made = newCanvas(width, height), brush = brushOf(made);
    if (this.framed) {
      const over = Math.min(this.width, this.height) * OVERLAP;
      const [left, top, right, bottom] = [x < 0, y < 0, x + width > this.width, y + height > this.height].map((grows) => (grows ? over : 0));
      brush.fillRect(0, 0, width, height);
      brush.clearRect(left - x, top - y, this.width - left - right, this.height - top - bottom);
    }
    brush.drawImage(this.mask, -x, -y, this.width, this.height);
    return made;
  }

  /** The picture as far as the frame reaches. Beyond its edge stands what its edge is like, for the model to paint over.
   * @param {ImageBitmap} picture */
  pictureOfFrame(picture) {
    const { x, y, width, height } = this.frame;
    const made = newCanvas(width, height), brush = brushOf(made);
    for (const column of [-1, 1, 0])
      for (const row of [-1, 1, 0]) {
        const [from, wide, to, long] = stretch(column, this.width, x, width), [above, high, down, tall] = stretch(row, this.height, y, height);
        if (long > 0 && tall > 0) brush.drawImage(picture, from, above, wide, high, to, down, long, tall);
      }
    return made;
  }
}

/** Return the mask of a thing in the ink of what is painted. @param {ImageBitmap} mask opaque where the thing is */
export function inked(mask) {
  const made = newCanvas(mask.width, mask.height), brush = brushOf(made);
  brush.drawImage(mask, 0, 0);
  brush.globalCompositeOperation = "source-in";
  brush.fillStyle = INK;
  brush.fillRect(0, 0, made.width, made.height);
  return made;
}

/** Return a picture no larger than this, as a data address. @param {ImageBitmap} picture @param {number} most pixels of the longer side */
export function shrunk(picture, most) {
  const scale = Math.min(1, most / Math.max(picture.width, picture.height)), made = newCanvas(picture.width * scale, picture.height * scale);
  Object.assign(brushOf(made), { imageSmoothingQuality: "high" }).drawImage(picture, 0, 0, made.width, made.height);
  return made.toDataURL("image/jpeg", 0.95);
}

/** The smallest frame of a shape that holds the whole picture, which lies in its middle; where it may not be so large, as large as it may be.
 * @param {Frame} whole @param {number} ratio of width to height @param {number} most pixels a side @returns {Frame} */
export function shaped(whole, ratio, most) {
  const wanted = Math.max(whole.width, whole.height * ratio), least = LEAST * Math.max(1, ratio), room = Math.min(most, most * ratio, Math.sqrt(AREA_MOST * ratio));
  const width = Math.round(Math.max(least, Math.min(Math.floor(room), wanted)));
  return around(whole, width, Math.round(width / ratio));
}

/** A frame of another size around the same middle. @param {Frame} frame @param {number} wide @param {number} high @param {number} most pixels a side @returns {Frame} */
export function sized(frame, wide, high, most) {
  const { width, height } = reframe(reframe(frame, "right", wide - frame.width, 0, most), "bottom", 0, high - frame.height, most);
  return around(frame, width, height);
}

// Half a pixel is left out of both halves, so that a frame of an odd width that becomes even, and odd again, comes back to its place.
/** @param {Frame} frame @param {number} width @param {number} height @returns {Frame} */
const around = (frame, width, height) => ({
  x: frame.x + Math.floor(frame.width / 2) - Math.floor(width / 2), y: frame.y + Math.floor(frame.height / 2) - Math.floor(height / 2), width, height,
});

// Where a strip of the picture comes from along one side, and where it goes: before its edge (-1), beyond it (1), or as it is (0).
/** @param {number} place @param {number} size @param {number} begin @param {number} length @returns {[number, number, number, number]} */
function stretch(place, size, begin, length) {
  if (place < 0) return [0, 1, 0, -begin];
  if (place > 0) return [size - 1, 1, size - begin, begin + length - size];
  return [0, size, -begin, size];
}

/** Move a side or corner of a frame; its other sides stay, however long. `grip`: which sides, as "left top".
 * @param {Frame} frame @param {string} grip @param {number} dx @param {number} dy @param {number} most pixels a side that is moved @returns {Frame} */
export function reframe(frame, grip, dx, dy, most) {
  const held = (/** @type {number} */ value, /** @type {number} */ other) => Math.round(Math.max(LEAST, Math.min(most, Math.floor(AREA_MOST / other), value)));
  const { x, y, width, height } = frame, right = x + width, bottom = y + height;
  const wide = grip.includes("left") ? held(width - dx, height) : grip.includes("right") ? held(width + dx, height) : width;
  const high = grip.includes("top") ? held(height - dy, wide) : grip.includes("bottom") ? held(height + dy, wide) : height;
  return { x: grip.includes("left") ? right - wide : x, y: grip.includes("top") ? bottom - high : y, width: wide, height: high };
}
