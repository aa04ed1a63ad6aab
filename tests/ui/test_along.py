"""When each sentence of a result is said, and each word once that was found: sent for reading along, and as subtitles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.base.trouble import Trouble
from app.engine.hearing import heard
from app.engine.hearing.heard import Heard, Word
from app.engine.jobs.events import Finished, PartDone
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.tasks import Hear, TaskId
from app.engine.speech.sound import sound
from app.engine.speech.text import subtitles
from app.engine.speech.text.subtitles import Cue
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER, Person
from tests.support.both_servers import keep_creation
from tests.support.guests import desk_at, page_of
from tests.support.tiny_ears import complete, place_for, save_whisper

CUES = [Cue(0.0, 0.4, "[S1] Nobody asked."), Cue(0.4, 1.0, "[S1] It rained.")]
WORDS = ("Nobody", "asked.", "It", "rained.")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "home") as desk:
        yield desk


def test_words_are_found_once_asked_for_and_sent(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    made, page = keep_creation(desk, SpeechRequest("[S1] Nobody asked. It rained."), "a.wav"), page_of(desk, OWNER)
    assert page.get(f"/hearth/along/{made.id}").json() == {"sentences": []}, "an earlier Hearth's"
    job = made.job
    desk.jobs.latest[OWNER.name, "speech"] = job
    desk.keeper.board.open(job)
    desk.keeper.board.post(job, PartDone(0, 1, str(made.path), "[S1] Nobody asked. It rained.", 1))
    desk.keeper.board.post(job, Finished((str(made.path),), 1.0, 1.0, "", 0))
    with pytest.raises(Trouble, match="does not say when"):
        desk.listening.place_words(OWNER)
    sound.tag_wav(made.path, subtitles.add_to({}, CUES, "wav"))
    with pytest.raises(Trouble, match="needs a recogniser"):
        desk.listening.place_words(OWNER)
    complete(save_whisper(place_for(desk.keeper.home, "whisper-tiny-en")))
    asked: list[Hear] = []
    monkeypatch.setattr(desk.keeper, "start_task", lambda task: asked.append(task) or TaskId("errand-1"))
    assert page.post("/hearth/listen/words", json={}).json() == {}
    (task,) = asked
    assert task.sounds == (str(made.path),) and [[each.text for each in some] for some in task.sentences] == [[cue.text for cue in CUES]]
    assert task.model == "whisper-tiny-en" and task.languages == ("en",)
    (first, second) = page.get(f"/hearth/along/{made.id}").json()["sentences"]
    assert (first["text"], first["words"], second["begin"]) == ("Nobody asked.", [], 0.4)
    assert page.get(f"/hearth/creation/{made.id}?format=srt-words").status_code == 404
    words = tuple(Word(word, place * 0.2, place * 0.2 + 0.1, 1.0) for place, word in enumerate(WORDS))
    heard.store(Heard(words, (), 1.0, "whisper-tiny-en"), Path(task.stores[0]))
    (first, second) = page.get(f"/hearth/along/{made.id}").json()["sentences"]
    assert [word for word, *_ in second["words"]] == ["It", "rained."] and first["words"][1][1:] == [0.2, pytest.approx(0.3)]
    assert page.get(f"/hearth/creation/{made.id}?format=srt-words").text.count(" --> ") == 4
    assert page.get(f"/hearth/creation/{made.id}?format=srt").text.count(" --> ") == 2
    assert "<00:00:00.200>asked." in page.get(f"/hearth/creation/{made.id}?format=vtt-words").text
    heard.store(Heard((*words[:3], replace(words[3], text="snowed.")), (), 1.0, ""), Path(task.stores[0]))
    assert page.get(f"/hearth/along/{made.id}").json()["sentences"][0]["words"] == [], "of another result"
    assert page_of(desk, Person("guest", False)).get(f"/hearth/along/{made.id}").status_code == 404


def test_the_recogniser_and_what_it_is_told_follow_the_language_of_the_text(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    made = keep_creation(desk, SpeechRequest("Es war kalt."), "a.wav")
    cues, store = [Cue(0.0, 1.0, "Es war kalt.")], desk.hearing.name_words(made)
    asked: list[Hear] = []
    monkeypatch.setattr(desk.keeper, "start_task", lambda task: asked.append(task) or TaskId(f"errand-{len(asked)}"))
    complete(save_whisper(place_for(desk.keeper.home, "whisper-base-en")))
    with pytest.raises(Trouble, match=r"spoken in German.*hears English only") as told:
        desk.hearing.begin_words(made.path, cues, store, ["de", "de"])
    assert told.value.cure == "get:whisper-small" and not asked
    complete(save_whisper(place_for(desk.keeper.home, "whisper-small")))
    for languages in (["de", "de"], ["en"], ["de", "en"]):
        desk.hearing.begin_words(made.path, cues, store, languages)
    assert [each.model for each in asked] == ["whisper-small"] * 3
    assert [each.languages for each in asked] == [("de",), ("en",), ("",)], "of two it finds out which is spoken where"
