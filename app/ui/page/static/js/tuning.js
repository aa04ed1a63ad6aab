// Beside the picture: speed, memory, and the chunk size on a small slider, so that nobody changes tabs to tune.
import { text } from "./elements.js";
import { area, live, post, redraw, soon, take } from "./hearth.js";
import { memoryWords } from "./strip.js";
import { t } from "./words.js";

/** @typedef {ChunkView["size"]} Size */
let moved = false, /** @type {Size | null} */ wanted = null; // while it is moved, and until the server has answered, the slider stands where it was put

area("#h-tuning", (element, { strip, chunk }) => {
  element.hidden = !chunk;
  if (!chunk) return;
  if (!element.firstElementChild) {
    element.innerHTML = `<label><span></span> <b></b><input type="range" min="0" step="1"></label><p class="h-soft h-figures"></p><p class="h-soft h-now"></p><p class="h-trouble" role="alert" hidden></p>`;
    const slider = element.querySelector("input");
    text(element.querySelector("span"), t("machine.chunk", "Chunk size"));
    slider.setAttribute("aria-label", t("machine.chunk", "Chunk size"));
    slider.max = chunk.sizes.length;
    slider.addEventListener("input", () => {
      moved = true;
      word(element, size(slider.value));
    });
    slider.addEventListener("change", () => put(element, size(slider.value)));
  }
  const [figures, now] = element.querySelectorAll("p");
  text(figures, [strip.rate, strip.memory && memoryWords(strip.memory)].filter(Boolean).join(" \u00b7 "));
  text(now, strip.chunk);
  if (moved || wanted !== null) return;
  element.querySelector("input").value = chunk.step;
  word(element, chunk.size);
});

/** @param {number} step @returns {Size} */
const size = (step) => live.state.chunk?.sizes[step - 1] ?? "auto";

/** @param {HTMLElement} element @param {Size} chosen */
function word(element, chosen) {
  const words = chosen === "auto" ? t("word.automatic", "automatic") : String(chosen);
  text(element.querySelector("b"), words);
  const slider = element.querySelector("input");
  slider.setAttribute("aria-valuetext", words);
  slider.style.setProperty("--h-filled", `${(100 * slider.value) / slider.max}%`);
}

// One request at a time, and the last one counts: answers of several may come in any order.
/** @param {HTMLElement} element @param {Size} chosen */
async function put(element, chosen) {
  const sends = wanted !== null;
  [wanted, moved] = [chosen, false];
  if (sends) return;
  try {
    for (let /** @type {Size | null} */ sent = null; sent !== wanted; ) {
      sent = wanted;
      const asked = String(sent), line = element.querySelector(".h-trouble");
      const { trouble } = await (await post("hearth/chunk", { size: asked })).json();
      line.hidden = !trouble;
      text(line, trouble ?? "");
      const { chunk } = live.state;
      if (!trouble && chunk) take({ chunk: { ...chunk, size: sent, step: sent === "auto" ? 0 : chunk.sizes.indexOf(sent) + 1 } });
    }
  } finally {
    wanted = null;
    redraw();
    soon();
  }
}
