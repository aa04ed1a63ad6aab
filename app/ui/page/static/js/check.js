// Check a script or prompt on the server while it is typed, for the chosen model, and draw the answer.
(() => {
  const WAIT_MS = 250;

  Hearth.checked = (id, kind, draw) => {
    let asked = null, model, timer = 0, turn = 0; // undefined model: the one in the settings
    const now = () => document.querySelector(`#${id} textarea`)?.value;
    function look() {
      const text = now();
      if (text == null || text === asked) return;
      asked = text;
      const mine = ++turn;
      Hearth.post("hearth/check", { kind, text, model })
        .then((answer) => (answer.ok ? answer.json() : Promise.reject()))
        .then((view) => mine === turn && (draw(view), Hearth.underline(id, text, view.marks)))
        .catch(() => mine === turn && (asked = null));
    }
    document.addEventListener("input", (event) => {
      if (!event.target.closest?.(`#${id}`)) return;
      clearTimeout(timer);
      timer = setTimeout(look, WAIT_MS);
    });
    // A model downloaded on another tab may change the answer.
    document.addEventListener("click", (event) => event.target.closest?.('button[role="tab"]') && again(model));
    const again = (chosen) => ([model, asked] = [chosen, null], look());
    return { look, again };
  };

  // List the problems, one a line, each with its cure.
  Hearth.problems = (element, problems) => {
    Hearth.list(element, problems, (each) => each.text, (each) => {
      const line = Hearth.el(`<li class="${each.kind}"><span></span></li>`);
      line.firstElementChild.textContent = each.text;
      return line;
    }, (line, each) => Object.assign(line.dataset, { cure: each.cure, captions: JSON.stringify(each.captions ?? []), tags: JSON.stringify(each.tags ?? []) }));
    element.querySelectorAll("li").forEach(Hearth.cure);
  };
})();
