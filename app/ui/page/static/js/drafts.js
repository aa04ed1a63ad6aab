// Save drafts while they are typed and restore them when the page loads; the owner's also survive a restart.
(() => {
  const FIELDS = ["speak-text", "paint-prompt", "paint-negative"];
  const WAIT_MS = 500, OF_GUESTS = "hearth_drafts";
  const known = new Map(); // field -> text saved last
  let timer = 0, kept = null, asked = false, mine = false;

  const field = (id) => document.querySelector(`#${id} textarea, #${id} input`);
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(send, WAIT_MS);
  };

  function send() {
    timer = clearTimeout(timer);
    if (!kept) return; // not known yet whose drafts these are
    const fresh = FIELDS.filter((id) => known.has(id) && field(id) && field(id).value !== known.get(id));
    if (!fresh.length) return;
    for (const id of fresh) known.set(id, field(id).value);
    const texts = Object.fromEntries(fresh.map((id) => [id, known.get(id)]));
    if (!mine) return sessionStorage.setItem(OF_GUESTS, JSON.stringify(Object.assign(kept, texts)));
    // keepalive: also while the page unloads. Send again what did not arrive.
    const again = () => fresh.forEach((id) => known.set(id, null));
    Hearth.post("hearth/drafts", texts, { keepalive: JSON.stringify(texts).length < 60_000 }).then((answer) => answer.ok || again(), again);
  }

  document.addEventListener("input", (event) => {
    const id = FIELDS.find((each) => event.target.closest?.(`#${each}`));
    if (!id) return;
    if (!known.has(id)) known.set(id, null); // Typed text wins over the saved draft.
    later();
  });
  addEventListener("pagehide", send);

  // Only the owner's state has charts; guests' drafts stay in this browser window.
  Hearth.area("#h-strip", (_, { charts }) => {
    if (asked) return;
    [asked, mine] = [true, Boolean(charts)];
    if (mine) Hearth.ask("hearth/drafts").then((drafts) => (kept = drafts)).catch(() => (kept = {}));
    else kept = JSON.parse(sessionStorage.getItem(OF_GUESTS) ?? "{}");
  });
  // Fields of tabs never opened are not on the page yet. A value set meanwhile, as by "Reuse settings", wins over the draft.
  for (const id of FIELDS) {
    Hearth.area(`#${id}`, () => {
      if (!kept || !field(id)) return;
      if (!known.has(id)) {
        known.set(id, kept[id] ?? "");
        if (kept[id] && !field(id).value) return Hearth.put(id, kept[id]);
      }
      if (field(id).value !== known.get(id) && !timer) later(); // runs more often than it waits
    });
  }
})();
