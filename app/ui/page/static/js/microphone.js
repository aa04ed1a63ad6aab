// Say why the microphone cannot be used; Gradio's Record button would do nothing, and say nothing.
import { el, makeButton, text } from "./elements.js";
import { area, redraw } from "./hearth.js";
import { t } from "./words.js";

const devices = navigator.mediaDevices; // a browser hides them from pages without encryption, but for this computer's own
let /** @type {"" | keyof typeof WORDS} */ trouble = devices ? "" : "insecure";

const WORDS = {
  insecure: () => t("microphone.insecure", "Browsers give no microphone to a page without encryption, such as this one. Record with another app and choose that file."),
  blocked: () => t("microphone.blocked", "The browser blocks the microphone. Allow it for this page, or record with another app and choose that file."),
  busy: () => t("microphone.busy", "Another program uses the microphone. Close it, or record with another app and choose that file."),
  missing: () => t("microphone.missing", "No microphone was found. Connect one, or record with another app and choose that file."),
};
/** @type {Partial<Record<string, keyof typeof WORDS>>} */
const REASONS = { NotAllowedError: "blocked", NotReadableError: "busy" };
const RETRIED = ["blocked", "busy"]; // what is allowed or free meanwhile, Record asks for again

if (devices) {
  const ask = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async (wanted) => {
    try {
      const stream = await ask(wanted);
      trouble = "";
      return stream;
    } catch (/** @type {any} */ fault) {
      trouble = REASONS[fault.name] ?? "missing";
      throw fault;
    } finally {
      redraw();
    }
  };
  const count = async () => {
    const none = !(await devices.enumerateDevices()).some(({ kind }) => kind === "audioinput");
    if (none || trouble === "missing") trouble = none ? "missing" : "";
    redraw();
  };
  devices.addEventListener("devicechange", count);
  count();
  addEventListener("unhandledrejection", (event) => trouble && /accessing the microphone/.test(event.reason) && event.preventDefault()); // it is told
}

// Record with the system's own recorder, as phones have one, or choose a file: neither needs encryption. Gradio takes it as an upload.
/** @param {HTMLElement} clip */
function makeChooser(clip) {
  const input = el(`<input type="file" accept="audio/*" capture hidden>`);
  input.addEventListener("change", () => {
    const files = new DataTransfer();
    for (const file of input.files) files.items.add(file);
    /** @type {HTMLElement | null} */ (clip.querySelector(".source-selection button"))?.click(); // upload comes first
    /** @param {number} tries */
    const give = (tries) => {
      const field = clip.querySelector(".audio-container input[type=file]");
      if (!field) return tries && setTimeout(give, 100, tries - 1);
      Object.assign(field, { files: files.files }).dispatchEvent(new Event("change", { bubbles: true }));
    };
    if (input.files.length) give(100);
  });
  const chooser = makeButton(t("microphone.choose", "Record or choose a file"), () => input.click(), "h-chip");
  chooser.append(input);
  return chooser;
}

/** @param {HTMLElement} clip */
const tell = (clip) => {
  const told = trouble && clip.querySelector(".microphone") ? trouble : "";
  let note = clip.querySelector(".h-note");
  if (told && !note) {
    clip.querySelector(".audio-container").before((note = el(`<p class="h-note"><span role="alert"></span> </p>`)));
    note.append(makeChooser(clip));
  }
  if (!told) note?.remove();
  else text(note.querySelector("span"), WORDS[told]());
  clip.classList.toggle("h-no-microphone", Boolean(told) && !RETRIED.includes(told));
};
area("#speak-clip", tell);
area("#speak-dictation", tell);
