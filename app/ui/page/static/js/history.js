// The browser's Back: it closes the dialog that is open, or opens the tab before. Each tab and each open dialog has a place in the browser's history.

/** @returns {{ tab?: string, open?: number }} the tab, and how many dialogs are open */
const here = () => history.state ?? {};

let /** @type {HTMLDialogElement[]} */ dialogs = [];
let leaving = false; // the places of closed dialogs: the browser is there a little later, and meanwhile `here` is an older place
const /** @type {(() => unknown)[]} */ meanwhile = [];

// As many places as dialogs are open.
const agree = () => {
  dialogs = dialogs.filter((each) => each.open);
  let places = here().open ?? 0;
  if (leaving || places === dialogs.length) return;
  leaving = places > dialogs.length;
  if (leaving) history.go(dialogs.length - places);
  while (places < dialogs.length) history.pushState({ ...here(), open: ++places }, "");
};

/** Give a dialog its place while it is open. @param {HTMLDialogElement} dialog */
export const backCloses = (dialog) => {
  dialogs.push(dialog);
  dialog.addEventListener("close", agree, { once: true });
  agree();
};

/** Give the tab that is opened its place after the one before. @param {string} from @param {string} to */
export const backReturns = (from, to) => {
  agree();
  if (leaving) return void meanwhile.push(() => backReturns(from, to));
  if (here().tab === to) return;
  if (!here().tab) history.replaceState({ ...here(), tab: from }, "");
  history.pushState({ tab: to }, "");
};

/** Open the tab of the place to which somebody has gone. @param {(tab: string) => unknown} open */
export const onReturn = (open) => {
  window.addEventListener("popstate", () => {
    if (leaving) {
      leaving = false;
      meanwhile.splice(0).forEach((run) => run());
    } else {
      dialogs.slice(here().open ?? 0).reverse().forEach((each) => each.close());
      if (here().tab) open(here().tab ?? "");
    }
    agree();
  });
  agree(); // a page that was loaded anew has the place of a dialog that was open
};
