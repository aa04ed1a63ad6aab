"""Broken models of every kind leave page and engine as they were; and the fuzzer that says so (tests/fuzz_models.py) finds each guard that is taken
out."""

from __future__ import annotations

import os
import pickle
import random
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests import fuzz_models
from tests.fuzz_models import FAMILIES, Engine, fuzzer
from tests.support import broken_models, holes
from tests.support.watch import Unread, Watch

pytestmark = pytest.mark.long

SAMPLE = ("sd15", "dia", "sd15-file")
MANY = 8


def fuzz(family: str, mutations: int, seed: int, folder: Path) -> None:
    with fuzzer(folder.resolve(), seed) as fuzz:
        outcome = fuzz.run(family, FAMILIES[family](fuzz.folder / "good"), range(1, mutations + 1))
    assert not outcome.bad, outcome.bad[:10]
    if family != "kept-voice":  # whose questions are no requests
        assert outcome.statuses[200] > 5 * mutations, "nothing was asked"
        assert outcome.usable < mutations or mutations < MANY, "nothing was broken"


@pytest.mark.slow
@pytest.mark.parametrize("family", SAMPLE)
def test_a_few_broken_models(family: str, tmp_path: Path) -> None:
    fuzz(family, MANY, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("way", sorted({way for way, _ in broken_models.FOLDER_WAYS}))
def test_a_model_broken_in_one_way(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broken_models, "FOLDER_WAYS", [each for each in broken_models.FOLDER_WAYS if each[0] == way])
    fuzz("sd15" if way in ("class", "words") else "dia", 2, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_hundred_broken_models(family: str, tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    fuzz(family, 100, seed, tmp_path)


@pytest.mark.parametrize(
    ("hole", "way", "family", "found", "first"),
    [
        ("links", "link", "dia", "outside", 2),
        pytest.param("removing", "raw", "dia", "cannot be removed", 2, marks=pytest.mark.slow),
        pytest.param("start", "raw", "dia", "0 sentences about what a start does without it", 2, marks=pytest.mark.slow),
        pytest.param("headers", "header", "sd15", "-> 500", 2, marks=pytest.mark.slow),
        pytest.param("any file", "kind", "dia", "a look at it does not end", 2, marks=pytest.mark.slow),
        # What most numbers break is found by the look itself.
        pytest.param("ranges", "fact", "starter-voice", "-> 500", 60, marks=pytest.mark.slow),
    ],
)
def test_a_guard_of_the_page_that_is_taken_out_is_found(
    hole: str, way: str, family: str, found: str, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broken_models, "FOLDER_WAYS", [each for each in broken_models.FOLDER_WAYS if each[0] == way])
    with fuzzer(tmp_path.resolve(), 1) as fuzz:
        good, bad = FAMILIES[family](fuzz.folder / "good"), list[str]()
        assert not fuzz.run(family, good, range(1, 2)).bad
        if hole == "any file":  # the only one where something hangs
            monkeypatch.setattr(fuzz_models, "HANGS_S", 2.0)
            monkeypatch.setattr(fuzz_models, "HUNG_S", 0.0)
        closes = holes.open_hole(hole)
        try:
            for index in range(first, first + 58):
                bad += fuzz.run(family, good, range(index, index + 1)).bad
                if any(found in each for each in bad):
                    return
        finally:
            for close in reversed(closes):
                close()
    pytest.fail(f"only {bad[:10]}")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("hole", "way", "family", "found", "index"),
    [
        ("network", "raw", "dia", "the engine connects", 0),
        ("pickles", "raw", "dia", "the engine unpickles", 0),
        ("links", "link", "dia", "outside", 3),
        ("indexes", "index", "dia", "outside", 128),
        ("classes", "class", "sd15", "DPTForDepthEstimation is built", 76),
    ],
)
def test_a_guard_of_the_engine_that_is_taken_out_is_found(
    hole: str, way: str, family: str, found: str, index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`index`: a mutation that finds it; to try them in turn would take minutes."""
    monkeypatch.setattr(broken_models, "FOLDER_WAYS", [each for each in broken_models.FOLDER_WAYS if each[0] == way])
    with fuzzer(tmp_path.resolve(), 1) as fuzz:
        good, engine = FAMILIES[family](fuzz.folder / "good"), Engine(fuzz.folder, [hole])
        try:
            bad = fuzz.load(family, good, 1, engine, range(index, index + 1)).bad
        finally:
            engine.end()
    assert [each for each in bad if found in each], bad[:10]


def test_the_watch_sees_what_it_is_there_for(tmp_path: Path) -> None:
    own = threading.get_ident()

    class OwnWatch(Watch):
        """What an earlier test left running may open files meanwhile."""

        def _hear(self, event: str, given: tuple[Any, ...]) -> None:
            if threading.get_ident() == own:
                super()._hear(event, given)

    watch, secret = OwnWatch(), tmp_path / "outside" / "secret"
    watch.allowed = (str(tmp_path / "inside"),)
    secret.parent.mkdir()
    (tmp_path / "inside").mkdir()
    secret.write_text("secret")
    (tmp_path / "inside" / "link").symlink_to(secret)
    watch.on = True
    (tmp_path / "inside" / "link").read_text()
    with socket.socket() as link, pytest.raises(OSError):
        link.connect(("127.0.0.1", 1))
    pickle.loads(pickle.dumps(os.getcwd))
    watch.on = False
    assert watch.seen == [
        f"open {secret.resolve()}",
        "socket.connect ('127.0.0.1', 1)",
        f"pickle.find_class {(os.getcwd.__module__, 'getcwd')!r}",
    ]


def test_what_another_program_reads_is_seen_too(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    unread = Unread(tmp_path)
    assert not unread.take_read()
    subprocess.run([sys.executable, "-c", "import sys; open(sys.argv[1]).read()", str(tmp_path / "secret")], check=True)
    assert unread.take_read() == [str(tmp_path / "secret")] and not unread.take_read()


def test_a_pickle_that_runs_leaves_a_mark(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(broken_models._Bomb(tmp_path / "ran-1")))
    assert broken_models.find_marks(tmp_path) == ["ran-1"] and not broken_models.find_marks(tmp_path)
