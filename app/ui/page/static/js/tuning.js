// Beside the picture: speed, memory, and the chunk size on a small slider, so that nobody changes tabs to tune.
(() => {
  const { t, text } = Hearth;
  let moved = false, wanted = null; // until the server has answered, the slider stands where it was put

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
    const slider = element.querySelector("input");
    slider.setAttribute("aria-valuetext", words);
    slider.style.setProperty("--h-filled", `${(100 * slider.value) / slider.max}%`);
  }

  // One request at a time, and the last place counts: answers of several may come in any order.
  async function put(element, chosen) {
    const sends = wanted !== null;
    wanted = chosen;
    if (sends) return;
    try {
      for (let sent = null; sent !== wanted; ) {
        sent = wanted;
        const asked = String(sent), line = element.querySelector(".h-trouble");
        const { trouble } = await (await Hearth.post("hearth/chunk", { size: asked })).json();
        line.hidden = !trouble;
        text(line, trouble ?? "");
        if (!trouble) Hearth.state.chunk = { ...Hearth.state.chunk, size: sent, place: Hearth.state.chunk.sizes.indexOf(sent) + 1 };
      }
    } finally {
      wanted = null;
      moved = false;
      Hearth.redraw();
      Hearth.soon();
    }
  }
})();
