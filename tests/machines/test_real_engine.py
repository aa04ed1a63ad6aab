"""The real painter and voice, in the engines of helpers: the same request gives the same picture on each, and as here."""

from __future__ import annotations

import io
import json
import queue
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.base.paths import home
from app.engine.jobs.events import END, Event, Finished, Step
from app.engine.jobs.parts import MACHINES
from app.engine.jobs.request import Actor, PictureRequest, Request, SpeechRequest, VoicePrompt
from app.engine.keeper.keeper import Keeper
from app.engine.speech.sound import sound
from app.engine.speech.text import voices
from app.machines.hub import Hub, TaskEnd
from app.machines.spreader import Spreader
from app.machines.tasks import begun
from app.machines.tasks.portable import pack
from tests.support.lent import Main, open_main
from tests.support.waiting import LOADING_S, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


BATCH = 5
"""Four small pictures are painted at once; the last one is the first that a helper gets."""


def have_made(main: Main, place: int, request: Request, brings: Mapping[str, Path] | None = None) -> tuple[bytes, list[Event]]:
    """Have one helper make something; return its file and what it told on its way. `brings`: what is made of it so far."""
    machine, told = main.hub.list_machines()[place].id, list[Event]()
    ends: queue.SimpleQueue[tuple[TaskEnd, list[bytes]]] = queue.SimpleQueue()

    def take(end: TaskEnd) -> None:
        ends.put((end, [file.read_bytes() for file in end.files.values()]))

    main.hub.submit(f"{place}-{type(request).__name__}", pack(request, brings), machine, lambda _, event: told.append(event), take)
    end, files = ends.get(timeout=250)
    assert isinstance(end.event, Finished) and end.machine == machine and len(files) == 1, (end, main.helpers[place].log)
    return files[0], told


def test_the_same_picture_on_every_machine(tmp_path: Path) -> None:
    picture = PictureRequest("a red ball on grass", model="starter-painter", seed=5, steps=3)
    speech = SpeechRequest("[S1] The red boat is near the bridge.", model="starter-voice", seed=5)
    with open_main(tmp_path / "main", spreads=False) as main:
        for name in ("one", "two"):
            main.start_helper(tmp_path / name, module="app", words=("lend",))
        until(lambda: not any(each.paused for each in main.hub.list_machines()), LOADING_S)
        first, told = have_made(main, 0, picture)
        assert first == have_made(main, 1, picture)[0] and first.startswith(b"\x89PNG")
        assert [event.done for event in told if isinstance(event, Step)][-1] == 3, "progress did not arrive while it happened"
        assert have_made(main, 0, speech)[0].startswith(b"RIFF")
    keeper = Keeper(home(tmp_path / "here"))
    try:
        end = next(event for event in keeper.follow(keeper.submit(picture).id) if isinstance(event, END))
        assert Path(end.files[0]).read_bytes() == first
    finally:
        keeper.close()


def test_another_processor_paints_and_speaks_the_same_but_for_rounding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch and its libraries use no wide vectors there, as on an old processor."""
    picture = PictureRequest("a red ball on grass", model="starter-painter", seed=5)
    speech = SpeechRequest("[S1] The red boat is near the bridge.", model="starter-voice", seed=5)
    with open_main(tmp_path / "main", spreads=False) as main:
        for name, old in (("this", {}), ("old", {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"})):
            with monkeypatch.context() as patch:
                for variable, value in old.items():
                    patch.setenv(variable, value)
                main.start_helper(tmp_path / name, module="app", words=("lend",))
        until(lambda: not any(each.paused for each in main.hub.list_machines()), LOADING_S)
        painted = [have_made(main, place, picture)[0] for place in (0, 1)]
        spoken = [have_made(main, place, speech)[0] for place in (0, 1)]
    pixels = [np.asarray(Image.open(io.BytesIO(each)).convert("RGB")).astype(int) for each in painted]
    (here, _), (there, _) = (soundfile.read(io.BytesIO(each)) for each in spoken)
    apart, heard = np.abs(pixels[0] - pixels[1]), np.abs(here - there)
    print(f"{(apart > 0).sum()} of {apart.size} values differ, by {apart.max()} of 255 at most; sound by {heard.max():.1e}")
    assert pixels[0].std() > 10 and apart.max() <= 2 and heard.max() < 1e-3
    assert painted[0] != painted[1] or spoken[0] != spoken[1], "the other processor is the same one"


@pytest.mark.parametrize("kind", ["its own", "ready", "saved", "cast"])
def test_a_script_is_spoken_by_two_machines_as_by_one(kind: str, tmp_path: Path) -> None:
    voice = voices.list_ready_voices()[0].prompt if kind != "its own" else None
    if voice is not None and kind in ("saved", "cast"):
        saved = tmp_path / "mine.ogg"
        saved.write_bytes(Path(voice.path).read_bytes() + b" ")  # another file, with a note of its own
        saved.with_suffix(".json").write_bytes(Path(voice.path).with_suffix(".json").read_bytes())
        voice = VoicePrompt(str(saved), voice.transcript)
    request = SpeechRequest("[S1] hello. good morning. " * 24, model="starter-voice", seed=5, voice=voice)
    if kind == "cast":
        text = "[Anna] hello. good morning. (pause 0.2s) [Ben] hello. good night. (pause 0.2s) " * 8
        request = replace(request, text=text, voice=None, cast=(Actor("Ben", voice, "starter-voice"),))
    spoken, made_by = list[sound.Samples](), dict[str, str]()
    for helped in (True, False):
        keeper = Keeper(home(tmp_path / f"helped-{helped}"))
        main = Main(keeper, Hub(keeper.home, "127.0.0.1"))
        try:
            if helped:
                main.start_helper(tmp_path / "helper", module="app", words=("lend",))
                main.spreader = Spreader(keeper, main.hub).start()
            job = keeper.submit(request).id
            end = next(event for event in keeper.follow(job) if isinstance(event, END))
            assert isinstance(end, Finished), end
            spoken.append(sound.read(Path(end.files[0]))[0])
            made_by |= json.loads((keeper.folder(job) / MACHINES).read_text()) if helped else {}
        finally:
            for helper in main.helpers:
                helper.end()
            if main.spreader is not None:
                main.spreader.close()
            main.hub.close()
            keeper.close()
    assert any(each.endswith(".wav") for each in made_by), "the helper spoke nothing"
    alone, together = spoken
    assert np.array_equal(alone, together)


def test_a_picture_whose_machine_is_killed_goes_on_here_from_its_last_kept_step(tmp_path: Path) -> None:
    request = PictureRequest("a red ball on grass", model="starter-painter", seed=5, steps=150, batch=BATCH)
    painted, steps = list[bytes](), list[list[int]]()
    for helped in (True, False):
        keeper = Keeper(home(tmp_path / f"helped-{helped}"))
        main = Main(keeper, Hub(keeper.home, "127.0.0.1"))
        try:
            if helped:
                helper = main.start_helper(tmp_path / "helper", module="tests.support.hasty_helper")
                main.spreader = Spreader(keeper, main.hub).start()
            job = keeper.submit(request).id
            if helped:
                latent = keeper.folder(job) / f"latent-{BATCH - 1}.safetensors"
                until(lambda: begun.measure(latent) >= 5, LOADING_S)  # noqa: B023
                helper.kill()
                kept = begun.measure(latent)
                until(lambda: not main.hub.list_machines()[0].online)  # noqa: B023
            events = list(keeper.follow(job))
            assert isinstance(events[-1], Finished) and len(events[-1].files) == BATCH, events[-1]
            painted.append(Path(events[-1].files[-1]).read_bytes())
            steps.append([event.done for event in events if isinstance(event, Step) and event.part == BATCH - 1])
            assert not (helped and (keeper.folder(job) / MACHINES).exists()), "the helper had ended it"
        finally:
            for each in main.helpers:
                each.end()
            if main.spreader is not None:
                main.spreader.close()
            main.hub.close()
            keeper.close()
    assert painted[0] == painted[1]
    print(f"killed at step {kept}, gone on here with steps {steps[0][0]} to {steps[0][-1]}")
    assert steps[0][0] > kept >= 5 and steps[0][-1] == 150


def test_a_helper_goes_on_with_what_its_task_brings(tmp_path: Path) -> None:
    """With some steps of a picture; it is the same as the one that goes on here."""
    request = PictureRequest("a red ball on grass", model="starter-painter", seed=5, steps=60)
    keeper = Keeper(home(tmp_path / "main"))
    main = Main(keeper, Hub(keeper.home, "127.0.0.1"))
    try:
        main.start_helper(tmp_path / "helper", module="app", words=("lend",))
        job = keeper.submit(request).id
        latent = keeper.folder(job) / "latent-0.safetensors"
        until(lambda: begun.measure(latent) >= 5, LOADING_S)
        copied = Path(shutil.copy(latent, tmp_path))
        kept, aside = begun.measure(copied), begun.set_aside({latent.name: copied}, tmp_path / "aside")
        until(lambda: not main.hub.list_machines()[0].paused, LOADING_S)
        there, told = have_made(main, 0, request, aside)
        end = [*keeper.follow(job)][-1]
        assert isinstance(end, Finished) and Path(end.files[0]).read_bytes() == there
        steps = [event.done for event in told if isinstance(event, Step)]
        print(f"brought step {kept}, gone on there with steps {steps[0]} to {steps[-1]}")
        assert steps[0] > kept >= 5 and steps[-1] == request.steps
    finally:
        for each in main.helpers:
            each.end()
        main.hub.close()
        keeper.close()
