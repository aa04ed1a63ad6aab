// Beside the picture: speed, memory, and the chunk size on a small slider, so that nobody changes tabs to tune.
(() => {
  const { t, text } = Hearth;
  let moved = false; // until the server has answered, the slider stands where it was put

  Hearth.area("#h-tuning", (element, { strip, chunk }) => {
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
    text(figures, [strip.rate, strip.memory && Hearth.memory(strip.memory)].filter(Boolean).join(" \u00b7 "));
    text(now, strip.chunk);
    if (moved) return;
    element.querySelector("input").value = chunk.place;
    word(element, chunk.size);
  });

  const size = (place) => Hearth.state.chunk.sizes[place - 1] ?? "auto";

  function word(element, chosen) {
    const words = chosen === "auto" ? t("word.automatic", "automatic") : String(chosen);
    text(element.querySelector("b"), words);
    element.querySelector("input").setAttribute("aria-valuetext", words);
  }

  async function put(element, chosen) {
    const asked = String(chosen);
    const answer = await Hearth.post("hearth/chunk", { size: asked });
    const { trouble } = await answer.json();
    const line = element.querySelector(".h-trouble");
    line.hidden = !trouble;
    text(line, trouble ?? "");
    moved = false;
    if (!trouble) Hearth.state.chunk = { ...Hearth.state.chunk, size: chosen, place: Hearth.state.chunk.sizes.indexOf(chosen) + 1 };
    Hearth.redraw();
    Hearth.soon();
  }
})();
