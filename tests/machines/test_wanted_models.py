"""What a helper fetches for the main machine: nothing unless its owner lets it, one model at a time, and only what it can check."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from app.base.paths import assets, home
from app.base.trouble import Trouble
from app.engine.models.catalog import BY_ID
from app.engine.models.downloads import Status
from app.machines import wanted_models
from app.machines.tasks.portable import hash_file
from app.machines.tasks.portable_models import describe, to_json
from app.machines.wanted_models import FREE_BYTES, Fetching, WantedModels

PAINTER = assets() / "starter" / "painter"
FOUND = describe(PAINTER, "My painter", hash_file)
assert FOUND is not None
MODEL, PATHS = FOUND
BODY = json.dumps({"model": MODEL.key, **to_json(MODEL)})


class PretendedDownloads:
    def __init__(self) -> None:
        self.status: list[Status] = []
        self.asked: list[str] = []

    def start(self, model: Any) -> None:
        self.asked.append(model.id)
        self.status = [Status(model.id, "running", 1, 4, 0.0, None)]

    def pause(self, model: str) -> None:
        self.asked.append(f"pause {model}")

    def list_status(self) -> list[Status]:
        return self.status


class Place:
    def __init__(self, folder: Path) -> None:
        self.told: list[dict[str, Any]] = []
        self.downloads = PretendedDownloads()
        keeper: Any = SimpleNamespace(home=home(folder).create(), state=SimpleNamespace(model=""))
        downloads: Any = self.downloads
        self.wanted = WantedModels(keeper, downloads, lambda op, **values: self.told.append({"op": op, **values}), allowed=True)

    def arrive(self) -> None:
        folder = self.wanted.sent.unfinished(MODEL)
        for sha256, path in PATHS.items():
            shutil.copyfile(path, folder / sha256)
        self.wanted.hear({"op": "model-here", "model": MODEL.key})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    usage = SimpleNamespace(free=1 << 50)
    with mock.patch.object(shutil, "disk_usage", lambda _: usage):
        yield Place(tmp_path)


def test_files_are_fetched_by_hash_and_the_model_is_named_by_them(place: Place) -> None:
    wanted = place.wanted
    with pytest.raises(Trouble, match="is not on this one"):
        wanted.find(MODEL.key)
    wanted.want(BODY)
    (asked,) = place.told
    assert asked["op"] == "fetch-model" and asked["files"].keys() == PATHS.keys()
    wanted.hear({"op": "model-step", "model": MODEL.key, "done": 5, "missing": MODEL.bytes})
    assert wanted.fetching == Fetching(MODEL.key, "My painter", 5, MODEL.bytes, under_way=True)
    wanted.want(json.dumps({"model": "sd15"}))
    assert place.downloads.asked == [], "one at a time"
    place.arrive()
    assert not wanted.fetching.under_way and wanted.fetching.lack == "" and MODEL.key in wanted.list_names()
    assert Path(wanted.find(MODEL.key)).name == "My painter"
    wanted.want(BODY)
    assert len(place.told) == 1, "it is here"


def test_nothing_is_fetched_unless_the_owner_lets_it(place: Place) -> None:
    place.wanted.allowed = False
    for body in (BODY, json.dumps({"model": "sd15"})):
        place.wanted.want(body)
    assert not place.told and not place.downloads.asked and not place.wanted.fetching.under_way


@pytest.mark.parametrize("body", [
    "", "[]", "{}", "null", json.dumps({"model": 5}), json.dumps({"model": "/etc/passwd"}), json.dumps({"model": MODEL.key}), "[" * 100_000,
    json.dumps({"model": "files:" + "0" * 64, **to_json(MODEL)}), json.dumps({"model": MODEL.key, "title": "x", "files": {"../x.json": ["1" * 64, 1]}}),
    json.dumps({"model": MODEL.key, "title": "x", "files": {"run.py": ["1" * 64, 1]}}), BODY + " " * wanted_models.WANT_LETTERS,
])  # fmt: skip
def test_an_odd_wish_is_not_followed(body: str, place: Place) -> None:
    place.wanted.want(body)
    assert not place.told and not place.downloads.asked and not place.wanted.fetching.under_way


def test_a_model_of_the_catalog_comes_from_its_repository(place: Place) -> None:
    wanted, downloads = place.wanted, place.downloads
    wanted.want(json.dumps({"model": "sd15@0123456789ab"}))
    assert downloads.asked == ["sd15"]
    assert wanted.fetching == Fetching("sd15@0123456789ab", BY_ID["sd15"].title, 1, 4, under_way=True)
    downloads.status = [Status("sd15", "paused", 1, 4, 0.0, None)]
    assert not wanted.fetching.under_way
    wanted.want(json.dumps({"model": "sd15"}))
    assert downloads.asked == ["sd15"], "its owner paused it"
    downloads.status = []
    wanted.want(json.dumps({"model": "starter-painter"}))
    assert downloads.asked == ["sd15"] and place.told == []


def test_the_disk_keeps_its_room(tmp_path: Path) -> None:
    place, usage = Place(tmp_path), SimpleNamespace(free=FREE_BYTES + 100)
    with mock.patch.object(shutil, "disk_usage", lambda _: usage):
        for body in (BODY, json.dumps({"model": "sd15"})):
            place.wanted.want(body)
            assert place.wanted.fetching.lack == "no-room" and place.wanted.fetching.said is not None
    assert not place.told and not place.downloads.asked


def test_what_arrived_broken_and_what_was_lost_is_told(place: Place) -> None:
    wanted = place.wanted
    wanted.want(BODY)
    wanted.hear({"op": "model-lost", "model": "files:else"})
    assert wanted.fetching.under_way
    wanted.hear({"op": "model-here", "model": MODEL.key})  # without its files
    assert wanted.fetching.lack == "failed" and not wanted.fetching.under_way
    wanted.want(BODY)
    wanted.lose()
    assert not wanted.fetching.under_way
    wanted.want(BODY)
    wanted.stop()
    assert place.told[-1] == {"op": "leave-model"} and not wanted.fetching.under_way
    place.arrive()
    assert MODEL.key not in wanted.list_names(), "nobody waits for it any more"
