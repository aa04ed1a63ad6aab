// The first of the page's scripts, which brings the others; and what Gradio's events and the window's process call, in the page's one global.
import { answer, call, live, press, redraw, soon } from "./hearth.js";
import "./cures.js";
import "./drop.js";
import { before, guideBy, likeIt, reused, reusing, startFrom } from "./force.js";
import "./gradio.js";
import { modelChosen } from "./greeting.js";
import "./help.js";
import { askToLeave } from "./leave.js";
import { lorasFor } from "./loras.js";
import { copyReport, keepLooking, lookAt } from "./machine.js";
import "./machines.js";
import "./microphone.js";
import "./notify.js";
import { paintedBy } from "./paint.js";
import "./pause.js";
import { frameSettings } from "./picture.js";
import "./queue.js";
import "./prompts.js";
import { prompts } from "./samples.js";
import "./share.js";
import "./shelf.js";
import { sendBegins, sendEnds } from "./sending.js";
import { spokenAt, spokenBy } from "./speak.js";
import { kept, keptClip, stay } from "./stay.js";
import "./strip.js";
import { confirmPreset, confirmVoice } from "./sure.js";
import { openTab } from "./tabs.js";
import { inForce } from "./told.js";
import "./tuning.js";
import "./disk.js";
import "./upkeep.js";
import "./voices.js";
import { t } from "./words.js";

window.Hearth = {
  answer, before, confirmPreset, confirmVoice, copyReport, frameSettings, inForce, keepLooking, kept, keptClip, lookAt, lorasFor, modelChosen, paintedBy, reused, reusing, sendBegins, sendEnds, soon, spokenAt, spokenBy, stay,
  askToLeave,
  call, guideBy, likeIt, live, openTab, press, prompts, redraw, startFrom, t, // for whoever looks from outside, as the tests
};
