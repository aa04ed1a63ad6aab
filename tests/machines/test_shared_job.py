"""Which machine has which pieces of a job: each one that it makes and one that lies ready, which idle machines take from there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from app.base.paths import home
from app.base.sentence import Sentence, say
from app.engine.jobs.events import Failed, Finished
from app.engine.jobs.request import PictureRequest
from app.machines import shared_job
from app.machines.helping_machine import HelpingMachine, Judged
from app.machines.hub import TaskEnd
from app.machines.outlook import LOADING_S, UNKNOWN_S, Outlook
from app.machines.shared_job import SharedJob, find_pieces
from app.machines.tasks.begun import measure
from app.machines.tasks.portable import Portable
from tests.support.other_functions import set_in

FINISHED, FAILED = Finished((), 1.0, 1.0, "steps", 0), Failed(say("test.fails", "it fails"))


class Table:
    """A hub, and a keeper's folder, that note who has what."""

    def __init__(self, folder: Path, batch: int, here: Outlook = Outlook()) -> None:  # noqa: B008 - frozen
        self.folder, self.given = folder, dict[str, tuple[str, int]]()
        self.holds = dict[str, Callable[[str, Path], None]]()
        """Another machine would go on from the file that one of these is called with."""
        self.brought = dict[int, list[int]]()
        """It tells how far each piece was when it was last given."""
        self._ends: dict[str, Callable[[TaskEnd], None]] = {}
        self.name, self.judged = str, Judged()
        keeper = SimpleNamespace(folder=lambda job: folder, take_over=self._keep, home=home(folder))
        self.outlooks = dict[str, Outlook]()
        asking = SimpleNamespace(choose=lambda job, request, machines: [*machines], find=lambda job, machine: self.outlooks.get(machine))
        pieces = find_pieces(home(folder), PictureRequest("a ball", "starter-painter", batch=batch, seed=0), folder)
        assert pieces is not None
        job = SimpleNamespace(id="job")
        given: dict[str, Any] = {"keeper": keeper, "hub": self, "asking": asking, "job": job}
        self.shared = SharedJob(**given, pieces=pieces, model="starter-painter", here=here, ended=lambda: None, unable=set())

    def submit(self, id_: str, portable: Portable, machine: str, tell: object, end: Any, *, why: object, begun: Any) -> None:
        self.given[id_], self._ends[id_], self.holds[id_] = (machine, int(id_.split("-")[1])), end, begun
        self.brought[self.given[id_][1]] = [
            measure(Path(shutil.copy(file, self.folder / "latent-8.safetensors"))) for file in portable.files.values()
        ]

    def stop(self, id_: str) -> None:
        del self.given[id_]

    def _keep(self, job: str, part: object, files: dict[str, Path], machine: str) -> None:
        for name, path in files.items():
            path.rename(self.folder / name)

    def give_away(self, machines: str, here: bool = True) -> dict[str, list[int]]:
        self.shared.give_away([HelpingMachine(each, each) for each in machines], (), here, joins=True)
        return {machine: [place for other, place in self.given.values() if other == machine] for machine in machines}

    def begin(self, machine: str, done: int, name: str = "latent-0.safetensors") -> None:
        """Send what a machine has made of its first piece."""
        arrived = self.folder / "arrived" / name
        arrived.parent.mkdir(exist_ok=True)
        save_file({"latents": np.zeros(4, np.float32)}, arrived, {"done": str(done), "whole": "0"})
        self.holds[next(task for task, (other, _) in self.given.items() if other == machine)](name, arrived)

    def end(self, machine: str, event: Finished | Failed = FINISHED, junk: bool = False) -> None:
        """End the first piece that a machine has."""
        task = next(task for task, (other, _) in self.given.items() if other == machine)
        picture = self.folder / "arrived.png"
        Image.new("RGB", (8, 8)).save(picture)
        if junk:
            picture.write_text("junk")
        del self.given[task]
        self._ends[task](TaskEnd(task, machine, event, {"picture-0.png": picture} if event is FINISHED else {}))


def test_a_second_piece_lies_ready_at_each_machine(tmp_path: Path) -> None:
    table = Table(tmp_path, 8)
    assert table.give_away("ab") == {"a": [7, 5], "b": [6, 4]}
    table.end("a")
    assert table.give_away("ab") == {"a": [5, 3], "b": [6, 4]}, "it goes on with what lay ready"


def test_an_idle_machine_joins_in_what_lies_ready_elsewhere(tmp_path: Path) -> None:
    table = Table(tmp_path, 6, here=Outlook(loaded=True, seconds=10.0))
    table.outlooks = {each: Outlook(loaded=True, seconds=10.0) for each in "abcdef"}
    assert table.give_away("ab") == {"a": [5, 3], "b": [4, 2]}, "0 is this machine's own"
    assert table.give_away("abc") == {"a": [5, 3], "b": [4, 2], "c": [1]}
    assert table.give_away("abcde") == {"a": [5, 3], "b": [4, 2], "c": [1], "d": [3], "e": [2]}, "what is under way is done before"
    table.end("d")
    assert table.give_away("abcef") == {"a": [5], "b": [4, 2], "c": [1], "e": [2], "f": []}, "3 is there, and waits at a no more"


def test_what_lies_ready_is_not_made_twice(tmp_path: Path) -> None:
    table = Table(tmp_path, 4)
    assert table.give_away("a") == {"a": [3, 2]}
    for place in (0, 1):
        (tmp_path / f"picture-{place}.png").touch()
    assert table.give_away("a") == {"a": [3]}, "this machine is at 2 now"


def test_a_machine_that_failed_keeps_nothing_that_lies_ready(tmp_path: Path) -> None:
    table = Table(tmp_path, 6)
    table.give_away("ab")
    table.end("a", FAILED)
    assert table.given and all(machine == "b" for machine, _ in table.given.values())
    assert table.give_away("ab") == {"a": [], "b": [4, 2]} and table.shared.failures == 1


def test_why_a_machine_brought_nothing_is_known_and_only_what_arrived_whole_counts(tmp_path: Path) -> None:
    table = Table(tmp_path, 8)
    table.give_away("abc")
    table.end("a", FAILED)
    table.end("b", junk=True)
    table.end("c")
    assert table.judged.done == {"c": 1}
    reasons = {machine: dict(said.values)["reason"] for machine, said in table.judged.failed.items()}
    assert {machine: reason.key for machine, reason in reasons.items() if isinstance(reason, Sentence)} == {
        "a": "test.fails",
        "b": "helper.junk",
    }
    table.judged.accept("a")
    assert [*table.judged.failed] == ["b"], "its next one came to something"


def test_what_a_lost_machine_had_begun_goes_on_elsewhere(tmp_path: Path) -> None:
    table = Table(tmp_path, 2)
    assert table.give_away("a", here=False) == {"a": [1, 0]} and table.brought == {1: [], 0: []}
    table.begin("a", 7)
    table.begin("a", 12, "latent-9.safetensors")
    assert measure(tmp_path / "latent-1.safetensors") == 7 and not (tmp_path / "latent-9.safetensors").exists()
    assert table.give_away("", here=False) == {} and table.given == {}, "it is lost"
    assert table.give_away("b", here=False) == {"b": [1, 0]} and table.brought == {1: [7], 0: []}
    table.begin("b", 5)
    assert measure(tmp_path / "latent-1.safetensors") == 7, "what is further stays"
    table.end("b")
    assert not (tmp_path / "latent-1.safetensors").exists(), "the picture is there"


def test_a_machine_joins_only_where_it_is_done_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single picture, of which the engine here and each machine say how long they take, with loading where the model is not loaded."""
    now_s = 1000.0
    set_in(monkeypatch, shared_job, "time", monotonic=lambda: now_s)
    table = Table(tmp_path, 1, here=Outlook(loaded=True, seconds=40.0))
    table.outlooks = {
        "a": Outlook(loaded=True, seconds=60.0),
        "b": Outlook(loaded=False, seconds=25.0),
        "c": Outlook(loaded=True, seconds=25.0),
    }
    assert LOADING_S + 25 > 40 and table.give_away("ab") == {"a": [], "b": []}, "neither would be done before this machine"
    now_s += 10
    assert table.give_away("abc") == {"a": [], "b": [], "c": [0]}
    now_s += 31
    assert table.give_away("ab") == {"a": [], "b": []}, "c is lost, and it is about to be done here"
    now_s += 10
    assert table.give_away("ab") == {"a": [0], "b": []}, "it is overdue here; one joins, and is as good as any"


def test_how_long_a_piece_takes_is_what_was_said_when_it_was_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    set_in(monkeypatch, shared_job, "time", monotonic=lambda: now_s)
    table = Table(tmp_path, 1)
    table.outlooks = {"a": Outlook(loaded=False, seconds=5.0), "b": Outlook(loaded=True, seconds=4.0)}
    for _ in range(2):  # the next tick sees that it is begun
        assert table.give_away("a", here=False) == {"a": [0]}
    now_s += 22
    table.outlooks["a"] = Outlook(loaded=True, seconds=5.0)
    assert table.give_away("ab", here=False) == {"a": [0], "b": []}, "it had to load, and is done in three seconds"


def test_this_machine_loads_for_its_first_piece_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    set_in(monkeypatch, shared_job, "time", monotonic=lambda: now_s)
    table = Table(tmp_path, 2, here=Outlook(loaded=False, seconds=10.0))
    table.outlooks = {"a": Outlook(loaded=True, seconds=12.0), "b": Outlook(loaded=True, seconds=12.0)}
    assert table.give_away("ab") == {"a": [1], "b": [0]}, "12 seconds are less than loading and 10"
    assert table.give_away("") == {}
    (tmp_path / "picture-0.png").touch()
    assert table.give_away("b") == {"b": []}, "the engine here is at the last one, and has loaded"


def test_a_piece_that_a_machine_never_ends_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it tells steps all the time, and no other machine is there to be done before."""
    now_s = 1000.0
    set_in(monkeypatch, shared_job, "time", monotonic=lambda: now_s)
    table = Table(tmp_path, 4)
    table.outlooks = {"a": Outlook(loaded=True, seconds=10.0)}
    for _ in range(2):
        assert table.give_away("a", here=False) == {"a": [3, 2]}
    now_s += UNKNOWN_S
    assert table.give_away("a", here=False) == {"a": [3, 2]}
    now_s += 1
    assert table.give_away("ab", here=False) == {"a": [], "b": [3, 2]}
    assert str(table.judged.failed["a"]) == "its latest task came to nothing: it did not end within 1 h"
    assert table.shared.failures == 1 and table.shared.unable == {"a"}
