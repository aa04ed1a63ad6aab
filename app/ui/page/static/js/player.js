// An audio player whose waveform is its seek bar. One plays at a time.
// Rounded as lengths are told elsewhere.
import { el, text, wave } from "./elements.js";
import { t, time } from "./words.js";

/** @param {number} exact */
const clock = (exact, seconds = Math.round(exact)) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
const FLAT = Array(96).fill(0);

// `pace`: the speed at which it sounds, its pitch as it is, where the file itself has the voice's own.
/** @param {{ url?: string, peaks?: number[], seconds?: number, label: string, pace?: number }} of */
export const makePlayer = ({ url = "", peaks, seconds, label, pace = 1 }) => {
  const player = el(`<div class="h-player"><button type="button" class="h-round"><i aria-hidden="true"></i></button><div class="h-seek">
    <svg class="h-wave quiet" aria-hidden="true"></svg><svg class="h-wave" aria-hidden="true"></svg><input type="range" min="0" max="1000" value="0"></div>
    <span class="h-soft h-clock"></span><audio preload="none"></audio></div>`);
  const [button, range, audio] = ["button", "input", "audio"].map((each) => player.querySelector(each));
  const [whole, heard] = player.querySelectorAll("svg");
  for (const svg of [whole, heard]) wave(svg, peaks?.length ? peaks : FLAT);
  audio.src = url;
  audio.defaultPlaybackRate = audio.playbackRate = pace;
  range.setAttribute("aria-label", t("player.place", "Playback position"));
  const length = () => (Number.isFinite(audio.duration) ? audio.duration : seconds ?? 0);
  const draw = () => {
    const share = length() ? Math.min(1, audio.currentTime / length()) : 0, lasts = length() / pace, now = audio.currentTime / pace;
    heard.style.clipPath = `inset(0 ${100 - share * 100}% 0 0)`;
    range.value = share * 1000;
    text(player.querySelector(".h-clock"), (now ? `${clock(now)} / ` : "") + (lasts < 60 ? time(lasts, true) : clock(lasts)));
    range.setAttribute("aria-valuetext", `${clock(now)} / ${clock(lasts)}`);
    player.classList.toggle("h-sounding-now", !audio.paused);
    button.setAttribute("aria-label", audio.paused ? label : t("player.pause", "Pause"));
  };
  button.addEventListener("click", () => (audio.paused ? audio.play() : audio.pause()));
  range.addEventListener("input", () => {
    audio.currentTime = (range.value / 1000) * length();
    draw();
  });
  for (const each of ["play", "pause", "timeupdate", "ended", "loadedmetadata"]) audio.addEventListener(each, draw);
  audio.addEventListener("play", () => {
    for (const other of document.querySelectorAll(".h-player audio")) if (other !== audio) other.pause();
  });
  draw();
  return player;
};

const LOOKS = 6; // colours of speakers; then they come again
/** @param {number} number */
export const speakerLook = (number) => `s${((number - 1) % LOOKS) + 1}`;

// Show a script in one line, its speakers in their colours instead of as tags; `names`: of a cast, in its order.
/** @param {HTMLElement} element @param {string} words @param {string[]} names */
export const drawScript = (element, words, names = []) => {
  const drawn = `${names} ${words}`;
  if (element.dataset.words === drawn) return;
  element.dataset.words = drawn;
  element.replaceChildren(...words.split(/(\[[^[\]]{1,40}\])/).filter(Boolean).map((piece) => {
    const name = piece.match(/^\[(.*)\]$/)?.[1] ?? "", number = names.length ? names.indexOf(name) + 1 : Number(name.match(/^S(\d+)$/)?.[1] ?? 0);
    return number > 0 ? Object.assign(el(`<b class="h-who ${speakerLook(number)}"></b>`), { textContent: name }) : document.createTextNode(piece);
  }));
};
