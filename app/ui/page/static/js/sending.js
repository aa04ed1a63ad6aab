// A press of Paint while its pictures are read and sent, which takes a phone seconds: it is told at once, and another press is kept.
import { onPage } from "./elements.js";
import { guide, reference } from "./guide.js";
import { live, press } from "./hearth.js";
import { frameSettings, start, takeStart } from "./picture.js";
import { startReading } from "./sketch.js";
import { inForce } from "./told.js";

let sending = false, again = false;
const tell = () => inForce("paint", "sending", sending && { again });

/**
 * A press has begun: it waits for the pictures that were chosen and are still being read, is given up with the first that does not come, and sends each
 * as it is now or once it comes, whatever becomes of it meanwhile.
 * @returns {Promise<[Record<string, any>, ...any[]]>} what the frame sets, and the files of the start, the guide and the reference
 */
export async function sendBegins() {
  sending = [start, guide, reference].some((each) => each.now) || [startReading, guide.reading, reference.reading].some((each) => each.name);
  tell();
  const [framed, sendStart, sendGuide, sendReference] = await Promise.all([
    onceRead(startReading, frameSettings), onceRead(startReading, takeStart), onceRead(guide.reading, guide.take), onceRead(reference.reading, reference.take),
  ]);
  return [framed, await sendStart(), await sendGuide(), await sendReference()];
}

/** @template T @param {import("./reading.js").Reading} reading @param {() => T} take */
async function onceRead(reading, take) {
  if ((await reading.done) !== "given up") return take();
  again = false;
  throw new Error("the picture was given up"); // so that nothing starts without it
}

/** The press has been answered, or cannot be sent; the one that came meanwhile follows. */
export function sendEnds() {
  const next = again;
  sending = again = false;
  tell();
  if (next) press("paint-go");
}

// Gradio drops a press before the last one's answer. The second half of a double click is none of its own.
onPage("click", (event) => {
  if (!sending || live.away || !event.target.closest?.("button#paint-go")) return;
  event.stopImmediatePropagation();
  again ||= event.detail < 2;
  tell();
}, true);
