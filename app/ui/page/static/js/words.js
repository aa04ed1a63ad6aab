// The page's words: sentences in its language, durations, sizes.

const CHINESE = "[\\u3000-\\u303f\\u4e00-\\u9fff\\uff00-\\uff5e]", APART = new RegExp(`(${CHINESE}) (?=${CHINESE})`, "g");
/** @type {Record<string, string>} */
const known = {}; // key -> the sentence in the page's language; English stands in the scripts

/** @param {Record<string, string>} words */
export const learn = (words) => Object.assign(known, words);

// A sentence in the page's language; {n:picture|pictures} is the first word for 1, and no space stands between Chinese, as in app/base/sentence.py.
/** @param {string} key @param {string} english @param {Record<string, any>} [values] @returns {string} */
export const t = (key, english, values = {}) =>
  (known[key] ?? english).replace(/\{(\w+)(?::([^{|}]*)\|([^{|}]*))?\}/g, (_, name, one, many) => (many == null ? values[name] ?? "" : Number(values[name]) === 1 ? one : many)).replace(APART, "$1");

// With the decimal mark of the language, as app/base/sentence.py has it.
/** @param {number} number @param {number} places */
export const decimal = (number, places) => number.toFixed(places).replace(".", t("word.decimal", "."));
/** @param {number} bytes */
export const size = (bytes) => (bytes >= 1e8 ? `${decimal(bytes / 1e9, 1)} GB` : `${decimal(bytes / 1e6, 1)} MB`); // disks and downloads are counted in powers of ten
/** @param {number} bytes */
export const gb = (bytes) => decimal(bytes / 2 ** 30, bytes < 10 * 2 ** 30 ? 1 : 0);

// The keys of a keyboard as they are named on this system, in the page's language.
/** @param {string} keys */
export const nameKeys = (keys) => (/Mac|iP/.test(navigator.platform) ? keys.replaceAll("Ctrl", "\u2318").replaceAll("Alt", "\u2325") : keys.replaceAll("Ctrl", t("key.ctrl", "Ctrl")));

// A person's name within a sentence: one that is written from the right would turn the words around it. Python has it in app/base/sentence.py.
/** @param {string} name */
export const apart = (name) => `\u2068${name}\u2069`;

// Sentences one after the other: Chinese ones stand without a space, as in app/base/sentence.py.
/** @param {any[]} all @returns {string} */
export const sentences = (all) => all.filter(Boolean).reduce((text, each) => text + (!text || new RegExp(`${CHINESE}$`).test(text) ? "" : " ") + each, "");

// A number stands in one line with its unit.
/** @param {string} text */
export const unbroken = (text) => text.replace(/(\d) (?=\p{L})/gu, "$1\u00a0");

// A duration in words, as app/base/duration.py has it. `exact`: measured, so that tenths count below 10 s.
/** @param {number | null | undefined} seconds */
export const time = (seconds, exact = false) => {
  if (seconds == null) return "";
  const [tenths, whole, m, h] = [0.1, 1, 60, 3600].map((unit) => Math.floor(Math.max(0, seconds) / unit + 0.5));
  if (exact && tenths < 100) return t("time.seconds", "{s} s", { s: decimal(tenths / 10, 1) });
  if (whole < 60) return t("time.seconds", "{s} s", { s: Math.max(1, whole) });
  const s = exact ? whole : 10 * Math.floor(seconds / 10 + 0.5);
  if (s < 600 && s % 60) return t("time.minutes-seconds", "{m} min {s} s", { m: Math.floor(s / 60), s: s % 60 });
  if (m < 60) return t("time.minutes", "{m} min", { m });
  if (m < 600 && m % 60) return t("time.hours-minutes", "{h} h {m} min", { h: Math.floor(m / 60), m: m % 60 });
  return t("time.hours", "{h} h", { h });
};
