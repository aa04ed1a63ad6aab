"""What a creation was made from: the seed that was drawn and the steps that a model recommends come from its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.compat.planning.types import Choice
from app.engine.jobs.creation import Creation, RunSummary
from app.engine.jobs.database import Database
from app.engine.jobs.journal import Journal
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest, VoicePrompt, to_json
from app.engine.jobs.shelf import Shelf
from app.engine.keeper.made_from import read_request
from app.engine.pictures.files import picture_settings
from app.engine.speech.sound import sound
from app.engine.speech.sound.join_sound import Finish, Segment, join


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "hearth.sqlite3")
    yield database
    database.close()


def shelve(database: Database, request: Request, file: Path) -> Creation:
    shelf = Shelf(database, file.parent / "creations")
    (kept,) = shelf.keep(Journal(database).queue(request, Choice(), "owner"), [file], RunSummary("sd15"))
    return kept


def test_a_picture_says_its_own_seed_steps_and_guidance(database: Database, tmp_path: Path) -> None:
    asked = PictureRequest("a boat", batch=4, image="/home/me/start.png", steps=9)
    made = replace(asked, batch=1, seed=12, guidance=7.5, width=512, height=512, scheduler="Euler", image="start.png")
    picture_settings.write(Image.new("RGB", (8, 8)), file := tmp_path / "a.png", made, "sd15")
    assert read_request(shelve(database, asked, file)) == replace(made, image="/home/me/start.png")


def test_a_sound_says_its_own_seed(database: Database, tmp_path: Path) -> None:
    asked = SpeechRequest("[S1] Hello.", voice=VoicePrompt("/home/me/mum.wav", "Hello."))
    sound.write(part := tmp_path / "part.wav", np.zeros(1600, np.float32), 16000)
    join([Segment(part, 0.0)], file := tmp_path / "a.wav", Finish("wav", 1.0, None, 0.0), to_json(replace(asked, seed=5)))
    assert read_request(shelve(database, asked, file)) == replace(asked, seed=5)


@pytest.mark.parametrize("request_", [PictureRequest("a boat"), SpeechRequest("[S1] Hello.")])
def test_a_file_that_says_nothing_leaves_what_was_asked_for(database: Database, request_: Request, tmp_path: Path) -> None:
    file = tmp_path / ("a.png" if isinstance(request_, PictureRequest) else "a.wav")
    file.write_bytes(b"neither a picture nor a sound")
    assert read_request(shelve(database, request_, file)) == request_
