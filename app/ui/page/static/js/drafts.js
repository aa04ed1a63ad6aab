// What is being written is kept, whoever wrote it, and put back when the page is loaded anew; the owner's also after a restart.
(() => {
  const FIELDS = ["speak-text", "paint-prompt", "paint-negative"];
  const WAIT_MS = 500, OF_GUESTS = "hearth_drafts";
  const known = new Map(); // what of a field is kept already
  let timer = 0, kept = null, asked = false, mine = false;

  const field = (id) => document.querySelector(`#${id} textarea, #${id} input`);
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(send, WAIT_MS);
  };

  function send() {
    timer = clearTimeout(timer);
    if (!kept) return; // whose it is is not known yet
    const fresh = FIELDS.filter((id) => known.has(id) && field(id) && field(id).value !== known.get(id));
    if (!fresh.length) return;
    for (const id of fresh) known.set(id, field(id).value);
    const texts = Object.fromEntries(fresh.map((id) => [id, known.get(id)]));
    if (!mine) return sessionStorage.setItem(OF_GUESTS, JSON.stringify(Object.assign(kept, texts)));
    const body = JSON.stringify(texts);
    // keepalive: also while the page is being left. What did not arrive is sent again.
    const again = () => fresh.forEach((id) => known.set(id, null));
    fetch("hearth/drafts", { method: "POST", credentials: "same-origin", keepalive: body.length < 60_000, headers: { "Content-Type": "application/json" }, body }).then((answer) => answer.ok || again(), again);
  }

  document.addEventListener("input", (event) => {
    const id = FIELDS.find((each) => event.target.closest?.(`#${each}`));
    if (!id) return;
    if (!known.has(id)) known.set(id, null); // What is typed counts, not what was kept.
    later();
  });
  addEventListener("pagehide", send);

  // Visitors have no charts; theirs stay in this window of the browser.
  Hearth.area("#h-strip", (_, { charts }) => {
    if (asked) return;
    [asked, mine] = [true, Boolean(charts)];
    if (mine) Hearth.ask("hearth/drafts").then((drafts) => (kept = drafts)).catch(() => (kept = {}));
    else kept = JSON.parse(sessionStorage.getItem(OF_GUESTS) ?? "{}");
  });
  // A tab that was never open is not on the page yet. What a field was given meanwhile, as by "Reuse", counts more than what was kept.
  for (const id of FIELDS) {
    Hearth.area(`#${id}`, () => {
      if (!kept || !field(id)) return;
      if (!known.has(id)) {
        known.set(id, kept[id] ?? "");
        if (kept[id] && !field(id).value) return Hearth.put(id, kept[id]);
      }
      if (field(id).value !== known.get(id) && !timer) later(); // seen oftener than it waits
    });
  }
})();
