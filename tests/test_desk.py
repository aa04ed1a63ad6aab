"""The desk: which job a tab shows and Stop stops, while others wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine import script
from app.engine.event import Stopped
from app.engine.limits import DIA, limits_of
from app.engine.request import PictureRequest, Request, SpeechRequest, VoicePrompt
from app.sentence import Trouble
from app.ui import speak_view, window
from app.ui.guard import OWNER
from tests.guests import desk_at
from tests.tiny import STARTER, save_voice


def test_stop_takes_what_comes_next_and_not_what_was_asked_for_last(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        first, other, last = (
            desk.begin(each, OWNER)
            for each in (SpeechRequest("[S1] One."), PictureRequest("a tree"), SpeechRequest("[S1] Two."))
        )
        assert desk.current("speech", OWNER) == first
        desk.stop("speech", OWNER)
        assert [job.id for job in desk.keeper.journal.waiting()] == [other, last]
        assert desk.current("speech", OWNER) == last
        desk.stop("speech", OWNER)
        assert desk.current("speech", OWNER) == last, "with nothing left, the last one stays to be seen"
        assert isinstance(desk.progress("speech", OWNER).end, Stopped)  # type: ignore[union-attr]


def test_stop_stops_the_whole_grid(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        desk.begin_grid(PictureRequest("a tree"), ("steps", [2, 4]), ("guidance", [1.0, 2.0]), OWNER)
        assert len(desk.keeper.journal.waiting()) == 4
        desk.stop("picture", OWNER)
        assert not desk.keeper.journal.waiting()


def test_a_script_is_shown_as_its_own_voice_parts_it(tmp_path: Path) -> None:
    """The starter's parts are shorter than Dia's."""
    text = "[S1] Good morning, my friend. Is the kitchen warm? [S2] Yes, the fire is bright. Please bring bread and coffee."
    with desk_at(tmp_path) as desk:
        job = desk.begin(SpeechRequest(text, model="starter-voice"), OWNER)
        parts = [each["text"] for each in speak_view.seen(desk, job, "en")["parts"]]
        assert parts == [part.text for part in script.check(text, desk.limits("starter-voice")[1]).parts]
        assert len(parts) > len(script.check(text).parts)


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        (SpeechRequest("[S1] Hello, elephants.", model="starter-voice"), "script.words"),
        (SpeechRequest("[S1] Hello.", "starter-voice", VoicePrompt("mine.wav", "Hello.")), "voice.follows-none"),
        (PictureRequest("a dragon", model="starter-painter"), "starter.strange-words"),
    ],
)
def test_what_a_starter_never_learned_is_refused_before_the_engine_starts(
    tmp_path: Path, request_: Request, key: str
) -> None:
    with desk_at(tmp_path) as desk:
        with pytest.raises(Trouble) as refused:
            desk.begin(request_, OWNER)
        assert refused.value.sentence.key == key and refused.value.cure.startswith("use:")
        assert not desk.keeper.journal.waiting()
        desk.begin(SpeechRequest("[S1] Hello.", "no/such/model"), OWNER)
        assert len(desk.keeper.journal.waiting()) == 1, "what is not known here is the run's to tell"


def test_a_voice_whose_settings_are_damaged_is_still_written_for(tmp_path: Path) -> None:
    """The check goes by Dia's limits; what is wrong is said by the run."""
    voice = save_voice(tmp_path / "voice", STARTER)
    with desk_at(tmp_path / "home") as desk:
        assert desk.limits(str(voice))[1] != DIA
        (voice / "starter.json").write_text("[1, 2")
        assert desk.limits(str(voice))[1] == DIA
        with pytest.raises(Trouble, match=r"cannot be made sense of \(JSONDecodeError"):
            limits_of(voice)


CHOICES = {"input", "change", "release", "submit", "blur", "select", "upload"}


def test_no_choice_is_passed_over_while_an_answer_is_on_its_way(tmp_path: Path) -> None:
    """Gradio's default for most events is to pass over what happens meanwhile."""
    with desk_at(tmp_path) as desk:
        listeners = window.build(desk).get_config_file()["dependencies"]
    asked = [each for each in listeners if each["backend_fn"] and CHOICES & {event for _, event in each["targets"]}]
    assert len(asked) > 8
    assert not [each["targets"] for each in asked if each["trigger_mode"] == "once"]
