// Models of other programs: looked for once the owner asks, then listed, searched and used from where they lie.
import { el, list, makeButton, text } from "./elements.js";
import { ask } from "./hearth.js";
import { size, t } from "./words.js";

const AGAIN_MS = 700;
let open = "", words = "", timer = 0, turn = 0, again = false;

/** @typedef {(name: string, value?: string) => Promise<unknown>} Act */

/** @param {HTMLElement} element @param {Act} act */
export async function drawFound(element, act) {
  clearTimeout(timer);
  const mine = ++turn, found = await ask(`hearth/found?root=${encodeURIComponent(open)}&words=${encodeURIComponent(words)}`).catch(() => null);
  if (mine !== turn) return; // asked anew meanwhile
  if (found) {
    if (!element.firstElementChild) frame(element, act);
    draw(element, act, found);
    again = found.reading;
  }
  if (again && element.offsetParent) timer = setTimeout(() => drawFound(element, act), AGAIN_MS);
}

/** @param {HTMLElement} element @param {Act} act */
function frame(element, act) {
  element.innerHTML = `<h3></h3><p class="h-soft h-found-how"></p><ul class="h-found-tools h-chips"></ul>
    <div class="h-found-open" hidden><input type="search" class="h-field" autocomplete="off" spellcheck="false"><p class="h-chips h-found-all" hidden></p><ul class="h-list h-found-files"></ul><p class="h-soft h-found-more"></p></div><p class="h-chips h-found-does"></p>`;
  const search = element.querySelector("input");
  search.placeholder = t("found.search", "Search these models");
  search.setAttribute("aria-label", search.placeholder);
  search.addEventListener("input", () => {
    words = search.value;
    drawFound(element, act);
  });
  element.querySelector(".h-found-all").append(makeButton("", () => act("add-all", open).then(() => drawFound(element, act)), "h-chip"));
  element.querySelector(".h-found-does").append(makeButton("", () => act("look").then(() => drawFound(element, act)), "h-chip"));
}

/** @param {HTMLElement} element @param {Act} act @param {FoundView} found */
function draw(element, act, { allowed, looked, reading, tools, files, left, more }) {
  const nothing = t("found.nothing", "No other picture program was found in its usual place. A model can be added by its path below.");
  const offer = t("found.offer", "Hearth can use models of ComfyUI, AUTOMATIC1111, Forge, SD.Next, Stability Matrix, SwarmUI, Fooocus, InvokeAI and the Hugging Face cache from where they are. It looks only in their usual places and changes nothing there.");
  const listing = t("found.looking", "Looking …"), told = tools.length ? t("found.how", "Open a program to choose its models. They are used from where they are.") : nothing;
  text(element.querySelector("h3"), allowed ? t("found.title", "Found on this computer") : t("found.others", "Models of other programs"));
  text(element.querySelector(".h-found-how"), !allowed ? offer : !looked ? listing : told);
  text(element.querySelector(".h-found-does button"), allowed ? t("found.again", "Look again") : t("found.look", "Look on this computer"));
  element.querySelector(".h-found-does button").disabled = allowed && reading;
  list(element.querySelector(".h-found-tools"), tools, (tool) => tool.root, (tool) => {
    const line = el("<li></li>");
    const button = makeButton("", () => {
      open = open === tool.root ? "" : tool.root;
      words = element.querySelector("input").value = "";
      drawFound(element, act);
    }, "h-chip");
    button.title = tool.root;
    line.append(button);
    return line;
  }, (line, tool) => {
    text(line.firstElementChild, tool.words);
    line.firstElementChild.setAttribute("aria-expanded", String(open === tool.root));
  });
  const shown = tools.some((tool) => tool.root === open);
  element.querySelector(".h-found-open").hidden = !shown;
  element.querySelector(".h-found-all").hidden = left < 2 || reading;
  text(element.querySelector(".h-found-all button"), t("found.all", "Use all {left} that Hearth can use", { left }));
  list(element.querySelector(".h-found-files"), shown ? files : [], (file) => file.path, (file) => {
    const line = el(`<li class="h-found-file"><p><b></b> <span class="h-soft"></span></p><p class="h-soft h-found-why"></p></li>`);
    line.title = file.path;
    text(line.querySelector("b"), file.title);
    const use = makeButton("", () => act(line.dataset.here ? "forget" : "add", file.path).then(() => drawFound(element, act)), "h-chip");
    line.append(use);
    return line;
  }, (line, file) => {
    const use = line.querySelector("button");
    line.dataset.here = file.here ? "1" : "";
    text(line.querySelector("span"), [file.facts, file.bytes > 1 ? size(file.bytes) : ""].filter(Boolean).join(" · "));
    text(line.querySelector(".h-found-why"), file.trouble);
    use.hidden = !file.usable;
    text(use, file.here ? t("models.off-list", "Remove from list") : t("found.use", "Use"));
    use.setAttribute("aria-label", `${use.textContent}${t("word.colon", ": ")}${file.title}`);
  });
  text(element.querySelector(".h-found-more"), more ? t("found.more", "{more} more; search to find them.", { more }) : "");
}
