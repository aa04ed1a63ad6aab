// The parts of a script as they are spoken.
const { t, text, el, list, time } = Hearth;
let player = null;

// Play a part while it is spoken: piece after piece, then the rest from the finished file.
function heardLive(row) {
  player?.stop();
  const context = new AudioContext();
  let next = 0, heard = 0, known = 0, queue = Promise.resolve(), whole = false;
  async function play(url, from = 0) {
    const sound = await context.decodeAudioData(await (await fetch(url)).arrayBuffer());
    if (sound.duration <= from) return;
    const source = context.createBufferSource();
    source.buffer = sound;
    source.connect(context.destination);
    next = Math.max(next, context.currentTime + 0.05);
    source.start(next, from);
    next += sound.duration - from;
    heard += sound.duration - from;
  }
  const then = (deed) => (queue = queue.then(deed).catch(() => {})); // after a stop the context is closed
  const mine = {
    row,
    feed({ pieces = [], url }) {
      for (const each of pieces.slice(known)) then(() => play(each));
      known = Math.max(known, pieces.length);
      if (!url || whole) return;
      whole = true;
      then(() => play(url, heard));
      then(() => setTimeout(() => player === mine && mine.stop(), 1000 * Math.max(0, next - context.currentTime)));
    },
    stop() {
      context.close();
      player = null;
      drawLive(row);
    },
  };
  player = mine;
}

// Parts.
const draw = () => {
  const speech = props.value;
  text(element.querySelector("h2"), t("parts.title", "Parts"));
  text(element.querySelector(".h-empty"), speech ? "" : t("parts.empty", "Your script is spoken part by part. You can play each part as soon as it is ready, and redo it."));
  if (!speech) return;
  const { end } = speech;
  const closing = { finished: () => t("parts.done", "done in {time}", { time: time(end.elapsed_s) }), stopped: () => t("canvas.stopped", "stopped; finished results are kept") };
  const last = speech.parts.findLast((part) => part.state === "done");
  Hearth.drawJob(element, speech, closing[end?.kind]?.() ?? "", last && t("part.there", "Part {n} of {total} is ready to play.", { n: last.index + 1, total: speech.parts.length }));
  list(element.querySelector(".h-list"), speech.parts, (part) => `${speech.job}-${part.index}`, (part) => {
    const row = el(`<li class="h-part"><span class="h-badge h-number">${part.index + 1}</span><div class="h-sounding"><p></p></div>
      <button type="button" class="h-chip h-live"></button><button type="button" class="h-chip h-again"></button></li>`);
    row.querySelector(".h-live").addEventListener("click", () => listen(row));
    row.querySelector(".h-again").addEventListener("click", () => {
      trigger("redo", { index: part.index });
    });
    return row;
  }, (row, part) => drawPart(row, part, end));
};
watch("value", draw);
draw();

function drawPart(row, part, end) {
  row.spoken = part;
  const done = part.state === "done", now = part.state === "now";
  row.querySelector(".h-number").className = `h-badge h-number ${done ? "right" : now ? "careful" : ""}`;
  if (done && !row.querySelector(".h-player")) {
    const label = t("part.play-n", "Play part {n}", { n: part.index + 1 });
    row.querySelector(".h-sounding").prepend(Hearth.player({ ...part, label }));
  }
  const under_way = now ? t("part.now", "speaking, {s} s ready", { s: (part.seconds ?? 0).toFixed(1) }) : end ? t("part.not", "not spoken") : t("part.waits", "waiting");
  const words = row.querySelector("p");
  words.classList.toggle("h-soft", !done);
  Hearth.script(words, done || !part.text ? part.text || under_way : `${under_way}: ${part.text}`);
  drawLive(row);
  const again = row.querySelector(".h-again");
  again.hidden = !done || !end;
  text(again, t("part.again", "Redo"));
  again.setAttribute("aria-label", t("part.again-n", "Redo part {n}", { n: part.index + 1 }));
  if (player?.row === row) player.feed(part);
}

function drawLive(row) {
  const live = row.querySelector(".h-live"), listening = player?.row === row;
  live.hidden = !listening && !(row.spoken.state === "now" && row.spoken.pieces?.length);
  text(live, listening ? t("part.pause", "Stop") : t("part.listen", "Listen live"));
  live.setAttribute("aria-pressed", listening);
}

function listen(row) {
  if (player?.row === row) return player.stop();
  heardLive(row);
  player.feed(row.spoken);
  drawLive(row);
}

