// The starting picture and its mask: kept over a reload, for which the session's storage is too small, and given to Gradio's editor.
import { call } from "./hearth.js";

const WINDOW = "hearth_window", DAY_MS = 86_400_000;
const mine = sessionStorage.getItem(WINDOW) ?? String(Math.random());
sessionStorage.setItem(WINDOW, mine);
let /** @type {View} */ picture = null; // to be given

const store = new Promise((done, fail) => {
  const asked = indexedDB.open("hearth", 1);
  asked.onupgradeneeded = () => asked.result.createObjectStore("pictures");
  asked.onsuccess = () => done(asked.result);
  asked.onerror = () => fail(asked.error);
});
async function inStore(mode, act) {
  const asked = act((await store).transaction("pictures", mode).objectStore("pictures"));
  return new Promise((done, fail) => {
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
}
// Those of windows that are long gone.
store.then((opened) => {
  opened.transaction("pictures", "readwrite").objectStore("pictures").openCursor().onsuccess = ({ target: { result: each } }) => {
    if (!each) return;
    if (each.value.at_ms < Date.now() - DAY_MS) each.delete();
    each.continue();
  };
}, () => {});

// A browser that stores nothing, as in a private window, forgets it with the page.
/** @param {View} kept */
export const keepPicture = (kept) => inStore("readwrite", (all) => (kept ? all.put({ ...kept, at_ms: Date.now() }, mine) : all.delete(mine))).catch(() => {});

export const readPicture = async () => (picture = (await inStore("readonly", (all) => all.get(mine)).catch(() => null)) ?? null);

/** @param {View} given */
export const giveStart = (given) => {
  picture = given;
  call("paint.kept");
};

export async function uploadStart() {
  if (!picture) return null;
  const blobs = [picture.background, ...picture.layers], form = new FormData();
  for (const [place, blob] of blobs.entries()) form.append("files", blob, place ? "mask.png" : "start.png");
  const answer = await fetch("gradio_api/upload", { method: "POST", body: form });
  if (!answer.ok) return null;
  const address = location.href.replace(/[^/]*$/, "");
  const [background, ...layers] = (await answer.json()).map((path) => ({ path, url: `${address}gradio_api/file=${path}`, meta: { _type: "gradio.FileData" } }));
  return { name: picture.name, value: { background, layers, composite: null } };
}
