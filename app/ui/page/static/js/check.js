// Check a script or prompt on the server while it is typed, for the chosen model, and draw the answer.
(() => {
  const WAIT_MS = 250;

  // `unwanted`: the field of the negative prompt, which changes how a prompt is read.
  Hearth.checked = (id, kind, draw, unwanted = "") => {
    let asked = null, model, timer = 0, turn = 0; // undefined model: the one in the settings
    const typed = (field) => document.querySelector(`#${field} textarea, #${field} input`)?.value;
    function look() {
      const text = typed(id), negative = (unwanted && typed(unwanted)) || "", words = JSON.stringify([text, negative]);
      if (text == null || words === asked) return;
      asked = words;
      const mine = ++turn;
      Hearth.post("hearth/check", { kind, text, model, negative })
        .then((answer) => (answer.ok ? answer.json() : Promise.reject()))
        .then((view) => mine === turn && (draw(view), Hearth.underline(id, text, view.marks)))
        .catch(() => mine === turn && (asked = null));
    }
    document.addEventListener("input", (event) => {
      if (![id, unwanted].some((field) => field && event.target.closest?.(`#${field}`))) return;
      clearTimeout(timer);
      timer = setTimeout(look, WAIT_MS);
    });
    // A model downloaded on another tab may change the answer.
    document.addEventListener("click", (event) => event.target.closest?.('button[role="tab"]') && again(model));
    const again = (chosen) => ([model, asked] = [chosen, null], look());
    return { look, again, anew: () => again(model) };
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
