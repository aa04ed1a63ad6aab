// Save drafts while they are typed and restore them when the page loads: in each window what it held, in a new one what the owner typed last.
// With them the texts that a sample or an earlier creation took the place of (rewrite.js), the newest first.
import { onPage } from "./elements.js";
import { area, ask, fill, post, redraw } from "./hearth.js";

const FIELDS = ["speak-text", "paint-prompt", "paint-negative"];
const WAIT_MS = 500, EARLIER_MOST = 5, USED = `${FIELDS[1]}-used`, USED_MOST = 100, OWN = "hearth_drafts"; // of this window, and all that a guest has
const /** @type {Map<string, string | null>} */ known = new Map(); // field -> text saved last
let timer = 0, /** @type {Record<string, string | string[]> | null} */ kept = null, asked = false, came = false, mine = false, /** @type {Promise<unknown>} */ sending = Promise.resolve();

/** @returns {Record<string, string | string[]>} */
const own = () => JSON.parse(sessionStorage.getItem(OWN) ?? "{}");
/** @param {string} id */
const field = (id) => document.querySelector(`#${id} textarea, #${id} input`);
const later = () => {
  clearTimeout(timer);
  timer = setTimeout(send, WAIT_MS);
};

function send() {
  clearTimeout(timer);
  timer = 0;
  if (!came) return; // not known yet whose drafts these are
  const fresh = FIELDS.filter((id) => known.has(id) && field(id) && field(id).value !== known.get(id));
  if (!fresh.length) return;
  const texts = Object.fromEntries(fresh.map((id) => [id, field(id).value]));
  for (const id of fresh) known.set(id, texts[id]);
  // Send again what did not arrive.
  save(texts, () => fresh.forEach((id) => known.set(id, null)));
}

/** @param {Record<string, string | string[]>} texts */
function save(texts, again = () => {}) {
  // keepalive: also while the page unloads.
  const before = sending; // also what was sent before it
  if (mine) sending = post("hearth/drafts", texts, { keepalive: JSON.stringify(texts).length < 60_000 }).then((answer) => answer.ok || again(), again).then(() => before);
  sessionStorage.setItem(OWN, JSON.stringify({ ...own(), ...texts })); // last: a script of megabytes may have no room here
}

// Have the last words saved, too, before what is saved is kept or replaced.
export const draftsSaved = () => (send(), sending);

/** @param {string} id */
export const waitingDraft = (id) => (known.has(id) ? "" : String(kept?.[id] ?? "")); // of a field that was not filled yet
/** @param {string} id @returns {string[]} */
export const earlier = (id) => [kept?.[`${id}-earlier`] ?? []].flat();
/** What was painted, the newest first. @returns {string[]} */
export const used = () => [kept?.[USED] ?? []].flat();
/** @param {string[]} prompts */
export const keepUsed = (prompts) => keepTexts({ [USED]: prompts.slice(0, USED_MOST) });
/** @param {Record<string, string[]>} replaced by their fields */
export const keepEarlier = (replaced) => keepTexts(Object.fromEntries(Object.entries(replaced).map(([id, words]) => [`${id}-earlier`, words.slice(0, EARLIER_MOST)])));
/** @param {Record<string, string[]>} texts */
const keepTexts = (texts) => {
  if (!Object.keys(texts).length) return;
  kept = { ...kept, ...texts };
  save(texts);
};

onPage("input", (event) => {
  const id = FIELDS.find((each) => event.target.closest?.(`#${each}`));
  if (!id) return;
  if (!known.has(id)) known.set(id, null); // Typed text wins over the saved draft.
  later();
});
addEventListener("pagehide", send);

// What this window holds counts; of its lists, what the owner's other windows have kept follows.
/** @param {Record<string, string | string[]>} drafts @returns {Record<string, string | string[]>} */
const withOwn = (drafts) => ({ ...drafts, ...Object.fromEntries(Object.entries(own()).map(([name, held]) => [name, Array.isArray(held) ? [...new Set([...held, ...(drafts[name] ?? [])])].slice(0, name === USED ? USED_MOST : EARLIER_MOST) : held])) });

// Only the owner's state has charts; guests' drafts stay in this browser window.
area("#h-strip", (_, { charts }) => {
  if (asked) return;
  [asked, mine] = [true, Boolean(charts)];
  if (mine) ask("hearth/drafts").catch(() => ({})).then((drafts) => (([kept, came] = [withOwn(drafts), true]), redraw())); // at once, not with the next answer
  else [kept, came] = [own(), true];
});
// Fill a field with its draft once both are there: fields of tabs never opened are not on the page yet.
// A value set meanwhile, as by "Reuse settings", wins over the draft, which is returned.
/** @param {string} id @returns {string} */
export function restoreDraft(id) {
  if (!came || !field(id)) return "";
  const first = !known.has(id), draft = String(kept?.[id] ?? "");
  if (first) known.set(id, draft);
  if (first && draft && !field(id).value) {
    fill(id, draft);
    return "";
  }
  if (field(id).value !== known.get(id) && !timer) later(); // runs more often than it waits
  return first && field(id).value !== draft ? draft : "";
}
