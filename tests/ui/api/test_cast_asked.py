"""Several voices in one request of a program, by a command, and by a guest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import patch

import gradio as gr
import numpy as np
import pytest

from app.base.trouble import Trouble
from app.cli.speak import find_voice, read_cast
from app.engine.jobs.events import PartDone, Stopped
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import Actor, SpeechRequest, VoicePrompt
from app.engine.models.on_disk import find_limits
from app.engine.models.voice_limits import DIA
from app.engine.speech.sound import sound
from app.engine.speech.text import voices
from app.ui.api import gradio_endpoints, openai
from app.ui.api.gradio_endpoints import Endpoints
from app.ui.api.openai import SpeechAsked, list_voices, speech_request
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import grant_request, read_allowance
from app.ui.state.jobs_desk import JobsDesk
from app.ui.state.person import OWNER, Person
from app.ui.tabs import speak
from app.ui.tabs.speak_view import script_view
from tests.support.cached_pockets import put_phonon
from tests.support.guests import desk_at

FIRST, SECOND = (each.prompt for each in voices.list_ready_voices()[:2])


def test_a_program_names_several_voices(tmp_path: Path) -> None:
    names = [each.name for each in voices.list_ready_voices()[:2]]
    with desk_at(tmp_path) as desk:
        given = SpeechAsked(
            input="[Anna] Hi.\nBen: Ho.", model="starter-voice", cast={"Anna": names[1].lower(), "Ben": {"voice": names[0], "pace": 1.2}}
        )
        request = speech_request(desk, given, "mp3")
        assert request.text == given.input and request.cast == (Actor("Anna", SECOND), Actor("Ben", FIRST, pace=1.2))
        assert desk.jobs.parse(request).parts[1].text == "[Ben] Ho."
        for cast, words in (
            ({"Anna": "Nobody"}, "not there"),
            ({"Anna": {"model": "nothing"}}, "nothing"),
            ({"Anna": 1}, "at Anna"),
            ({"Anna": "/etc/passwd"}, "not there"),
        ):
            with pytest.raises(Trouble, match=words):
                speech_request(desk, SpeechAsked(input="[Anna] Hi.", cast=cast), "wav")
        assert speech_request(desk, SpeechAsked(input="[Anna] Hi."), "wav").text == "[Anna] Hi.", "a name is a speaker's tag, too"
        assert speech_request(desk, SpeechAsked(input="Hi."), "wav").text == "[S1] Hi."


def test_a_command_reads_its_cast_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "cast.toml").write_text('[Anna]\nvoice = "clip.wav"\ntranscript = "Oh."\nmodel = "dia-1.6b"\n', "utf-8")
    (tmp_path / "clip.wav").write_bytes(b"RIFF")
    with desk_at(tmp_path / "home") as desk:
        (anna,) = read_cast(tmp_path / "cast.toml", "", desk.keeper.home)
        assert (
            anna == Actor("Anna", VoicePrompt(str((tmp_path / "clip.wav").resolve()), "Oh."), "dia-1.6b")
            and read_cast(None, "", desk.keeper.home) == ()
        )


def test_a_guests_cast_has_the_owners_model_and_ready_voices(tmp_path: Path) -> None:
    guest = Person("guest-1", owner=False)
    with desk_at(tmp_path) as desk:
        limits = read_allowance({})
        asked = SpeechRequest("[Anna] Hi. [Ben] Ho.", cast=(Actor("Anna", SECOND, "dia-1.6b"), Actor("Ben", pace=1.1)))
        granted = grant_request(asked, guest, desk.keeper, limits, {})
        assert isinstance(granted, SpeechRequest) and [each.model for each in granted.cast] == ["", ""] and granted.cast[0].voice == SECOND
        private = SpeechRequest("[Anna] Hi.", cast=(Actor("Anna", VoicePrompt(str(tmp_path / "voices" / "own.wav"), "Oh.")),))
        with pytest.raises(Trouble, match="files that you uploaded"):
            grant_request(private, guest, desk.keeper, limits, {})
        assert desk.models.read_cast('{"Ben": {"model": "dia-1.6b", "pace": 1.2}}', "", guest) == (Actor("Ben", pace=1.2),)
        assert desk.models.read_cast("[", "", OWNER) == desk.models.read_cast('{"A]": {}}', "", OWNER) == ()


def test_the_window_is_told_who_speaks_with_which_voice(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        names = [each.name for each in voices.list_ready_voices()]
        view = script_view(desk, "[Anna] Hi. [Ben] Ho. [Carl] Hm.", "", OWNER, "en", cast=(Actor("Ben", SECOND),))
        assert [each["name"] for each in view["cast"]] == ["Anna", "Ben", "Carl"] and view["cast"][1]["voice"] == names[1]
        assert len({each["voice"] for each in view["cast"]} & set(names)) == 3, "each another one"
        assert view["tags"] == ["[Anna]", "[Ben]", "[Carl]"] and not view["marks"]
        assert (
            script_view(desk, "[S1] Hi.", "", OWNER, "en")["cast"] == []
            and len(script_view(desk, "[S1] Hi. [S2] Ho.", "", OWNER, "en")["cast"]) == 2
        )


def test_programs_are_told_the_voices_with_their_models(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        put_phonon(desk.keeper.home, tmp_path)
        data = json.loads(bytes(asyncio.run(list_voices(desk, None, OWNER)).body))["data"]  # type: ignore[arg-type]
        assert {"id": "Max", "name": "Max", "object": "voice", "model": "phonon-31m"} in data
        first = voices.list_ready_voices()[0].name
        assert {"id": first, "name": first, "object": "voice", "model": "starter-voice"} in data


def test_a_renamed_voice_keeps_its_places(tmp_path: Path) -> None:
    ready = voices.list_ready_voices()[0]
    with desk_at(tmp_path) as desk:
        home = desk.keeper.home
        kept = voices.keep_voice(home, "Old Tom", Path(ready.prompt.path), ready.prompt.transcript, DIA, spoken_by="starter-voice")
        table = '{"Anna": {"voice": "Old Tom"}}'
        before = desk.models.read_cast(table, "starter-voice", OWNER)
        assert before[0].voice == kept.prompt
        for name in ("Tom", "Thomas"):
            voices.rename_voice(home, voices.list_voices(home)[0].name, name)
        assert desk.models.read_cast(table, "starter-voice", OWNER) == before
        assert desk.models.write_cast(SpeechRequest("[Anna] Hi.", "starter-voice", cast=before), OWNER)[0] == table.replace(
            "Old Tom", "Thomas"
        )
        assert speech_request(desk, SpeechAsked(input="Hi.", model="starter-voice", voice="old tom"), "wav").voice == kept.prompt
        assert find_voice("Tom", None, home, find_limits(home, "starter-voice")) == kept.prompt
        desk.settings.put({"speak": {"voice": "Old Tom", "model": "starter-voice"}})
        with gr.Blocks():
            filled = speak.build(desk).fill()
        assert "Thomas" in [each["value"] for each in filled if isinstance(each, dict)]
        voices.rename_voice(home, "Thomas", "Old Tom")
        assert voices.list_voices(home)[0].formerly == ("Thomas", "Tom"), "a name that it has is no former one"


def test_gradios_api_takes_several_voices(tmp_path: Path) -> None:
    names = [each.name for each in voices.list_ready_voices()[:2]]
    begun: list[SpeechRequest] = []

    async def ask(desk: Desk) -> None:
        endpoints = Endpoints(desk)
        with pytest.raises(gr.Error):
            async for _ in endpoints.speak("[Anna] Hi.", cast={"Anna": "Nobody"}):
                pass
        async for _ in endpoints.speak(
            "[Anna] Hi. [Ben] Ho.", model="starter-voice", cast={"Anna": names[1], "Ben": {"voice": names[0], "pace": 1.2}}
        ):
            pass

    def begin(self: JobsDesk, request: SpeechRequest, person: Person, by_program: bool) -> str:
        begun.append(request)
        return "none"

    with desk_at(tmp_path) as desk, patch.object(JobsDesk, "begin", begin), patch.object(gradio_endpoints, "follow", nothing):
        asyncio.run(ask(desk))
    assert [each.cast for each in begun] == [(Actor("Anna", SECOND), Actor("Ben", FIRST, pace=1.2))] and begun[0].text.startswith("[Anna]")


def test_a_call_of_an_earlier_version_gives_what_it_knew_of() -> None:
    assert gradio_endpoints.fill_in("speak", ["Hi.", "", "", 1, 1.0, "wav"]) == ["Hi.", "", "", 1, 1.0, "wav", None]
    assert gradio_endpoints.fill_in("speak", ["Hi."]) == ["Hi.", "", "", None, 1.0, "wav", None]
    assert gradio_endpoints.fill_in("paint", ["A boat"])[-1] == "off" and gradio_endpoints.fill_in("speak", []) == []


async def nothing(keeper: object, job: str) -> AsyncIterator[Progress]:
    for _ in range(0):
        yield Progress()


def test_a_cast_streams_in_the_scripts_order_as_loud_and_quick_as_asked(tmp_path: Path) -> None:
    """Several models finish parts in another order."""
    request = SpeechRequest(
        "[Anna] One. [Ben] Two. [Carl] Three.",
        "starter-voice",
        cast=(Actor("Anna", FIRST), Actor("Ben", SECOND, volume_db=-20.0), Actor("Carl", FIRST, pace=2.0)),
    )
    done = list[PartDone]()
    tone = np.sin(2 * np.pi * 150 * np.arange(24_000) / 24_000).astype(np.float32)
    for index, level in enumerate((0.5, 0.05, 0.25)):
        sound.write(file := tmp_path / f"part-{index}.wav", np.float32(level) * tone, 24_000)
        done.append(PartDone(index, 3, str(file), "", 1, 1.0, True))
    seen = [Progress(parts=(done[2],)), Progress(parts=(done[0], done[2])), Progress(parts=tuple(done), end=Stopped((), 1.0))]

    async def follow(keeper: object, job: str) -> AsyncIterator[Progress]:
        for each in seen:
            yield each

    async def listen(desk: Desk) -> list[bytes]:
        return [piece async for piece in openai.encode_parts(desk, "job", request, "pcm")]

    with desk_at(tmp_path / "home") as desk, patch.object(openai, "follow", follow):
        pieces = [np.frombuffer(each, np.int16) for each in asyncio.run(listen(desk)) if each]
    assert len(pieces) == 3
    levels = [float(np.abs(each[4000:8000]).max()) for each in pieces]
    assert levels[1:] == pytest.approx([0.1 * levels[0], levels[0]], rel=0.2), (
        "in order, equally loud, but the second quieter as its row says"
    )
    assert len(pieces[0]) == 24_000 and len(pieces[2]) < 24_000, "the third is twice as quick"
