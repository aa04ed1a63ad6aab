"""Downloads, with the real client against a hub on loopback: cut, wrong, killed, paused; what came is never fetched twice."""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import psutil
import pytest

from app.base.paths import Home
from app.engine.models import on_disk
from app.engine.models.downloads import Downloads, _Download
from app.engine.models.model import Source
from tests.support import downloaded
from tests.support.downloaded import ASKED, FILES, INDEX, MODEL, MORE, REPO, SIZE, UNET, WEIGHTS, await_status, checked, ended, fetched
from tests.support.hub import Fault, Hub, etag
from tests.support.places import TOP
from tests.support.waiting import until

pytestmark = pytest.mark.long

hub, place, fetching = downloaded.hub, downloaded.place, downloaded.fetching


def test_a_model_comes_whole_and_no_pickle_or_code_is_asked_for(fetching: Downloads, hub: Hub, place: Home) -> None:
    assert on_disk.locate(place, MODEL) is None
    status = fetched(fetching)
    assert (status.state, status.done_bytes) == ("done", status.total_bytes), status
    assert status.total_bytes == SIZE + 1000 + len(INDEX) + 2
    checked(place)
    addresses = " ".join(address for _, address, _ in hub.asked)
    assert ".bin" not in addresses and ".py" not in addresses and "README" not in addresses
    assert not list((place.root / "downloads").glob("*.json"))


def test_huggingface_hub_takes_the_cache_for_its_own(fetching: Downloads, hub: Hub, place: Home) -> None:
    """Its own client finds every byte there and fetches none again: the layout is the real one."""
    fetched(fetching)
    before = dict(hub.sent)
    found = huggingface_hub.snapshot_download(
        REPO, cache_dir=place.models, endpoint=hub.endpoint, allow_patterns=list(ASKED), ignore_patterns=["*.bin"]
    )
    assert Path(found) == on_disk.locate(place, MODEL).folder  # type: ignore[union-attr]
    assert dict(hub.sent) == before
    [scanned] = [each for each in huggingface_hub.scan_cache_dir(place.models).repos if each.repo_id == REPO]
    assert scanned.size_on_disk == SIZE + len(INDEX) + 2


@pytest.mark.slow
def test_a_cut_line_is_gone_on_with(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.faults[UNET] = [Fault("cut", 400_000, times=6)]
    assert fetched(fetching).state == "done"
    checked(place)
    starts = [int(each["Range"][6:-1]) for each in hub.gets(f"cdn/{REPO}/{UNET}") if "Range" in each]
    assert len(starts) == 6 and starts == sorted(starts) and starts[-1] >= 2_000_000
    assert hub.sent[UNET] < SIZE * 1.2


@pytest.mark.slow
def test_a_line_that_stays_cut_fails_with_a_sentence_and_keeps_what_came(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.faults[UNET] = [Fault("cut", 700_000), Fault("cut", 0, times=9)]
    status = fetched(fetching)
    assert status.state == "failed" and status.sentence.key == "hub.no-network" and not status.cure  # type: ignore[union-attr]
    assert 600_000 < status.done_bytes < SIZE and on_disk.locate(place, MODEL) is None
    hub.faults.clear()
    before = hub.sent[UNET]
    fetching.resume(MODEL.id)
    assert ended(fetching).state == "done"
    assert hub.sent[UNET] - before < SIZE - 600_000
    checked(place)


def test_a_server_that_ignores_the_range_does_not_spoil_the_file(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.faults[UNET] = [Fault("cut", 500_000), Fault("plain")]
    assert fetched(fetching).state == "done"
    checked(place)
    assert len(hub.gets(f"cdn/{REPO}/{UNET}")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("file", [UNET, "unet/config.json"])
def test_wrong_bytes_are_thrown_away(fetching: Downloads, hub: Hub, place: Home, file: str) -> None:
    hub.faults[file] = [Fault("wrong")]
    assert fetched(fetching).state == "done"
    checked(place)
    fetching.remove(MODEL, ())
    hub.faults[file] = [Fault("wrong", times=9)]
    status = fetched(fetching)
    assert status.state == "failed" and status.sentence.key == "hub.wrong"  # type: ignore[union-attr]
    assert on_disk.locate(place, MODEL) is None
    assert not list((place.models / "models--maker--pictures" / "blobs").glob(f"{etag(file, FILES[file])}*"))


@pytest.mark.slow
def test_paused_and_gone_on_with(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 500_000
    fetching.start(MODEL)
    status = await_status(fetching, lambda status: 800_000 < status.done_bytes < SIZE)
    assert status.rate > 0 and status.eta_s is not None
    fetching.pause(MODEL.id)
    assert await_status(fetching, lambda status: status.state == "paused").done_bytes < SIZE
    hub.rest()
    kept = await_status(fetching, lambda status: True).done_bytes
    hub.bytes_a_second = 0
    fetching.resume(MODEL.id)
    assert ended(fetching).state == "done"
    resumed = [int(each["Range"][6:-1]) for each in hub.gets(f"cdn/{REPO}/{UNET}") if "Range" in each]
    assert resumed and abs(resumed[0] - kept) < 2000
    checked(place)


def test_what_came_in_the_first_half_second_has_its_rate(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((100.0, 100.25, 100.5, 100.5))
    monkeypatch.setattr("app.engine.models.downloads.time", SimpleNamespace(monotonic=lambda: next(clock)))
    job = _Download(MODEL, "none", SIZE)
    for size in (0, 100, 200):
        job.count_bytes(size)
    assert job.measure_rate() == 600


def test_another_precision_does_not_count_by_the_files_of_the_first(fetching: Downloads, hub: Hub) -> None:
    hub.bytes_a_second = 200_000
    fetching.start(MODEL)
    found = await_status(fetching, lambda status: status.done_bytes > 0).total_bytes
    fetching.pause(MODEL.id)
    await_status(fetching, lambda status: status.state == "paused")
    for _ in range(2):
        fetching._turns.acquire()  # it waits for its turn, and has not asked the hub yet
    fetching.start(MODEL, "gguf")
    assert await_status(fetching, lambda status: True).total_bytes == SIZE + 1000 != found


CHILD = """
import sys, dataclasses, time
from app.engine.models.downloads import Downloads, _Download
from app.base.paths import home
from app.engine.models.catalog import BY_ID
from app.engine.models.model import Companion, Source
MODEL = dataclasses.replace(
    BY_ID['sd15'], id='pictures', source=Source(sys.argv[2], ('model_index.json', '*/*.json', '*/*.fp16.safetensors'), 1),
    companions=(Companion('few-steps', Source(sys.argv[3], ('lora.safetensors',), 1)),),
)
downloads = Downloads(home(sys.argv[1]).create())
downloads.start(MODEL)
assert 'torch' not in sys.modules
while downloads.list_status()[0].state in ('queued', 'running'):
    time.sleep(0.02)
print(downloads.list_status()[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_goes_on_where_it_was(hub: Hub, place: Home, times: int) -> None:
    """kill -9, again and again. Nothing that lay on the disk is sent a second time; the checksum holds."""
    environment = {**os.environ, "HF_ENDPOINT": hub.endpoint, "HF_HOME": str(place.root / "hf"), "OMP_NUM_THREADS": "1"}
    part = place.models / "models--maker--pictures" / "blobs" / f"{etag(UNET, WEIGHTS)}.incomplete"
    dice = random.Random(5)
    hub.bytes_a_second = 400_000
    for _ in range(times):
        there = part.stat().st_size if part.exists() else 0
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(place.root), REPO, MORE], cwd=TOP, env=environment)
        enough = there + dice.randrange(20_000, 120_000)
        until(lambda child=child, enough=enough: child.poll() is not None or (part.exists() and part.stat().st_size > enough), 120)
        assert child.poll() is None
        left = psutil.Process(child.pid).children(recursive=True)
        child.kill()
        child.wait()
        assert left and not psutil.wait_procs(left, timeout=30)[1], "what talks to the hub outlives the program that started it"
    kept = part.stat().st_size
    assert 20_000 * times < kept < SIZE and on_disk.locate(place, MODEL) is None
    hub.rest()
    before, hub.bytes_a_second = hub.sent[UNET], 0
    again = Downloads(place, hub.endpoint)
    again.recall([MODEL])
    status = again.list_status()[0]
    assert status.state == "paused" and status.done_bytes >= kept and status.total_bytes == SIZE + 1000 + len(INDEX) + 2
    again.resume(MODEL.id)
    assert ended(again).state == "done"
    assert hub.sent[UNET] - before == SIZE - kept
    checked(place)


@pytest.mark.slow
def test_no_more_than_two_at_once(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 4_000_000
    models = [dataclasses.replace(MODEL, id=f"m{n}", source=Source(f"maker/m{n}", ASKED, SIZE), companions=()) for n in range(3)]
    for model in models:
        hub.repos[model.source.repo] = dict(FILES)  # type: ignore[union-attr]
        fetching.start(model)
    most = 0

    def look() -> bool:
        nonlocal most
        most = max(most, [each.state for each in fetching._jobs.values()].count("running"))  # at one moment: a status takes a while
        return not any(each.state in ("queued", "running") for each in fetching.list_status())

    until(look)
    assert most == 2 and all(each.state == "done" for each in fetching.list_status())


@pytest.mark.slow
def test_two_programs_fetch_each_byte_once(hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 6_000_000
    both = [Downloads(place, hub.endpoint), Downloads(place, hub.endpoint)]
    for downloads in both:
        downloads.start(MODEL)
    assert all(ended(downloads).state == "done" for downloads in both)
    assert hub.sent[UNET] == SIZE
    checked(place)
