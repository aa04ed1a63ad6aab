// Ask once whether to go on in the background, when Hearth's own window is closed while work goes on. The window's process calls it.
import { el, show, text } from "./elements.js";
import { ask, post } from "./hearth.js";
import { t } from "./words.js";

/** @param {"stay" | "background" | "quit"} deed */
const act = (deed) => post(`hearth/window/${deed}`);
let open = false;

export const askToLeave = async () => {
  if (open) return;
  open = true;
  const answer = await ask("hearth/window").catch(() => null);
  const question = answer?.text;
  if (!question) {
    open = false;
    return act(answer ? "quit" : "stay"); // the work has just ended, or nobody knows whether it has
  }
  const dialog = el(`<dialog class="h-dialog h-sure" role="alertdialog" aria-labelledby="h-leave"><p id="h-leave"></p><form method="dialog"><button class="h-chip" autofocus></button><button class="h-chip h-danger"></button><button class="h-chip h-go-on"></button></form></dialog>`);
  text(dialog.querySelector("p"), question);
  const [stay, quit, background] = dialog.querySelectorAll("button");
  text(stay, t("sure.no", "Cancel"));
  text(quit, t("leave.quit", "Quit"));
  text(background, t("leave.background", "Continue"));
  let left = false;
  quit.addEventListener("click", () => {
    left = true;
    act("quit");
  });
  background.addEventListener("click", () => {
    left = true;
    act("background");
  });
  dialog.addEventListener("close", () => {
    open = false;
    if (!left) act("stay");
  });
  show(dialog);
};
