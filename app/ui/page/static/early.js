// Runs before anything is drawn: set the chosen language and light or dark, so that nothing flashes or changes later, and let a page at rest rest.
(() => {
  const tags = JSON.parse(/** @type {any} */ (document.currentScript).dataset.languages);
  // Gradio asks the browser: it is told the one language of the page, or a phone's zh-HK would get English labels and a French one French.
  const chosen = tags[document.cookie.match(/(?:^|; )hearth_language=(\w+)/)?.[1] ?? ""];
  const spoken = chosen ?? tags[navigator.language.toLowerCase().split("-")[0]] ?? tags.en;
  Object.defineProperty(navigator, "language", { get: () => spoken });
  Object.defineProperty(navigator, "languages", { get: () => [spoken] });
  document.documentElement.lang = spoken;
  const wish = localStorage.getItem("hearth_light");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const shine = () => document.body?.classList.toggle("dark", wish ? wish === "dark" : system.matches);
  if (wish) {
    const url = new URL(location.href);
    if (url.searchParams.get("__theme") !== wish) {
      url.searchParams.set("__theme", wish);
      history.replaceState(null, "", url);
    }
  }
  document.addEventListener("DOMContentLoaded", shine);
  system.addEventListener("change", shine);
  // Gradio's sign of a page that loads counts its seconds by asking for the next frame, and does so for ever once it is gone: a page at rest was
  // drawn sixty times a second. What counts seconds by frames gets none.
  const frame = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (draw) => (/performance\.now\(\)-/.test(String(draw)) ? 0 : frame(draw));
})();
