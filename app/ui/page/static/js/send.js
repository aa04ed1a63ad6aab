// Send a result on by the sheet of the phone or the system, where the browser has one: only over https, or on this computer.
import { makeButton, text } from "./elements.js";
import { t } from "./words.js";

const canSend = () => Boolean(navigator.canShare?.({ files: [new File(["a"], "a.png", { type: "image/png" })] }));

/** @param {Response} answer */
const nameOf = (answer) => {
  const [, coded, plain] = (answer.headers.get("Content-Disposition") ?? "").match(/filename(?:\*=utf-8''([^;]+)|="([^"]+)")/i) ?? [];
  return coded ? decodeURIComponent(coded) : plain ?? "hearth";
};

// Save a file that takes a while to be made, or may be refused: a link could say neither. A refusal is returned.
/** @param {string} address */
export const fetchFile = async (address) => {
  const answer = await fetch(address, { credentials: "same-origin" });
  if (!answer.ok) return answer;
  const link = document.createElement("a"), url = URL.createObjectURL(await answer.blob());
  [link.href, link.download] = [url, nameOf(answer)];
  document.body.append(link); // one that is nowhere takes no click
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  return null;
};

// A button beside a link that downloads, or nothing. A file that takes long to come outlives the press: a second one sends it then.
/** @param {HTMLAnchorElement} link */
export const sendButton = (link) => {
  if (!canSend()) return [];
  let /** @type {File | null} */ file = null, from = "";
  const button = makeButton(t("send.button", "Send…"), async () => {
    const wanted = link.href; // another format may be chosen while the file comes
    if (from !== wanted) file = null;
    button.disabled = !file;
    try {
      if (!file) {
        const answer = await fetch(wanted, { credentials: "same-origin" });
        if (!answer.ok) throw new Error(String(answer.status));
        file = new File([await answer.blob()], nameOf(answer), { type: answer.headers.get("Content-Type") ?? "" });
        from = wanted;
      }
      await navigator.share({ files: [file] });
      text(button, t("send.button", "Send…"));
    } catch (/** @type {any} */ fault) {
      if (fault.name === "AbortError") return; // taken back
      text(button, fault.name === "NotAllowedError" && file ? t("send.ready", "Ready: send it now") : t("send.failed", "Could not be sent: download it"));
    } finally {
      button.disabled = false;
    }
  }, "h-chip");
  return [button];
};
