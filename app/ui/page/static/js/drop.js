// Files dropped anywhere but on a field that takes files itself: a picture goes to Paint, a text becomes the script, a book is opened.
import { openBook, wantsReading } from "./book.js";
import { onPage } from "./elements.js";
import { live } from "./hearth.js";
import { rewrite } from "./rewrite.js";
import { openProject } from "./shelf.js";
import { openTab } from "./tabs.js";
import { inForce } from "./told.js";
import { t } from "./words.js";

const MOST = 200_000, GUESTS_MOST = 20_000; // characters that are checked while typing (app/ui/routes.py)
const FIELDS = "#paint-start, .h-takes-files, input[type=file], [data-testid='file-upload'], .upload-container";

/** @param {DragEvent & { target: any }} event */
const wanted = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files") && !event.target.closest?.(FIELDS);
onPage("dragover", (event) => wanted(event) && event.preventDefault());
onPage("drop", (event) => {
  if (!wanted(event)) return;
  event.preventDefault(); // else the browser would open it
  const files = [...(event.dataTransfer?.files ?? [])], picture = files.find((each) => each.type.startsWith("image/"));
  if (picture) {
    openTab("paint");
    give(picture);
  } else if (files.length && live.state.charts && files[0].name.toLowerCase().endsWith(".hearth.zip")) {
    openTab("shelf");
    openProject(files[0]);
  } else if (files.length && document.querySelector("button#paint-go")?.offsetParent && !isText(files[0])) {
    inForce("paint", "refused", t("drop.no-picture", "{name} is not a picture. To use it in a field, drop it on that field.", { name: files[0].name }));
  } else if (files.length) {
    openTab("speak");
    takeScript(files[0]);
  }
});

/** @param {File} file */
const isText = ({ name, type }) => /\.(txt|text|md)$/i.test(name) || type === "text/plain";

// Fields of a tab never opened are not there yet.
/** @param {File} file */
function give(file, tries = 100) {
  const field = document.querySelector("#paint-dropped input[type=file]");
  if (!field) return tries && setTimeout(() => give(file, tries - 1), 100);
  const holder = new DataTransfer();
  holder.items.add(file);
  field.files = holder.files;
  field.dispatchEvent(new Event("change", { bubbles: true }));
}

/** @param {File} file */
async function takeScript(file) {
  if (wantsReading(file)) return openBook(file);
  const { words, trouble } = await read(file);
  inForce("speak", "refused", trouble ?? "");
  if (words) rewrite("speak-text", words, t("drop.taken", "The script is now {name}.", { name: file.name }));
}

/** @param {File} file @returns {Promise<{ words?: string, trouble?: string }>} */
async function read(file) {
  const { name } = file, most = live.state.charts ? MOST : GUESTS_MOST;
  const strange = { trouble: t("drop.strange", "{name} is not a plain text. Save it as a .txt file and drop that.", { name }) };
  if (!isText(file)) return strange;
  const long = { trouble: t("drop.long", "{name} is longer than {most} {most:character|characters}. Split it, and speak one piece after the other.", { name, most }) };
  if (file.size > 4 * most) return long;
  const words = decode(new Uint8Array(await file.arrayBuffer()))?.replace(/\r\n?/g, "\n").trim();
  if (words == null) return strange;
  if (!words) return { trouble: t("drop.empty", "{name} is empty.", { name }) };
  return words.length > most ? long : { words };
}

// Whether nearly all bytes that are no ASCII come in pairs, as of Chinese characters: in European texts they stand between letters.
/** @param {Uint8Array} bytes */
function looksChinese(bytes) {
  let paired = 0, alone = 0;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] < 0x80) continue;
    if (bytes[at] > 0x80 && bytes[at] < 0xff && bytes[at + 1] > 0x80) [paired, at] = [paired + 2, at + 1];
    else alone++;
  }
  return paired > 9 * alone;
}

// In UTF-8 or UTF-16, else as older Windows wrote Chinese or European languages; null where it is no text.
/** @param {Uint8Array} bytes */
function decode(bytes) {
  const wide = /** @type {Record<string, string>} */ ({ "255,254": "utf-16le", "254,255": "utf-16be" })[bytes.slice(0, 2).join()];
  const chinese = document.documentElement.lang.startsWith("zh") || looksChinese(bytes);
  for (const name of wide ? [wide] : ["utf-8", ...(chinese ? ["gb18030"] : []), "windows-1252"]) {
    try {
      const words = new TextDecoder(name, { fatal: true }).decode(bytes);
      return /[\0-\x08\x0e-\x1f]/.test(words) ? null : words;
    } catch {
      continue;
    }
  }
  return null;
}
