"""Models that somebody else wrote: whatever they say, the page answers, Hearth starts, and they can be removed."""

from __future__ import annotations

import json
import os
import shutil
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from app.base import notices
from app.compat.machine.pretended import machine
from app.ui import routes
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, OWNER
from app.ui.tabs import models, paint_form
from tests.support import tiny_pictures, tiny_voices
from tests.support.guests import desk_at

ANSWER_S = 30.0
"""An answer that comes at once may take so long; an endless one never does."""
HUGE = "9" + "0" * 4298
Change = Callable[[Path], None]


class AsOwner:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, KEY: OWNER}, receive, send)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("good")
    return {"picture": tiny_pictures.save("sd15", folder / "sd15"), "speech": tiny_voices.save_voice(folder / "dia")}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "home") as desk:
        desk.keeper.status.set(hardware=machine("t4"))
        yield desk


@pytest.fixture
def page(desk: Desk) -> TestClient:
    served = [*models.routes(desk), *routes.routes(desk)]
    return TestClient(Starlette(routes=served, middleware=[Middleware(AsOwner)]), raise_server_exceptions=False)


def in_time(run: Callable[[], Any]) -> Any:
    """Return what comes in time; an endless loop or a pipe that never answers is left behind in its thread."""
    found: list[Any] = []
    asking = threading.Thread(target=lambda: found.append(run()), daemon=True)
    asking.start()
    asking.join(ANSWER_S)
    assert found, "no answer"
    return found[0]


def put(file: str, **values: Any) -> Change:
    """Change a config's values; a text that begins with = is put in as it is."""

    def change(model: Path) -> None:
        path = model / file
        whole = json.loads(path.read_text())
        for name, value in values.items():
            outer, _, inner = name.rpartition("__")
            (whole[outer] if outer else whole)[inner] = value
        text = json.dumps(whole)
        for value in values.values():
            text = text.replace(f'"{value}"', value[1:]) if isinstance(value, str) and value.startswith("=") else text
        path.write_text(text)

    return change


def shape(value: str) -> Change:
    def change(model: Path) -> None:
        (path,) = (model / "unet").glob("*.safetensors")
        raw = path.read_bytes()
        length = struct.unpack("<Q", raw[:8])[0]
        table = json.loads(raw[8 : 8 + length])
        table[next(name for name in table if name != "__metadata__")]["shape"] = ["@"]
        header = json.dumps(table).replace('"@"', value).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + raw[8 + length :])

    return change


def start(**values: Any) -> Change:
    def change(model: Path) -> None:
        (model / "starter.json").write_text(json.dumps(values))

    return change


def pipe(file: str) -> Change:
    def change(model: Path) -> None:
        (model / file).unlink()
        os.mkfifo(model / file)

    return change


CASES: dict[str, tuple[str, Change, str]] = {
    "levels": ("picture", put("vae/config.json", block_out_channels=[1] * 15_000), "vae/config.json says block_out_channels"),
    "a few levels": ("picture", put("vae/config.json", block_out_channels=[16] * 12), "vae/config.json says block_out_channels"),
    "a side of 4,299 digits": ("picture", put("unet/config.json", sample_size=f"={HUGE}"), "unet/config.json says sample_size 9000"),
    "a side of 1e300": ("picture", put("unet/config.json", sample_size=10**300), "unet/config.json says sample_size 1000"),
    "no side": ("picture", put("unet/config.json", sample_size=-1), "unet/config.json says sample_size -1, "),
    "layers without end": ("picture", put("unet/config.json", layers_per_block=10**6), "unet/config.json says layers_per_block 1000000, "),
    "heads that make none": ("picture", put("unet/config.json", attention_head_dim=1000), "unet/config.json says num_attention_heads 1000, "),
    "steps of a scheduler": ("picture", put("scheduler/scheduler_config.json", num_train_timesteps=10**9), "num_train_timesteps 1000000000, "),
    "an order of a scheduler": ("picture", put("scheduler/scheduler_config.json", solver_order=10**9), "solver_order 1000000000, "),
    "names without end": ("picture", put("text_encoder/config.json", num_labels=10**9), "num_labels 1000000000, "),
    "more names without end": ("picture", put("tokenizer/tokenizer_config.json", extra_ids=10**9), "extra_ids 1000000000, "),
    "an endless shape": ("picture", shape("9" * 4000), "says conv_in.bias: shape 9999"),
    "a shape without its bytes": ("picture", shape("1" + "0" * 12), "says conv_in.bias: shape [1000000000000]"),
    "a pipe as its config": ("picture", pipe("vae/config.json"), "vae/config.json leads out of the model's folder or is no plain file"),
    "a pipe as its weights": ("picture", pipe("unet/diffusion_pytorch_model.safetensors"), "is no plain file"),
    "no text": ("speech", put("config.json", encoder_config__max_position_embeddings=-5), "config.json says max_position_embeddings -5, "),
    "no rows": ("speech", put("config.json", decoder_config__max_position_embeddings=0), "config.json says max_position_embeddings 0, "),
    "rows below 0": ("speech", put("config.json", decoder_config__max_position_embeddings=-5), "config.json says max_position_embeddings -5, "),
    "fewer rows than delays": ("speech", put("config.json", decoder_config__max_position_embeddings=15), "config.json says max_position_embeddings 15, "),
    "no rate": ("speech", put("codec/config.json", sampling_rate=0), "config.json says sampling_rate 0, "),
    "a rate of 1e4000": ("speech", put("codec/config.json", sampling_rate="=1e4000"), "cannot be read (1e4000 is too large a number)"),
    "no ratio": ("speech", put("codec/config.json", downsampling_ratios=[0]), "config.json says downsampling_ratios 0, "),
    "a delay of 1e4000": ("speech", put("config.json", delay_pattern="=[1e4000]"), "cannot be read (1e4000 is too large a number)"),
    "parts as long as a book": ("speech", start(part_aim_s=500, part_most_s=500, bytes_per_s=1000), "damaged (ValueError: parts of"),
    "parts without room for a word": ("speech", start(silence_s=600), "damaged (ValueError: parts of"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_what_no_model_has_is_told_and_can_be_removed(
    case: str, good: dict[str, Path], desk: Desk, page: TestClient, tmp_path: Path
) -> None:
    kind, change, told = CASES[case]
    model = shutil.copytree(good[kind], tmp_path / "model")
    change(model)
    desk.settings.put({"models": [str(model)], "paint": {"model": str(model)}, "speak": {"model": str(model)}})
    listed = in_time(lambda: page.get("/hearth/models"))
    assert listed.status_code == 200
    (missing,) = listed.json()["missing"]
    assert missing["path"] == str(model) and told in missing["trouble"]
    for ask in (
        lambda: page.get("/hearth/offer", params={"model": str(model)}),
        lambda: page.get("/hearth/machine", params={"model": str(model)}),
        lambda: page.post("/hearth/check", json={"kind": kind, "text": "Hello there. " * 40, "model": str(model)}),
    ):
        assert in_time(ask).status_code < 500
    assert in_time(lambda: paint_form.default_size(paint_form.find_model(desk, str(model)))) == "256x256", "a start needs this"
    assert page.post("/hearth/models/forget", json={"value": str(model)}).status_code == 200
    assert not page.get("/hearth/models").json()["missing"]


@pytest.mark.parametrize("case", ["a side of 4,299 digits", "a pipe as its config"])
def test_a_start_with_such_a_model_chosen_comes_up_and_says_so(case: str, good: dict[str, Path], tmp_path: Path) -> None:
    model = shutil.copytree(good["picture"], tmp_path / "model")
    CASES[case][1](model)
    notices.take_all()
    with desk_at(tmp_path / "home") as desk:
        desk.settings.put({"models": [str(model)], "paint": {"model": str(model)}})
        started = in_time(lambda: Desk(desk.keeper, desk.settings))
        (told,) = [str(each) for each in notices.take_all()]
        assert told.startswith("Hearth uses the best installed model in place of model. The model in ") and CASES[case][2] in told
        assert paint_form.default_size(paint_form.find_model(started, str(model))) == "256x256"


def test_a_good_model_stays_good(good: dict[str, Path], desk: Desk, page: TestClient) -> None:
    desk.settings.put({"models": [str(each) for each in good.values()]})
    view = page.get("/hearth/models").json()
    assert not view["missing"]
    assert [each["path"] for each in view["models"] if each["local"] and each["here"] and each["bytes"] > 100_000] == [
        str(each) for each in good.values()
    ]
