"""What is said in a sound, for OpenAI's own client: every format, and errors in that API's shape. A real engine with a recogniser of random weights."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import numpy as np
import openai
import pytest
import soundfile
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from app.base.paths import home
from app.base.trouble import Trouble
from app.engine.hearing.heard import Heard, Word
from app.engine.keeper.keeper import Keeper
from app.engine.speech.sound import convert_sound, sound
from app.engine.speech.sound.sound import measure_seconds
from app.ui.access import uploads
from app.ui.api import openai as api_openai
from app.ui.api import transcriptions
from app.ui.state import hearing_desk, person
from app.ui.state.desk import Desk
from app.ui.state.settings import Settings
from tests.support.tiny_ears import complete, place_for, save_whisper

pytestmark = [pytest.mark.long, pytest.mark.anyio]

MODEL = "whisper-tiny-en"


def make_sound(seconds: float = 2.0, loud: float = 0.1) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.random.default_rng(0).normal(0, loud, int(seconds * 16_000)), 16_000, format="WAV")
    return file.getvalue()


@contextmanager
def open_desk(folder: Path) -> Iterator[Desk]:
    place = home(folder).create()
    keeper = Keeper(place)
    yield Desk(keeper, Settings(place.settings))
    keeper.close()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("home")) as desk:
        yield desk


@pytest.fixture
def client(desk: Desk) -> openai.AsyncOpenAI:
    return connect(desk)


def connect(desk: Desk) -> openai.AsyncOpenAI:
    app = Starlette(routes=api_openai.routes(desk))

    async def as_owner(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, person.KEY: person.OWNER}, receive, send)

    transport = httpx2.ASGITransport(as_owner)
    return openai.AsyncOpenAI(api_key="none", base_url="http://test/v1", max_retries=0, http_client=httpx2.AsyncClient(transport=transport))


async def test_without_a_recogniser_it_says_which(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="recogniser"):
        await client.audio.transcriptions.create(file=("a.wav", make_sound()), model="whisper-1")


async def test_a_translation_is_refused_and_told_what_there_is(client: openai.AsyncOpenAI) -> None:
    told = pytest.raises(openai.NotFoundError, match=r"does not translate.*/v1/audio/transcriptions")
    with pytest.warns(DeprecationWarning), told:  # of the client's own
        await client.audio.translations.create(file=("a.wav", make_sound()), model="whisper-1")


async def test_every_format(desk: Desk, client: openai.AsyncOpenAI) -> None:
    complete(save_whisper(place_for(desk.keeper.home, MODEL)))
    assert MODEL in [each.id async for each in client.models.list()]
    create, sound = client.audio.transcriptions.create, ("a.wav", make_sound())
    plain = await create(file=sound, model=MODEL)
    assert plain.text.strip()
    assert (await create(file=sound, model=MODEL, response_format="text")) == f"{plain.text}\n"
    whole = await create(file=sound, model=MODEL, response_format="verbose_json", timestamp_granularities=["word", "segment"])
    assert whole.text == plain.text and whole.language == "english" and float(whole.duration) == pytest.approx(2.0)
    assert whole.words and whole.segments and whole.words[0].start == whole.segments[0].start
    assert "".join(each.word for each in whole.words) == re.sub(r"\s", "", plain.text)
    alone = await create(file=sound, model=MODEL, response_format="verbose_json", timestamp_granularities=["word"])
    assert alone.words and alone.segments is None
    srt, vtt = [str(await create(file=sound, model=MODEL, response_format=each)) for each in ("srt", "vtt")]
    assert srt.startswith("1\n00:00:0") and " --> " in srt and vtt.startswith("WEBVTT\n\n00:00:0")
    assert not [*(desk.keeper.home.scratch / "uploads").glob("*")], "nothing that was sent stays"


async def test_a_language_is_heard_or_refused_and_never_passed_over(tmp_path: Path) -> None:
    with open_desk(tmp_path / "home") as desk:
        await ask_for_languages(desk)


async def ask_for_languages(desk: Desk) -> None:
    complete(save_whisper(place_for(desk.keeper.home, MODEL)))
    create, sound = connect(desk).audio.transcriptions.create, ("a.wav", make_sound())

    async def refuse(language: str, said: str) -> None:
        with pytest.raises(openai.BadRequestError, match=said) as refused:
            await create(file=sound, model=MODEL, language=language)
        assert refused.value.param == "language"

    await refuse("German", "ISO 639-1")
    await refuse("xx", "ISO 639-1")
    await refuse("de", "hears English only")
    for code in ("en", "en-US", "auto"):
        assert (await create(file=sound, model=MODEL, language=code)).text.strip()
    complete(save_whisper(place_for(desk.keeper.home, "whisper-small"), several=True))
    for code, name in (("de", "german"), ("EN", "english")):
        heard = await create(file=sound, model=MODEL, language=code, response_format="verbose_json")
        assert heard.language == name and float(heard.duration) == pytest.approx(2.0)
    found = await create(file=sound, model=MODEL, response_format="verbose_json")
    assert found.language in ("german", "english")
    await refuse("fr", "fr is not supported")


@pytest.mark.parametrize("seconds", [2.0, 3.5])
async def test_what_only_another_program_reads_is_heard_or_refused_as_too_long(
    seconds: float, desk: Desk, client: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert convert_sound.CONVERTED_S > sound.RECORDING_MOST_S, "else the end of a longer one is left out in silence"
    complete(save_whisper(place_for(desk.keeper.home, MODEL)))
    monkeypatch.setattr(uploads, "can_convert", lambda _: True)
    monkeypatch.setattr(sound, "convert", lambda *_: make_sound(seconds))
    monkeypatch.setattr(sound, "RECORDING_MOST_S", 3.0)
    asked = client.audio.transcriptions.create(file=("a.m4a", b"\0\0\0\x20ftypM4A "), model=MODEL, response_format="verbose_json")
    if seconds < sound.RECORDING_MOST_S:
        assert float((await asked).duration) == pytest.approx(seconds)
    else:
        with pytest.raises(openai.BadRequestError, match="longer than 3 s"):
            await asked
    assert not [*(desk.keeper.home.scratch / "uploads").glob("*")], "nothing that was sent stays"


def test_a_recording_becomes_a_clip_with_its_words(desk: Desk, tmp_path: Path) -> None:
    complete(save_whisper(place_for(desk.keeper.home, MODEL)))
    (tmp_path / "long.wav").write_bytes(make_sound(14.0))
    clip = desk.hearing.choose_clip(tmp_path / "long.wav", tmp_path)
    assert clip.text.strip() and measure_seconds(tmp_path / "clip.wav") == pytest.approx(clip.end_s - clip.begin_s, abs=0.01)
    (tmp_path / "still.wav").write_bytes(make_sound(2.0, loud=0.0))
    with pytest.raises(Trouble, match="Nobody is heard"):
        desk.hearing.choose_clip(tmp_path / "still.wav", tmp_path)


def test_of_hours_only_the_beginning_is_heard_for_a_voice(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing_desk, "CLIP_HEARD_S", 6.0)
    heard = list[float]()

    def hear(self: hearing_desk.HearingDesk, sound: Path) -> Heard:
        heard.append(measure_seconds(sound))
        return Heard((Word("Hello.", 1.0, 5.5, 0.9),), (), 6.0, MODEL)

    monkeypatch.setattr(hearing_desk.HearingDesk, "hear", hear)
    (tmp_path / "hours.wav").write_bytes(make_sound(14.0))
    clip = desk.hearing.choose_clip(tmp_path / "hours.wav", tmp_path)
    assert heard == [pytest.approx(6.0)] and clip.notes[0].key == "clip.beginning"
    (tmp_path / "short.wav").write_bytes(make_sound(5.9))
    assert all(note.key != "clip.beginning" for note in desk.hearing.choose_clip(tmp_path / "short.wav", tmp_path).notes)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"response_format": "diarized_json"}, "response_format"), ({"timestamp_granularities[]": "word"}, "timestamp_granularities"),
        ({"timestamp_granularities[]": "letter", "response_format": "verbose_json"}, "timestamp_granularities"), ({"stream": "true"}, "stream"),
    ],
)  # fmt: skip
async def test_what_is_not_there_is_told_with_its_field(more: dict[str, str], field: str, client: openai.AsyncOpenAI) -> None:
    told = await client._client.post(
        "http://test/v1/audio/transcriptions", files={"file": ("a.wav", make_sound())}, data={"model": "x", **more}
    )
    assert told.status_code == 400
    error = told.json()["error"]
    assert error["param"] == field and error["type"] == "invalid_request_error" and error["message"]


async def test_what_is_no_sound_is_refused(client: openai.AsyncOpenAI) -> None:
    for files, data in (({"file": ("a.wav", b"no sound at all")}, {}), ({}, {"model": "x"})):
        told = await client._client.post("http://test/v1/audio/transcriptions", files=files or {"other": ("a", b"b")}, data=data)
        assert told.status_code == 400 and told.json()["error"]["param"] == "file"


def test_segments_end_with_sentences_and_in_pauses() -> None:
    at = [("One", 0.0, 0.4), ("two.", 0.4, 0.8), ("Three", 0.9, 1.2), ("four", 2.5, 3.0)]
    words = tuple(Word(text, begin_s, end_s, 0.9) for text, begin_s, end_s in at)
    assert [[word.text for word in each] for each in transcriptions.list_segments(words)] == [["One", "two."], ["Three"], ["four"]]
    long = tuple(Word("a", float(second), second + 1.0, 0.9) for second in range(30))
    assert all(len(each) <= transcriptions.SEGMENT_MOST_S for each in transcriptions.list_segments(long))
    answer = transcriptions.write(Heard(words, (), 3.0, MODEL), "vtt", [])
    assert b"00:00:00.000 --> 00:00:00.800\nOne two." in bytes(answer.body)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
