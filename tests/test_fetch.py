"""Downloads, with the real client against a hub on loopback: cut, wrong, refused, killed, paused; what came is never fetched twice."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants

from app.engine import hub as client
from app.engine import stock
from app.engine.catalog import BY_ID
from app.engine.fetch import Downloads, Status
from app.engine.hub import listing
from app.engine.model import Companion, Model, Source
from app.paths import Home, home
from app.sentence import Trouble
from tests.hub import Fault, Hub, etag, serving

TOP = Path(__file__).parent.parent
REPO, MORE = "maker/pictures", "maker/more"
SIZE = 3_000_000
WEIGHTS = random.Random(1).randbytes(SIZE)
UNET = "unet/diffusion_pytorch_model.fp16.safetensors"
INDEX = json.dumps(
    {
        "_class_name": "StableDiffusionPipeline",
        "unet": ["diffusers", "UNet2DConditionModel"],
        "safety_checker": [None, None],
    }
)
FILES = {
    "model_index.json": INDEX.encode(), "unet/config.json": b"{}", UNET: WEIGHTS, "unet/diffusion_pytorch_model.bin": b"\x80\x02" * 99,
    "unet/model.py": b"print()", "README.md": b"#",
}  # fmt: skip
ASKED = ("model_index.json", "*/*.json", "*/*.fp16.safetensors")
MODEL = dataclasses.replace(
    BY_ID["sd15"], id="pictures", title="Pictures", source=Source(REPO, ASKED, SIZE),
    companions=(Companion("few-steps", Source(MORE, ("lora.safetensors",), 1000)),),
)  # fmt: skip


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(tmp_path / "stored_tokens"))
    with serving(Hub({REPO: dict(FILES), MORE: {"lora.safetensors": b"l" * 1000}})) as served:
        yield served
    huggingface_hub.close_session()


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return home(tmp_path / "home").made()


@pytest.fixture
def fetching(hub: Hub, place: Home) -> Iterator[Downloads]:
    downloads = Downloads(place, hub.endpoint, waits_s=(0.05, 0.05))
    yield downloads
    downloads.close()


def until(downloads: Downloads, condition: Callable[[Status], bool], model: str = MODEL.id) -> Status:
    limit = time.monotonic() + 20
    while True:
        status = next(each for each in downloads.status() if each.model == model)
        if condition(status):
            return status
        assert time.monotonic() < limit, status
        time.sleep(0.01)


def ended(downloads: Downloads, model: str = MODEL.id) -> Status:
    return until(downloads, lambda status: status.state in ("done", "failed"), model)


def fetched(downloads: Downloads, model: Model = MODEL) -> Status:
    downloads.start(model)
    return ended(downloads, model.id)


def checked(place: Home) -> None:
    found = stock.located(place, MODEL)
    assert found is not None
    assert hashlib.sha256((found.folder / UNET).read_bytes()).digest() == hashlib.sha256(WEIGHTS).digest()
    assert (found.companions["few-steps"] / "lora.safetensors").read_bytes() == b"l" * 1000
    assert not list(place.models.rglob("*.incomplete"))


def test_a_model_comes_whole_and_no_pickle_or_code_is_asked_for(fetching: Downloads, hub: Hub, place: Home) -> None:
    assert stock.located(place, MODEL) is None
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
    assert Path(found) == stock.located(place, MODEL).folder  # type: ignore[union-attr]
    assert dict(hub.sent) == before
    [scanned] = [each for each in huggingface_hub.scan_cache_dir(place.models).repos if each.repo_id == REPO]
    assert scanned.size_on_disk == SIZE + len(INDEX) + 2


def test_a_cut_line_is_gone_on_with(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.faults[UNET] = [Fault("cut", 400_000, times=6)]
    assert fetched(fetching).state == "done"
    checked(place)
    starts = [int(each["Range"][6:-1]) for each in hub.gets(f"cdn/{REPO}/{UNET}") if "Range" in each]
    assert len(starts) == 6 and starts == sorted(starts) and starts[-1] >= 2_000_000
    assert hub.sent[UNET] < SIZE * 1.2


def test_a_line_that_stays_cut_fails_with_a_sentence_and_keeps_what_came(
    fetching: Downloads, hub: Hub, place: Home
) -> None:
    hub.faults[UNET] = [Fault("cut", 700_000), Fault("cut", 0, times=9)]
    status = fetched(fetching)
    assert status.state == "failed" and status.sentence.key == "hub.no-network" and status.cure == "go-on"  # type: ignore[union-attr]
    assert 600_000 < status.done_bytes < SIZE and stock.located(place, MODEL) is None
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


@pytest.mark.parametrize("file", [UNET, "unet/config.json"])
def test_wrong_bytes_are_thrown_away(fetching: Downloads, hub: Hub, place: Home, file: str) -> None:
    hub.faults[file] = [Fault("wrong")]
    assert fetched(fetching).state == "done"
    checked(place)
    fetching.remove(MODEL, ())
    hub.faults[file] = [Fault("wrong", times=9)]
    status = fetched(fetching)
    assert status.state == "failed" and status.sentence.key == "hub.wrong"  # type: ignore[union-attr]
    assert stock.located(place, MODEL) is None
    assert not list((place.models / "models--maker--pictures" / "blobs").glob(f"{etag(file, FILES[file])}*"))


def test_paused_and_gone_on_with(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 2_000_000
    fetching.start(MODEL)
    status = until(fetching, lambda status: 800_000 < status.done_bytes < SIZE)
    assert status.rate > 0 and status.eta_s is not None
    fetching.pause(MODEL.id)
    assert until(fetching, lambda status: status.state == "paused").done_bytes < SIZE
    time.sleep(0.3)  # What was on its way may still come.
    sent, kept = hub.sent[UNET], until(fetching, lambda status: True).done_bytes
    time.sleep(0.3)
    assert hub.sent[UNET] == sent and until(fetching, lambda status: True).done_bytes == kept
    hub.bytes_a_second = 0
    fetching.resume(MODEL.id)
    assert ended(fetching).state == "done"
    resumed = [int(each["Range"][6:-1]) for each in hub.gets(f"cdn/{REPO}/{UNET}") if "Range" in each]
    assert resumed and abs(resumed[0] - kept) < 2000
    checked(place)


CHILD = """
import sys, dataclasses, time
from app.engine.fetch import Downloads
from app.paths import home
from app.engine.catalog import BY_ID
from app.engine.model import Companion, Source
MODEL = dataclasses.replace(
    BY_ID['sd15'], id='pictures', source=Source(sys.argv[2], ('model_index.json', '*/*.json', '*/*.fp16.safetensors'), 1),
    companions=(Companion('few-steps', Source(sys.argv[3], ('lora.safetensors',), 1)),),
)
downloads = Downloads(home(sys.argv[1]).made())
downloads.start(MODEL)
assert 'torch' not in sys.modules
while downloads.status()[0].state in ('queued', 'running'):
    time.sleep(0.02)
print(downloads.status()[0])
"""


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
        limit, enough = time.monotonic() + 60, there + dice.randrange(20_000, 120_000)
        while not (part.exists() and part.stat().st_size > enough):
            assert child.poll() is None and time.monotonic() < limit
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        child.wait()
    kept = part.stat().st_size
    assert 20_000 * times < kept < SIZE and stock.located(place, MODEL) is None
    time.sleep(0.3)  # What was on its way is counted, too.
    before, hub.bytes_a_second = hub.sent[UNET], 0
    again = Downloads(place, hub.endpoint)
    again.recall([MODEL])
    status = again.status()[0]
    assert status.state == "paused" and status.done_bytes >= kept and status.total_bytes == SIZE + 1000 + len(INDEX) + 2
    again.resume(MODEL.id)
    assert ended(again).state == "done"
    assert hub.sent[UNET] - before == SIZE - kept
    checked(place)


@pytest.mark.parametrize(
    ("status", "headers", "key", "cure"),
    [
        (404, {"X-Error-Code": "RepoNotFound"}, "hub.gone", "models"),
        (429, {"Retry-After": "600"}, "hub.busy", "go-on"),
        (503, {}, "hub.down", "go-on"),
        (401, {}, "hub.no-token", "token"),
        (403, {}, "hub.no-token", "token"),
    ],
)
@pytest.mark.parametrize("where", ["list", UNET])
def test_each_refusal_is_a_sentence(
    fetching: Downloads, hub: Hub, where: str, status: int, headers: dict[str, str], key: str, cure: str
) -> None:
    hub.faults[where] = [Fault("status", status, 9, headers)]
    failed = fetched(fetching)
    assert (failed.state, failed.cure) == ("failed", cure)
    assert failed.sentence is not None and failed.sentence.key == key
    assert "{" not in str(failed.sentence)


@pytest.mark.parametrize(("status", "headers"), [(503, {}), (429, {"Retry-After": "0"})])
def test_a_busy_hub_is_asked_again(
    fetching: Downloads, hub: Hub, place: Home, status: int, headers: dict[str, str]
) -> None:
    hub.faults["list"] = [Fault("status", status, 1, headers)]
    hub.faults[UNET] = [Fault("status", status, 2, headers)]
    assert fetched(fetching).state == "done"
    checked(place)


def test_no_network_is_a_sentence(place: Home) -> None:
    downloads = Downloads(place, "http://127.0.0.1:9", waits_s=(0.01,))
    status = fetched(downloads)
    assert status.sentence is not None and status.sentence.key == "hub.no-network"


def test_offline_mode_asks_nobody(fetching: Downloads, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    status = fetched(fetching)
    assert status.sentence is not None and status.sentence.key == "hub.offline"
    assert not hub.asked


def test_a_gate_opens_with_the_right_token(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.gated.add(REPO)
    hub.tokens = {"hf_other": set(), "hf_right": {REPO}}
    status = fetched(fetching)
    assert status.cure == "token" and "huggingface.co/settings/tokens" in str(status.sentence)
    Path(constants.HF_TOKEN_PATH).write_text("hf_other")
    status = fetched(fetching)
    assert status.sentence.key == "hub.no-access" and REPO in str(status.sentence)  # type: ignore[union-attr]
    Path(constants.HF_TOKEN_PATH).write_text("hf_right")
    assert fetched(fetching).state == "done"
    assert all("hf_" not in address for _, address, _ in hub.asked)
    checked(place)


Usage = namedtuple("Usage", "total used free")


def test_a_disk_without_room_is_told_before_anything_comes(
    fetching: Downloads, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.shutil, "disk_usage", lambda path: Usage(10**12, 10**12, SIZE))
    status = fetched(fetching)
    assert status.sentence.key == "hub.no-room"  # type: ignore[union-attr]
    assert not hub.sent


def test_a_disk_that_fills_up_keeps_what_came(
    fetching: Downloads, hub: Hub, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    true = Path.open

    def full(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        writes = path.name.startswith(etag(UNET, WEIGHTS)) and mode in ("ab", "wb")
        return true(Path("/dev/full") if writes else path, mode, *args, **kwargs)

    hub.faults[UNET] = [Fault("cut", 700_000)]
    fetching.start(MODEL)
    until(fetching, lambda status: status.done_bytes > 300_000)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        status = ended(fetching)
    assert status.sentence is not None and status.sentence.key == "hub.full"
    assert 300_000 < status.done_bytes < SIZE
    assert fetched(fetching).state == "done"
    checked(place)


def test_pickles_and_code_are_refused(hub: Hub) -> None:
    source = Source(REPO, ("*.safetensors",), 1)
    hub.repos[REPO] = {"pytorch_model.bin": b"\x80\x02", "config.json": b"{}"}
    with pytest.raises(Trouble) as refused:
        listing(source, hub.endpoint)
    assert refused.value.sentence.key == "hub.pickles"
    hub.repos[REPO] = {"modeling.py": b"print()"}
    with pytest.raises(Trouble) as refused:
        listing(source, hub.endpoint)
    assert refused.value.sentence.key == "hub.code"


@pytest.mark.parametrize("name", ["../../escaped.json", "unet/../../x.json", "C:/x.json", "/etc/x.json"])
def test_a_hub_does_not_choose_where_files_go(fetching: Downloads, hub: Hub, place: Home, name: str) -> None:
    hub.repos[REPO][name] = b"{}"
    status = fetched(fetching, dataclasses.replace(MODEL, source=Source(REPO, ("*.json", *ASKED), SIZE)))
    assert status.sentence.key == "hub.strange"  # type: ignore[union-attr]


def test_halves_of_other_programs_are_not_taken_for_models(fetching: Downloads, hub: Hub, place: Home) -> None:
    fetched(fetching)
    found = stock.located(place, MODEL)
    assert found is not None
    for name in (UNET, "unet/config.json", "model_index.json"):
        hidden = (found.folder / name).rename(place.root / "hidden")
        assert stock.located(place, MODEL) is None, name
        hidden.rename(found.folder / name)
    assert stock.located(place, MODEL) is not None
    shards = Source(REPO, ("*.json", "*.safetensors"), 1)
    (found.folder / "config.json").write_text("{}")
    assert not stock.complete(found.folder, shards)
    (found.folder / "model-00001-of-00002.safetensors").write_bytes(b"")
    assert not stock.complete(found.folder, shards)
    (found.folder / "model-00002-of-00002.safetensors").write_bytes(b"")
    assert stock.complete(found.folder, shards)
    (found.companions["few-steps"] / "lora.safetensors").unlink()
    assert stock.located(place, MODEL) is None


def test_removing_gives_the_space_back_but_not_what_others_need(fetching: Downloads, hub: Hub, place: Home) -> None:
    other = dataclasses.replace(MODEL, id="other", source=Source(MORE, ("lora.safetensors",), 1000), companions=())
    fetched(fetching)
    commits = 2 * 40  # refs/main of both
    assert stock.size_bytes(place, MODEL) == SIZE + 1000 + len(INDEX) + 2 + commits
    assert fetching.remove(MODEL, [other]) == SIZE + len(INDEX) + 2 + 40
    assert stock.located(place, MODEL) is None and stock.located(place, other) is not None
    assert fetched(fetching).state == "done"
    assert fetching.remove(MODEL, []) == SIZE + 1000 + len(INDEX) + 2 + commits
    assert not [each for each in place.models.rglob("*") if each.is_file() and each.name != "CACHEDIR.TAG"]


def test_removing_leaves_the_files_that_another_model_shares(fetching: Downloads, hub: Hub, place: Home) -> None:
    configs = dataclasses.replace(MODEL, id="own", source=Source(REPO, ASKED[:2], 1), companions=())
    fetched(fetching)
    assert SIZE < fetching.remove(MODEL, [configs]) < SIZE + 1000 + 100
    assert stock.located(place, MODEL) is None and stock.located(place, configs) is not None
    assert len(list((place.models / "models--maker--pictures" / "blobs").iterdir())) == 2


def test_removing_while_it_comes(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 2_000_000
    fetching.start(MODEL)
    until(fetching, lambda status: status.done_bytes > 300_000)
    assert fetching.remove(MODEL, []) > 0
    assert not fetching.status() and stock.size_bytes(place, MODEL) == 0


def test_removing_spares_what_another_download_needs(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 2_000_000
    fetching.start(MODEL)
    until(fetching, lambda status: status.done_bytes > 300_000)
    fetching.pause(MODEL.id)
    assert fetching.remove(dataclasses.replace(MODEL, id="other"), []) == 0
    assert until(fetching, lambda status: True).done_bytes > 300_000


def test_no_more_than_two_at_once(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 4_000_000
    models = [
        dataclasses.replace(MODEL, id=f"m{n}", source=Source(f"maker/m{n}", ASKED, SIZE), companions=())
        for n in range(3)
    ]
    for model in models:
        hub.repos[model.source.repo] = dict(FILES)  # type: ignore[union-attr]
        fetching.start(model)
    most = 0
    while any(each.state in ("queued", "running") for each in fetching.status()):
        most = max(most, sum(each.state == "running" for each in fetching.status()))
        time.sleep(0.02)
    assert most == 2 and all(each.state == "done" for each in fetching.status())


def test_two_programs_fetch_each_byte_once(hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 6_000_000
    both = [Downloads(place, hub.endpoint), Downloads(place, hub.endpoint)]
    for downloads in both:
        downloads.start(MODEL)
    assert all(ended(downloads).state == "done" for downloads in both)
    assert hub.sent[UNET] == SIZE
    checked(place)
