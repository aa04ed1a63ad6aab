// Around the prompt: earlier ones by key, styles that are saved, and a list of prompts painted line by line.
import { behind, buildDescribing } from "./describe.js";
import { keepUsed, used } from "./drafts.js";
import { el, makeButton, onPage, show, text } from "./elements.js";
import { area, ask, call, live, post } from "./hearth.js";
import { rewriteAll, write } from "./rewrite.js";
import { sure } from "./sure.js";
import { t } from "./words.js";

const FIELD = "paint-prompt", LINES_MOST = 100, LETTERS_MOST = 4000, PLACE = "{prompt}";
const box = () => document.querySelector(`#${FIELD} textarea`);
const negative = () => document.querySelector("#paint-negative textarea, #paint-negative input");

// Earlier prompts, as a shell has them: what is being typed comes back below the newest.
let at = 0, typed = "";
onPage("click", ({ target }) => {
  const words = target.closest?.("#paint-go, #h-prompts .h-lines") && box()?.value.trim();
  if (!words || words.length > LETTERS_MOST) return;
  at = 0;
  if (used()[0] !== words) keepUsed([words, ...used().filter((each) => each !== words)]);
}, true);
onPage("input", ({ target }) => target === box() && target.value !== used()[at - 1] && (at = 0));
onPage("keydown", (event) => {
  const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (!by || event.target !== box() || !(event.ctrlKey || event.altKey) || event.metaKey || event.isComposing) return;
  event.preventDefault();
  const all = used(), to = Math.min(all.length, Math.max(0, at + by));
  if (to === at) return;
  if (!at) typed = box().value;
  write(FIELD, to ? all[to - 1] : typed);
  at = to;
  const line = document.querySelector("#h-prompts .h-heard");
  if (line) text(line, to ? t("prompts.earlier", "Earlier prompt {n} of {total}", { n: to, total: all.length }) : t("prompts.own", "What you were typing"));
});

let /** @type {StyleView[] | null} */ styles = null, counted = 0;
/** @param {string} name @param {Partial<StyleView>} value */
const act = (name, value) => post(`hearth/styles/${name}`, value);
const load = async () => ((styles = (await ask("hearth/styles")).styles), draw());

// The prompt in a style's text, and what the style does not want added to what the prompt does not. A list of prompts may have it around each.
/** @param {StyleView} style */
function apply({ name, prompt, negative: unwanted }) {
  const words = box().value.trim(), all = lines(), now = negative()?.value.trim() ?? "";
  const around = (/** @type {string} */ each) => (prompt.includes(PLACE) ? prompt.replaceAll(PLACE, () => each) : behind(each, prompt));
  const without = unwanted && !now.includes(unwanted) ? behind(now, unwanted) : now;
  const note = rewriteAll({ [FIELD]: around(words), ...(negative() && without !== now ? { "paint-negative": without } : {}) }, t("styles.used", "The style “{name}” was put around your prompt.", { name }));
  if (all.length < 2 || all.length > LINES_MOST) return;
  const each = makeButton(t("styles.each", "Around each of the {n} {n:line|lines} instead", { n: all.length }), () => (write(FIELD, all.map(around).join("\n")), each.remove()), "h-chip");
  note.lastElementChild.before(each, " ");
}

/** @param {HTMLFormElement} form @param {HTMLElement} said */
async function keep(form, said) {
  const [name, prompt, unwanted] = [...form.querySelectorAll("input, textarea")].map((each) => each.value);
  const answer = await act("keep", { name, prompt, negative: unwanted }), { trouble = "" } = await answer.json();
  text(said, trouble);
  said.hidden = !trouble;
  if (!trouble) await load();
  return !trouble;
}

// Styles are written and removed in a dialog: a name, a text, what is not wanted.
function edit() {
  const dialog = el(`<dialog class="h-dialog h-styles" aria-labelledby="h-styles-title"><h2 id="h-styles-title"></h2><p class="h-soft"></p><ul></ul>
    <form class="h-style"><label><span></span><input class="h-field" maxlength="60" required></label><label><span></span><textarea class="h-field" rows="3" maxlength="4000"></textarea></label><label><span></span><textarea class="h-field" rows="2" maxlength="4000"></textarea></label>
    <p class="h-trouble" role="alert" hidden></p><p class="h-chips"><button class="h-chip h-go-on"></button><button type="button" class="h-chip"></button></p></form></dialog>`);
  const form = dialog.querySelector("form"), [name, prompt, unwanted] = form.querySelectorAll("input, textarea"), [save, close] = form.querySelectorAll("button");
  const rows = () => dialog.querySelector("ul").replaceChildren(...(styles ?? []).map((each) => {
    const row = el(`<li><button type="button" class="h-chip"></button> <button type="button" class="h-chip"></button></li>`), [change, away] = row.children;
    text(change, each.name);
    change.addEventListener("click", () => ([name.value, prompt.value, unwanted.value] = [each.name, each.prompt, each.negative], prompt.focus()));
    text(away, t("force.remove", "Remove"));
    away.setAttribute("aria-label", t("styles.remove", "Remove the style {name}", { name: each.name }));
    away.addEventListener("click", async () => {
      if (!(await sure(t("styles.sure", "Remove the style “{name}”?", { name: each.name }), t("force.remove", "Remove")))) return;
      await act("remove", { name: each.name });
      await load();
      rows();
    });
    return row;
  }));
  text(dialog.querySelector("h2"), t("styles.title", "Styles"));
  text(dialog.querySelector("h2 + p"), t("styles.how", "{place} stands for your prompt; a text without it follows the prompt.", { place: PLACE }));
  for (const [i, label] of [t("styles.name", "Name"), t("styles.text", "Text"), t("styles.unwanted", "Not wanted")].entries()) text(form.querySelectorAll("label span")[i], label);
  const words = box().value.trim();
  [prompt.value, unwanted.value] = [words.includes(PLACE) ? words : behind(PLACE, words), negative()?.value.trim() ?? ""];
  text(save, t("token.keep", "Save"));
  text(close, t("compare.close", "Close"));
  close.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const fields = [name, prompt, unwanted], sent = fields.map((each) => each.value);
    if (!(await keep(form, form.querySelector(".h-trouble")))) return;
    if (fields.every((each, i) => each.value === sent[i])) for (const each of fields) each.value = ""; // else the next one is being typed
    rows();
  });
  rows();
  show(dialog);
  name.focus();
}

const lines = () => (box()?.value ?? "").split("\n").map((/** @type {string} */ each) => each.trim()).filter(Boolean);

function draw() {
  const row = document.querySelector("#h-prompts");
  if (!row || !box()) return;
  if (!row.firstElementChild) {
    row.innerHTML = `<select class="h-field"></select><button type="button" class="h-chip h-lines"></button><span class="h-soft h-together"></span><span class="h-heard" role="status"></span>`;
    const select = row.querySelector("select");
    buildDescribing(row);
    select.setAttribute("aria-label", t("styles.title", "Styles"));
    select.addEventListener("change", () => {
      const chosen = (styles ?? [])[Number(select.value) - 1];
      select.value = "0";
      if (chosen) apply(chosen);
      else edit();
    });
    row.querySelector(".h-lines").addEventListener("click", async () => {
      const many = lines().length;
      if (many > 8 && !(await sure(t("prompts.sure", "Paint {n} {n:picture|pictures}, one for each line?", { n: many }), t("prompts.go", "Paint them"), "h-go-on"))) return;
      call("paint.lines");
    });
  }
  const names = JSON.stringify(styles), select = row.querySelector("select"), many = lines().length;
  if (select.dataset.drawn !== names) {
    select.dataset.drawn = names;
    select.replaceChildren(new Option(t("styles.title", "Styles"), "0"), ...(styles ?? []).map(({ name }, i) => new Option(name, String(i + 1))), new Option(t("styles.edit", "Save and change styles…"), "-1"));
  }
  if (many !== counted && (many > 1 || counted > 1)) call("paint.forecast"); // how long all of them take
  counted = many;
  const offer = row.querySelector(".h-lines");
  offer.hidden = many < 2 || many > LINES_MOST;
  text(offer, t("prompts.lines", "Paint each of the {n} {n:line|lines} as its own picture", { n: many }));
  text(row.querySelector(".h-together"), offer.hidden ? "" : t("prompts.together", "Paint reads them all as one picture."));
}
area("#h-prompts", (element) => {
  element.hidden = !live.state.charts; // guests have neither
  if (element.hidden) return;
  if (!styles) {
    styles = [];
    load().catch(() => (styles = null));
  }
  draw();
});
onPage("input", ({ target }) => target === box() && live.state?.charts && draw());
