// The tabs by keyboard, as ARIA has them: Tab reaches the open one, and arrows, Home and End open the others. The browser's Back opens the one before.
import { onPage } from "./elements.js";
import { area, tabInView } from "./hearth.js";
import { backReturns, onReturn } from "./history.js";

const TABS = '#h-rooms > .tab-wrapper [role="tablist"] > button[role="tab"]';
const /** @type {Record<string, (at: number, all: number) => number>} */ NEXT = { ArrowLeft: (at, all) => (at + all - 1) % all, ArrowRight: (at, all) => (at + 1) % all, Home: () => 0, End: (_, all) => all - 1 };

// Open a tab; the focus goes with whoever pressed something that is out of sight then.
/** @param {string | null | undefined} id */
export const openTab = (id) => {
  const tab = document.querySelector(`button[role="tab"][data-tab-id="${id}"]`);
  tab?.click();
  if (document.activeElement !== document.body) tab?.focus({ preventScroll: true });
};

// Gradio leaves the list of the tabs and what each opens without a name.
const reach = () => {
  for (const tab of document.querySelectorAll(TABS)) {
    const isOpen = tab.getAttribute("aria-selected") === "true";
    tab.tabIndex = isOpen ? 0 : -1;
    tab.parentElement?.setAttribute("aria-label", "Hearth");
    if (isOpen) openPanel()?.setAttribute("aria-label", tab.textContent ?? "");
  }
};
const openPanel = () => [...document.querySelectorAll('#h-rooms > [role="tabpanel"]')].find((panel) => panel.checkVisibility());
area("#h-rooms", reach);
onPage("click", ({ target }) => target.closest?.(TABS) && setTimeout(reach)); // once Gradio has opened it

onPage("click", ({ target }) => {
  const from = tabInView(), to = target.closest?.(TABS)?.dataset.tabId;
  if (from && to && from !== to) backReturns(from, to);
}, true);
onReturn((tab) => tab !== tabInView() && openTab(tab));

onPage("keydown", (event) => {
  const { key, target } = event;
  if (!NEXT[key] || !target.matches?.(TABS) || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const tabs = [...document.querySelectorAll(TABS)], next = tabs[NEXT[key](tabs.indexOf(target), tabs.length)];
  next.focus();
  next.click();
});
