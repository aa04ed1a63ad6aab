"""Parts heard back: marked where they went wrong, heard once, and spoken again until a better take is there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from app.base import paths
from app.base.sentence import say_to_all
from app.base.trouble import Trouble
from app.engine.hearing import heard
from app.engine.hearing.heard import Heard, Meant, Word
from app.engine.jobs.events import Event, Failed, Finished, PartDone
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import SpeechRequest
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.text.script import ParsedScript, parse_script
from app.ui.state import hearing_desk
from app.ui.state.hearing_desk import name_store
from app.ui.state.jobs_desk import EndedScript
from app.ui.state.listening import Listening, count_wrong, find_marks
from app.ui.state.person import OWNER
from app.ui.tabs.speak_view import marks_view
from tests.support.waiting import until

TEXT = "[S1] Nobody asked for bread or cheese."
WORDS = TEXT.split()[1:]
VOICE_GONE = Trouble(say_to_all("test.gone", "The voice is gone."))


def hear(part: PartDone, lost: int) -> None:
    """Store that a recogniser finds so many words of a part missing."""
    meant = tuple(Meant(word, 0.0, 0.1, -9.0, 5.0 if place < lost else -50.0, -99.0, -99.0) for place, word in enumerate(WORDS))
    said = tuple(Word(word, 0.0, 0.1, 0.9) for word in WORDS[lost:])
    heard.store(Heard(said, meant, 1.0, "whisper-tiny-en"), name_store(Path(part.path)))


@dataclass
class Studio:
    """Speaks and hears at once: each take of part 1 has the next number of words missing."""

    folder: Path
    takes: list[int]
    jobs: int = 0
    spoken: EndedScript | None = None
    fails: str = ""
    """This job or task is the first that fails."""
    asked: list[SpeechRequest] = field(default_factory=list)
    scripts: dict[str, EndedScript] = field(default_factory=dict)
    speaks: tuple[str, ...] = ("en",)
    languages: object = ()
    """The parts that are heard are in these languages."""

    def make(self, request: SpeechRequest) -> str:
        self.jobs += 1
        self.asked.append(request)
        parts = []
        for place in range(2):
            if request.keep and place not in request.only_parts:
                part = PartDone(place, 2, request.keep[place], TEXT, 1)
            else:
                path = self.folder / f"{self.jobs}-{place}.wav"
                path.write_bytes(b"sound")
                part = PartDone(place, 2, str(path), TEXT, self.jobs)
            parts.append(part)
        self.spoken = self.scripts[str(self.jobs)] = EndedScript(str(self.jobs), request, tuple(parts))
        return str(self.jobs)

    # What Listening asks the desks for.

    @property
    def keeper(self) -> Studio:
        return self

    parts_task = ""

    def give_way(self) -> None:
        pass

    def begin(self, *asked: object) -> str:
        (first, *others) = asked
        self.languages = others[-1] if others else ()
        if isinstance(first, SpeechRequest):
            return self.make(first)
        for path in first:  # type: ignore[attr-defined]
            hear(PartDone(0, 2, str(path), TEXT, 1), self.takes.pop(0) if path.name.endswith("-1.wav") else 0)
        return "task"

    def begin_from(self, spoken: EndedScript, wanted: SpeechRequest, person: object) -> str:
        return self.make(wanted)

    def follow(self, job: str) -> Iterator[Event]:
        yield Failed.of(VOICE_GONE) if job == self.fails else Finished((), 1.0, 1.0, "", 0)

    def get_progress(self, job: str) -> Progress:
        return Progress(end=next(iter(self.follow(job)), None))  # type: ignore[arg-type]

    def parse(self, request: SpeechRequest) -> ParsedScript:
        return parse_script(request.text)

    def find_limits(self, model: str) -> VoiceLimits:
        return VoiceLimits(languages=self.speaks)

    def show_script(self, job: str, person: object) -> None:
        self.spoken = self.scripts[job]

    def find_ended_script(self, person: object) -> EndedScript | None:
        return self.spoken

    def redo_parts(self, spoken: EndedScript, places: list[int], person: object) -> str:
        keep = tuple("" if part.index in places else part.path for part in spoken.parts)
        return self.make(SpeechRequest(TEXT, only_parts=tuple(places), keep=keep))


def make_listening(studio: Studio) -> Listening:
    return Listening(studio, studio)  # type: ignore[arg-type]


def test_each_take_is_heard_once(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [2])
    listening = make_listening(studio)
    with pytest.raises(Trouble, match="no finished parts"):
        listening.listen(OWNER)
    studio.make(SpeechRequest(TEXT))
    assert studio.spoken is not None
    first, second = studio.spoken.parts
    assert find_marks(Path(first.path)) is None and marks_view(first, "en") is None
    assert listening.listen(OWNER) == "task" and listening.listen(OWNER) == ""
    assert (count_wrong(first), count_wrong(second)) == (0, 2)
    assert marks_view(first, "en") == [] and marks_view(second, "en") == [{"place": 0, "text": "Not heard: Nobody asked"}]
    later_ns = Path(second.path).stat().st_mtime_ns + 10**10
    os.utime(second.path, ns=(later_ns, later_ns))
    assert find_marks(Path(second.path)) is None, "another take was put in its place"


def test_parts_are_heard_in_the_language_that_they_were_spoken_in(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [0, 0], speaks=("de", "zh"))
    studio.make(SpeechRequest(TEXT))
    assert studio.spoken is not None
    first, second = studio.spoken.parts
    studio.spoken = replace(studio.spoken, parts=(first, replace(second, text="[S1] \u4f60\u597d\u3002")))
    make_listening(studio).listen(OWNER)
    assert studio.languages == ["de", "zh"]


@pytest.mark.parametrize(
    ("takes", "left", "jobs"),
    [
        ([3, 0], 0, 2),
        ([3, 4, 1, 0], 0, 5),  # the second take is worse, so that the first is joined again
        ([2, 3, 3, 3, 3], 2, 7),  # none is better
    ],
)
def test_the_best_take_is_kept(takes: list[int], left: int, jobs: int, tmp_path: Path) -> None:
    studio = Studio(tmp_path, takes)
    studio.make(SpeechRequest(TEXT))
    listening = make_listening(studio)
    listening.listen(OWNER)
    listening.mend(OWNER)
    until(lambda: not listening.mending, 20)
    assert studio.spoken is not None and [count_wrong(part) for part in studio.spoken.parts] == [0, left]
    assert studio.jobs == jobs and all(0 not in request.only_parts for request in studio.asked[1:]), "the good part stayed"


@pytest.mark.parametrize("after", ["2", "task"])
def test_parts_of_another_script_are_neither_heard_nor_given_these_takes(
    after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another script is opened while a part is spoken again, or while that is heard: its second part is no take of this one's."""
    studio = Studio(tmp_path, [3, 4, 9])
    studio.make(SpeechRequest(TEXT))
    listening = make_listening(studio)
    listening.listen(OWNER)
    path = tmp_path / "other.wav"
    path.write_bytes(b"sound")
    other = EndedScript("other", SpeechRequest("[S1] Another."), (PartDone(1, 2, str(path), "[S1] Another.", 1),))

    def follow(job: str) -> Iterator[Event]:
        if job == after:
            studio.spoken = other
            if job == "task":
                hear(other.parts[0], 5)  # it is worse than what it would be compared with
        yield from Studio.follow(studio, job)

    monkeypatch.setattr(studio, "follow", follow)
    listening.mend(OWNER)
    until(lambda: not listening.mending, 45)
    assert studio.spoken is other and studio.jobs == 2, "it got no part of the one before"
    assert (find_marks(path) is None) == (after == "2")
    assert "Another script was spoken or opened" in str(listening.find_trouble("1"))


def test_parts_are_spoken_again_of_the_script_whose_marks_were_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another script is opened right after this one was seen to be shown."""
    studio = Studio(tmp_path, [3, 4])
    studio.make(SpeechRequest(TEXT))
    listening = make_listening(studio)
    listening.listen(OWNER)
    marked = studio.spoken
    assert marked is not None
    path = tmp_path / "other.wav"
    other = EndedScript(
        "other", SpeechRequest("[S1] Another."), tuple(PartDone(each, 2, str(path), "[S1] Another.", 1) for each in range(2))
    )
    shown = iter([marked] * 2)  # once to find its marks, once before they are spoken again
    monkeypatch.setattr(studio, "find_ended_script", lambda person: next(shown, other))
    listening.mend(OWNER)
    until(lambda: not listening.mending, 45)
    assert [request.keep for request in studio.asked] == [(), (marked.parts[0].path, "")]


def test_nothing_is_spoken_again_without_a_mark(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [0])
    studio.make(SpeechRequest(TEXT))
    listening = make_listening(studio)
    listening.listen(OWNER)
    with pytest.raises(Trouble, match="No part is marked"):
        listening.mend(OWNER)


@pytest.mark.parametrize("fails", ["2", "task"])
def test_what_keeps_parts_from_being_spoken_again_is_told(fails: str, tmp_path: Path) -> None:
    studio = Studio(tmp_path, [3, 2, 0])
    studio.make(SpeechRequest(TEXT))
    listening = make_listening(studio)
    listening.listen(OWNER)
    studio.fails = fails
    listening.mend(OWNER)
    until(lambda: not listening.mending, 20)
    assert studio.spoken is not None and studio.spoken.job == "1", "the page shows the parts that are there"
    assert str(listening.find_trouble("1")) == "The voice is gone."
    studio.fails = ""
    listening.mend(OWNER)
    until(lambda: not listening.mending, 20)
    assert listening.find_trouble("1") is None and studio.spoken.job != "1"
    assert [count_wrong(part) for part in studio.spoken.parts] == [0, 0]


def test_what_is_in_another_language_needs_a_recogniser_of_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, home = {"whisper-base-en"}, paths.home(tmp_path)
    monkeypatch.setattr(hearing_desk, "locate", lambda _, model: tmp_path if model.id in there else None)
    assert hearing_desk.require_recogniser(home, ["en", ""]).id == "whisper-base-en"
    with pytest.raises(Trouble, match=r"spoken in German.*hears English only.*Whisper small") as told:
        hearing_desk.require_recogniser(home, ["en", "de"])
    assert told.value.cure == "get:whisper-small"
    there.clear()
    with pytest.raises(Trouble, match=r"there is none yet.*Whisper small"):
        hearing_desk.require_recogniser(home, ["de"])
    there.update({"whisper-small", "whisper-base-en"})
    assert hearing_desk.require_recogniser(home, ["de"]).id == "whisper-small"
