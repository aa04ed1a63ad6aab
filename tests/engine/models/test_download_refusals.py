"""What keeps a download from coming: a hub that refuses or is busy, no network, no room, files that no model should have. Each is a sentence."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from app.base.paths import Home
from app.base.trouble import Trouble
from app.engine.models import hub as client
from app.engine.models import on_disk
from app.engine.models.catalog import BY_ID
from app.engine.models.downloads import Downloads
from app.engine.models.hub import list_files
from app.engine.models.model import Companion, Source
from tests.support import downloaded
from tests.support.downloaded import ASKED, MODEL, MORE, REPO, SIZE, UNET, WEIGHTS, await_status, checked, ended, fetched, fetched_here
from tests.support.hub import Fault, Hub, etag, serving
from tests.support.other_functions import set_in

pytestmark = pytest.mark.long

hub, place, fetching = downloaded.hub, downloaded.place, downloaded.fetching


@pytest.mark.parametrize(
    ("status", "headers", "key", "cure"),
    [
        (404, {"X-Error-Code": "RepoNotFound"}, "hub.gone", "models"),
        (429, {"Retry-After": "600"}, "hub.busy", ""),
        (503, {}, "hub.down", ""),
        (401, {}, "hub.no-token", "token"),
        (403, {}, "hub.no-token", "token"),
    ],
)
@pytest.mark.parametrize("where", ["list", UNET])
def test_each_refusal_is_a_sentence(hub: Hub, place: Home, where: str, status: int, headers: dict[str, str], key: str, cure: str) -> None:
    hub.faults[where] = [Fault("status", status, 9, headers)]
    end = fetched_here(place, hub)
    assert end.sentence is not None and (end.sentence.key, end.cure) == (key, cure)
    assert "{" not in str(end.sentence)


def test_the_sentence_and_its_cure_reach_whoever_asked(fetching: Downloads, hub: Hub) -> None:
    hub.faults["list"] = [Fault("status", 404, 9, {"X-Error-Code": "RepoNotFound"})]
    failed = fetched(fetching)
    assert failed.sentence is not None and (failed.state, failed.cure, failed.sentence.key) == ("failed", "models", "hub.gone")


@pytest.mark.slow
def test_what_a_model_can_do_without_keeps_nothing_from_coming(fetching: Downloads, hub: Hub, place: Home) -> None:
    """A download failed wholly where the repository of a preview's decoder was gone."""
    lost = {"maker/gone": None, "maker/empty": {"README.md": b"#"}, "maker/gated": {"config.json": b"{}", "x.safetensors": b"x"}}
    hub.repos |= {repo: files for repo, files in lost.items() if files is not None}
    hub.gated.add("maker/gated")
    more = tuple(Companion(repo, Source(repo, ("config.json", "x.safetensors"), 9), optional=True) for repo in lost)
    model = dataclasses.replace(MODEL, companions=(*MODEL.companions, *more))
    status = fetched(fetching, model)
    assert status.state == "done" and status.sentence is not None and status.sentence.key == "download.without"
    assert all(repo in str(status.sentence) for repo in lost) and "no longer has maker/gone" in str(status.sentence)
    assert status.done_bytes >= SIZE
    checked(place)
    found = on_disk.locate(place, model)
    assert found is not None and not found.companions.keys() & lost.keys()
    needed = dataclasses.replace(model, companions=(*MODEL.companions, *(dataclasses.replace(each, optional=False) for each in more)))
    assert fetched(fetching, needed).state == "failed"


@pytest.mark.slow
@pytest.mark.parametrize(("status", "headers"), [(503, {}), (429, {"Retry-After": "0"})])
def test_a_busy_hub_is_asked_again(fetching: Downloads, hub: Hub, place: Home, status: int, headers: dict[str, str]) -> None:
    hub.faults["list"] = [Fault("status", status, 1, headers)]
    hub.faults[UNET] = [Fault("status", status, 2, headers)]
    assert fetched(fetching).state == "done"
    checked(place)


def test_what_did_not_come_is_told(fetching: Downloads) -> None:
    """Phonon's list of voices was left out for its name: each download of it ended well, and it was never installed."""
    model = dataclasses.replace(MODEL, companions=(Companion("few-steps", Source(MORE, ("lora.safetensors", "words.md"), 1000)),))
    failed = fetched(fetching, model)
    assert failed.sentence is not None and (failed.state, failed.sentence.key, failed.cure) == ("failed", "download.incomplete", "report")


def test_every_file_that_the_catalog_names_is_of_a_kind_that_is_fetched() -> None:
    named = {file for model in BY_ID.values() for source in on_disk.list_all_sources(model) for file in source.files if "*" not in file}
    assert "voices.jsonl" in named and not {file for file in named if Path(file).suffix not in client.SAFE}


def test_no_network_is_a_sentence(place: Home) -> None:
    downloads = Downloads(place, "http://127.0.0.1:9", waits_s=(0.01,))
    status = fetched(downloads)
    assert status.sentence is not None and status.sentence.key == "hub.no-network"


@pytest.mark.slow
def test_without_a_connection_it_is_told_at_once_and_goes_on_once_there_is_one(hub: Hub, place: Home) -> None:
    with serving(Hub({})) as gone:
        pass
    downloads = Downloads(place, gone.endpoint, waits_s=(), line_wait_s=0.05)
    told = downloads.check_line()
    assert told is not None and told.key == "download.no-line" and gone.endpoint in str(told)
    downloads.start(MODEL)
    status = await_status(downloads, lambda status: status.sentence is not None)
    assert (status.state, status.sentence) == ("running", told)
    with serving(Hub(hub.repos), int(gone.endpoint.rpartition(":")[2])):
        assert downloads.check_line() is None
        assert ended(downloads).state == "done"
    checked(place)


@pytest.mark.slow
def test_offline_mode_asks_nobody(fetching: Downloads, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    status = fetched(fetching)
    assert status.sentence is not None and status.sentence.key == "hub.offline"
    assert fetching.check_line() == status.sentence
    assert not hub.asked


@pytest.mark.slow
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


def test_a_disk_without_room_is_told_before_anything_comes(hub: Hub, place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    set_in(monkeypatch, client, "shutil", disk_usage=lambda path: Usage(10**12, 10**12, SIZE))
    end = fetched_here(place, hub)
    assert end.sentence.key == "hub.no-room"  # type: ignore[union-attr]
    assert not hub.sent


def test_a_disk_that_fills_up_keeps_what_came(fetching: Downloads, hub: Hub, place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    true = Path.open

    def full(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        writes = path.name.startswith(etag(UNET, WEIGHTS)) and mode in ("ab", "wb")
        return true(Path("/dev/full") if writes else path, mode, *args, **kwargs)

    hub.faults[UNET] = [Fault("cut", 700_000), Fault("cut", 0, 9)]
    assert fetched_here(place, hub).sentence.key == "hub.no-network"  # type: ignore[union-attr]
    part = place.models / "models--maker--pictures" / "blobs" / f"{etag(UNET, WEIGHTS)}.incomplete"
    kept = part.stat().st_size
    hub.faults.clear()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        end = fetched_here(place, hub)
    assert end.sentence is not None and end.sentence.key == "hub.full"
    assert 300_000 < kept == part.stat().st_size < SIZE
    assert fetched(fetching).state == "done"
    checked(place)


def test_pickles_and_code_are_refused(hub: Hub) -> None:
    source = Source(REPO, ("*.safetensors",), 1)
    hub.repos[REPO] = {"pytorch_model.bin": b"\x80\x02", "config.json": b"{}"}
    with pytest.raises(Trouble) as refused:
        list_files(source, hub.endpoint)
    assert refused.value.sentence.key == "hub.pickles"
    hub.repos[REPO] = {"modeling.py": b"print()"}
    with pytest.raises(Trouble) as refused:
        list_files(source, hub.endpoint)
    assert refused.value.sentence.key == "hub.code"


@pytest.mark.parametrize(
    "name",
    ["../../escaped.json", "/etc/x.json", *(pytest.param(each, marks=pytest.mark.slow) for each in ("unet/../../x.json", "C:/x.json"))],
)
def test_a_hub_does_not_choose_where_files_go(fetching: Downloads, hub: Hub, place: Home, name: str) -> None:
    hub.repos[REPO][name] = b"{}"
    status = fetched(fetching, dataclasses.replace(MODEL, source=Source(REPO, ("*.json", *ASKED), SIZE)))
    assert status.sentence.key == "hub.strange"  # type: ignore[union-attr]


def test_halves_of_other_programs_are_not_taken_for_models(fetching: Downloads, hub: Hub, place: Home) -> None:
    fetched(fetching)
    found = on_disk.locate(place, MODEL)
    assert found is not None
    for name in (UNET, "unet/config.json", "model_index.json"):
        hidden = (found.folder / name).rename(place.root / "hidden")
        assert on_disk.locate(place, MODEL) is None, name
        hidden.rename(found.folder / name)
    assert on_disk.locate(place, MODEL) is not None
    shards = Source(REPO, ("*.json", "*.safetensors"), 1)
    (found.folder / "config.json").write_text("{}")
    assert not on_disk.is_complete(found.folder, shards)
    (found.folder / "model-00001-of-00002.safetensors").write_bytes(b"")
    assert not on_disk.is_complete(found.folder, shards)
    (found.folder / "model-00002-of-00002.safetensors").write_bytes(b"")
    assert on_disk.is_complete(found.folder, shards)
    (found.companions["few-steps"] / "lora.safetensors").unlink()
    assert on_disk.locate(place, MODEL) is None
    spared = dataclasses.replace(MODEL, companions=(dataclasses.replace(MODEL.companions[0], optional=True),))
    assert on_disk.locate(place, spared) == on_disk.Located(found.folder), "one that was fetched before goes on without it"


@pytest.mark.parametrize(
    ("files", "complete"),
    [((), False), (("config.json",), False), (("model.safetensors",), False), (("config.json", "model.safetensors"), True),
     (("config.json", "model-00001-of-00002.safetensors"), False)],
)  # fmt: skip
def test_a_voice_is_there_with_its_config_and_all_its_weights(tmp_path: Path, files: tuple[str, ...], complete: bool) -> None:
    for name in files:
        (tmp_path / name).write_text("{}")
    assert on_disk.is_complete(tmp_path, Source("maker/voice", ("*.json", "*.safetensors"), 1)) is complete
