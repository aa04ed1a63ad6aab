// A button that copies what stands in a <code>, and says so for a moment.
import { text } from "./elements.js";
import { t } from "./words.js";

/** @param {HTMLElement} button @param {HTMLElement} code */
export function copies(button, code) {
  text(button, t("machines.copy", "Copy"));
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(code.textContent ?? "");
    text(button, t("machines.copied", "Copied"));
    setTimeout(() => text(button, t("machines.copy", "Copy")), 1500);
  });
}
