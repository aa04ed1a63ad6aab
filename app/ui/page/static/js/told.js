// What Gradio's events and the scripts tell of what is in force for the next start. force.js draws it, stay.js keeps it over a reload.
import { live, redraw } from "./hearth.js";

/** @type {Record<StartTab, Record<string, any>>} */
export const told = { speak: {}, paint: {} };

/** @param {StartTab} tab @param {string} what @param {unknown} value */
export const inForce = (tab, what, value) => {
  told[tab][what] = value;
  if (live.state) redraw();
};
