// What Gradio leaves to do: its labels that it has in English only and without a key (those with a key: gradio_words.py), the focus after a choice and after Esc.
import { onPage } from "./elements.js";
import { area } from "./hearth.js";
import { t, time } from "./words.js";

/** @type {[RegExp, (...found: string[]) => string][]} */
const WORDS = [
  [/^Upload file$/, () => t("gradio.upload", "Upload file")],
  [/^Click to upload or drop files$/, () => t("gradio.drop", "Click to upload or drop files")],
  [/^Remove this file$/, () => t("gradio.remove", "Remove this file")],
  [/^Record audio$/, () => t("gradio.record", "Record audio")],
  [/^Paste from clipboard$/, () => t("gradio.paste", "Paste from clipboard")],
  [/^number input for (.*)$/, (label) => label], // what it is, its role says
  [/^range slider for (.*)$/, (label) => label],
  [/^Adjust volume$/, () => t("gradio.volume", "Adjust volume")],
  [/^Adjust playback speed to (.*)x$/, (speed) => t("gradio.speed", "Adjust playback speed to {speed}x", { speed })],
  [/^Skip backwards by (.*) seconds$/, (seconds) => t("gradio.back", "Skip backwards by {time}", { time: time(Number(seconds)) })],
  [/^Skip forward by (.*) seconds$/, (seconds) => t("gradio.forward", "Skip forward by {time}", { time: time(Number(seconds)) })],
  [/^Reset audio$/, () => t("gradio.reset-sound", "Reset audio")],
  [/^Trim audio to selection$/, () => t("gradio.trim-sound", "Trim audio to selection")],
  [/^Drag to adjust start time$/, () => t("gradio.begin", "Drag to adjust start time")],
  [/^Drag to adjust end time$/, () => t("gradio.end", "Drag to adjust end time")],
  [/^Trim$/, () => t("gradio.trim", "Trim")],
  [/^Cancel$/, () => t("sure.no", "Cancel")],
  [/^More tabs$/, () => t("gradio.tabs", "More tabs")],
];

/** @param {string | null | undefined} text */
function word(text) {
  for (const [shape, say] of WORDS) {
    const found = text?.match(shape);
    if (found) return say(...found.slice(1));
  }
  return text;
}

area(".gradio-container [aria-label], .gradio-container [title]", (element) => {
  for (const name of ["aria-label", "title"]) {
    const said = element.getAttribute(name), worded = word(said);
    if (worded !== said) element.setAttribute(name, worded);
  }
});
// One of many: each says of which field it is.
area(".gradio-container .reset-button", (button) => {
  const field = word(button.closest(".block")?.querySelector("input")?.ariaLabel), name = `${t("gradio.reset", "Reset to default value")}${t("word.colon", ": ")}${field}`;
  if (field && button.ariaLabel !== name) button.ariaLabel = name;
});
// Enter chooses from a list, and Gradio lets go of the focus: it goes back to the field, which must not hear of it, or its list would open again.
onPage("keydown", ({ key, target }) => {
  if (key !== "Enter" || !target.matches?.("input[aria-expanded]")) return;
  setTimeout(() => {
    if (document.activeElement !== document.body || !target.isConnected) return;
    const unheard = (/** @type {Event} */ event) => event.stopImmediatePropagation();
    onPage("focus", unheard, true);
    target.focus({ preventScroll: true });
    document.removeEventListener("focus", unheard, true);
  });
}, true);

// Gradio opens a list when its field takes the focus: after Esc it has it still, and a click would open nothing.
onPage("mousedown", ({ target }) => document.activeElement === target && target.matches?.('input[aria-expanded="false"]') && target.blur(), true);

// Who comes to a dropdown by Tab hears its name and value, as of any list of choices: Gradio, which would open it and have an option read instead,
// hears of the focus with the first key that is meant for it.
let isTab = false, /** @type {EventTarget | null} */ unopened = null;
const PASSING = ["Tab", "Shift", "Control", "Alt", "Meta", "Escape"];
onPage("keydown", ({ key, target }) => {
  isTab = key === "Tab";
  if (target !== unopened || PASSING.includes(key)) return;
  unopened = null;
  target.dispatchEvent(new FocusEvent("focus"));
}, true);
onPage("keyup", () => (isTab = false), true);
onPage("focus", (event) => {
  if (!isTab || !event.target.matches?.("input[role=combobox]")) return;
  unopened = event.target;
  event.stopImmediatePropagation();
}, true);
onPage("blur", ({ target }) => target === unopened && (unopened = null), true);

// Its arrow and other drawings beside words say nothing.
area(".gradio-container svg:not([role], [aria-label], [aria-hidden])", (drawing) => drawing.setAttribute("aria-hidden", "true"));

// A dropdown's list that scrolls is a stop of its own in Chromium, without a name or a ring; and it stays open after Tab from what was typed.
onPage("keydown", ({ key, target }) => {
  if (key !== "Tab" || !target.matches?.("input[aria-expanded]")) return;
  const listed = () => target.closest(".container, .block")?.querySelector("ul[role=listbox]");
  listed()?.setAttribute("tabindex", "-1");
  setTimeout(() => document.activeElement !== target && listed() && target.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, repeat: true })), 50); // repeated: it stops no job
}, true);

// What Gradio writes while a file is sent has no label: gradio.css shows this in its place.
area("body", (body) => body.style.setProperty("--h-uploading", JSON.stringify(t("file.uploading", "Uploading\u2026"))));

// Nothing is dragged on a phone: gradio.css shows this in place of where to drop it.
area("body", (body) => body.style.setProperty("--h-tap", JSON.stringify(t("file.tap", "Tap to choose a file"))));

area("#speak-clip .text-button", (button) => {
  const said = button.firstChild?.data, worded = word(said);
  if (worded !== said) button.firstChild.data = worded;
});
