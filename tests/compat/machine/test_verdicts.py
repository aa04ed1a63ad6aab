"""Verdicts: kept per machine, read back whole, never half written; garbage is set aside and does no harm."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.compat.machine import verdicts
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict, forget, learn, load

T4 = MACHINES["t4"]
SEEN = {
    Subject("path", "gqa/native/float16"): Verdict(Subject("path", "gqa/native/float16"), False, 0.7, 0.01, "wrong by 0.7"),
    Subject("row", "mps-leak"): Verdict(Subject("row", "mps-leak"), True, 1e-4),
}


def test_what_was_seen_comes_back_on_the_same_machine_only(tmp_path: Path) -> None:
    verdicts.store(tmp_path, T4, SEEN)
    assert verdicts.load(tmp_path, T4) == SEEN
    for other in (
        replace(T4, torch="2.14.0"),
        replace(T4, system_version="6.9"),
        replace(T4, system="windows"),
        replace(T4, name="Tesla T4 G"),
    ):
        assert verdicts.load(tmp_path, other) == {}, other
    assert verdicts.load(tmp_path, replace(T4, system_version="6.8.3-generic")) == SEEN


def test_every_pretended_machine_has_its_own_file(tmp_path: Path) -> None:
    names = {verdicts.verdict_file(tmp_path, each).name for each in MACHINES.values()}
    assert len(names) == len(MACHINES)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-") for name in names)


def test_one_more_is_learned_beside_the_others(tmp_path: Path) -> None:
    verdicts.store(tmp_path, T4, SEEN)
    death = Verdict(Subject("path", "kernels/efficient/float16"), False, words="LLVM ERROR")
    assert verdicts.learn(tmp_path, T4, death) == {**SEEN, death.subject: death} == verdicts.load(tmp_path, T4)


@pytest.mark.parametrize(
    "garbage",
    [
        b'{"verdicts": [{"subject": "a", "passed": true}]}',
        b'{"verdicts": [{"subject": 3, "passed": true}]}',
        b"",
        b"\xff\xfe",
        b"{",
        b"[]",
        b"null",
        b'{"verdicts": 3}',
        b'{"verdicts": [{"subject": "row:a"}]}',
        b'{"verdicts": [{"subject": "row:a", "passed": "yes"}]}',
        b'{"verdicts": [{"subject": "row:a", "passed": true, "error": "x"}]}',
        b'{"verdicts": [{"subject": "row:a", "passed": false, "seen": {"fault": "numbres"}}]}',
        b'{"verdicts": [{"subject": "row:a", "passed": false, "seen": {"fault": "memory", "chunk_most": "256"}}]}',
        b'{"verdicts": [{"subject": "row:a", "passed": false, "seen": {"fault": "memory", "chunk_most": -4}}]}',
    ],
)
def test_garbage_is_set_aside_and_not_fatal(tmp_path: Path, garbage: bytes) -> None:
    path = verdicts.verdict_file(tmp_path, T4)
    path.write_bytes(garbage)
    assert verdicts.load(tmp_path, T4) == {}
    assert [each.read_bytes() for each in tmp_path.glob("*.damaged")] == [garbage]
    verdicts.store(tmp_path, T4, SEEN)
    assert verdicts.load(tmp_path, T4) == SEEN


def test_a_result_that_was_not_a_number_is_kept_as_infinitely_wrong(tmp_path: Path) -> None:
    verdicts.store(
        tmp_path,
        T4,
        {each: Verdict(each, False, error=error) for each, error in ((Subject.row("a"), math.nan), (Subject.row("b"), math.inf))},
    )
    assert [each.error for each in verdicts.load(tmp_path, T4).values()] == [math.inf, math.inf]


OF_BEFORE = """{
 "format": 1,
 "machine": "Tesla T4",
 "torch": "2.13.0+cu126",
 "system": "linux 6.8",
 "verdicts": [
  {"subject": "chunk:sd15/512", "passed": true, "error": 0.0, "elapsed_s": 0.0, "words": "", "seen": null},
  {"subject": "path:gqa/native/float16", "passed": false, "error": null, "elapsed_s": 0.01, "words": "", "seen": null},
  {"subject": "row:mps-leak", "passed": true, "error": 0.0001, "elapsed_s": 0.0, "words": "", "seen": null},
  {"subject": "rung:C:/models/mine/offload", "passed": false, "error": 0.0, "elapsed_s": 0.0, "words": "",
   "seen": {"fault": "memory", "step": 3, "dtype": "float16", "chunk_most": null, "chunk_before": null}},
  {"subject": "way:2x16x4x1x256x128 float32", "passed": true, "error": 0.0, "elapsed_s": 0.0, "words": "own 0", "seen": null}
 ]
}"""


def test_a_file_of_an_earlier_version_is_read_and_written_alike(tmp_path: Path) -> None:
    path = verdicts.verdict_file(tmp_path, T4)
    path.write_text(OF_BEFORE, "utf-8")
    found = verdicts.load(tmp_path, T4)
    assert Subject.path("gqa/native", "float16") in found and Subject.row("mps-leak") in found
    assert Subject.fallback("C:/models/mine", "offload") in found and Subject.way("2x16x4x1x256x128 float32") in found
    verdicts.store(tmp_path, T4, dict(reversed(found.items())))
    assert path.read_text("utf-8") == json.dumps(json.loads(OF_BEFORE), indent=1)
    assert forget(tmp_path, T4, "C:/models/mine") == (Subject.fallback("C:/models/mine", "offload"),)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts.store(tmp_path, T4, SEEN)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "replace", full)
        with pytest.raises(OSError):
            verdicts.store(tmp_path, T4, {})
    assert verdicts.load(tmp_path, T4) == SEEN
    assert len(list(tmp_path.iterdir())) == 1


FORGETTING = """
import itertools, sys
from pathlib import Path
from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import Subject, Verdict, learn
folder, here = Path(sys.argv[1]), machine("gtx-1060")
print("ready", flush=True)
for number in itertools.count():
    learn(folder, here, Verdict(Subject("way", f"{number % 50}"), True, words="own 0"))
"""


@pytest.mark.slow
def test_what_is_forgotten_stays_so_beside_a_process_that_learns(tmp_path: Path) -> None:
    """As idle measuring does in an engine. Without a lock one in six came back, and one in seven was lost."""
    here = MACHINES["gtx-1060"]
    with subprocess.Popen([sys.executable, "-c", FORGETTING, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None and other.stdout.readline() == "ready\n"
            for _ in range(150):
                learn(tmp_path, here, Verdict(Subject("rung", "sd15/offload"), False, seen=RunFailure("memory", 3)))
                assert Subject("rung", "sd15/offload") in load(tmp_path, here)
                assert forget(tmp_path, here, "sd15") == (Subject("rung", "sd15/offload"),)
                assert Subject("rung", "sd15/offload") not in load(tmp_path, here)
            assert other.poll() is None, "nobody learned beside it"
        finally:
            other.kill()
