"""A part that is likely wrong is told in the list of parts, above it, by the command line, and to guests; each as long as it is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.base.sentence import say
from app.cli.progress import format_event
from app.engine.jobs.events import Doubt, Note, PartDone, Sound
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.text.script import parse_script
from app.ui.live_view import guest_view
from app.ui.page.views import remarks_view
from app.ui.state.person import Person
from app.ui.tabs.speak_view import parts_view
from tests.support.guests import desk_at

SPLIT = parse_script("[S1] One. (pause 0.1s) [S2] Two. (pause 0.1s) [S1] Three.").parts
TOLD = {
    "long": "Part 2 ran on, much longer than its words take. Redo it, or change its words.",
    "short": "Part 2 ended much sooner than its words take. Redo it, or change its words.",
}


def made(*doubts: Doubt) -> Progress:
    progress = Progress().add(Note(say("test.word", "A word.")))
    for index, doubt in enumerate(doubts):
        progress = progress.add(PartDone(index, len(doubts), "gone.wav", SPLIT[index].text, 5, 24.0, doubt=doubt))
    return progress


@pytest.mark.parametrize("doubt", TOLD)
def test_a_part_that_is_likely_wrong_is_marked_and_told(doubt: Doubt) -> None:
    view = parts_view("job", made("", doubt, ""), SPLIT, "en")
    assert [part["doubt"] for part in view["parts"]] == ["", doubt, ""]
    assert view["said"] == [{"kind": "note", "text": "A word."}, {"kind": "note", "text": TOLD[doubt]}]
    assert "第 2 段" in remarks_view(made("", doubt), "zh")[1]["text"]


def test_all_others_stay_told_when_one_is_made_anew() -> None:
    progress = made("long", "long", "short")
    again = progress.add(replace(progress.parts[1], doubt=""))
    assert [each["text"][:6] for each in remarks_view(again, "en")[1:]] == ["Part 1", "Part 3"]


def test_the_command_line_tells_it_with_the_part() -> None:
    assert format_event(PartDone(1, 3, "", "", 5, 24.0)) == "part 2 of 3 is done, 24 s"
    assert format_event(PartDone(1, 3, "", "", 5, 24.0, doubt="long")) == f"part 2 of 3 is done, 24 s\n{TOLD['long']}"
    assert format_event(PartDone(0, 1, "", "", 5, 24.0, doubt="short")) == TOLD["short"].replace("2", "1", 1)
    assert format_event(PartDone(0, 1, "", "", 5, 24.0)) == ""


def test_a_guest_is_told_of_his_own(tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        guest = Person("visitor-a-b", owner=False)
        job = desk.jobs.begin(SpeechRequest("[S1] One."), guest)
        desk.keeper.board.post(job, PartDone(0, 1, "gone.wav", "[S1] One.", 5, 24.0, doubt="long"))
        said = guest_view(desk, guest, "en")["speech"]["said"]
    assert [each["text"] for each in said] == [TOLD["long"].replace("2", "1", 1)]


def test_pieces_of_a_new_attempt_take_the_place_of_those_before() -> None:
    progress = Progress()
    for piece in (Sound(0, "a", 0, 1), Sound(0, "b", 1, 1), Sound(1, "c", 0, 1), Sound(0, "d", 0, 1, 1), Sound(0, "e", 1, 1, 1)):
        progress = progress.add(piece)
    assert [piece.path for piece in progress.sounds] == ["c", "d", "e"]
