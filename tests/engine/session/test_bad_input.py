"""Bad input, one after the other: each gets a sentence, and nothing that waits or keeps the books dies of it."""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from app.base.paths import home
from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.database import Database
from app.engine.jobs.events import Failed, Finished
from app.engine.jobs.journal import Journal
from app.engine.jobs.request import Lora, PictureRequest, SpeechRequest, VoicePrompt, from_json, to_json
from app.engine.jobs.shelf import Search, Shelf
from app.engine.keeper.job_end import JobEnds
from app.engine.models import catalog
from app.engine.models.voice_limits import DIA
from app.engine.pictures.run import input_images
from app.engine.pictures.run.final_settings import resolve_settings
from app.engine.speech.sound import sound
from app.engine.speech.text import voices
from app.engine.speech.text.script import parse_script
from tests.support.waiting import Idle, until

LONG = "x" * 100_000


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: SpeechRequest("  \n"), "request.no-text"), (lambda: PictureRequest(""), "request.no-prompt"),
        (lambda: SpeechRequest(5), "request.not-text"), (lambda: PictureRequest("a", negative=None), "request.not-text"),  # type: ignore[arg-type]
        (lambda: SpeechRequest("[S1] \ud83d"), "request.not-text"), (lambda: PictureRequest(LONG), "request.long"),
        (lambda: SpeechRequest("[S1] a " * 200_000), "request.long"),
        (lambda: PictureRequest("a", guidance=math.nan), "request.range"), (lambda: PictureRequest("a", strength=math.inf), "request.range"),
        (lambda: SpeechRequest("a", speed=math.nan), "request.range"), (lambda: PictureRequest("a", loras=(Lora("x", math.nan),)), "request.range"),
        (lambda: PictureRequest("a", steps=-1), "request.range"), (lambda: PictureRequest("a", steps=2.5), "request.whole"),  # type: ignore[arg-type]
        (lambda: PictureRequest("a", width=1, height=1), "request.range"), (lambda: PictureRequest("a", width=20_000, height=20_000), "request.range"),
        (lambda: PictureRequest("a", width=513), "request.multiple"), (lambda: PictureRequest("a", batch=True), "request.whole"),
        (lambda: SpeechRequest("a", format="exe"), "request.choice"), (lambda: from_json({"kind": "speech", "text": "a", "strange": 1}), "request.unreadable"),
        (lambda: from_json({"kind": "film"}), "request.kind"),
    ],
)  # fmt: skip
def test_a_request_that_makes_no_sense_is_not_made(make: Callable[[], Any], key: str) -> None:
    with pytest.raises(Trouble) as told:
        make()
    assert told.value.sentence.key == key


def test_a_hundred_thousand_letters_of_script_are_parts_in_a_moment() -> None:
    for text in ("[S1] " + LONG, "[S1] Hello there. [S2] Hi. " * 4000, "(" * 100_000, "[S1]" * 25_000 + " a"):
        began = time.process_time()
        checked = parse_script(text)
        assert time.process_time() - began < 5
        assert max((len(part.text.encode()) for part in checked.parts), default=0) <= DIA.bytes_most


PATHS = ["nowhere", LONG, "a\0b", "~nobody-of-this-name/x", "", "/"]


@pytest.mark.parametrize("path", PATHS, ids=["nowhere", "long", "nul", "nobody", "empty", "a folder"])
def test_a_path_that_is_no_file_is_a_sentence(path: str) -> None:
    for make in (
        lambda: input_images.open_image(path),
        lambda: sound.read(Path(path)),
        lambda: catalog.find(path),
        lambda: voices.prepare_prompt(VoicePrompt(path, "[S1] a"), DIA),
    ):
        with pytest.raises(Trouble) as told:
            make()
        assert len(str(told.value)) < 200_500


@pytest.mark.slow
def test_pictures_that_are_none_or_too_large_or_too_small(tmp_path: Path) -> None:
    text, tiny, huge = tmp_path / "text.png", tmp_path / "tiny.png", tmp_path / "huge.png"
    text.write_text("not a picture at all")
    Image.new("RGB", (1, 1)).save(tiny)
    Image.new("1", (20_000, 20_000)).save(huge)
    Image.new("1", (11_000, 10_000)).save(tmp_path / "large.png")  # which Pillow itself would still open
    for path, key in (
        (text, "image.not-a-picture"),
        (tiny, "image.too-small"),
        (huge, "image.too-large"),
        (tmp_path / "large.png", "image.too-large"),
    ):
        with pytest.raises(Trouble) as told:
            input_images.open_image(str(path))
        assert told.value.sentence.key == key


@pytest.mark.parametrize(("seconds", "rate", "key"), [(0, 44_100, "voice.silent"), (3, 44_100, "voice.silent"), (7200, 8_000, None)])
def test_voices_without_a_sound_or_without_an_end(seconds: int, rate: int, key: str | None, tmp_path: Path) -> None:
    clip = tmp_path / "clip.wav"
    noise = np.random.default_rng(0).normal(0, 0.1, 60 * rate).astype(np.float32)
    with soundfile.SoundFile(clip, "w", rate, 1) as file:
        for _ in range(0, seconds, 60):
            file.write(np.zeros(seconds * rate, np.float32) if key else noise)
    prompt = VoicePrompt(str(clip), "[S1] one two three four five six seven")
    if key is None:
        made = voices.prepare_prompt(prompt, DIA)
        assert 0 < len(made.samples) <= DIA.clip_most_s * DIA.rate and made.rate == DIA.rate
        return
    with pytest.raises(Trouble) as told:
        voices.prepare_prompt(prompt, DIA)
    assert told.value.sentence.key == key


INDEX = {"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"], "vae": ["diffusers", "AutoencoderKL"]}


@pytest.mark.parametrize(
    ("unet", "vae", "key"),
    [({}, {}, "strange"), ({"down_block_types": 5}, {"block_out_channels": 7}, "fact"),
     ({"down_block_types": ["Attn"], "attention_head_dim": 0, "block_out_channels": [4]}, {}, "fact")],
)  # fmt: skip
def test_a_folder_with_settings_that_make_no_sense(unet: Any, vae: Any, key: str, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    (tmp_path / "model_index.json").write_text(json.dumps(INDEX))
    for name, config in (("unet", unet), ("vae", vae)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
        save_file({"a": np.zeros(1, np.float32)}, tmp_path / name / "model.safetensors")
    with pytest.raises(Trouble) as told:
        catalog.find(str(tmp_path))
    assert told.value.sentence.key == f"detect.{key}"


def test_a_job_of_another_version_keeps_nobody_from_starting(tmp_path: Path) -> None:
    database = Database(tmp_path / "hearth.db")
    journal = Journal(database)
    good, newer, stranger = (journal.queue(SpeechRequest("[S1] Hello."), Choice()).id for _ in range(3))
    database.write("UPDATE jobs SET request=? WHERE id=?", json.dumps({**to_json(SpeechRequest("a")), "smell": 1}), newer)
    database.write("UPDATE jobs SET choice=? WHERE id=?", json.dumps({"smell": 1}), stranger)
    database.write("UPDATE jobs SET runner='1:0.0'")
    assert [job.id for job in journal.mark_interrupted()] == [good]
    states = {row["id"]: row["state"] for row in database.query("SELECT id, state FROM jobs")}
    assert states == {good: "interrupted", newer: "failed", stranger: "failed"}
    database.close()


def test_creations_move_from_one_disk_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(tmp_path / "hearth.db")
    shelf, journal = Shelf(database, tmp_path / "shelf"), Journal(database)
    job, made = journal.queue(SpeechRequest("[S1] Hello."), Choice()), tmp_path / "speech.wav"
    real = Path.replace

    def across(path: Path, target: Path) -> Path:
        if path.parent != Path(target).parent:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return real(path, target)

    monkeypatch.setattr(Path, "replace", across)
    made.write_bytes(b"sound")
    (kept,) = shelf.keep(job, [made], RunSummary("m"))
    assert kept.path.read_bytes() == b"sound" and not made.exists() and kept.condition == ""

    def full(source: Any, target: Any) -> None:
        Path(target).write_bytes(b"so")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    made.write_bytes(b"another sound")
    with pytest.raises(OSError, match="No space"):
        shelf.keep(journal.queue(SpeechRequest("[S1] Hello."), Choice()), [made], RunSummary("m"))
    assert (
        len(shelf.find(Search())) == 1 and made.exists() and [path.name for path in (tmp_path / "shelf").iterdir()] == [kept.path.name]
    ), "half a file is left"
    database.close()


def test_settings_that_an_opus_file_has_no_room_for_are_told() -> None:
    noise = "".join(chr(code) for code in np.random.default_rng(0).integers(33, 126, 100_000))
    for coding in sound.CODINGS:
        assert sound.has_room_for({"text": "[S1] Hello."}, coding)
        assert sound.has_room_for({"text": noise}, coding) == (coding != "opus")


def test_a_strength_that_changes_nothing_is_told(tmp_path: Path) -> None:
    start = tmp_path / "start.png"
    Image.new("RGB", (64, 64), "red").save(start)
    Image.new("RGB", (64, 64), "white").save(tmp_path / "mask.png")
    asked = PictureRequest("a", image=str(start), seed=1)
    for model, request, told in (
        ("flux2-klein", asked, True),
        ("flux2-klein", dataclasses.replace(asked, mask=str(tmp_path / "mask.png")), False),
        ("sd15", asked, False),
        ("flux2-klein", dataclasses.replace(asked, image=None), False),
    ):
        notes = [note.key for note in resolve_settings(request, catalog.find(model), tmp_path).notes]
        assert ("paint.no-strength" in notes) == told, (model, notes)


@pytest.mark.parametrize(("size", "told"), [((32, 32), []), ((128, 128), []), ((200, 31), ["image.mask-cut"])])
def test_a_mask_of_another_shape_is_cut_and_told(size: tuple[int, int], told: list[str], tmp_path: Path) -> None:
    """It was cut without a word, so that another place was painted than was drawn."""
    start, mask = tmp_path / "start.png", tmp_path / "mask.png"
    Image.new("RGB", (64, 64)).save(start)
    Image.new("L", size, 255).save(mask)
    asked = PictureRequest("a ball", "starter-painter", width=64, height=64, image=str(start), mask=str(mask))
    settings = resolve_settings(asked, catalog.find("starter-painter"), tmp_path)
    assert [each.key for each in settings.notes if each.key.startswith("image.")] == told
    assert settings.mask is not None and settings.image is not None and settings.mask.size == settings.image.size


def test_a_database_without_room_stops_neither_the_keeper_nor_the_telling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Idle(home(tmp_path / "home"))
    try:
        real, full = keeper.journal.take, sqlite3.OperationalError("database or disk is full")
        failures = [full] * 3

        def take(*passed_over: Any) -> Any:
            if failures:
                raise failures.pop()
            return real(*passed_over)

        monkeypatch.setattr(keeper.journal, "take", take)
        keeper.status.set(ready=True)
        until(lambda: not failures and keeper.state.trouble is not None)
        assert keeper.state.trouble is not None and "disk is full" in str(keeper.state.trouble.sentence)
        job = keeper.journal.queue(SpeechRequest("[S1] Hello."), Choice())

        def cannot(*_: Any) -> None:
            raise full

        monkeypatch.setattr(keeper.journal, "end", cannot)
        monkeypatch.setattr(keeper.shelf, "keep", cannot)
        told = JobEnds(keeper.stores, keeper.board, patient=True).end(job.id, Finished((str(tmp_path / "hearth.wav"),), 1.0, 0.0, "", 0))
        assert isinstance(told, Failed) and "disk is full" in str(told.sentence)
    finally:
        keeper.close()
