// Poll the server's state and hand it to whatever draws it. Knows no tab.
(() => {
  const Hearth = (window.Hearth = { state: null, words: {}, areas: [], busy: false, away: false }); // away: the server does not answer
  const IDLE_MS = 1000, BUSY_MS = 400, HIDDEN_MS = 5000, SOON_MS = 150;

  // A sentence in the page's language; {n:picture|pictures} is the first word for 1, and no space stands between Chinese, as in app/base/sentence.py.
  const CHINESE = "[\\u3000-\\u303f\\u4e00-\\u9fff\\uff00-\\uff5e]", APART = new RegExp(`(${CHINESE}) (?=${CHINESE})`, "g");
  Hearth.t = (key, english, values = {}) =>
    (Hearth.words[key] ?? english).replace(/\{(\w+)(?::([^{|}]*)\|([^{|}]*))?\}/g, (_, name, one, many) => (many == null ? values[name] ?? "" : Number(values[name]) === 1 ? one : many)).replace(APART, "$1");

  // Call draw(element, state) with every answer, while the element is on the page.
  Hearth.area = (selector, draw) => {
    Hearth.areas.push({ selector, draw });
    if (Hearth.state) drawOne({ selector, draw });
  };

  // Show at once what a press has changed, not with the next answer.
  Hearth.redraw = () => Hearth.areas.forEach(drawn);

  // Report an area that fails to draw; the others are drawn all the same.
  function drawn(area) {
    try {
      drawOne(area);
    } catch (fault) {
      reportError(fault);
    }
  }

  function drawOne({ selector, draw }) {
    for (const element of document.querySelectorAll(selector)) draw(element, Hearth.state);
  }

  // Update a list by key: unchanged elements stay in place, so that nothing jumps and no sound is cut off.
  Hearth.list = (parent, items, key, make, update) => {
    const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
    const times = new Map();
    items.forEach((item, index) => {
      const same = String(key(item)), before = times.get(same) ?? 0;
      times.set(same, before + 1);
      const id = before ? `${same} (${before})` : same; // the same line may appear twice
      let child = known.get(id);
      if (!child) {
        child = make(item);
        child.dataset.key = id;
      }
      known.delete(id);
      update?.(child, item);
      if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
    });
    for (const gone of known.values()) gone.remove();
  };

  Hearth.el = (html) => {
    const holder = document.createElement("template");
    holder.innerHTML = html.trim();
    return holder.content.firstElementChild;
  };

  Hearth.text = (element, text) => {
    if (element && element.textContent !== text) element.textContent = text;
  };

  Hearth.button = (label, run, look = "") => {
    const button = Hearth.el(`<button type="button" class="${look}"></button>`);
    Hearth.text(button, label);
    button.addEventListener("click", run);
    return button;
  };

  // Show a dialog until it is closed.
  Hearth.show = (dialog) => {
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  };

  Hearth.size = (bytes) => (bytes >= 1e8 ? `${(bytes / 1e9).toFixed(1)} GB` : `${(bytes / 1e6).toFixed(1)} MB`); // disks and downloads are counted in powers of ten
  Hearth.gb = (bytes) => (bytes / 2 ** 30).toFixed(bytes < 10 * 2 ** 30 ? 1 : 0);

  // Sentences one after the other: Chinese ones stand without a space, as in app/base/sentence.py.
  Hearth.sentences = (all) => all.filter(Boolean).reduce((text, each) => text + (!text || new RegExp(`${CHINESE}$`).test(text) ? "" : " ") + each, "");

  // A duration in words, as app/base/duration.py has it. `exact`: measured, so that tenths count below 10 s.
  Hearth.time = (seconds, exact = false) => {
    if (seconds == null) return "";
    const { t } = Hearth;
    let [tenths, s, m, h] = [0.1, 1, 60, 3600].map((unit) => Math.floor(Math.max(0, seconds) / unit + 0.5));
    if (exact && tenths < 100) return t("time.seconds", "{s} s", { s: (tenths / 10).toFixed(1) });
    if (s < 60) return t("time.seconds", "{s} s", { s: Math.max(1, s) });
    if (!exact) s = 10 * Math.floor(seconds / 10 + 0.5);
    if (s < 600 && s % 60) return t("time.minutes-seconds", "{m} min {s} s", { m: Math.floor(s / 60), s: s % 60 });
    if (m < 60) return t("time.minutes", "{m} min", { m });
    if (m < 600 && m % 60) return t("time.hours-minutes", "{h} h {m} min", { h: Math.floor(m / 60), m: m % 60 });
    return t("time.hours", "{h} h", { h });
  };

  // Draw a waveform as bars; peaks are 0 to 1.
  Hearth.wave = (svg, peaks) => {
    const drawn = peaks.join();
    if (svg.dataset.drawn === drawn) return;
    svg.dataset.drawn = drawn;
    const width = 6;
    svg.setAttribute("viewBox", `0 0 ${peaks.length * width} 40`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.innerHTML = peaks
      .map((peak, i) => {
        const height = Math.max(2, peak * 38);
        return `<rect x="${i * width + 1}" y="${20 - height / 2}" width="3.6" height="${height}" rx="1.8"/>`;
      })
      .join("");
  };

  // Set one of Gradio's fields as if it had been typed; press one of its buttons.
  Hearth.put = (id, value) => {
    const field = document.querySelector(`#${id} textarea, #${id} input`);
    if (!field) return;
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value").set.call(field, value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  Hearth.press = (id) => (document.querySelector(`button#${id}`) ?? document.querySelector(`#${id} button`))?.click();

  // Ask a tab's handlers for something. A tab that was never opened is not on the page yet: the last of each call waits until then.
  // Only the last: Gradio sends events of one moment side by side, always_last or not, and their answers come in any order.
  // (Redo, of which each counts, is pressed in its own tab.)
  const ways = new Map(), waiting = new Map();
  Hearth.answer = (calls, send) => {
    for (const call of calls) {
      ways.set(call, send);
      if (waiting.has(call)) send(call, waiting.get(call));
      waiting.delete(call);
    }
  };
  Hearth.call = (call, carried = {}) => (ways.has(call) ? ways.get(call)(call, carried) : waiting.set(call, carried));

  // What starts and what stops a tab's work.
  Hearth.buttons = { speak: { go: "speak-go", stop: "speak-stop" }, paint: { go: "paint-go", stop: "paint-stop" } };
  Hearth.stop = (tab) => (tab === "machine" ? Hearth.call("machine.stop") : Hearth.press(Hearth.buttons[tab]?.stop));

  // Put a sample into a field, then press a button; wait for a tab that was never opened and is not on the page yet.
  Hearth.send = (id, words, name, button, tries = 300) => {
    if (document.querySelector(`#${id} textarea, #${id} input`)) {
      Hearth.useSample(id, words, name);
      setTimeout(() => Hearth.press(button), 120);
    } else if (tries) setTimeout(() => Hearth.send(id, words, name, button, tries - 1), 100);
  };

  // Chips that put a sample text into a field: named in the user's language, the text in the model's.
  Hearth.samples = (element, label, samples, field) => {
    if (element.firstElementChild) return;
    element.innerHTML = `<div class="h-chips" role="group"></div>`;
    element.firstElementChild.setAttribute("aria-label", label);
    for (const [name, words] of samples) {
      const chip = Hearth.button(name, () => Hearth.useSample(field, words, name));
      chip.title = words;
      element.firstElementChild.append(chip);
    }
  };

  // Send a value as JSON, which a form of another site cannot do without asking first.
  Hearth.post = (path, value = {}, options = {}) =>
    fetch(path, { method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value), ...options });

  Hearth.ask = async (path, options) => {
    const answer = await fetch(path, { credentials: "same-origin", ...options });
    if (!answer.ok) throw Object.assign(new Error(answer.status), { status: answer.status });
    return answer.json();
  };

  let timer = 0;
  async function look() {
    clearTimeout(timer);
    try {
      Hearth.state = await Hearth.ask(document.querySelector("#h-charts")?.offsetParent ? "hearth/live?charts" : "hearth/live");
      Hearth.away = false;
    } catch ({ status }) {
      const closed = Hearth.t("page.away", "Hearth is not responding. It may have been closed. Start it again; this page reconnects by itself.");
      const ended = Hearth.t("page.away-guest", "Hearth cannot be reached. If sharing has ended, ask for a new link; else this page reconnects by itself.");
      const away = Hearth.state && !Hearth.state.charts ? ended : closed; // only the owner sees charts
      const out = Hearth.t("page.out", "You have been logged out. Reload this page to log in again.");
      Hearth.text(document.querySelector(".h-away-note"), status === 401 ? out : away);
      Hearth.away = true;
    }
    document.body.classList.toggle("h-away", Hearth.away);
    if (Hearth.state) {
      Hearth.busy = Boolean(Hearth.state.strip?.job);
      Hearth.redraw();
    }
    clearTimeout(timer);
    timer = setTimeout(look, document.hidden ? HIDDEN_MS : Hearth.busy ? BUSY_MS : IDLE_MS);
  }

  // Draw as soon as Gradio has placed the areas, not with the next answer.
  new MutationObserver((_, watcher) => {
    if (!document.querySelector("#h-strip")) return;
    watcher.disconnect();
    if (Hearth.state) Hearth.redraw();
  }).observe(document, { childList: true, subtree: true });

  // Poll sooner after a start, and let Esc count from now on.
  Hearth.soon = () => {
    Hearth.busy = true;
    timer = clearTimeout(timer) ?? setTimeout(look, SOON_MS);
  };
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("#speak-go, #paint-go, #machine-tune, #machine-test")) Hearth.soon();
  });

  // Esc closes an open list first.
  const closes = (element) => element.closest?.('input[aria-expanded="true"]');
  const openTab = (Hearth.tabInView = () => document.querySelector('button[role="tab"][aria-selected="true"]')?.dataset.tabId);
  document.addEventListener("keydown", (event) => {
    // Ignore repeated keys, keys of an input method, and keys under an open dialog.
    if (event.repeat || event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      // Gradio sends a field's text on blur.
      const field = document.activeElement;
      field?.blur?.();
      setTimeout(() => (Hearth.press(Hearth.buttons[openTab()]?.go), field?.focus?.({ preventScroll: true })), 60);
    } else if (event.key === "Escape" && Hearth.busy && !closes(event.target)) {
      Hearth.stop(openTab());
    }
  });

  document.addEventListener("click", (event) => {
    const act = event.target.closest?.("[data-h-act]")?.dataset.hAct;
    if (act === "light") {
      localStorage.setItem("hearth_light", document.body.classList.contains("dark") ? "light" : "dark");
      document.body.classList.toggle("dark");
    } else if (act === "language") {
      const codes = Object.keys(HearthLanguages), now = codes.findIndex((each) => HearthLanguages[each] === document.documentElement.lang);
      const next = codes[(now + 1) % codes.length];
      document.cookie = `hearth_language=${next}; path=/; max-age=31536000; samesite=lax`;
      location.reload();
    }
  });

  // Labels for screen readers on Gradio's accordions and our switches.
  Hearth.area("button.label-wrap", (fold) => {
    fold.setAttribute("aria-expanded", fold.classList.contains("open"));
    fold.querySelector(".icon")?.setAttribute("aria-hidden", "true");
  });
  Hearth.area('[data-h-act="light"]', (button) => {
    button.title = Hearth.t("light.label", "Switch between light and dark");
    button.setAttribute("aria-label", button.title);
  });

  Hearth.ask("hearth/words").catch(() => ({})).then((words) => {
    Hearth.words = words;
    look();
  });
})();
