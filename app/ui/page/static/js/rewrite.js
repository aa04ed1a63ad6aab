// Replace what a person wrote so that it comes back: by Ctrl Z, by Undo in a note, and as "Earlier text" beside the samples.
(() => {
  const { t, el, text } = Hearth;
  const LONG = 20_000; // characters; as if typed, more take the browser seconds
  const TABS = { speak: ["speak-text"], paint: ["paint-prompt", "paint-negative"] };
  const copied = new Map(); // field -> words that a sample or an earlier creation put there: they are not lost
  const reused = {}; // tab -> its words from before an earlier creation's settings came
  let rewriting = false;

  const box = (id) => document.querySelector(`#${id} textarea, #${id} input`);
  const tabOf = (id) => Object.keys(TABS).find((tab) => TABS[tab].includes(id));
  const note = (tab) => document.querySelector(`#${TABS[tab][0]} + .h-rewritten`);
  const read = (tab) => Object.fromEntries(TABS[tab].filter(box).map((id) => [id, box(id).value]));

  function put(id, words) {
    const field = box(id);
    rewriting = true;
    field.focus({ preventScroll: true });
    field.select();
    const typed = words.length <= LONG && document.activeElement === field && document.execCommand(words ? "insertText" : "delete", false, words);
    if (!typed || field.value !== words) Hearth.put(id, words);
    field.setSelectionRange(0, 0);
    field.scrollTop = 0;
    rewriting = false;
  }

  // Say what replaced these words, and offer them back; those that a person wrote are kept with the drafts.
  Hearth.offerBack = (before, said) => {
    const tab = tabOf(Object.keys(before)[0]);
    Hearth.keepEarlier(Object.fromEntries(Object.entries(before).filter(([id, words]) => words.trim() && copied.get(id) !== words)));
    note(tab)?.remove();
    const told = el(`<p class="h-soft h-rewritten" role="status"><span></span> <button type="button" class="h-chip"></button></p>`);
    document.querySelector(`#${TABS[tab][0]}`).after(told);
    text(told.firstElementChild, said);
    text(told.lastElementChild, t("shelf.undo", "Undo"));
    told.lastElementChild.addEventListener("click", () => {
      for (const [id, words] of Object.entries(before)) put(id, words);
      if (Hearth.told[tab].reused) Hearth.call(tab === "speak" ? "speak.back" : "paint.back");
      told.remove();
    });
    Hearth.redraw();
  };

  Hearth.rewrite = (id, words, said) => {
    const before = box(id).value;
    put(id, words);
    Hearth.offerBack({ [id]: before }, said);
  };

  Hearth.useSample = (id, words, name) => {
    const before = box(id).value, pressed = document.activeElement;
    put(id, words);
    pressed.focus({ preventScroll: true });
    if (before.trim() && before !== words) Hearth.offerBack({ [id]: before }, t("rewritten.sample", "The sample \u201c{name}\u201d replaced your text.", { name }));
    copied.set(id, words);
  };

  // An earlier creation's settings come, and have come: Gradio fills its fields a moment after it says so.
  Hearth.rememberWords = (tab) => (reused[tab] = Object.fromEntries(TABS[tab].filter(box).map((id) => [id, box(id).value || Hearth.waitingDraft(id)])));
  Hearth.offerWords = async (tab) => {
    const before = reused[tab] ?? {}, now = () => Object.keys(before).filter((id) => box(id).value !== before[id]);
    delete reused[tab];
    for (let tries = 0; tries < 20 && !now().length; tries++) await new Promise((go) => setTimeout(go, 50));
    const changed = now().map((id) => [id, before[id]]);
    if (changed.some(([, words]) => words.trim())) Hearth.offerBack(Object.fromEntries(changed), t("rewritten.reused", "The text of an earlier creation replaced yours."));
    for (const [id] of changed) copied.set(id, box(id).value);
  };

  for (const [tab, place] of [["speak", "#h-scripts"], ["paint", "#h-samples"]]) {
    Hearth.area(place, (element) => {
      const kept = Object.fromEntries(TABS[tab].filter(box).map((id) => [id, Hearth.earlier(id)]).filter(([id, words]) => words && words !== box(id).value));
      const chip = element.querySelector(".h-earlier");
      if (!Object.keys(kept).length || !element.firstElementChild) return chip?.remove();
      const made = chip ?? Hearth.button(t("rewritten.earlier", "Earlier text"), () => bringBack(tab), "h-chip h-earlier");
      made.title = Object.values(kept).join("\n").slice(0, 300);
      if (!chip) element.firstElementChild.append(made);
    });
  }

  function bringBack(tab) {
    const before = read(tab);
    for (const id of Object.keys(before)) if (Hearth.earlier(id)) put(id, Hearth.earlier(id));
    Hearth.offerBack(before, t("rewritten.back", "Your earlier text is back."));
  }

  // Whoever types on has kept it.
  document.addEventListener("input", ({ target }) => {
    const id = !rewriting && Object.values(TABS).flat().find((each) => target.closest?.(`#${each}`));
    if (id) note(tabOf(id))?.remove();
  });

  // Names become speakers' tags, from the last on, so that the places of the others hold.
  Hearth.giveVoices = (tags) => {
    let words = document.querySelector("#speak-text textarea").value;
    if (!tags.every(({ begin, end }) => /[:\uff1a]\s*$/.test(words.slice(begin, end)))) return; // it was typed on; the next answer knows
    const names = new Map(tags.map(({ begin, end, speaker }) => [words.slice(begin, end).replace(/[:\uff1a]\s*$/, ""), speaker]));
    for (const { begin, end, speaker } of [...tags].reverse()) words = `${words.slice(0, begin)}[S${speaker}] ${words.slice(end)}`;
    const said = [...names].map(([name, speaker]) => t("rewritten.voice", "{name} speaks as [S{speaker}].", { name, speaker }));
    const narrated = words.slice(words.indexOf("[S")).split("\n").some((each) => each.trim() && !/^\s*\[S\d\]/.test(each));
    if (narrated) said.push(t("rewritten.narrated", "Lines without a name go to the one who spoke before."));
    Hearth.rewrite("speak-text", words, Hearth.sentences(said));
  };
})();
