"""Broken models of every kind leave the page answering. The fuzzer itself is tests/fuzz_models.py."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from tests.fuzz_models import FAMILIES, Watch, fuzzer

SAMPLE = ("sd15", "dia", "sd15-file")


def fuzz(family: str, mutations: int, seed: int, folder: Path) -> None:
    with fuzzer(folder.resolve(), seed) as fuzz:
        outcome = fuzz.run(family, FAMILIES[family](fuzz.folder / "good"), range(1, mutations + 1))
    assert not outcome.bad, outcome.bad[:10]
    assert outcome.statuses[200] > 5 * mutations and outcome.usable < mutations, "nothing was asked, or nothing was broken"


@pytest.mark.parametrize("family", SAMPLE)
def test_a_few_broken_models(family: str, tmp_path: Path) -> None:
    fuzz(family, 8, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_hundred_broken_models(family: str, tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    fuzz(family, 100, seed, tmp_path)


def test_the_watch_sees_what_it_is_there_for(tmp_path: Path) -> None:
    watch, secret = Watch(), tmp_path / "outside" / "secret"
    watch.allowed = (str(tmp_path / "inside"),)
    secret.parent.mkdir()
    (tmp_path / "inside").mkdir()
    secret.write_text("secret")
    (tmp_path / "inside" / "link").symlink_to(secret)
    watch.on = True
    (tmp_path / "inside" / "link").read_text()
    with socket.socket() as link, pytest.raises(OSError):
        link.connect(("127.0.0.1", 1))
    watch.on = False
    assert watch.seen == [f"open {secret.resolve()}", "socket.connect ('127.0.0.1', 1)"]
