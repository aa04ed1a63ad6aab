// A button that copies what stands in a <code>, and says so for a moment.
import { text } from "./elements.js";
import { t } from "./words.js";

/** @param {Element} button @param {string} word @param {string} of what, as there are several of this word */
export function named(button, word, of) {
  text(button, word);
  button.setAttribute("aria-label", `${word}${t("word.colon", ": ")}${of}`);
}

/** @param {HTMLElement} button @param {HTMLElement} code @param {string} [of] what, where several such buttons stand together */
export function copies(button, code, of) {
  const says = (/** @type {string} */ word) => (of ? named(button, word, of) : text(button, word));
  says(t("machines.copy", "Copy"));
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(code.textContent ?? "");
    says(t("machines.copied", "Copied"));
    setTimeout(() => says(t("machines.copy", "Copy")), 1500);
  });
}
