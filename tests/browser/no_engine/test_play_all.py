"""Play all while a script is spoken: in turn, as the parts come, and sounding as the joined file will."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from app.compat.machine.meter import Reading
from app.engine.jobs.events import PartDone, Step
from app.engine.jobs.events import Sound as SoundPiece
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.kind import list_segments
from app.engine.speech.sound import join_sound, sound
from app.engine.speech.sound.join_sound import Finish
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from tests.support.window import go, needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

RATE = 16_000
SPEECH = {
    "share": 0.5, "pace": 1.0, "said": [], "end": None, "doing": "", "place": 0, "results": [], "before": False, "cast": [], "taken": "", "book": {},
    "listening": {"state": "", "share": 0.0, "trouble": ""},
}  # fmt: skip
"""A script that is spoken, as the page is told of it, but for its job and its parts."""


SPOKEN = """(speech) => {
  window.asked ??= window.fetch;
  window.fetch = async (url, options) => {
    if (!String(url).includes("hearth/live")) return window.asked(url, options);
    const body = await (await window.asked(url, options)).json();
    return new Response(JSON.stringify({ ...body, speech }), { headers: { "content-type": "application/json" } });
  };
}"""


@pytest.mark.slow
def test_play_all_follows_the_parts_as_they_are_made(page: Page, tmp_path: Path) -> None:
    """What is spoken is made up, as no engine runs; that it is fetched in turn shows that it is heard."""
    sound.write(tmp_path / "one.wav", np.zeros(8_000, np.float32), 16_000)
    fetched: list[str] = []

    def answer(route: Route) -> None:
        """Half a second each time, and nothing more of a part that is done and was heard."""
        fetched.append(re.sub(r".*heard/follow/", "", route.request.url))
        after = float(re.search(r"after=([\d.]+)", route.request.url)[1])  # type: ignore[index]
        headers = {"Hearth-Gains": '{"1": 2.5}', "Hearth-Until": str(after + 0.5), "content-type": "audio/wav"}
        route.fulfill(body=(tmp_path / "one.wav").read_bytes(), headers=headers)

    page.route("**/hearth/heard/**", answer)

    def part(index: int, state: str, pieces: int = 0) -> dict[str, Any]:
        urls = [f"hearth/made/follow/sound-{index}-{each}.wav" for each in range(pieces)]
        more = (
            {"url": f"hearth/made/follow/part-{index}.wav", "pace": 1.0, "peaks": [], "seconds": 0.5}
            if state == "done"
            else {"pieces": urls, "seconds": 0.5}
        )
        return {"index": index, "text": f"[S1] Part {index}.", "state": state, **more}

    def speak(*parts: dict[str, Any], end: dict[str, Any] | None = None) -> None:
        page.evaluate(SPOKEN, {**SPEECH, "job": "follow", "parts": list(parts), "end": end})

    go(page, "speak")
    button = page.locator("#h-parts .h-all button")
    speak(part(0, "now", 1), part(1, "waits"), part(2, "waits"))
    button.click()
    expect(button).to_have_text("Stop")
    expect(page.locator("#h-parts .h-heard-now")).to_contain_text("Part 0.")
    assert not shut_out(page)
    speak(part(0, "done"), part(1, "now", 2), part(2, "waits"))
    expect(page.locator("#h-parts .h-heard-now")).to_contain_text("Part 1.")
    speak(part(0, "done"), part(1, "done"), part(2, "done"), end={"kind": "finished", "elapsed_s": 2.0})
    expect(page.locator("#h-parts .h-all")).to_be_hidden()
    known = quote_plus('{"1": 2.5}')
    told = [f"{where}&gains={known}" for where in ("0?after=0.5", "1?after=0", "1?after=0.5", "2?after=0")]
    assert fetched == ["0?after=0&gains=%7B%7D", *told], "each goes on where it was heard, as loud as before"
    fetched.clear()
    speak(part(0, "done"), part(1, "now", 1), part(2, "waits"))
    button.click()
    expect(page.locator("#h-parts .h-heard-now")).to_contain_text("Part 1.")
    page.evaluate(SPOKEN, {**SPEECH, "job": "next", "parts": [part(0, "now")]})
    expect(page.locator("#h-parts .h-all")).to_be_hidden()
    assert fetched[-1].startswith("2?after=0&"), "a book goes on to its next chapter, and this one is heard to its end"
    page.unroute("**/hearth/heard/**")
    page.evaluate("window.fetch = window.asked")


@pytest.mark.slow
@pytest.mark.parametrize(("row", "end"), [(".h-all", None), (".h-resume", {"kind": "stopped", "elapsed_s": 2.0})])
def test_buttons_keep_their_distance_from_the_notes_above_them(page: Page, row: str, end: dict[str, Any] | None) -> None:
    """Gradio takes the margins of paragraphs: Play all and Resume stuck to what stood above them."""
    go(page, "speak")
    part = {
        "index": 0,
        "text": "[S1] Part 0.",
        "state": "done",
        "url": "hearth/made/gaps/part-0.wav",
        "pace": 1.0,
        "peaks": [],
        "seconds": 0.5,
    }
    said = [{"kind": "note", "text": "The script does not begin with a speaker's tag."}]
    parts = [part, {"index": 1, "text": "[S1] Part 1.", "state": "waits"}]
    page.evaluate(SPOKEN, {**SPEECH, "job": "gaps", "parts": parts, "said": said, "end": end})
    button, note = page.locator(f"#h-parts > {row}"), page.locator("#h-parts > .h-said")
    expect(button).to_be_visible()
    below, above = button.bounding_box(), note.bounding_box()
    assert below and above and below["y"] - above["y"] - above["height"] >= 8


RECORDED = """(rate) => {
  window.recorded = [];
  const Real = window.AudioContext;
  window.AudioContext = class extends Real {
    constructor() { super({ sampleRate: rate }); }
    createBufferSource() {
      const source = super.createBufferSource(), start = source.start.bind(source);
      source.start = (when, from = 0) => {
        recorded.push([when, [...source.buffer.getChannelData(0).slice(Math.round(from * rate))]]);
        start(when, from);
      };
      return source;
    }
  };
}"""
"""It notes what is played, and when, by the clock of the sound itself."""


def speak(folder: Path, index: int, seconds: float, loud: float) -> Path:
    """A part as a voice makes it: a tone with silence around it."""
    times = np.arange(int(seconds * RATE)) / RATE
    tone = loud * np.sin(2 * np.pi * (90 + 30 * index) * times) * np.sin(np.pi * times / seconds) ** 0.3
    quiet = np.zeros(int(0.35 * RATE))
    sound.write(folder / f"part-{index:03d}.wav", np.concatenate([quiet, tone, quiet]).astype(np.float32), RATE)
    return folder / f"part-{index:03d}.wav"


def read_played(page: Page) -> Any:
    """Mix what was played."""
    played = page.evaluate("window.recorded")
    begin = played[0][0]
    length = max(round((when - begin) * RATE) + len(samples) for when, samples in played)
    mixed = np.zeros(length, np.float32)
    for when, samples in played:
        at = round((when - begin) * RATE)
        mixed[at : at + len(samples)] += np.asarray(samples, np.float32)
    return mixed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("speed", "loudness", "in_pieces"),
    [(1.0, -18.0, False), (1.25, -14.0, False), (1.0, -30.0, True)],
    ids=["as usual", "faster and louder", "quieter, heard from its first piece on"],
)
def test_play_all_sounds_as_the_joined_file(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, speed: float, loudness: float, in_pieces: bool
) -> None:
    desk = opened[0]
    script = "[S1] It is warm, you know. (pause 0.6s) [S2] And was I wrong? (pause 0.4s) [S1] You were."
    job = desk.keeper.journal.queue(SpeechRequest(script, speed=speed, loudness_lufs=loudness), desk.machine.read_choice(OWNER))
    desk.keeper.journal.withdraw(job.id)
    (folder := desk.keeper.folder(job.id)).mkdir(parents=True)
    split = desk.jobs.split_script(job.id, job.request)
    lengths = (6.0 if in_pieces else 0.8, 1.1, 1.4)  # the pieces last until the page hears of the rest
    parts = [speak(folder, index, seconds, 0.1 * (1 + index)) for index, seconds in enumerate(lengths)]
    assert len(split) == 3 and [part.pause_before_s for part in split[1:]] == [0.6, 0.4]
    join_sound.join(list_segments(split, dict(enumerate(parts))), tmp_path / "joined.wav", Finish("wav", speed, loudness, tail_s=0.0), {})
    joined, _ = sound.read(tmp_path / "joined.wav")
    board = desk.keeper.board
    board.open(job.id)
    desk.jobs.latest[OWNER.name, "speech"] = job.id

    def done(index: int) -> None:
        board.post(job.id, PartDone(index, len(parts), str(parts[index]), split[index].text, 1, 1.0))

    page.evaluate(RECORDED, RATE)
    go(page, "speak")
    button = page.locator("#h-parts .h-all button")
    for index in range(1 if in_pieces else 0, len(parts)):
        done(index)
    if in_pieces:
        samples, _ = sound.read(parts[0])
        for place, cut in enumerate(np.array_split(samples, 3)[:2]):
            sound.write(folder / f"sound-000-{place:03d}.wav", cut, RATE)
            board.post(job.id, SoundPiece(0, str(folder / f"sound-000-{place:03d}.wav"), 0.0, len(cut) / RATE))
        board.post(job.id, Step(9, 90, 80.0, "frames", None, Reading(), part=0, parts=len(parts)))
    page.wait_for_function(f"Hearth.live.state.speech?.job === '{job.id}' && Hearth.live.state.speech.parts[2].state === 'done'")
    button.click()
    page.wait_for_function("window.recorded.length > 0")
    if in_pieces:
        done(0)
    page.wait_for_function(f"window.recorded.length >= {len(parts) + in_pieces}")
    played = read_played(page)
    assert abs(len(played) - len(joined)) <= RATE // 50, "the same pauses, trimmed alike"
    both = np.stack([each[: min(len(played), len(joined))] for each in (played, joined)])
    if in_pieces:  # how loud the first part is, was not known yet
        louder = float(both[0] @ both[1] / (both[1] @ both[1]))
        assert 0.7 < louder < 1.4
        both[1] *= louder
    fault = np.sqrt(np.mean((both[0] - both[1]) ** 2)) / np.sqrt(np.mean(both[1] ** 2))
    assert fault < 0.05


def test_a_long_script_leaves_the_buttons_in_view(page: Page) -> None:
    """With 68 parts the page grew to 6,000 pixels, and Speak and Stop scrolled away."""
    go(page, "speak")
    parts = [{"index": each, "text": f"[S1] Part {each}.", "state": "waits"} for each in range(70)]
    page.evaluate(SPOKEN, {**SPEECH, "job": "long", "parts": parts})
    last = page.locator("#h-parts .h-part").last
    expect(last).to_be_attached()
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
    expect(page.locator("#speak-stop")).to_be_in_viewport()
