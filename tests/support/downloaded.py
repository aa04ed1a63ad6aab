"""What the tests of downloads share: a hub on loopback with two small repositories, a home, the client, and waiting for it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from app.base.paths import Home, home
from app.engine.models import hub_process, hub_token, on_disk
from app.engine.models.catalog import BY_ID
from app.engine.models.downloads import Downloads, Status
from app.engine.models.hub_child import Ended, Message
from app.engine.models.model import Companion, Model, Source, list_sources
from tests.support.hub import Hub, serving
from tests.support.waiting import LOADING_S, until

REPO, MORE = "maker/pictures", "maker/more"
SIZE = 3_000_000
WEIGHTS = random.Random(1).randbytes(SIZE)
UNET = "unet/diffusion_pytorch_model.fp16.safetensors"
INDEX = json.dumps(
    {"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"], "safety_checker": [None, None]}
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
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "token"))  # for the process that talks to the hub
    monkeypatch.setenv("HF_STORED_TOKENS_PATH", str(tmp_path / "stored_tokens"))
    hub_token.take_from_environment.cache_clear()
    with serving(Hub({REPO: dict(FILES), MORE: {"lora.safetensors": b"l" * 1000}})) as served:
        yield served
    huggingface_hub.close_session()


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return home(tmp_path / "home").create()


@pytest.fixture
def fetching(hub: Hub, place: Home) -> Iterator[Downloads]:
    downloads = Downloads(place, hub.endpoint, waits_s=(0.05, 0.05))
    yield downloads
    downloads.close()


def await_status(downloads: Downloads, condition: Callable[[Status], bool], model: str = MODEL.id) -> Status:
    found = list[Status]()

    def look() -> bool:
        found[:] = [each for each in downloads.list_status() if each.model == model]
        return condition(found[0])

    until(look, LOADING_S)
    return found[0]


def ended(downloads: Downloads, model: str = MODEL.id) -> Status:
    return await_status(downloads, lambda status: status.state in ("done", "failed"), model)


def fetched(downloads: Downloads, model: Model = MODEL) -> Status:
    downloads.start(model)
    return ended(downloads, model.id)


def fetched_here(place: Home, hub: Hub) -> Ended:
    """Fetch without a process of its own, so that a test can reach into it; return how it ended."""
    heard: list[Message] = []
    given = (place.models, MODEL.words, list_sources(MODEL), (), hub.endpoint, (0.05,), None)
    hub_process.serve(heard.append, threading.Event(), "download", given)
    end = heard[-1]
    assert isinstance(end, Ended)
    return end


def checked(place: Home) -> None:
    found = on_disk.locate(place, MODEL)
    assert found is not None
    assert hashlib.sha256((found.folder / UNET).read_bytes()).digest() == hashlib.sha256(WEIGHTS).digest()
    assert (found.companions["few-steps"] / "lora.safetensors").read_bytes() == b"l" * 1000
    assert not list(place.models.rglob("*.incomplete"))
