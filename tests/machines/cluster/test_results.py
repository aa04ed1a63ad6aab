"""Pieces of results as they arrive from a helper: names that lead elsewhere, gaps, wrong hashes. And what a worker's stream may say."""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.machines.cluster import main_process
from app.machines.cluster.dask_setup import name_address, take_foreign
from app.machines.cluster.scheduler import find_machine, keep_own_words, list_operations
from app.machines.pipe import Pipe
from tests.support.other_functions import set_in

process: Any = main_process
ID = "0123456789abcdef0123456789abcdef"


def test_a_worker_speaks_only_for_itself() -> None:
    own = name_address(ID)
    said = keep_own_words(
        [{"op": "task-finished", "worker": "tls://other:1", "key": "x"}, {"op": "update-graph"}, "x", {"op": "keep-alive"}], own
    )
    assert said == [{"op": "task-finished", "worker": own, "key": "x"}, {"op": "keep-alive"}]
    assert keep_own_words({"op": "subscribe-topic"}, own) == []
    pickles = {"op": "task-erred", "type": b"x", "exception": b"x", "traceback": b"x"}
    assert keep_own_words(pickles, own) == [{"op": "task-erred", "type": None, "exception": "", "traceback": None}]


def test_addresses_are_unique_and_lead_nowhere() -> None:
    assert name_address(ID) == "tls://[fd01:2345:6789:abcd:ef01:2345:6789:abcd]:1"
    assert name_address(ID) != name_address(ID[::-1])


def test_who_may_ask_what() -> None:
    assert not list_operations(ID, known=False)
    assert not list_operations("main", True) & list_operations(ID, True)
    assert find_machine(None) == find_machine({}) == ""
    assert find_machine({"subject": ((("commonName", ID),),)}) == ID
    assert find_machine({"subject": ((("commonName", ID),), (("commonName", "main"),))}) == "", "two names are none"


def test_a_result_is_kept_only_whole(tmp_path: Path) -> None:
    task = process.Arriving(tmp_path, 1 << 20)

    def put(name: str, offset: object, data: object, last: bool = False, sha256: str = "") -> dict[str, object]:
        return process.write_block(task, {"name": name, "offset": offset, "data": data, "last": last, "sha256": sha256})

    for name in ("../a.png", "a/b.png", "a", ".png", "A.PNG", "a.png/", "\\a.png", "a..png", "x" * 80 + ".png"):
        assert put(name, 0, b"x") == {"refused": "odd"}, name
    assert put("a.png", 0, "text") == put("a.png", -1, b"x") == put("a.png", 1, b"x") == put("a.png", None, b"x") == {"refused": "odd"}
    assert list(tmp_path.iterdir()) == [] and task.kept == set()
    whole = b"ab" * 1000
    assert put("a.png", 0, whole[:500]) == put("a.png", 500, whole[500:], True, hashlib.sha256(whole).hexdigest()) == {}
    assert (tmp_path / "a.png").read_bytes() == whole and [*task.kept] == ["a.png"]
    assert put("b.png", 0, b"x", True, "0" * 64) == {"refused": "broken"} and not (tmp_path / "b.png").exists()
    assert put("a.png", 0, b"x") == {} and task.kept == set(), "what is sent anew is not whole until its end"


def test_what_arrives_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arriving = process.Arriving(tmp_path, 1000)

    def put(name: str, offset: int, length: int) -> dict[str, object]:
        return process.write_block(arriving, {"name": name, "offset": offset, "data": b"x" * length})

    assert put("a.png", 0, 600) == {} and put("a.png", 600, 401) == put("b.png", 0, 401) == {"refused": "no-room"}
    assert put("b.png", 0, 400) == {} and put("a.png", 0, 600) == {}, "what is sent anew takes the place of what was there"
    many = process.Arriving(tmp_path / "many", 1 << 20)
    many.folder.mkdir()
    answers = [
        process.write_block(many, {"name": f"{number}.png", "offset": 0, "data": b"x"}) for number in range(process.RESULTS_MOST + 1)
    ]
    assert answers == [{}] * process.RESULTS_MOST + [{"refused": "odd"}]
    assert process.write_block(many, {"name": "0.png", "offset": 1, "data": b"x"}) == {}, "the last file can still be ended"
    set_in(monkeypatch, process, "shutil", disk_usage=lambda _: SimpleNamespace(free=process.ROOM_BYTES))
    assert process.write_block(many, {"name": "0.png", "offset": 2, "data": b"x"}) == {"refused": "no-room"}, "the disk is full"


def test_what_is_begun_is_handed_on_and_is_no_result(tmp_path: Path) -> None:
    told = list[tuple[str, dict[str, Any]]]()
    desk = process.TaskDesk(SimpleNamespace(tell=lambda op, **values: told.append((op, values))), None)
    desk.scheduler = SimpleNamespace(find_machine_of=lambda task: ID)
    task = desk._tasks["task"] = process.Task({}, process.Arriving(tmp_path, 1 << 20), process.Arriving(tmp_path / "begun", 1000))
    task.begun.folder.mkdir()

    def put(data: bytes, begun: bool, name: str = "latent-0.safetensors") -> dict[str, Any]:
        asked = {"task": "task", "name": name, "offset": 0, "data": data, "last": True, "sha256": hashlib.sha256(data).hexdigest()}
        return asyncio.run(desk.answer("hearth_keep", ID, {**asked, "begun": begun}))

    for data in (b"three steps", b"five"):
        assert put(data, True) == {} and told[-1][0] == "begun" and Path(told[-1][1]["path"]).read_bytes() == data
    asked = {"task": "task", "name": "latent-0.safetensors", "offset": 0, "data": b"half of the next", "begun": True}
    assert asyncio.run(desk.answer("hearth_keep", ID, asked)) == {} and Path(told[-1][1]["path"]).read_bytes() == b"five"
    assert put(b"x" * 1001, True) == {"refused": "no-room"} and task.results.kept == set()
    assert put(b"picture", False, "picture-0.png") == {}
    desk._forget = lambda id_: None
    asyncio.run(desk.answer("hearth_end", ID, {"task": "task", "event": None}))
    assert [*told[-1][1]["files"]] == ["picture-0.png"]
    for name in ("../../evil.json", "junk-1.bin", "picture-0.png"):
        assert put(b"x", True, name) == {"refused": "odd"}, name


def test_what_is_begun_is_bounded_until_it_was_looked_at(tmp_path: Path) -> None:
    """Files that had arrived were counted no more, and filled the disk."""
    told = list[Path]()
    desk = process.TaskDesk(SimpleNamespace(tell=lambda op, **values: told.append(Path(values["path"]))), None)
    desk.scheduler = SimpleNamespace(find_machine_of=lambda task: ID)
    desk._tasks["task"] = process.Task({}, process.Arriving(tmp_path, 1 << 20), process.Arriving(tmp_path / "begun", 1000))
    (tmp_path / "begun").mkdir()

    def put(place: int) -> None:
        asked = {"task": "task", "name": f"part-{place:03}.wav", "offset": 0, "data": b"x", "last": True, "begun": True}
        answer = asyncio.run(desk.answer("hearth_keep", ID, {**asked, "sha256": hashlib.sha256(b"x").hexdigest()}))
        assert answer == {}, "a machine that is quicker than Hearth goes on"

    for place in range(process.WAITING_MOST + 5):
        put(place)
    assert len(told) == process.WAITING_MOST == sum(each.is_file() for each in tmp_path.rglob("*"))
    put(0)
    told[1].unlink()
    put(99)
    assert [each.name for each in told[-2:]] == ["part-000.wav", "part-099.wav"] and told[-1].is_file()


def test_a_stopped_task_leaves_nothing_behind(tmp_path: Path) -> None:
    desk = process.TaskDesk(SimpleNamespace(tell=lambda op, **values: None), None)
    desk.scheduler = SimpleNamespace(find_machine_of=lambda task: "")
    desk.client = SimpleNamespace(submit=lambda *_, **__: None)
    desk.submit("task", "{}", {}, ID, str(tmp_path / "task"))
    (tmp_path / "task" / "picture-0.png").write_bytes(b"half")
    desk.stop("task")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("odd", [b"\xff", {1: b"x"}, {"a": {b"x"}}, "x" * (2 << 20), object()])
def test_what_no_json_holds_is_heard_as_nothing(odd: object, tmp_path: Path) -> None:
    """A task whose end is such ends all the same; whoever waits for it would otherwise wait for ever."""
    assert take_foreign(odd) is None  # one that is too long would fill the pipe below for ever
    near, far = multiprocessing.Pipe()
    desk = process.TaskDesk(Pipe(far), None)
    desk.scheduler = SimpleNamespace(find_machine_of=lambda task: ID)
    desk._tasks["task"] = process.Task({}, process.Arriving(tmp_path, 1 << 20), process.Arriving(tmp_path / "begun", 1000))
    for message in ({"facts": odd}, {"question": "q", "answer": odd}, {"task": "task", "event": odd}):
        desk.hear(ID, message)
        told = json.loads(near.recv_bytes())
        assert told.get("facts") is told.get("answer") is told.get("event") is None and told.get("machine", ID) == ID
    assert asyncio.run(desk.answer("hearth_end", ID, {"task": "task", "event": odd})) == {}
    told = json.loads(near.recv_bytes())
    assert (told["op"], told["id"], told["event"]) == ("end", "task", None)
