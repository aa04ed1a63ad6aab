// Poll the server's state and hand it to whatever draws it; carry calls to the tabs' handlers; what the keys and the head's switches do.
import { onPage, text } from "./elements.js";
import { learn, t } from "./words.js";

/** @type {{ state: Live, busy: boolean, away: boolean }} */
export const live = { state: /** @type {any} */ (null), busy: false, away: false }; // away: the server does not answer
/** @typedef {{ selector: string, draw: (element: any, state: Live) => unknown }} Area */
/** @type {Area[]} */
const areas = [];
const IDLE_MS = 1000, BUSY_MS = 400, HIDDEN_MS = 5000, SOON_MS = 150;

/**
 * Draw with every answer, while the element is on the page.
 * @param {string} selector
 * @param {(element: any, state: Live) => unknown} draw
 */
export const area = (selector, draw) => {
  areas.push({ selector, draw });
  if (live.state) drawSafely({ selector, draw });
};

// Show at once what a press has changed, not with the next answer.
export const redraw = () => areas.forEach(drawSafely);

// Report an area that fails to draw; the others are drawn all the same.
/** @param {Area} area */
function drawSafely({ selector, draw }) {
  try {
    for (const element of document.querySelectorAll(selector)) draw(element, live.state);
  } catch (fault) {
    reportError(fault);
  }
}

// Set one of Gradio's fields as if it had been typed; press one of its buttons.
/** @param {string} id @param {unknown} value */
export const fill = (id, value) => {
  const field = document.querySelector(`#${id} textarea, #${id} input`);
  if (!field) return;
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value")?.set?.call(field, value);
  field.dispatchEvent(new Event("input", { bubbles: true }));
};
/** @param {string} id */
export const press = (id) => (document.querySelector(`button#${id}`) ?? document.querySelector(`#${id} button`))?.click();

// Ask a tab's handlers for something. A tab that was never opened is not on the page yet: the last of each call waits until then.
// Only the last: Gradio sends events of one moment side by side, always_last or not, and their answers come in any order.
// (Redo, of which each counts, is pressed in its own tab.)
const ways = new Map(), waiting = new Map();
/** @param {string[]} calls @param {(name: string, carried: object) => void} send */
export const answer = (calls, send) => {
  for (const name of calls) {
    ways.set(name, send);
    if (waiting.has(name)) send(name, waiting.get(name));
    waiting.delete(name);
  }
};
/** @param {string} name */
export const call = (name, carried = {}) => (ways.has(name) ? ways.get(name)(name, carried) : waiting.set(name, carried));

// What starts and what stops a tab's work.
export const buttons = { speak: { go: "speak-go", stop: "speak-stop" }, paint: { go: "paint-go", stop: "paint-stop" } };
/** @param {string | undefined} tab @returns {tab is StartTab} */
const starts = (tab) => tab !== undefined && tab in buttons;
/** @param {string | undefined} tab */
const stop = (tab) => (tab === "machine" ? call("machine.stop") : starts(tab) && press(buttons[tab].stop));

// Send a value as JSON, which a form of another site cannot do without asking first.
/** @param {string} path @param {object} [value] @param {RequestInit} [options] */
export const post = (path, value = {}, options = {}) =>
  fetch(path, { method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value), ...options });

/** @template {string} P @param {P} path @param {RequestInit} [options] @returns {Promise<AnswerAt<P>>} */
export const ask = async (path, options) => {
  const came = await fetch(path, { credentials: "same-origin", ...options });
  if (!came.ok) throw Object.assign(new Error(String(came.status)), { status: came.status });
  return came.json();
};

// Ask so that an older answer never comes over a newer one: it is null instead.
/** @template {string} P @param {P} path */
export const inOrder = (path) => {
  let questions = 0, last = 0;
  return async () => {
    const mine = ++questions, came = await ask(path);
    if (mine < last) return null;
    last = mine;
    return came;
  };
};

export const page = Math.random().toString(36).slice(2); // of several that are open, one may be closed
let timer = 0, asked = 0, answered = 0;
const later = () => {
  clearTimeout(timer);
  timer = setTimeout(look, document.hidden ? HIDDEN_MS : live.busy ? BUSY_MS : IDLE_MS);
};
// Take from a press's answer how things are now: what was asked before it, and is answered later, is older.
/** @param {Partial<Live>} now */
export const take = (now) => {
  answered = ++asked;
  Object.assign(live.state, now);
};
async function look() {
  clearTimeout(timer);
  const mine = ++asked;
  try {
    const state = await ask(document.querySelector("#h-charts")?.offsetParent ? `hearth/live?page=${page}&charts` : `hearth/live?page=${page}`);
    if (mine < answered) return later(); // a press has asked anew meanwhile, and that was answered first: this would take back what it shows
    [answered, live.state] = [mine, state];
    live.away = false;
  } catch (/** @type {any} */ { status }) {
    if (mine < answered) return later();
    const closed = t("page.away", "Hearth is not responding. It may have been closed. Start it again: this page reconnects by itself. If Hearth opens at another address, continue there and close this page.");
    const ended = t("page.away-guest", "Hearth cannot be reached. If sharing has ended, ask for a new link; else this page reconnects by itself.");
    const away = live.state && !live.state.charts ? ended : closed; // only the owner sees charts
    const out = t("page.out", "You have been logged out. Reload this page to log in again.");
    text(document.querySelector(".h-away-note"), status === 401 ? out : away);
    live.away = true;
  }
  document.body.classList.toggle("h-away", live.away);
  if (live.state) {
    live.busy = Boolean(live.state.strip?.job);
    redraw();
  }
  later();
}

// Draw as soon as Gradio has placed the areas, not with the next answer.
new MutationObserver((_, watcher) => {
  if (!document.querySelector("#h-strip")) return;
  watcher.disconnect();
  if (live.state) redraw();
}).observe(document, { childList: true, subtree: true });

// Poll sooner after a start, and let Esc count from now on.
export const soon = () => {
  live.busy = true;
  clearTimeout(timer);
  timer = setTimeout(look, SOON_MS);
};
onPage("click", (event) => {
  if (event.target.closest?.("#speak-go, #paint-go, #machine-tune, #machine-test")) soon();
});

// Esc closes an open list first, or what is folded out.
/** @param {any} element */
const closes = (element) => element.closest?.('input[aria-expanded="true"]') || document.querySelector(":popover-open");
/** @returns {string | undefined} */
export const tabInView = () => document.querySelector('button[role="tab"][aria-selected="true"]')?.dataset.tabId;
onPage("keydown", (event) => {
  // Ignore repeated keys, keys of an input method, and keys under an open dialog.
  if (event.repeat || event.isComposing || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    // Gradio sends a field's text on blur.
    const field = /** @type {HTMLElement | null} */ (document.activeElement);
    field?.blur();
    const tab = tabInView();
    setTimeout(() => (starts(tab) && press(buttons[tab].go), field?.focus({ preventScroll: true })), 60);
  } else if (event.key === "Escape" && live.busy && !closes(event.target)) {
    stop(tabInView());
  }
});

onPage("click", (event) => {
  const act = event.target.closest?.("[data-h-act]")?.dataset.hAct;
  if (act === "light") {
    localStorage.setItem("hearth_light", document.body.classList.contains("dark") ? "light" : "dark");
    document.body.classList.toggle("dark");
  }
});

// Labels for screen readers on Gradio's accordions and our switches.
area("button.label-wrap", (fold) => {
  fold.setAttribute("aria-expanded", fold.classList.contains("open"));
  fold.querySelector(".icon")?.setAttribute("aria-hidden", "true");
});
area('[data-h-act="light"]', (button) => {
  button.title = t("light.label", "Switch between light and dark");
  button.setAttribute("aria-label", button.title);
});

area('[data-h-act="language"]', (list) => {
  list.title = t("language.label", "Language");
  list.setAttribute("aria-label", list.title);
  if (list.onchange) return;
  list.querySelector(`[lang="${document.documentElement.lang}"]`).selected = true;
  list.onchange = () => {
    document.cookie = `hearth_language=${list.value}; path=/; max-age=31536000; samesite=lax`;
    location.reload();
  };
  // Under Windows an arrow chooses at once, and a language on the way would load the page: it opens the list.
  list.onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (!list.showPicker || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    list.showPicker();
  };
});

ask("hearth/words").catch(() => ({})).then((words) => {
  learn(words);
  look();
});
