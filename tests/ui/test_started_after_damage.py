"""The whole program started on damaged data, as a person would: it opens and shows what can still be read. An hour's worth with other seeds."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.engine.keeper.test_broken_database import make_home
from tests.engine.keeper.test_full_disk import fill, small_disk
from tests.support.database_damage import DAMAGES, execute
from tests.support.places import TOP
from tests.support.settings_damage import WHOLE, WRONG, damage

__all__ = ["small_disk"]
SEED = int(os.environ.get("HEARTH_TEST_SEED", "20261122"))
"""Each failure prints it, as a part of the test's output."""


@contextmanager
def started(folder: Path) -> Iterator[httpx.Client]:
    print(f"HEARTH_TEST_SEED={SEED}")
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "open", "--no-browser", "--home", str(folder)],
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if found := re.search(r"http://127\.0\.0\.1:\d+/?", line):
                with httpx.Client(base_url=found[0], timeout=60, headers={"Sec-Fetch-Site": "same-origin"}) as client:
                    yield client
                break
        else:
            raise AssertionError(f"it did not open: {said}")
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        finally:
            process.kill()
            process.stdout.close()


def look(client: httpx.Client) -> tuple[int, list[str]]:
    """Return how many creations the shelf shows, and the notices."""
    for path in ("/", "/hearth/live", "/hearth/live?charts", "/hearth/drafts", "/hearth/models", "/hearth/machine", "/hearth/greeting"):
        assert client.get(path).status_code < 500, path
    shown = sum(len(client.get("/hearth/shelf", params=each).json()["creations"]) for each in ({}, {"binned": "1"}))
    return shown, [each["text"] for each in client.get("/hearth/live").json()["notices"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_a_broken_database(tmp_path: Path, name: str) -> None:
    place = make_home(tmp_path / "home")
    DAMAGES[name](place.database, random.Random(SEED))
    with started(place.root) as client:
        shown, told = look(client)
        assert shown == 8 and (told or name == "the last byte is missing")
        for _ in told:
            first = client.get("/hearth/live").json()["notices"][0]
            assert client.post("/hearth/notices", json={"id": first["id"]}).status_code < 300
        assert look(client)[1] == []
    with started(place.root) as client:
        assert look(client) == (8, [])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(WHOLE) + len(WRONG)))
def test_damaged_settings(tmp_path: Path, number: int) -> None:
    place = make_home(tmp_path / "home", pictures=1, jobs=0)
    content = WHOLE[number] if number < len(WHOLE) else json.dumps(damage(*WRONG[number - len(WHOLE)])).encode()
    place.settings.write_bytes(content)
    with started(place.root) as client:
        shown, told = look(client)
        assert shown == 1 and len(told) == 1
        assert [each.read_bytes() for each in place.root.glob("settings.json.*.damaged")] == [content]


@pytest.mark.slow
@pytest.mark.parametrize("left_kb", [0, 4, 16, 64, 128, 256, 512])
def test_a_full_disk(small_disk: Path, left_kb: int) -> None:
    place = make_home(small_disk / "home", pictures=3, jobs=2)
    execute("UPDATE jobs SET runner='of a process that is gone'")(place.database, random.Random(SEED))
    ballast = fill(small_disk, left_kb << 10)
    with started(place.root) as client:
        assert look(client) == (3, [])
        live = client.get("/hearth/live").json()
        assert len(live["interrupted"]["jobs"]) == 2
        drafts = client.post("/hearth/drafts", json={"speak-text": "x" * 190_000})
        assert drafts.status_code in (200, 507) and (drafts.status_code == 200 or drafts.json()["trouble"])
        if left_kb == 0:
            asked = client.post("/sdapi/v1/txt2img", json={"prompt": "a red circle"})
            assert asked.status_code == 507 and asked.json()["error"]["type"] == "server_error", asked.text
        ballast.unlink()
        assert client.post("/hearth/drafts", json={"speak-text": "kept"}).status_code == 200
