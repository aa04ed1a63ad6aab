"""What the engine does before anybody asks for anything: it imports what a first job would wait for, and stops when somebody asks."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.base.paths import home
from app.engine.keeper import child
from app.engine.keeper.worker import list_ahead
from app.engine.models.voice_families import FAMILIES
from tests.support.places import TOP
from tests.support.tone_voice import ROW, save_tone

pytestmark = pytest.mark.long

WORK = """
import sys
from app.base.paths import home
from app.engine.keeper import worker
from app.engine.jobs.messages import Quit

libraries = tuple(worker.list_ahead(home()))

class Pipe:
    def send(self, report): ...

class Session:
    loaded = ""

    def use_idle_time(self):
        {spare}

here = worker.Worker(Pipe())
imported = worker.import_module

def import_module(name):
    {during}
    return imported(name)

worker.import_module = import_module
worker.ROOM_BYTES = worker.SPARE_BYTES = {room_bytes}
{late}
if {asked_at_once}:
    here._orders.put(Quit())
here.work(Session(), libraries)
print(*(name for name in libraries if name in sys.modules))
"""


SHORT = """
looks = [Quit(), None, None, None]

def read_available_bytes():
    if looks and (order := looks.pop()):
        here._orders.put(order)
    return 0

worker.read_available_bytes, worker.BEAT_S = read_available_bytes, 0.01
"""


def ahead(
    during: str = "pass", asked_at_once: bool = False, room_bytes: int = 0, late: str = "", spare: str = "return iter(())"
) -> tuple[list[str], str]:
    code = WORK.format(during=during, asked_at_once=asked_at_once, room_bytes=room_bytes, late=late, spare=spare)
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


@pytest.mark.slow
def test_all_of_it_where_nobody_asks() -> None:
    there, _ = ahead("here._orders.put(Quit()) if name == libraries[-1] else None")
    assert there == list(list_ahead(home())) and there[-1] == "app.engine.pictures.run.painter"
    assert {"app.engine.speech.run.loader", "app.engine.speech.families.dia.voice"} <= set(there)


def test_of_the_voices_only_the_usual_ones_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "tone", ROW)
    place, tone = home(tmp_path / "home").create(), save_tone(tmp_path / "tone")
    for kept, wanted in (
        ({}, "app.engine.speech.families.dia.voice"),
        ({"model": str(tone)}, ROW.loads_with),
        ({"model": str(tmp_path / "gone")}, "app.engine.speech.families.dia.voice"),
        ({"model": "sd15"}, "app.engine.speech.families.dia.voice"),
        (5, "app.engine.speech.families.dia.voice"),
    ):
        place.settings.write_text(json.dumps({"speak": kept}))
        assert [each for each in list_ahead(place) if each.endswith(".voice")] == [wanted], kept


def test_nothing_where_somebody_asked() -> None:
    assert ahead(asked_at_once=True)[0] == []


def test_nothing_where_memory_is_short() -> None:
    """It would wait for orders for ever: it is asked to end once it has looked for room three times."""
    assert ahead(room_bytes=1 << 60, late=SHORT)[0] == []


@pytest.mark.slow
def test_it_stops_when_somebody_asks() -> None:
    there, _ = ahead("here._orders.put(Quit())")
    assert there == ["transformers.modeling_utils"]


def test_a_library_that_is_broken_stops_no_engine() -> None:
    there, said = ahead("here._orders.put(Quit()); raise ImportError('broken: ' + name)")
    assert there == [] and "broken: transformers.modeling_utils" in said


PIECES = "for piece in range(9): print('piece', piece); here._orders.put(Quit()) if piece == {last} else None; yield"


def test_pieces_of_spare_work_end_where_somebody_asks() -> None:
    there, _ = ahead(late="libraries = ()", spare=PIECES.format(last=2))
    assert [each for each in there if each.isdigit()] == ["0", "1", "2"]


@pytest.mark.slow
def test_no_spare_work_where_an_order_waits_or_memory_is_short() -> None:
    for told in (
        ahead(asked_at_once=True, spare=PIECES.format(last=0)),
        ahead(room_bytes=1 << 60, late=SHORT, spare=PIECES.format(last=0)),
    ):
        assert "piece" not in told[0]


def test_spare_work_that_has_begun_is_not_stopped_by_its_own_memory() -> None:
    """A child that checks the machine takes half a GiB: it was paused for it, for ever, and kept it."""
    late = """
mib = [100, 100, 100, 300, 300, 700]

def read_available_bytes():
    if len(mib) == 1:
        here._orders.put(Quit())
    return (mib.pop() if len(mib) > 1 else mib[0]) << 20

worker.read_available_bytes = read_available_bytes
worker.SPARE_BYTES, worker.BEAT_S, libraries = 640 << 20, 0.01, ()
"""
    there, _ = ahead(late=late, spare=PIECES.format(last=8))
    assert [each for each in there if each.isdigit()] == ["0", "1", "2"], "with 100 MiB left it waits"


def test_spare_work_that_fails_stops_no_engine() -> None:
    _, said = ahead(late="libraries = ()", spare="here._orders.put(Quit()); raise ValueError('not measured'); yield")
    assert "ValueError: not measured" in said


CONSOLE = """
import os, pathlib, sys
from app.engine.keeper import worker

class Console:
    def write(self, words):
        raise OSError(6, "The handle is invalid")

sys.stdout = sys.stderr = Console()
worker.redirect_output(pathlib.Path(sys.argv[1]))
print("loading ü")
sys.stderr.write("50 % \\udcff\\n")
os.write(2, b"from below\\n")
"""


def test_what_was_a_console_writes_to_the_log(tmp_path: Path) -> None:
    """On Windows a stream made for a console stays one, whatever its number leads to; a progress bar would end the loading."""
    log = tmp_path / "engine.log"
    done = subprocess.run([sys.executable, "-c", CONSOLE, str(log)], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, log.read_text("utf-8")
    assert log.read_text("utf-8") == "loading ü\n50 % \\udcff\nfrom below\n" and not done.stdout + done.stderr


def test_a_log_that_somebody_has_open_is_written_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another Hearth's engine, on Windows: the log is not put aside, and this engine starts all the same."""
    place = home(tmp_path).create()
    log = place.logs / "engine.log"
    log.write_bytes(b"x" * (child.LOG_BYTES + 1))

    def refuse(path: Path, target: Path) -> Path:
        raise PermissionError(13, "The process cannot access the file")

    def process(**_: Any) -> SimpleNamespace:
        return SimpleNamespace(start=lambda: None, is_alive=lambda: True)

    ends = SimpleNamespace(Pipe=lambda: (None, SimpleNamespace(close=lambda: None)), Process=process)
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: ends)
    with monkeypatch.context() as open_elsewhere:
        open_elsewhere.setattr(Path, "replace", refuse)
        assert child.Child(place, "").alive and log.exists()
    assert child.Child(place, "").alive and not log.exists()
