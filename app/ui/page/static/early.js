// Runs before anything is drawn: set the chosen language and light or dark, so that nothing flashes or changes later.
(() => {
  const chosen = document.cookie.match(/(?:^|; )hearth_language=(\w+)/)?.[1];
  if (chosen) {
    const tag = chosen === "zh" ? "zh-CN" : chosen;
    Object.defineProperty(navigator, "language", { get: () => tag });
    Object.defineProperty(navigator, "languages", { get: () => [tag] });
  }
  const spoken = chosen ?? (navigator.language.startsWith("zh") ? "zh" : "en");
  document.documentElement.lang = spoken === "zh" ? "zh-CN" : "en";
  const wish = localStorage.getItem("hearth_light");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const shine = () => document.body?.classList.toggle("dark", wish ? wish === "dark" : system.matches);
  if (wish) {
    const url = new URL(location);
    if (url.searchParams.get("__theme") !== wish) {
      url.searchParams.set("__theme", wish);
      history.replaceState(null, "", url);
    }
  }
  document.addEventListener("DOMContentLoaded", shine);
  system.addEventListener("change", shine);
})();
