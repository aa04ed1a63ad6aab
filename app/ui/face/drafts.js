// What is being written is kept while it is typed, and put back when the page is loaded anew, also after a restart.
(() => {
  const FIELDS = ["speak-text", "paint-prompt", "paint-negative"];
  const WAIT_MS = 500;
  const written = new Map(), seen = new Set();
  let timer = 0, kept = null, asked = false, mine = false;

  function send() {
    clearTimeout(timer);
    if (!written.size || !mine) return;
    const body = JSON.stringify(Object.fromEntries(written));
    written.clear();
    // keepalive: also while the page is being left.
    fetch("hearth/drafts", { method: "POST", credentials: "same-origin", keepalive: body.length < 60_000, headers: { "Content-Type": "application/json" }, body }).catch(() => {});
  }

  document.addEventListener("input", (event) => {
    const id = FIELDS.find((each) => event.target.closest?.(`#${each}`));
    if (!id) return;
    seen.add(id); // From now on what is typed counts, not what was kept.
    written.set(id, event.target.value);
    clearTimeout(timer);
    timer = setTimeout(send, WAIT_MS);
  });
  addEventListener("pagehide", send);

  // A visitor's are not kept; visitors have no charts.
  Hearth.area("#h-strip", (_, { charts }) => {
    if (asked) return;
    [asked, mine] = [true, Boolean(charts)];
    if (mine) Hearth.ask("hearth/drafts").then((drafts) => (kept = drafts)).catch(() => (kept = {}));
  });
  // A tab that was never opened is not on the page yet.
  for (const id of FIELDS) {
    Hearth.area(`#${id}`, (element) => {
      const field = element.querySelector("textarea, input");
      if (!kept || !field || seen.has(id)) return;
      seen.add(id);
      if (kept[id] && field.value !== kept[id]) Hearth.put(id, kept[id]);
    });
  }
})();
