// Ask before what cannot be undone, or takes long. Esc means no, and focus returns to where it was.
import { el, show, text } from "./elements.js";
import { t } from "./words.js";


/** @param {string} question @param {string} deed @returns {Promise<boolean>} */
export const sure = (question, deed, look = "h-danger") =>
  new Promise((answer) => {
    const dialog = el(`<dialog class="h-dialog h-sure" role="alertdialog" aria-labelledby="h-sure"><p id="h-sure"></p><form method="dialog"><button class="h-chip" value="" autofocus></button><button class="h-chip ${look}" value="yes"></button></form></dialog>`);
    text(dialog.querySelector("p"), question);
    const [no, yes] = dialog.querySelectorAll("button");
    text(no, t("sure.no", "Cancel"));
    text(yes, deed);
    dialog.addEventListener("close", () => answer(dialog.returnValue === "yes"));
    show(dialog);
  });

/** @param {string | null} voice */
export const confirmVoice = async (voice) =>
  !voice || (await sure(t("voice.sure", "Delete the saved voice \"{name}\"?", { name: voice }), t("preset.delete", "Delete"))) ? voice : null;

// Presets that come with Hearth cannot be deleted; the server says so.
/** @param {string | null} preset */
export const confirmPreset = async (preset) => {
  const name = preset?.startsWith("own:") && preset.slice(4);
  return !name || (await sure(t("preset.sure", "Delete the preset \"{name}\"?", { name }), t("preset.delete", "Delete"))) ? preset : null;
};
