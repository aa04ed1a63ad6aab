// A picture that comes to a place on Paint and is opened: told beside the button, given up by a press there, and what Paint waits for.
import { live, redraw } from "./hearth.js";
import { notOpened } from "./picture.js";
import { inForce, told } from "./told.js";
import { t } from "./words.js";

const /** @type {Set<Reading>} */ all = new Set();

export class Reading {
  turn = 0; // of pictures that are opened: one that takes long does not come over a later one
  giveUp = () => {}; // whoever waits for the picture that is read waits no longer
  done = /** @type {Promise<unknown>} */ (Promise.resolve()); // once the one that was chosen is there, or "given up"
  name = ""; // of the picture that is read now
  refused = ""; // why the last one did not come

  constructor() {
    all.add(this);
  }

  /** Whether a picture was opened or closed on this page, though it may not be here yet. */
  get began() {
    return this.turn > 0;
  }

  /**
   * @template T
   * @param {Blob | Promise<Blob | null>} given @param {string} name
   * @param {(picture: Blob) => Promise<T>} open throws what is no picture for this browser
   * @param {(picture: Blob, opened: T) => void} use
   */
  begin(given, name, open, use) {
    this.stop();
    const mine = this.turn, reads = this.read(given, name, open, use).finally(() => mine === this.turn && this.tell(""));
    this.done = Promise.race([reads.catch(() => {}), new Promise((done) => (this.giveUp = () => done("given up")))]);
    this.tell(name || t("force.a-picture", "a picture"));
    return reads;
  }

  /**
   * @template T
   * @param {Blob | Promise<Blob | null>} given @param {string} name @param {(picture: Blob) => Promise<T>} open @param {(picture: Blob, opened: T) => void} use
   */
  async read(given, name, open, use) {
    const mine = this.turn;
    let blob = null, opened;
    try {
      blob = await given;
      if (mine !== this.turn) return;
      if (!blob) return this.refuse(t("sketch.gone", "The picture {name} is no longer there. Restore it or choose another one.", { name }));
      opened = await open(blob);
    } catch {
      if (mine === this.turn) this.refuse(blob ? notOpened(blob, name) : t("share.silent", "Hearth did not respond; it may have been closed. Start it again, then try again."));
      return;
    }
    if (mine !== this.turn) return;
    this.refused = "";
    if (![...all].some((each) => each.refused === told.paint.refused)) inForce("paint", "refused", ""); // why another place has none is still told
    use(blob, opened);
  }

  /** The picture that was chosen is not to come; what was there before stays. */
  stop = () => {
    this.turn++;
    this.giveUp();
    this.done = Promise.resolve();
    this.tell("");
  };

  // A press that waits for the picture starts nothing without it.
  /** @param {string} why */
  refuse(why) {
    this.stop();
    inForce("paint", "refused", (this.refused = why));
  }

  /** @param {string} name */
  tell(name) {
    this.name = name;
    if (live.state) redraw();
  }
}
