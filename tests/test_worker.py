"""What the engine does before anybody asks for anything: it imports what a first job would wait for, and stops when somebody asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parent.parent
WORK = """
import sys
from app.engine import worker
from app.engine.message import Quit

class Pipe:
    def send(self, report): ...

class Session:
    loaded = ""

here = worker.Worker(Pipe())
imported = worker.import_module

def import_module(name):
    {during}
    return imported(name)

worker.import_module = import_module
worker.ROOM_BYTES = {room_bytes}
{late}
if {asked_at_once}:
    here._orders.put(Quit())
here.work(Session())
print(*(name for name in worker.AHEAD if name in sys.modules))
"""


def ahead(
    during: str = "pass", asked_at_once: bool = False, room_bytes: int = 0, late: str = ""
) -> tuple[list[str], str]:
    code = WORK.format(during=during, asked_at_once=asked_at_once, room_bytes=room_bytes, late=late)
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def test_all_of_it_where_nobody_asks() -> None:
    there, _ = ahead("here._orders.put(Quit()) if name == worker.AHEAD[-1] else None")
    assert there[-1] == "app.engine.picture" and len(there) == 4


def test_nothing_where_somebody_asked() -> None:
    assert ahead(asked_at_once=True)[0] == []


def test_nothing_where_memory_is_short() -> None:
    """It would wait for orders for ever: it is asked to end a moment later."""
    late = "import threading; threading.Timer(1, here._orders.put, [Quit()]).start()"
    assert ahead(room_bytes=1 << 60, late=late)[0] == []


def test_it_stops_when_somebody_asks() -> None:
    there, _ = ahead("here._orders.put(Quit())")
    assert there == ["transformers.modeling_utils"]


def test_a_library_that_is_broken_stops_no_engine() -> None:
    there, said = ahead("here._orders.put(Quit()); raise ImportError('broken: ' + name)")
    assert there == [] and "broken: transformers.modeling_utils" in said
