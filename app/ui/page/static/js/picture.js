// What Paint starts from: the picture, and what was drawn over it. Kept over a reload, for which the session's storage is too small; sent when it is needed.
import { fill, live, redraw } from "./hearth.js";
import { inForce } from "./told.js";
import { t } from "./words.js";

/**
 * @typedef {import("./drawn.js").Frame} Frame
 * @typedef {() => HTMLCanvasElement} Drawing
 * @typedef {{ name: string, background: Blob, frame?: Frame | null, layers?: Blob[], at_ms: number }} Kept
 * @typedef {{ name: string, picture: Blob, marked?: boolean, grows?: boolean, frame?: Frame | null, mask?: Drawing | null, framed?: Drawing | null, painted?: HTMLCanvasElement }} Start
 */

const WINDOW = "hearth_window", DAY_MS = 86_400_000, KEEP_MS = 300;
const mine = sessionStorage.getItem(WINDOW) ?? String(Math.random());
sessionStorage.setItem(WINDOW, mine);

export const start = { now: /** @type {Start | null} */ (null), seen: "" }; // seen: the picture's address on this page

const /** @type {Promise<IDBDatabase>} */ store = new Promise((done, fail) => {
  const asked = indexedDB.open("hearth", 1);
  asked.onupgradeneeded = () => asked.result.createObjectStore("pictures");
  asked.onsuccess = () => done(asked.result);
  asked.onerror = () => fail(asked.error);
});
/** @param {IDBTransactionMode} mode @param {(all: IDBObjectStore) => IDBRequest} act @returns {Promise<any>} */
async function inStore(mode, act) {
  const asked = act((await store).transaction("pictures", mode).objectStore("pictures"));
  return new Promise((done, fail) => {
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
}
// Those of windows that are long gone.
store.then((opened) => {
  const asked = opened.transaction("pictures", "readwrite").objectStore("pictures").openCursor();
  asked.onsuccess = () => {
    const each = asked.result;
    if (!each) return;
    if (each.value.at_ms < Date.now() - DAY_MS) each.delete();
    each.continue();
  };
}, () => {});

/** @param {HTMLCanvasElement} canvas @returns {Promise<Blob>} */
const toBlob = (canvas) => new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no room for the picture"))), "image/png"));

let timer = 0;
/** @param {Start | null} now */
export function changeStart(now) {
  if (now?.picture !== start.now?.picture) {
    if (start.seen) URL.revokeObjectURL(start.seen);
    start.seen = now ? URL.createObjectURL(now.picture) : "";
  }
  start.now = now;
  fill("paint-started", now ? ["start", now.marked && "marked", now.frame && JSON.stringify(now.frame)].filter(Boolean).join(" ") : "");
  clearTimeout(timer);
  timer = setTimeout(keep, KEEP_MS);
  if (live.state) redraw();
}

// A browser that stores nothing, as in a private window, forgets it with the page.
async function keep() {
  const { now } = start, layers = now?.marked && now.painted ? [await toBlob(now.painted)] : [];
  if (now !== start.now) return; // what it is now is kept next
  await put(mine, now && { name: now.name, background: now.picture, frame: now.frame, layers, at_ms: Date.now() });
}
/** @param {string} key @param {Kept | null} kept */
const put = (key, kept) => inStore("readwrite", (all) => (kept ? all.put(kept, key) : all.delete(key))).catch(() => {});

/** Keep another picture of this window's, or forget it. @param {string} what @param {{ name: string, background: Blob } | null} kept */
export const keepPicture = (what, kept) => put(`${mine} ${what}`, kept && { ...kept, at_ms: Date.now() });

/** @param {string} what @returns {Promise<Kept | null | undefined>} */
export const readPicture = (what) => inStore("readonly", (all) => all.get(`${mine} ${what}`)).catch(() => null);

/** What was there before a reload. @returns {Promise<Kept | null | undefined>} */
export const readStart = () => inStore("readonly", (all) => all.get(mine)).catch(() => null);

/** Why a browser opened no picture. @param {Blob} picture @param {string} name */
export const notOpened = (picture, name) =>
  /^image\/hei[cf]/.test(picture.type) || /\.hei[cf]$/i.test(name)
    ? t("picture.heic", "{name} is a HEIC picture, as iPhones take them, and this browser cannot open it. Save it as JPEG; an iPhone takes JPEG with the camera's format set to “Most Compatible”.", { name })
    : t("sketch.not-a-picture", "{name} cannot be opened as a picture. Save it as PNG or JPEG and choose that.", { name });

const TAKEN = ["\x89PNG", "\xff\xd8\xff", "RIFF"]; // the server takes what begins so: PNG, JPEG, WebP
/** A picture as the server takes it: what only the browser can open (AVIF, BMP, GIF) becomes PNG. @param {Blob} blob @param {string} name @returns {Promise<[Blob, string]>} */
async function asTaken(blob, name) {
  const head = String.fromCharCode(...new Uint8Array(await blob.slice(0, 4).arrayBuffer()));
  if (TAKEN.some((each) => head.startsWith(each))) return [blob, name];
  const opened = await createImageBitmap(blob, { imageOrientation: "from-image" }), canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [opened.width, opened.height];
  canvas.getContext("2d")?.drawImage(opened, 0, 0);
  opened.close();
  return [await toBlob(canvas), `${name.replace(/\.\w+$/, "")}.png`];
}

const sent = new WeakMap(); // what was uploaded, by its blob
/** @param {Blob} blob @param {string} name */
export async function send(blob, name) {
  if (sent.has(blob)) return sent.get(blob);
  const form = new FormData();
  form.append("files", ...(await asTaken(blob, name)));
  const answer = await fetch("gradio_api/upload", { method: "POST", body: form });
  if (!answer.ok) {
    inForce("paint", "refused", (await answer.text()) || t("picture.not-sent", "The picture {name} could not be sent. Try again.", { name }));
    throw new Error(name); // so that nothing starts without it
  }
  inForce("paint", "refused", "");
  const [path] = await answer.json(), file = { path, orig_name: name, meta: { _type: "gradio.FileData" } };
  sent.set(blob, file);
  return file;
}

/** What a frame sets, by the names of the settings: the result has its shape. What reaches beyond the picture is painted wholly, as a part that is put
 * back: the picture itself keeps its pixels. A guest's is painted at the model's size, as their results may be no larger than so much. @returns {Record<string, any>} */
export const frameSettings = () => {
  const { framed, grows } = start.now ?? {};
  return framed ? { size: null, width: null, height: null, ...(grows ? { strength: 1 } : {}), ...(grows && live.state?.charts ? { masked_only: true } : {}) } : {};
};

/** Take the picture as it is now, as somebody may draw on or remove it before it is sent; what is returned sends it, and the mask if there is one. */
export function takeStart() {
  const { now } = start, framed = now?.framed?.(), mask = now?.mask?.();
  return async () => {
    if (!now) return null;
    const picture = await (framed ? send(await toBlob(framed), "start.png") : send(now.picture, now.name));
    return mask ? [picture, await send(await toBlob(mask), "mask.png")] : [picture];
  };
}
