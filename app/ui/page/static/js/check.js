// What is typed is looked at by the server while it is typed, for the model that is chosen; its answer is drawn.
(() => {
  const WAIT_MS = 250;

  Hearth.checked = (id, kind, draw) => {
    let asked = null, model, timer = 0, turn = 0; // no model: the one that the settings name
    const now = () => document.querySelector(`#${id} textarea`)?.value;
    function look() {
      const text = now();
      if (text == null || text === asked) return;
      asked = text;
      const mine = ++turn;
      Hearth.ask("hearth/check", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ kind, text, model }) })
        .then((view) => mine === turn && draw(view))
        .catch(() => mine === turn && (asked = null));
    }
    document.addEventListener("input", (event) => {
      if (!event.target.closest?.(`#${id}`)) return;
      clearTimeout(timer);
      timer = setTimeout(look, WAIT_MS);
    });
    // What came with a visit to another tab, a model that was got, may change the answer.
    document.addEventListener("click", (event) => event.target.closest?.('button[role="tab"]') && again(model));
    const again = (chosen) => ([model, asked] = [chosen, null], look());
    return { look, again };
  };

  // What stands in the way, a line each, with the button that cures it.
  Hearth.problems = (element, problems) => {
    Hearth.list(element, problems, (each) => each.text, (each) => {
      const line = Hearth.el(`<li class="${each.kind}"><span></span></li>`);
      line.firstElementChild.textContent = each.text;
      return line;
    }, (line, each) => Object.assign(line.dataset, { cure: each.cure, captions: JSON.stringify(each.captions ?? []) }));
    element.querySelectorAll("li").forEach(Hearth.cure);
  };
})();
