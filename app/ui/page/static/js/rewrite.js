// Rewrite a field as one step that can be taken back: by Ctrl Z, and by a button that says what was done.
(() => {
  const { t, el, text } = Hearth;
  const LONG = 20_000; // characters; as if typed, more take the browser seconds
  let rewriting = false;

  const line = (id) => document.querySelector(`#${id} + .h-rewritten`);

  function put(id, words) {
    const field = document.querySelector(`#${id} textarea`);
    rewriting = true;
    field.focus({ preventScroll: true });
    field.select();
    if (words.length > LONG || !document.execCommand("insertText", false, words)) Hearth.put(id, words);
    field.setSelectionRange(0, 0);
    field.scrollTop = 0;
    rewriting = false;
  }

  Hearth.rewrite = (id, words, said) => {
    const before = document.querySelector(`#${id} textarea`).value;
    put(id, words);
    line(id)?.remove();
    const told = el(`<p class="h-soft h-rewritten" role="status"><span></span> <button type="button" class="h-chip"></button></p>`);
    document.querySelector(`#${id}`).after(told);
    text(told.firstElementChild, said);
    text(told.lastElementChild, t("shelf.undo", "Undo"));
    told.lastElementChild.addEventListener("click", () => {
      put(id, before);
      told.remove();
    });
  };

  // Whoever types on has kept it.
  document.addEventListener("input", ({ target }) => {
    const id = !rewriting && target.closest?.("#speak-text")?.id;
    if (id) line(id)?.remove();
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
