// The tabs by keyboard, as ARIA has them: Tab reaches the open one, and arrows, Home and End open the others.
(() => {
  const TABS = '#h-rooms > .tab-wrapper [role="tablist"] > button[role="tab"]';
  const NEXT = { ArrowLeft: (at, all) => (at + all - 1) % all, ArrowRight: (at, all) => (at + 1) % all, Home: () => 0, End: (_, all) => all - 1 };

  Hearth.openTab = (id) => document.querySelector(`button[role="tab"][data-tab-id="${id}"]`)?.click();

  const reach = () => {
    for (const tab of document.querySelectorAll(TABS)) tab.tabIndex = tab.getAttribute("aria-selected") === "true" ? 0 : -1;
  };
  Hearth.area("#h-rooms", reach);
  document.addEventListener("click", ({ target }) => target.closest?.(TABS) && setTimeout(reach)); // once Gradio has opened it

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (!NEXT[key] || !target.matches?.(TABS) || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const tabs = [...document.querySelectorAll(TABS)], next = tabs[NEXT[key](tabs.indexOf(target), tabs.length)];
    next.focus();
    next.click();
  });
})();
