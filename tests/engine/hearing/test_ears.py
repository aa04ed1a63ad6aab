"""Recognisers with random weights: loaded by the plan in the engine's session, heard to the end, out of the way of what makes something."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import WhisperForConditionalGeneration
from transformers.models.whisper import tokenization_whisper

from app.compat.planning.types import Choice
from app.engine.hearing import heard
from app.engine.hearing.ears.ear import MOST_S, RATE, cut_pieces
from app.engine.hearing.heard import Heard, Meant, Word
from app.engine.jobs.control import Control
from app.engine.jobs.events import Adjusted, Event, Failed, Finished, Loading, Step, Stopped, Unloaded
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.tasks import Hear, TimedSentence
from app.engine.models.recognisers import LANGUAGES
from app.engine.session.session import Session
from app.engine.speech.sound import sound
from tests.engine.hearing.test_alignment import speak
from tests.support import open_session
from tests.support.tiny_ears import complete, place_for, save_moonshine, save_whisper

pytestmark = pytest.mark.long

session = open_session.session
SECONDS = 3.0
MAKERS: dict[str, Callable[[Path], Path]] = {"whisper-tiny-en": save_whisper, "moonshine-tiny": save_moonshine}


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    samples = np.random.default_rng(0).normal(0, 0.1, int(SECONDS * 22050)).astype(np.float32)
    sound.write(tmp_path / "noise.wav", samples, 22050)
    return tmp_path / "noise.wav"


def run(session: Session, task: Hear | SpeechRequest, folder: Path, control: Control | None = None) -> list[Event]:
    return list(session.run(task, Choice(), control or Control(), folder, lambda *_: None))


def hear(session: Session, model: str, noise: Path, text: str = "", control: Control | None = None) -> list[Event]:
    folder = place_for(session.home, model)
    if not (folder / "config.json").is_file():
        complete(MAKERS[model](folder))
    return run(
        session, Hear(model, (str(noise),), (str(noise.with_suffix(".heard")),), (text,) if text else ()), noise.parent / "job", control
    )


@pytest.mark.parametrize("model", MAKERS)
def test_words_have_times_in_order_and_those_meant_too(model: str, session: Session, noise: Path) -> None:
    events = hear(session, model, noise, "What was meant")
    assert isinstance(events[-1], Finished), events[-1]
    assert isinstance(events[0], Loading) and [each.total for each in events if isinstance(each, Step)] == [3]
    made = heard.find(noise.with_suffix(".heard"))
    assert made is not None and made.model == model and made.seconds == pytest.approx(SECONDS)
    assert [word.text for word in made.meant] == ["What", "was", "meant"]
    assert all(0 <= word.sure <= 1 for word in made.words) and all(word.likely <= 0 for word in made.meant)
    both: tuple[Sequence[Word | Meant], ...] = (made.words, made.meant)
    for words in both:
        assert all(0 <= word.begin_s <= word.end_s <= SECONDS for word in words)
        begins = [word.begin_s for word in words]
        assert begins == sorted(begins) and begins


@pytest.mark.parametrize("model", MAKERS)
def test_words_of_known_sentences_are_in_them(model: str, session: Session, noise: Path) -> None:
    complete(MAKERS[model](place_for(session.home, model)))
    sentences = (
        TimedSentence(0.0, 1.0, "What was"),
        TimedSentence(1.2, 3.0, "[S1] (laughs) meant"),
        TimedSentence(3.0, 40.0, "far too long"),
    )
    task = Hear(model, (str(noise),), (str(noise.with_suffix(".heard")),), sentences=(sentences,))
    assert isinstance(run(session, task, noise.parent / "job")[-1], Finished)
    made = heard.find(noise.with_suffix(".heard"))
    assert made is not None and [word.text for word in made.words] == ["What", "was", "(laughs)", "meant", "far", "too", "long"]
    for word, sentence in zip(made.words, [sentences[0]] * 2 + [sentences[1]] * 2 + [sentences[2]] * 3, strict=True):
        assert sentence.begin_s <= word.begin_s <= word.end_s <= sentence.end_s
    assert made.words[-1].end_s == 40.0 and made.words[3].begin_s < made.words[3].end_s


def test_a_job_has_the_memory_of_the_recogniser(session: Session, noise: Path) -> None:
    hear(session, "whisper-tiny-en", noise)
    assert not any(isinstance(each, Loading) for each in hear(session, "whisper-tiny-en", noise)), "it was loaded already"
    spoken = run(session, SpeechRequest("[S1] Hi.", model="starter-voice", seed=1, max_frames=20), noise.parent / "spoken")
    assert [each.model for each in spoken if isinstance(each, Unloaded)] == ["whisper-tiny-en"]
    assert [type(each) for each in spoken[:2]] == [Unloaded, Loading] and isinstance(spoken[-1], Finished)


def test_a_missing_one_is_offered(session: Session, noise: Path) -> None:
    (failed,) = run(session, Hear("whisper-base-en", (str(noise),), (str(noise.with_suffix(".heard")),)), noise.parent / "job")
    assert isinstance(failed, Failed) and failed.cure == "get:whisper-base-en"


@pytest.mark.parametrize("language", ["de", pytest.param("en", marks=pytest.mark.slow), ""])
def test_whisper_is_told_the_language_or_tells_the_one_it_heard(
    language: str, session: Session, noise: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete(save_whisper(folder := place_for(session.home, "whisper-small"), several=True))
    tokenizer, begun, real = Tokenizer.from_file(str(folder / "tokenizer.json")), list[list[int]](), WhisperForConditionalGeneration.forward

    def forward(self: WhisperForConditionalGeneration, **given: Any) -> Any:
        begun.append(given["decoder_input_ids"][0].tolist())
        return real(self, **given)

    monkeypatch.setattr(WhisperForConditionalGeneration, "forward", forward)
    store = noise.with_suffix(".heard")
    run(session, Hear("whisper-small", (str(noise),), (str(store),), languages=(language,)), noise.parent / "job")
    made = heard.find(store)
    assert made is not None and made.spoken in ((language,) if language else ("en", "de")) and made.language == language
    orders = [tokenizer.token_to_id(f"<|{each}|>") for each in ("startoftranscript", made.spoken, "transcribe", "notimestamps")]
    assert begun[0] == orders[:1] and begun[1] == orders, "it looks who speaks, then begins to write"


@pytest.mark.parametrize("model", MAKERS)
def test_one_of_english_alone_says_so(model: str, session: Session, noise: Path) -> None:
    hear(session, model, noise)
    made = heard.find(noise.with_suffix(".heard"))
    assert made is not None and made.spoken == "en"


def test_stop_ends_it_after_a_stretch(session: Session, noise: Path) -> None:
    control = Control()
    control.stop()
    events = hear(session, "whisper-tiny-en", noise, control=control)
    assert isinstance(events[-1], Stopped) and not noise.with_suffix(".heard").exists()


def test_silence_says_nothing(session: Session, tmp_path: Path) -> None:
    sound.write(tmp_path / "still.wav", np.zeros(32000, np.float32), 16000)
    assert isinstance(hear(session, "whisper-tiny-en", tmp_path / "still.wav")[-1], Finished)
    made = heard.find(tmp_path / "still.heard")
    assert made is not None and made.words == () and made.text == ""


def test_a_lack_of_memory_leads_to_a_safer_plan(session: Session, noise: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.engine.hearing.ears.encoder_decoder import EncoderDecoder

    real, faults = EncoderDecoder.hear, [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")]

    def breaking(self: EncoderDecoder, samples: sound.Samples, text: str, language: str) -> tuple[list[Word], list[Meant], str]:
        if faults:
            raise faults.pop()
        return real(self, samples, text, language)

    monkeypatch.setattr(EncoderDecoder, "hear", breaking)
    events = hear(session, "whisper-tiny-en", noise)
    assert [type(each) for each in events if isinstance(each, Adjusted | Finished)] == [Adjusted, Finished]


def test_a_tokenizer_of_another_family_is_told(session: Session, noise: Path) -> None:
    folder = complete(save_whisper(place_for(session.home, "whisper-tiny-en")))
    named = json.loads((folder / "tokenizer.json").read_text())
    named["added_tokens"] = [each for each in named["added_tokens"] if "notimestamps" not in each["content"]]
    (folder / "tokenizer.json").write_text(json.dumps(named))
    failed = hear(session, "whisper-tiny-en", noise)[-1]
    assert isinstance(failed, Failed) and "tokenizer.json" in str(failed.sentence)


@pytest.mark.parametrize("damage", ["{", "[]", '{"words": [{"text": 1}], "meant": [], "seconds": 1, "model": ""}', '{"words": []}'])
def test_damaged_files_are_heard_again(damage: str, tmp_path: Path) -> None:
    whole = Heard((Word("Hi", 0.0, 0.5, 0.9),), (Meant("Hi", 0.0, 0.5, -0.1, -99.0, -99.0, -99.0),), 1.0, "whisper-tiny-en")
    heard.store(whole, tmp_path / "one")
    assert heard.find(tmp_path / "one") == whole and heard.find(tmp_path / "none") is None
    (tmp_path / "one").write_text(damage)
    assert heard.find(tmp_path / "one") is None


def test_of_many_doubted_words_the_least_likely_are_weighed() -> None:
    """The first eight were: a word that was cut behind them was never missed."""
    from app.engine.hearing.ears.encoder_decoder import list_doubted

    assert list_doubted([-1.5] * 8 + [-0.1] * 30 + [-12.0, -14.0, -0.2]) == [
        *((place, place + 1) for place in range(6)),
        (38, 39),
        (39, 40),
    ]
    assert list_doubted([-0.1, -12.0, -14.0, -0.2]) == [(1, 2), (2, 3), (1, 3)], "together, too"


def test_the_languages_are_those_that_whisper_names() -> None:
    known = tokenization_whisper.LANGUAGES
    assert dict(LANGUAGES) == {code: name for code, name in known.items() if code != "yue"}, "only its third large one hears Cantonese"


def test_long_sounds_are_cut_in_pauses() -> None:
    samples = speak((0.5, 20), (20.6, 41), (60, 61), seconds=70, rate=RATE)
    spans = [(begin / RATE, end / RATE) for begin, end in cut_pieces(samples, RATE)]
    assert spans[0] == pytest.approx((0.4, 20.15), abs=0.06) and spans[1][0] == pytest.approx(20.5, abs=0.06)
    assert all(end - begin <= MOST_S for begin, end in spans)
    assert spans[-1] == pytest.approx((59.9, 61.15), abs=0.06)
    assert cut_pieces(np.zeros(RATE, np.float32), RATE) == []
