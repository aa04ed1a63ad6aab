// Save drafts while they are typed and restore them when the page loads: in each window what it held, in a new one what the owner typed last.
// With them the words that a sample or an earlier creation took the place of (rewrite.js).
(() => {
  const { t } = Hearth;
  const FIELDS = ["speak-text", "paint-prompt", "paint-negative"];
  const WAIT_MS = 500, OWN = "hearth_drafts"; // of this window, and all that a guest has
  const known = new Map(); // field -> text saved last
  let timer = 0, kept = null, asked = false, mine = false;

  const own = () => JSON.parse(sessionStorage.getItem(OWN) ?? "{}");
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
    // Send again what did not arrive.
    save(Object.fromEntries(fresh.map((id) => [id, known.get(id)])), () => fresh.forEach((id) => known.set(id, null)));
  }

  function save(texts, again = () => {}) {
    // keepalive: also while the page unloads.
    if (mine) Hearth.post("hearth/drafts", texts, { keepalive: JSON.stringify(texts).length < 60_000 }).then((answer) => answer.ok || again(), again);
    sessionStorage.setItem(OWN, JSON.stringify({ ...own(), ...texts })); // last: a script of megabytes may have no room here
  }

  Hearth.waitingDraft = (id) => (known.has(id) ? "" : kept?.[id] ?? ""); // of a field that was not filled yet
  Hearth.earlier = (id) => kept?.[`${id}-earlier`];
  Hearth.keepEarlier = (replaced) => {
    const texts = Object.fromEntries(Object.entries(replaced).map(([id, words]) => [`${id}-earlier`, words]));
    if (!Object.keys(texts).length) return;
    kept = { ...kept, ...texts };
    save(texts);
  };

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
    if (mine) Hearth.ask("hearth/drafts").catch(() => ({})).then((drafts) => (kept = { ...drafts, ...own() }));
    else kept = own();
  });
  // Fields of tabs never opened are not on the page yet. A value set meanwhile, as by "Reuse settings", wins over the draft.
  for (const id of FIELDS) {
    Hearth.area(`#${id}`, () => {
      if (!kept || !field(id)) return;
      if (!known.has(id)) {
        known.set(id, kept[id] ?? "");
        if (kept[id] && !field(id).value) return Hearth.put(id, kept[id]);
        if (kept[id] && field(id).value !== kept[id]) Hearth.offerBack({ [id]: kept[id] }, t("rewritten.reused", "The text of an earlier creation replaced yours."));
      }
      if (field(id).value !== known.get(id) && !timer) later(); // runs more often than it waits
    });
  }
})();
