"""Test enlarging by a network: no seams, memory as forecast, and no file that is something else."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from app.base.paths import Home
from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Step, Stopped
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.settings import STARTER_ENLARGER
from app.engine.jobs.tasks import Enlarge
from app.engine.models import other_tools
from app.engine.models.enlargers import Compact, find_enlarger, list_enlargers, list_shapes, locate_enlarger, read_enlarger
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.lora_library import list_loras
from app.engine.models.planned import make_plan
from app.engine.models.rrdb import Tiling
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run import enlarge as enlarging
from app.engine.pictures.run.compact import Compact as CompactNet
from app.engine.pictures.run.enlarge import Enlargers, enlarge, load_enlarger
from app.engine.session import session as session_module
from app.engine.session.session import Session
from tests.support import open_session
from tests.support.places import TOP
from training.pictures.draw import draw
from training.pictures.enlarger import FIRST_TEST_SEED, Batches, make_net, make_pair, psnr, save, train
from training.pictures.scenes import scene

session = open_session.session


def write_net(path: Path, scale: int = 2, features: int = 8, convolutions: int = 3, size: float = 0.2) -> Path:
    torch.manual_seed(1)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: size * torch.randn(shape) for name, shape in list_shapes(scale, features, convolutions).items()}, path)
    return path


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8))


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_tiles_leave_no_seam(tmp_path: Path, scale: int) -> None:
    """Noise through random weights: whatever a tile does not see would show at its border."""
    net, facts = load_enlarger(write_net(tmp_path / "net.safetensors", scale, size=0.1))
    picture = noise(90, 70)
    whole, tiled = (np.asarray(enlarge(picture, scale, net, facts.tiling, tile), int) for tile in (1_000, 32))
    assert whole.shape == (70 * scale, 90 * scale, 3) and np.abs(whole - tiled).max() <= 1
    blind = np.asarray(enlarge(picture, scale, net, Tiling(0), 32), int)
    assert np.abs(whole - blind).max() > 8, "a seam would be seen here"


def test_any_size_from_any_scale(tmp_path: Path) -> None:
    for scale, times in ((2, 4), (4, 2), (3, 2), (1, 2), (2, 1.5), (4, 2.25)):
        net, facts = load_enlarger(write_net(tmp_path / f"{scale}.safetensors", scale))
        assert enlarge(noise(20, 17), times, net, facts.tiling).size == (round(20 * times), round(17 * times))


def test_a_formula_and_files_of_ones_own(tmp_path: Path) -> None:
    picture, enlargers = noise(24, 16), Enlargers()
    plain = enlargers.enlarge(picture, (48, 32), "", "cpu")
    assert np.array_equal(np.asarray(plain), np.asarray(picture.resize((48, 32), Image.Resampling.LANCZOS)))
    files = [str(write_net(tmp_path / f"{features}.safetensors", features=features)) for features in (8, 6, 8)]
    assert enlargers.enlarge(picture, picture.size, files[0], "cpu") is picture
    cleaner = str(write_net(tmp_path / "cleaner.safetensors", 1, size=0.1))
    assert not np.array_equal(np.asarray(enlargers.enlarge(picture, (48, 32), cleaner, "cpu")), np.asarray(plain)), "it runs once"
    made = [np.asarray(enlargers.enlarge(picture, (48, 32), file, "cpu")) for file in files]
    assert np.array_equal(made[0], made[2]) and not np.array_equal(made[0], made[1])
    Path(files[1]).replace(files[2])
    assert np.array_equal(np.asarray(enlargers.enlarge(picture, (48, 32), files[2], "cpu")), made[1]), "another file of this name"


def test_a_finished_picture_is_enlarged_with_its_settings(session: Session, tmp_path: Path) -> None:
    request = PictureRequest("a red ball", width=304, height=128, steps=2, seed=7)
    picture_settings.write(noise(300, 16), tmp_path / "p.png", request, "tiny")
    task, job = Enlarge(str(tmp_path / "p.png"), 4, str(write_net(tmp_path / "net.safetensors"))), tmp_path / "job"
    job.mkdir()
    *steps, end = session.run(task, Choice(), Control(), job, lambda *_: None)
    assert isinstance(end, Finished), end
    assert [(each.done, each.total) for each in steps if isinstance(each, Step)] == [
        (done, 5) for done in range(1, 6)
    ]  # 2 tiles, then 3 of 600 px
    with Image.open(end.files[0]) as made:
        assert made.size == (1200, 64)
        expected = Enlargers().enlarge(noise(300, 16), made.size, task.enlarger, "cpu")
        assert np.array_equal(np.asarray(made), np.asarray(expected))
    assert picture_settings.read(Path(end.files[0])).request == request
    assert picture_settings.read_text(Path(end.files[0])).endswith("Postprocess upscale by: 4, Postprocess upscaler: net")


def test_enlarging_stops_between_two_tiles(session: Session, tmp_path: Path) -> None:
    noise(300, 16).save(tmp_path / "p.png")
    control, seen = Control(), list[Event]()
    for event in session.run(Enlarge(str(tmp_path / "p.png"), 2, STARTER_ENLARGER), Choice(), control, tmp_path, lambda *_: None):
        seen.append(event)
        control.stop()
    assert [type(each) for each in seen] == [Step, Stopped] and not (tmp_path / "enlarged.png").exists()


def test_a_device_without_room_leaves_it_to_the_processor(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise(20, 16).save(tmp_path / "p.png")
    plan, devices, real = make_plan(session.home, session.hardware), list[str](), enlarging.run

    def crowded(task: Enlarge, device: str, control: Control, job: Path, *rest: Any) -> Iterator[Event]:
        devices.append(device)
        if device != "cpu":
            raise torch.OutOfMemoryError("out of memory")
        return real(task, device, control, job, *rest)

    monkeypatch.setattr(session_module, "make_plan", lambda *_, **__: dataclasses.replace(plan, runs_on="mps"))
    monkeypatch.setattr(enlarging, "run", crowded)
    *_, end = session.run(Enlarge(str(tmp_path / "p.png"), 2, STARTER_ENLARGER), Choice(), Control(), tmp_path, lambda *_: None)
    assert isinstance(end, Finished) and devices == ["mps", "cpu"]


def test_numbers_that_broke_are_told(tmp_path: Path) -> None:
    net, facts = load_enlarger(write_net(tmp_path / "net.safetensors"))
    assert isinstance(net, CompactNet)
    with torch.no_grad():
        net.body[0].bias.fill_(float("nan"))  # type: ignore[operator]
    with pytest.raises(NumbersBroke):
        enlarge(noise(8, 8), 2, net, facts.tiling)


MEASURE = """
import resource, sys, torch
from pathlib import Path
from app.engine.models.enlargers import read_enlarger
from app.engine.pictures.run.enlarge import load_enlarger
torch.set_num_threads(1)
net, facts = load_enlarger(Path(sys.argv[1]))
small = torch.rand(1, 3, 64, 64)
with torch.no_grad():
    net(small)
    side = int(sys.argv[2])
    small = torch.rand(1, 3, side, side)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    net(small)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, facts.count_bytes(side, side))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the highest memory as Linux tells it")
@pytest.mark.parametrize(("features", "scale", "side"), [(32, 2, 768), (64, 4, 512)])
def test_memory_is_as_forecast(tmp_path: Path, features: int, scale: int, side: int) -> None:
    path = write_net(tmp_path / "net.safetensors", scale, features, 4)
    told = subprocess.run([sys.executable, "-c", MEASURE, str(path), str(side)], cwd=TOP, capture_output=True, text=True, check=True).stdout
    taken, forecast = map(int, told.split())
    assert abs(taken - forecast) < 0.15 * taken, (taken, forecast)


def test_shapes_are_read_and_others_refused(tmp_path: Path) -> None:
    facts = read_enlarger(write_net(tmp_path / "a.safetensors", 4, 16, 5))
    assert facts == Compact(facts.path, 4, 16, 5) and facts.tiling == Tiling(7)
    shapes = list_shapes(2, 8, 3)
    odd: dict[str, dict[str, tuple[int, ...]]] = {
        "one more": {**shapes, "body.9.weight": (8,)}, "one less": {name: each for name, each in shapes.items() if name != "body.1.weight"},
        "grey": {**shapes, "body.0.weight": (8, 1, 3, 3)}, "another kind": {"conv_first.weight": (8, 3, 3, 3)}, "none": {},
        "too wide": list_shapes(2, 300, 1), "too deep": list_shapes(2, 1, 65),
    }  # fmt: skip
    for name, wanted in odd.items():
        path = tmp_path / f"{name}.safetensors"
        save_file({each: torch.zeros(shape) for each, shape in wanted.items()}, path)
        with pytest.raises(Trouble) as told:
            read_enlarger(path)
        assert told.value.sentence.key == "enlarger.other", name
    lying = json.dumps({"body.0.weight": {"dtype": "F16", "shape": [1 << 40, 3, 3, 3], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "lying.safetensors").write_bytes(struct.pack("<Q", len(lying)) + lying + bytes(8))
    for path in (tmp_path / "lying.safetensors", tmp_path / "nowhere.safetensors"):
        with pytest.raises(Trouble):
            read_enlarger(path)


def test_names_of_enlargers(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path / "models")
    assert list_enlargers(home) == []
    own = write_net(home.enlargers / "sharp.safetensors")
    assert list_enlargers(home) == ["sharp"] and find_enlarger(home, "sharp") == str(own) == find_enlarger(home, str(own))
    assert find_enlarger(home, "") == "" and find_enlarger(home, STARTER_ENLARGER) == STARTER_ENLARGER
    for folder in (home.enlargers, home.enlargers.parent):
        (folder / "config.json").write_text("{}")
    for name in ("blunt", "../sharp", "a/sharp", "..", "."):
        with pytest.raises(Trouble):
            find_enlarger(home, name)


def test_those_of_other_programs_are_offered_where_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ComfyUI's folder and those that its file of further paths names, A1111's two, and InvokeAI's list."""
    home, comfy, web = Home(tmp_path, tmp_path / "models"), tmp_path / "ComfyUI", tmp_path / "web"
    invoke, invoked = tmp_path / "invokeai", write_net(tmp_path / "invokeai" / "models" / "k" / "i.safetensors")
    found = {
        "c": write_net(comfy / "models/upscale_models/c.safetensors"), "further": write_net(tmp_path / "more/further.safetensors"),
        "e": write_net(web / "models/ESRGAN/e.safetensors"), "r": write_net(web / "models/RealESRGAN/r.safetensors"), "i": invoked,
    }  # fmt: skip
    (comfy / "extra_model_paths.yaml").write_text("mine:\n  base_path: ..\n  upscale_models: more\n")
    write_net(comfy / "models/upscale_models/backup/c.safetensors")
    (web / "models/ESRGAN/p.pth").write_bytes(b"no pickle at all")
    (invoke / "databases").mkdir()
    with closing(sqlite3.connect(invoke / "databases/invokeai.db")) as database:
        database.execute("CREATE TABLE models (config TEXT)")
        row = {"type": "spandrel_image_to_image", "path": "k/i.safetensors", "name": "In"}
        database.execute("INSERT INTO models VALUES (?)", (json.dumps(row),))
        database.commit()
    places = other_tools.Places((("ComfyUI", comfy), ("AUTOMATIC1111", web), ("InvokeAI", invoke)))
    monkeypatch.setattr(other_tools, "list_places", lambda *_: places)
    assert list_enlargers(home) == [], "nobody asked"
    home.settings.write_text(json.dumps({"finds": True}))
    assert list_enlargers(home) == [*"ce", "further", *"ir"]
    assert {name: find_enlarger(home, name) for name in found} == {name: str(path) for name, path in found.items()}
    assert list_loras(home) == []
    own = write_net(home.enlargers / "z.safetensors")
    assert find_enlarger(home, "z") == str(own)
    monkeypatch.setattr("app.engine.models.enlargers.FILES_MOST", 3)
    assert list_enlargers(home) == [*"ce", "z"], "one's own stay on the list"


def test_a_pickle_is_listed_and_refused_unopened(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path / "models")
    write_net(home.enlargers / "sharp.safetensors")
    for name in ("sharp.pth", "4x-UltraSharp.pth"):
        (home.enlargers / name).write_bytes(b"no pickle at all")
    assert list_enlargers(home) == ["4x-UltraSharp.pth", "sharp"]
    with pytest.raises(Trouble) as told:
        find_enlarger(home, "4x-UltraSharp.pth")
    assert told.value.sentence.key == "detect.pickle"


def test_a_net_that_a_training_program_wrapped_is_told_and_runs(tmp_path: Path) -> None:
    plain, wrapped = write_net(tmp_path / "plain.safetensors"), tmp_path / "wrapped.safetensors"
    save_file({f"params.{name}": each for name, each in load_file(plain).items()}, wrapped)
    made, expected = (np.asarray(enlarge(noise(20, 17), 2, net, facts.tiling)) for net, facts in map(load_enlarger, (wrapped, plain)))
    assert np.array_equal(made, expected)


def test_a_net_is_what_its_shapes_say() -> None:
    assert {name: tuple(each.shape) for name, each in CompactNet(2, 8, 3).state_dict().items()} == list_shapes(2, 8, 3)


def test_the_starters_enlarger_draws_edges_that_a_formula_blurs() -> None:
    """Held-out drawings, as in its training; a wrong base or order of channels costs far more than these decibels."""
    facts, enlargers = read_enlarger(locate_enlarger(STARTER_ENLARGER)), Enlargers()
    assert isinstance(facts, Compact) and (facts.scale, facts.base) == (2, "lanczos") and facts.path.stat().st_size < 1_000_000
    gains = []
    for place in range(3):
        large = draw(scene(FIRST_TEST_SEED + place, held_out=True), 384)
        small = Image.fromarray(large).reduce(2)
        made, plain = (np.asarray(enlargers.enlarge(small, (384, 384), name, "cpu")) for name in (STARTER_ENLARGER, ""))
        gains.append(psnr(large, made) - psnr(large, plain))
    assert sum(gains) > 9, gains


def test_it_is_trained_and_saved_as_it_is_loaded(tmp_path: Path) -> None:
    """It begins as the formula, and each weight has a place in the file."""
    large, small = make_pair(3)
    batches = Batches(
        torch.from_numpy(large.copy())[None].permute(0, 3, 1, 2), torch.from_numpy(small)[None].permute(0, 1, 4, 2, 3), torch.device("cpu")
    )
    net = make_net()
    picture = noise(40, 30)
    save(net, tmp_path / "first.safetensors")
    first = Enlargers().enlarge(picture, (80, 60), str(tmp_path / "first.safetensors"), "cpu")
    assert np.array_equal(np.asarray(first), np.asarray(Enlargers().enlarge(picture, (80, 60), "", "cpu")))
    assert list(train(net, batches, 1e-9, 1)) == ["0 steps"]
    given, wanted = batches.draw(2)
    assert given.shape == (2, 3, 64, 64) and wanted.shape == (2, 3, 128, 128) and wanted.abs().mean() < 0.1
