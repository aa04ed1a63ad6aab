// Pick a thing of the starting picture by a point on it: a model finds where it is, and says so when it cannot.
import { inked, shrunk } from "./drawn.js";
import { el, makeButton, text } from "./elements.js";
import { post, redraw } from "./hearth.js";
import { t } from "./words.js";

const SIDE_MOST = 1024; // a model sees no more

const /** @type {WeakMap<ImageBitmap, string>} */ seen = new WeakMap(); // pictures as they are sent

/** The row below the sheet while things are picked. @param {HTMLElement} row @param {() => void} turn whether paint is taken away */
export function buildPicking(row, turn) {
  row.append(makeButton(t("pick.away", "Take away"), turn, "h-chip"), ...el(`<div><span class="h-soft" role="status"></span><p class="h-trouble" role="alert" hidden></p></div>`).children);
}

/** @param {HTMLElement} card @param {boolean} picks whether that is the tool @param {boolean} away */
export function showPicking(card, picks, away) {
  const row = card.querySelector(".h-picking");
  row.hidden = !picks;
  row.firstElementChild.setAttribute("aria-pressed", away);
}

/** What was said is of a mask that has changed. @param {HTMLElement} card */
export const quiet = (card) => tell(card, "");

/** @param {HTMLElement} card @param {string} words @param {{ trouble?: string, cure?: string }} [failed] */
function tell(card, words, { trouble = "", cure = "" } = {}) {
  const place = card.querySelector(".h-picking .h-trouble");
  text(card.querySelector(".h-picking [role=status]"), words);
  Object.assign(place, { hidden: !trouble, textContent: trouble });
  place.dataset.cure = cure;
  redraw(); // what cures it stands behind it
}

/** Ask where the thing is. The point is given in shares of the picture's sides. @param {HTMLElement} card @param {ImageBitmap} picture @param {number} x @param {number} y
 * @param {() => boolean} isWanted the picture may go meanwhile */
export async function findThing(card, picture, x, y, isWanted) {
  tell(card, t("pick.looking", "Looking at the picture; the first time this takes a few seconds ..."));
  const sent = seen.get(picture) ?? shrunk(picture, SIDE_MOST);
  seen.set(picture, sent);
  const answer = await post("hearth/pick", { picture: sent, x, y }).catch(() => null);
  if (!isWanted()) return null;
  if (answer?.ok) return inked(await createImageBitmap(await answer.blob()));
  const silent = { trouble: t("share.silent", "Hearth did not respond; it may have been closed. Start it again, then try again.") };
  tell(card, "", answer ? await answer.json().catch(() => silent) : silent);
  return null;
}

/** @param {HTMLElement} card @param {boolean} away @param {number} share of the picture that is painted over */
export function tellPicked(card, away, share) {
  const percent = Math.round(100 * share);
  tell(card, away ? t("pick.taken", "Taken away. {percent}% of the picture is painted over now.", { percent }) : t("pick.added", "Added. {percent}% of the picture is painted over now.", { percent }));
}
