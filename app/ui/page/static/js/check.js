// Check a script or prompt on the server while it is typed, for the chosen model, and draw the answer.
import { offerCure } from "./cures.js";
import { el, list, onPage } from "./elements.js";
import { post } from "./hearth.js";
import { underline } from "./underline.js";

const WAIT_MS = 250;

// `beside`: other fields that change how it is read, by what the server calls them.
/** @template {PromptView} V @param {string} id @param {Kind} kind @param {(view: V) => void} draw @param {{ negative?: string, cast?: string, says?: string }} beside */
export const checked = (id, kind, draw, beside = {}) => {
  let asked = "", /** @type {string | undefined} */ model, /** @type {number | undefined} */ speed, timer = 0, turn = 0; // undefined model: the one in the settings
  /** @param {string} field */
  const typed = (field) => document.querySelector(`#${field} textarea, #${field} input`)?.value;
  function look() {
    const text = typed(id), others = Object.fromEntries(Object.entries(beside).map(([name, field]) => [name, typed(field) || ""]));
    const { negative = "", cast = "", says = "" } = others, words = JSON.stringify([text, others]);
    if (text == null || words === asked) return;
    asked = words;
    const mine = ++turn;
    post("hearth/check", { kind, text, model, negative, cast, says, speed })
      .then((answer) => (answer.ok ? answer.json() : Promise.reject()))
      .then((view) => mine === turn && (draw(view), underline(id, text, view.marks)))
      .catch(() => mine === turn && (asked = ""));
  }
  const soon = () => (clearTimeout(timer), (timer = setTimeout(look, WAIT_MS)));
  onPage("input", (event) => {
    if ([id, ...Object.values(beside)].some((field) => event.target.closest?.(`#${field}`))) soon();
  });
  // A model downloaded on another tab may change the answer.
  onPage("click", (event) => event.target.closest?.('button[role="tab"]') && again(model));
  const again = (/** @type {string | undefined} */ chosen) => ([model, asked] = [chosen, ""], look());
  return { look, again, anew: () => again(model), at: (/** @type {number | undefined} */ chosen) => ([speed, asked] = [chosen, ""], soon()) };
};

// List the problems, one a line, each with its cure.
/** @param {Element} element @param {ProblemView[]} problems */
export const drawProblems = (element, problems) => {
  list(element, problems, (each) => each.text, (each) => {
    const line = el(`<li class="${each.kind}"><span></span></li>`);
    line.firstElementChild.textContent = each.text;
    return line;
  }, (line, each) => Object.assign(line.dataset, { cure: each.cure, captions: JSON.stringify(each.captions ?? []), tags: JSON.stringify(each.tags ?? []) }));
  element.querySelectorAll("li").forEach(offerCure);
};
