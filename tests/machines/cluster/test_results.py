"""Pieces of results as they arrive from a helper: names that lead elsewhere, gaps, wrong hashes. And what a worker's stream may say."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from app.machines.cluster.dask_settings import name_address
from app.machines.cluster.roles import HELLO, find_machine, keep_own_words, list_operations

ID = "0123456789abcdef0123456789abcdef"


def test_a_worker_speaks_only_for_itself() -> None:
    own = name_address(ID)
    said = keep_own_words(
        [{"op": "task-finished", "worker": "tls://other:1", "key": "x"}, {"op": "update-graph"}, "x", {"op": "keep-alive"}], own
    )
    assert said == [{"op": "task-finished", "worker": own, "key": "x"}, {"op": "keep-alive"}]
    assert keep_own_words({"op": "subscribe-topic"}, own) == []


def test_addresses_are_unique_and_lead_nowhere() -> None:
    assert name_address(ID) == "tls://[fd01:2345:6789:abcd:ef01:2345:6789:abcd]:1"
    assert name_address(ID) != name_address(ID[::-1])


def test_who_may_ask_what() -> None:
    assert list_operations(ID, known=False) == {HELLO}
    assert not list_operations("main", True) & list_operations(ID, True)
    assert find_machine(None) == find_machine({}) == ""
    assert find_machine({"subject": ((("commonName", ID),),)}) == ID
    assert find_machine({"subject": ((("commonName", ID),), (("commonName", "main"),))}) == "", "two names are none"


def test_a_result_is_kept_only_whole(tmp_path: Path) -> None:
    process = pytest.importorskip("app.machines.cluster.main_process", reason="the extra machines is not installed")
    task = process.Task({}, tmp_path)

    def put(name: str, offset: object, data: object, last: bool = False, sha256: str = "") -> dict[str, object]:
        return process.write_piece(task, {"name": name, "offset": offset, "data": data, "last": last, "sha256": sha256})  # type: ignore[no-any-return]

    for name in ("../a.png", "a/b.png", "a", ".png", "A.PNG", "a.png/", "\\a.png", "a..png", "x" * 80 + ".png"):
        assert put(name, 0, b"x") == {"refused": "odd"}, name
    assert put("a.png", 0, "text") == put("a.png", -1, b"x") == put("a.png", 1, b"x") == put("a.png", None, b"x") == {"refused": "odd"}
    assert list(tmp_path.iterdir()) == [] and task.kept == {}
    whole = b"ab" * 1000
    assert put("a.png", 0, whole[:500]) == put("a.png", 500, whole[500:], True, hashlib.sha256(whole).hexdigest()) == {}
    assert (tmp_path / "a.png").read_bytes() == whole and [*task.kept] == ["a.png"]
    assert put("b.png", 0, b"x", True, "0" * 64) == {"refused": "broken"} and not (tmp_path / "b.png").exists()
    assert put("a.png", 0, b"x") == {} and task.kept == {}, "what is sent anew is not whole until its end"
