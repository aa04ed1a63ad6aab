"""Hearth's own files that are whole and cannot be read now: that is told, nothing writes in their place, and they are read again once they can be."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from app.base import notices
from app.base.paths import home
from app.base.trouble import Trouble
from app.compat.machine import chunk_curve, verdicts
from app.compat.machine.chunk_curve import Curve, Point
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject, Verdict
from app.engine.jobs.journal import Journal
from app.engine.keeper.open_database import open_database
from app.engine.models.catalog import CATALOG
from app.engine.models.chosen import read_choice
from app.engine.models.downloads import Downloads
from app.engine.models.voice_limits import DIA
from app.engine.speech.sound import sound, spoken_parts
from app.engine.speech.text import voices
from app.ui.state import settings as settings_file
from app.ui.state.settings import Settings
from tests.engine.keeper.test_broken_database import make_home, shelf_of
from tests.support.denied import denied
from tests.support.speech_fixtures import write_clip

Hide = Callable[[Path], AbstractContextManager[None]]
HERE = Hardware(kind="cpu", system="linux", name="a machine", torch="2.13.0")
FOUND, LATER = Verdict(Subject("rung", "a/b"), True, 0.0, 1.0), Verdict(Subject("rung", "a/c"), True, 0.0, 1.0)


@contextmanager
def failing(path: Path) -> Iterator[None]:
    """A file whose disk answers with an input error, as Linux does for the start of a process's own memory."""
    aside = path.with_name("whole")
    path.rename(aside)
    path.symlink_to("/proc/self/mem")
    try:
        yield
    finally:
        assert path.is_symlink(), "something was written in its place"
        path.unlink()
        aside.rename(path)


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    notices.take_all()
    yield
    notices.take_all()


def put_aside_in(folder: Path) -> list[Path]:
    return list(folder.rglob("*.damaged"))


@pytest.mark.parametrize("hide", [denied, failing])
def test_settings(tmp_path: Path, hide: Hide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_file, "AGAIN_S", 0.0)
    file, kept = tmp_path / "settings.json", {"greeted": True, "drafts": {"speak-text": "a draft"}, "choice": {"dtype": "float32"}}
    file.write_text(json.dumps(kept))
    with hide(file):
        settings = Settings(file)
        assert settings.get("greeted") is None and read_choice(home(tmp_path)).dtype is None
        with pytest.raises(Trouble, match=r"settings\.json cannot be read now"):
            settings.put({"greeted": False})
        with pytest.raises(Trouble, match="Nothing was saved"):
            settings.change("drafts", {}, lambda drafts: {**drafts, "paint-prompt": "b"})
        (told,) = notices.list_notices()
        assert str(file) in str(told) and told.key == "stored.not-now"
    assert json.loads(file.read_text()) == kept and not put_aside_in(tmp_path)
    assert settings.get("greeted") is True and not notices.list_notices(), "it is read again, and what was told is over"
    settings.change("drafts", {}, lambda drafts: {**drafts, "paint-prompt": "b"})
    assert json.loads(file.read_text())["drafts"] == {"speak-text": "a draft", "paint-prompt": "b"}
    assert read_choice(home(tmp_path)).dtype == "float32"


@pytest.mark.parametrize("hide", [denied, failing])
def test_verdicts(tmp_path: Path, hide: Hide) -> None:
    path = verdicts.store(tmp_path, HERE, {FOUND.subject: FOUND})
    before = path.read_bytes()
    with hide(path):
        assert verdicts.load(tmp_path, HERE) == {}
        assert verdicts.learn(tmp_path, HERE, LATER) == {LATER.subject: LATER} and verdicts.forget(tmp_path, HERE) == ()
        assert len(notices.list_notices()) == 1
    assert path.read_bytes() == before and not put_aside_in(tmp_path)
    assert set(verdicts.learn(tmp_path, HERE, LATER)) == {FOUND.subject, LATER.subject} and not notices.list_notices()


@pytest.mark.parametrize("hide", [denied, failing])
def test_curves_downloads_and_finished_parts(tmp_path: Path, hide: Hide) -> None:
    place = home(tmp_path).create()
    model = CATALOG[0]
    chunk_curve.keep_curve(place, Curve(model.id, (Point(256, 1.0),), 256))
    downloads = Downloads(place)
    record = downloads.record_path(model.id)
    record.parent.mkdir()
    record.write_text(json.dumps({"quantised": "none", "total": 5, "blobs": []}))
    part = Path(write_clip(place.scratch / "part-000.wav", 1.0))
    part.with_suffix(".json").write_text("{}")
    for file in (chunk_curve.curve_file(place, model.id), record, part.with_suffix(".json")):
        before = file.read_bytes()
        with hide(file):
            if file.parent == place.scratch:
                with pytest.raises(OSError):
                    spoken_parts.find(part)
            else:
                downloads.recall(CATALOG)
                assert chunk_curve.read_curve(place, model.id) is None or file == record
        assert file.read_bytes() == before and not put_aside_in(tmp_path)
    assert chunk_curve.read_curve(place, model.id) is not None


def test_a_voice_is_not_saved_over_one_that_cannot_be_read(tmp_path: Path) -> None:
    place, clip = home(tmp_path).create(), Path(write_clip(tmp_path / "clip.wav", 6.0))
    words = "[S1] The water is warm today, my friend, and so it was the day before."
    voices.keep_voice(place, "Ada", clip, words, DIA)
    before = sound.read(place.voices / "ada.wav")[0]
    with denied(place.voices / "ada.json"):
        assert voices.list_voices(place) == ()
        with pytest.raises(Trouble, match="There is a voice of this name"):
            voices.keep_voice(place, "Ada", Path(write_clip(tmp_path / "other.wav", 7.0)), words, DIA)
    assert len(sound.read(place.voices / "ada.wav")[0]) == len(before) and [each.name for each in voices.list_voices(place)] == ["Ada"]


@pytest.mark.parametrize(("hide", "fault"), [
    (denied, "ermission"), (lambda file: denied(file, 0o400), "readonly"), (lambda file: denied(file.parent), "ermission"), (failing, "rror"),
])  # fmt: skip
def test_the_database(tmp_path: Path, hide: Hide, fault: str) -> None:
    """It is not broken: it stays, and the next start that may read it has everything."""
    place = make_home(tmp_path / "home", pictures=3, jobs=5)
    with hide(place.database), pytest.raises(Trouble, match="cannot be used now") as told:
        open_database(place, alone=True)
    assert str(place.database) in str(told.value) and fault in str(told.value)
    assert not put_aside_in(place.root) and not notices.list_notices()
    opened = open_database(place, alone=True)
    assert len(shelf_of(place, opened)) == 3 and len(Journal(opened).list_live()) == 5
    opened.close()


def test_a_wal_that_may_not_be_read_keeps_its_rows(tmp_path: Path) -> None:
    place = make_home(tmp_path / "home", pictures=1, jobs=2)
    wal = Path(f"{place.database}-wal")
    other = sqlite3.connect(place.database, isolation_level=None)
    other.execute("UPDATE creations SET favourite=1")
    with denied(wal), pytest.raises(Trouble, match="cannot be used now"):
        open_database(place, alone=True)
    other.close()
    opened = open_database(place, alone=True)
    assert shelf_of(place, opened)[0].favourite and not put_aside_in(place.root)
    opened.close()
