// Ask before what cannot be undone, or takes long. Esc means no, and focus returns to where it was.
import { el, show, text } from "./elements.js";
import { t } from "./words.js";


/** Ask which of some deeds to do; -1: none. @param {string} question @param {[label: string, look: string][]} deeds @returns {Promise<number>} */
export const decide = (question, deeds) =>
  new Promise((answer) => {
    const dialog = el(`<dialog class="h-dialog h-sure" role="alertdialog" aria-labelledby="h-sure"><p id="h-sure"></p><form method="dialog"><button class="h-chip" value="" autofocus></button></form></dialog>`);
    const form = dialog.querySelector("form");
    text(dialog.querySelector("p"), question);
    text(form.firstElementChild, t("sure.no", "Cancel"));
    for (const [i, [label, look]] of deeds.entries()) {
      const button = el(`<button class="h-chip ${look}" value="${i}"></button>`);
      text(button, label);
      form.append(button);
    }
    dialog.addEventListener("close", () => answer(dialog.returnValue === "" ? -1 : Number(dialog.returnValue)));
    show(dialog);
  });

/** @param {string} question @param {string} deed @returns {Promise<boolean>} */
export const sure = async (question, deed, look = "h-danger") => (await decide(question, [[deed, look]])) === 0;

/** @param {string | null} voice */
export const confirmVoice = async (voice) =>
  !voice || (await sure(t("voice.sure", "Delete the saved voice \"{name}\"?", { name: voice }), t("preset.delete", "Delete"))) ? voice : null;

// Presets that come with Hearth cannot be deleted; the server says so.
/** @param {string | null} preset */
export const confirmPreset = async (preset) => {
  const name = preset?.startsWith("own:") && preset.slice(4);
  return !name || (await sure(t("preset.sure", "Delete the preset \"{name}\"?", { name }), t("preset.delete", "Delete"))) ? preset : null;
};
