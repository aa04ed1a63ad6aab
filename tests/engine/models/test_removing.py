"""Models that are removed: the space comes back, what others need stays."""

from __future__ import annotations

import dataclasses

import pytest

from app.base.paths import Home
from app.engine.models import on_disk
from app.engine.models.downloads import Downloads
from app.engine.models.model import Source
from tests.support import downloaded
from tests.support.downloaded import ASKED, INDEX, MODEL, MORE, REPO, SIZE, await_status, fetched
from tests.support.hub import Hub

hub, place, fetching = downloaded.hub, downloaded.place, downloaded.fetching


@pytest.mark.slow
def test_removing_gives_the_space_back_but_not_what_others_need(fetching: Downloads, hub: Hub, place: Home) -> None:
    other = dataclasses.replace(MODEL, id="other", source=Source(MORE, ("lora.safetensors",), 1000), companions=())
    fetched(fetching)
    commits = 2 * 40  # refs/main of both
    assert on_disk.measure_bytes(place, MODEL) == SIZE + 1000 + len(INDEX) + 2 + commits
    assert fetching.remove(MODEL, [other]) == SIZE + len(INDEX) + 2 + 40
    assert on_disk.locate(place, MODEL) is None and on_disk.locate(place, other) is not None
    assert fetched(fetching).state == "done"
    assert fetching.remove(MODEL, []) == SIZE + 1000 + len(INDEX) + 2 + commits
    assert not [each for each in place.models.rglob("*") if each.is_file() and each.name != "CACHEDIR.TAG"]


@pytest.mark.slow
def test_removing_leaves_the_files_that_another_model_shares(fetching: Downloads, hub: Hub, place: Home) -> None:
    configs = dataclasses.replace(MODEL, id="own", source=Source(REPO, ASKED[:2], 1), companions=())
    fetched(fetching)
    assert SIZE < fetching.remove(MODEL, [configs]) < SIZE + 1000 + 100
    assert on_disk.locate(place, MODEL) is None and on_disk.locate(place, configs) is not None
    assert len(list((place.models / "models--maker--pictures" / "blobs").iterdir())) == 2


def test_removing_while_it_comes(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 2_000_000
    fetching.start(MODEL)
    await_status(fetching, lambda status: status.done_bytes > 300_000)
    assert fetching.remove(MODEL, []) > 0
    assert not fetching.list_status() and on_disk.measure_bytes(place, MODEL) == 0


@pytest.mark.slow
def test_removing_spares_what_another_download_needs(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 400_000
    fetching.start(MODEL)
    await_status(fetching, lambda status: status.done_bytes > 300_000)
    fetching.pause(MODEL.id)
    assert fetching.remove(dataclasses.replace(MODEL, id="other"), []) == 0
    assert await_status(fetching, lambda status: True).done_bytes > 300_000
