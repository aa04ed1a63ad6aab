// The library of LoRAs on Paint: search, what fits the model, what is in use and how strongly. The hidden field beside it holds what is in use.
import { el, list, makeButton, onPage, text } from "./elements.js";
import { area, ask, fill, post } from "./hearth.js";
import { told } from "./told.js";
import { decimal, t } from "./words.js";

const WAIT_MS = 180, READING_MS = 700, WEIGHTS = { min: -2, max: 2, step: 0.05 };
let /** @type {LorasView | null} */ page = null, words = "", model = "", timer = 0, turn = 0, seen = "";

/** @typedef {{ name: string, weight: number }} Used */

/** @param {string} value @returns {Used[]} */
export const readLoras = (value) => {
  try {
    return value ? JSON.parse(value) : [];
  } catch {
    return [];
  }
};
const used = () => readLoras(told.paint.loras);
/** @param {Used[]} rows */
const use = (rows) => {
  told.paint.loras = rows.length ? JSON.stringify(rows) : ""; // Gradio tells of it a moment later
  fill("paint-chosen", told.paint.loras);
  draw();
};
const asked = () => used().map(({ name }) => name).join("\n");

async function look() {
  clearTimeout(timer);
  const mine = ++turn;
  seen = `${model}\n${asked()}`;
  const answer = await ask(`hearth/loras?${new URLSearchParams({ words, model, chosen: asked() })}`);
  if (mine !== turn) return; // a later question's answer counts
  page = answer;
  draw();
  if (page.unread) later(READING_MS);
}
/** @param {number} wait */
const later = (wait) => {
  clearTimeout(timer);
  timer = setTimeout(look, wait);
};
/** @param {string} id */
export const lorasFor = (id) => {
  model = id;
  if (page) look();
};

/** @param {"folder" | "leave" | "show"} name */
async function act(name, value = "") {
  const answer = await post(`hearth/loras/${name}`, { value });
  const { trouble = "" } = await answer.json();
  const line = document.querySelector("#h-loras .h-trouble");
  line.hidden = !trouble;
  text(line, trouble);
  await look();
  return !trouble;
}

/** @param {HTMLElement} element */
function frame(element) {
  element.innerHTML = `<p class="h-soft h-none" role="status"></p><input type="search" class="h-field"><ul class="h-loras"></ul><p class="h-soft h-more"></p>
    <details><summary></summary><p class="h-soft"></p><ul class="h-list"></ul><form class="h-one"><input type="text" class="h-field" autocomplete="off" spellcheck="false"><button class="h-chip"></button></form><p class="h-chips"></p></details><p class="h-trouble" role="alert" hidden></p>`;
  const search = element.querySelector("input[type=search]");
  search.placeholder = t("lora.search", "Search by name, trigger word or tag");
  search.setAttribute("aria-label", search.placeholder);
  search.addEventListener("input", () => ((words = search.value), later(WAIT_MS)));
  text(element.querySelector("summary"), t("lora.folders", "Folders"));
  const form = element.querySelector("form"), path = form.querySelector("input");
  path.placeholder = t("lora.path", "Full path"); // the whole label is too long for a phone
  path.setAttribute("aria-label", t("lora.folder", "Full path of another folder with LoRAs"));
  text(form.querySelector("button"), t("models.add", "Add"));
  form.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const folder = path.value;
    if ((await act("folder", folder)) && path.value === folder) path.value = "";
  });
  element.querySelector(".h-chips").append(makeButton(t("lora.show", "Open Hearth's folder"), () => act("show"), "h-chip"));
}

function draw() {
  const element = document.querySelector("#h-loras");
  if (!element || !page) return;
  if (!element.firstElementChild) frame(element);
  const none = !page.loras.length && !words;
  text(element.querySelector(".h-none"), none ? t("lora.none-yet", "A LoRA teaches a model a style or a person; an embedding is a word of its own. Add the files below: each is offered with the models that it was made for.") : page.loras.length ? "" : t("lora.not-found", "No LoRA matches."));
  element.querySelector("input[type=search]").hidden = none;
  list(element.querySelector("ul.h-loras"), page.loras, ({ name }) => name, make, update);
  const more = page.more && t("lora.more", "{n} more. Search to find them.", { n: page.more }), unread = page.unread && t("lora.reading", "{n} still to be read.", { n: page.unread });
  text(element.querySelector(".h-more"), [more, unread].filter(Boolean).join(" "));
  text(element.querySelector("details p"), t("lora.where", "Files are in {folder}.", { folder: page.folder }));
  list(element.querySelector(".h-list"), page.folders, (path) => path, (path) => {
    const line = el(`<li class="h-soft"><span></span> </li>`);
    text(line.firstElementChild, path);
    line.append(makeButton(t("models.forget", "Remove from list"), () => act("leave", path), "h-chip"));
    return line;
  });
}

/** @param {LoraView} lora */
function make({ name }) {
  const row = el(`<li><img alt="" loading="lazy" hidden><div><p class="h-lora-head"><label><input type="checkbox"> <b></b></label> <span class="h-badge"></span></p><p class="h-soft h-misfit" hidden></p><p class="h-soft h-places" hidden></p>
    <p class="h-lora-weight" hidden><input type="range"><output></output></p><p class="h-chips h-triggers"></p></div></li>`);
  const [box, range] = row.querySelectorAll("input");
  box.addEventListener("change", () => {
    const rest = used().filter((each) => each.name !== name), weight = page?.loras.find((each) => each.name === name)?.weight ?? 1;
    use(box.checked ? [...rest, { name, weight }] : rest);
  });
  Object.assign(range, WEIGHTS);
  range.setAttribute("aria-label", t("lora.weight", "Weight of {name}", { name }));
  range.addEventListener("input", () => use(used().map((each) => (each.name === name ? { name, weight: Number(range.value) } : each))));
  return row;
}

/** @param {HTMLElement} row @param {LoraView} each */
function update(row, each) {
  const [box, range] = row.querySelectorAll("input"), now = used().find(({ name }) => name === each.name), isWord = each.kind === "embedding";
  row.classList.toggle("h-unfit", Boolean(each.misfit));
  text(row.querySelector("b"), each.name);
  row.querySelector("label").title = each.title;
  box.checked = Boolean(now);
  box.disabled = Boolean(each.misfit) && !now;
  box.hidden = isWord; // it is in use by its word
  const badge = row.querySelector(".h-badge");
  text(badge, [each.family, isWord ? t("lora.embedding", "embedding") : ""].filter(Boolean).join(" · "));
  badge.hidden = !badge.textContent;
  const why = row.querySelector(".h-misfit");
  why.hidden = !each.misfit;
  text(why, each.misfit);
  if (each.misfit) box.setAttribute("aria-description", each.misfit);
  else box.removeAttribute("aria-description");
  const places = row.querySelector(".h-places");
  places.hidden = !each.places;
  text(places, each.places);
  row.querySelector(".h-lora-weight").hidden = !now;
  if (now && range !== document.activeElement) range.value = String(now.weight);
  text(row.querySelector("output"), now ? decimal(now.weight, 2) : "");
  const image = row.querySelector("img");
  image.hidden = !each.picture;
  if (each.picture && image.getAttribute("src") !== each.picture) image.src = each.picture;
  const offered = each.misfit ? [] : isWord ? [each.word] : now ? [...new Set([...each.triggers, ...(each.triggers.length ? [] : each.tags.slice(0, 6))])] : each.triggers.slice(0, 3);
  list(row.querySelector(".h-triggers"), offered, (word) => word, (word) => {
    const chip = makeButton(word, () => write(word), "h-chip");
    chip.setAttribute("aria-label", t("lora.write", "Put {word} into the prompt", { word }));
    return chip;
  });
}

// Put a word at the end of the prompt, once.
/** @param {string} word */
function write(word) {
  const prompt = /** @type {HTMLTextAreaElement} */ (document.querySelector("#paint-prompt textarea")), before = prompt.value.trimEnd();
  if (before.toLowerCase().split(/[,\n]/).some((part) => part.trim() === word.toLowerCase())) return;
  fill("paint-prompt", before ? `${before}${before.endsWith(",") ? "" : ","} ${word}` : word);
}

// The library is looked at once its card is open, and again when what is in use or the model changes.
area("#h-loras", (element) => {
  if (!element.offsetParent) return;
  if (seen !== `${model}\n${asked()}` || !page) look();
});
onPage("focusin", ({ target }) => {
  if (page && target.closest?.("#paint-loras button.label-wrap")) look(); // opened anew
});
