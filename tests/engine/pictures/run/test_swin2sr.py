"""Test Swin2SR enlargers: as transformers computes them, no seams, memory as forecast, found, offered, stopped, and other kinds named."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers.models.swin2sr.image_processing_pil_swin2sr import Swin2SRImageProcessorPil

from app.base.paths import Home
from app.base.trouble import Trouble
from app.compat.planning.types import Dtype
from app.engine.jobs.control import Control
from app.engine.jobs.events import Step, Stopped
from app.engine.jobs.outward import public_name
from app.engine.jobs.tasks import Enlarge
from app.engine.models.enlargers import count_products, find_enlarger, list_enlargers, list_offered, read_enlarger
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.model import list_sources
from app.engine.models.rrdb import Tiling
from app.engine.models.swin2sr import ROWS, Swin2sr
from app.engine.pictures.run import enlarge as enlarging
from app.engine.pictures.run.enlarge import Enlargers, enlarge, load_enlarger, run
from tests.support import tiny_swin2sr
from tests.support.hub import cached
from tests.support.places import TOP


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8))


@pytest.mark.parametrize(("scale", "size"), [(2, (24, 16)), (2, (29, 18)), (3, (17, 24)), (4, (20, 33))])
def test_it_computes_what_transformers_does(tmp_path: Path, scale: int, size: tuple[int, int]) -> None:
    """Its own processor and network, whichever sides the picture has."""
    net, facts = load_enlarger(tiny_swin2sr.write(tmp_path / "net", scale=scale))
    with torch.no_grad():
        given = Swin2SRImageProcessorPil()(noise(*size), return_tensors="pt")["pixel_values"]
        theirs = tiny_swin2sr.make(scale)(given).reconstruction[0, :, : size[1] * scale, : size[0] * scale]
    expected = (theirs.clamp(0, 1) * 255).round().permute(1, 2, 0).numpy()
    made = np.asarray(enlarge(noise(*size), scale, net, facts.tiling), int)
    assert made.shape == expected.shape and np.abs(made - expected).max() <= 1 and expected.std() > 10


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 6])
def test_tiles_leave_no_seam(tmp_path: Path, depth: int) -> None:
    """Noise through random weights. Six layers see some 40 pixels far, further than a tile's surroundings reach."""
    net, facts = load_enlarger(tiny_swin2sr.write(tmp_path / "net", depths=[depth]))
    picture = noise(150, 70)
    whole, tiled, blind = (
        np.asarray(enlarge(picture, 2, net, tiling, tile), int)
        for tiling, tile in ((facts.tiling, 1_000), (facts.tiling, 48), (Tiling(0, 0, 8), 48))
    )
    assert np.abs(whole - tiled).max() <= 2
    assert np.abs(whole - blind).max() > 8, "a seam would be seen here"


MEASURE = """
import resource, sys, torch
from pathlib import Path
from app.engine.pictures.run.enlarge import load_enlarger
net, facts = load_enlarger(Path(sys.argv[1]))
net.to(memory_format=torch.channels_last)  # as on a processor
small = torch.rand(1, 512, 512, 3).permute(0, 3, 1, 2)
with torch.no_grad():
    net(small[..., :64, :64])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    net(small)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, facts.count_bytes(512, 512))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the highest memory as Linux tells it")
@pytest.mark.parametrize("scale", [2, 4])
def test_memory_is_as_forecast(tmp_path: Path, scale: int) -> None:
    """As wide as those that people have, which are deeper: a layer gives its memory to the next one."""
    path = tiny_swin2sr.write(tmp_path / "net", scale=scale, embed_dim=180, depths=[1, 1], num_heads=[6, 6])
    told = subprocess.run([sys.executable, "-c", MEASURE, str(path)], cwd=TOP, capture_output=True, text=True, check=True).stdout
    taken, forecast = map(int, told.split())
    assert abs(taken - forecast) < 0.15 * taken, (taken, forecast)


def test_products_count_each_weight_for_each_pixel(tmp_path: Path) -> None:
    """What is computed behind a doubling counts four times; attention itself comes on top."""
    path = tiny_swin2sr.write(tmp_path / "net", embed_dim=180, num_heads=[6])
    facts = read_enlarger(path)
    assert isinstance(facts, Swin2sr)
    weights = {name: each.numel() for name, each in tiny_swin2sr.make(embed_dim=180, num_heads=[6]).named_parameters() if each.ndim > 1}
    expected = sum(count * (4 if "final" in name else 1) for name, count in weights.items() if "position_bias" not in name)
    assert facts.products == pytest.approx(expected + sum(facts.depths) * 2 * 180 * 64, rel=0.01)
    assert count_products(str(path), (10, 10), 4) == pytest.approx(facts.products * 500)


@pytest.mark.parametrize(
    ("wrong", "key", "told"),
    [
        ({"upsampler": "nearest+conv"}, "enlarger.upsampler", {"kind": "nearest+conv"}),
        ({"upsampler": "pixelshuffle_aux"}, "enlarger.upsampler", {"kind": "pixelshuffle_aux"}),
        ({"upsampler": "pixelshuffledirect"}, "enlarger.upsampler", {"kind": "pixelshuffledirect"}),
        ({"upsampler": ""}, "enlarger.upsampler", {"kind": "?"}), ({"model_type": "swinv2"}, "enlarger.folder", {}),
        ({"upscale": 8}, "enlarger.odd", {}), ({"embed_dim": 1 << 20}, "enlarger.odd", {}), ({"window_size": 7}, "enlarger.odd", {}),
        ({"num_heads": [2, 2]}, "enlarger.odd", {}), ({"use_absolute_embeddings": True}, "enlarger.odd", {}), ({"upscale": [2]}, "enlarger.odd", {}),
        ({"resi_connection": "zzz"}, "enlarger.odd", {}), ({"hidden_act": "zzz"}, "enlarger.odd", {}), ({"hidden_act": ["gelu"]}, "enlarger.odd", {}),
        ({"num_heads": [3]}, "enlarger.damaged", {}), ({"depths": [3]}, "enlarger.damaged", {}), ({"upscale": 4}, "enlarger.damaged", {}),
        ({"quantization_config": {"load_in_8bit": True}}, "enlarger.odd", {}),
    ],
)  # fmt: skip
def test_other_kinds_are_refused_by_name(tmp_path: Path, wrong: dict[str, Any], key: str, told: dict[str, str]) -> None:
    folder = tiny_swin2sr.write(tmp_path / "net")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | wrong))
    with pytest.raises(Trouble) as refused:
        read_enlarger(folder)
    assert refused.value.sentence.key == key and told.items() <= dict(refused.value.sentence.values).items()


@pytest.mark.parametrize(
    "how",
    [
        {"scale": 2}, {"scale": 3}, {"scale": 4, "depths": [2, 1], "num_heads": [2, 3], "mlp_ratio": 3.0},
        {"scale": 2, "embed_dim": 11, "num_heads": [1], "mlp_ratio": math.nextafter(15 / 11, 2)},  # 15 / 11 itself makes 14 of 11
    ],
)  # fmt: skip
@pytest.mark.parametrize("by_makers", [True, False])
def test_a_file_is_told_by_its_tensors_and_makes_the_same_picture(tmp_path: Path, how: dict[str, Any], by_makers: bool) -> None:
    """It has its makers' names, as other programs keep it, or transformers'."""
    folder = tiny_swin2sr.write(tmp_path / "net", **how)
    file = tiny_swin2sr.write_by_makers(tmp_path / "net.safetensors", **how) if by_makers else folder / "model.safetensors"
    (net, facts), (same, wanted) = load_enlarger(file), load_enlarger(folder)
    assert isinstance(facts, Swin2sr) and replace(facts, path=folder, names={}) == wanted
    made, expected = (enlarge(noise(20, 24), how["scale"], each, facts.tiling) for each in (net, same))
    assert np.array_equal(np.asarray(made), np.asarray(expected))


@pytest.mark.parametrize("before", ["params_ema.", "params.", "module.", "params.module."])
def test_what_training_programs_put_before_names_is_no_part_of_them(tmp_path: Path, before: str) -> None:
    plain, wrapped = tiny_swin2sr.write_by_makers(tmp_path / "plain.safetensors"), tmp_path / "wrapped.safetensors"
    save_file({before + name: each for name, each in load_file(plain).items()}, wrapped)
    made, expected = (np.asarray(enlarge(noise(20, 24), 2, net, facts.tiling)) for net, facts in map(load_enlarger, (wrapped, plain)))
    assert np.array_equal(made, expected)


def test_of_a_network_and_its_average_the_average_is_used(tmp_path: Path) -> None:
    """Their makers' own files have both."""
    plain, both = tiny_swin2sr.write_by_makers(tmp_path / "plain.safetensors"), tmp_path / "both.safetensors"
    tensors = load_file(plain)
    save_file(
        {f"params_ema.{name}": each for name, each in tensors.items()} | {f"params.{name}": each * 2 for name, each in tensors.items()},
        both,
    )
    made, expected = (np.asarray(enlarge(noise(20, 24), 2, net, facts.tiling)) for net, facts in map(load_enlarger, (both, plain)))
    assert np.array_equal(made, expected)


@pytest.mark.parametrize(
    ("upsampler", "scale", "kind"),
    [
        ("nearest+conv", 4, "nearest+conv"),
        ("pixelshuffle_aux", 4, "pixelshuffle_aux"),
        ("pixelshuffledirect", 2, "pixelshuffledirect"),
        ("", 1, "?"),
    ],
)
def test_files_of_other_kinds_are_refused_by_name(tmp_path: Path, upsampler: str, scale: int, kind: str) -> None:
    file = tiny_swin2sr.write(tmp_path / "net", upsampler=upsampler, scale=scale) / "model.safetensors"
    with pytest.raises(Trouble) as refused:
        read_enlarger(file)
    assert (refused.value.sentence.key, dict(refused.value.sentence.values)["kind"]) == ("enlarger.upsampler", kind)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("layers.0.residual_group.blocks.0.attn.relative_position_index", (49, 49)), ("layers.0.residual_group.blocks.0.attn.logit_scale", (5, 1, 1)),
        ("layers.0.residual_group.blocks.1.mlp.fc2.weight", (12, 25)), ("conv_first.weight", (12, 1, 3, 3)), ("more.weight", (1,)),
        ("upsample.0.weight", (8, 64, 3, 3)), ("conv_first.weight", ()),
    ],
)  # fmt: skip
def test_a_file_of_other_shapes_is_told_before_it_is_loaded(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    file = tiny_swin2sr.write_by_makers(tmp_path / "net.safetensors")
    save_file(load_file(file) | {name: torch.zeros(shape)}, file)
    with pytest.raises(Trouble) as refused:
        read_enlarger(file)
    assert refused.value.sentence.key == "enlarger.odd"


def test_a_folder_of_ones_own_is_listed_and_found_by_its_name(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path / "models")
    for name in ("mine.v2", ROWS[1].id):
        tiny_swin2sr.write(home.enlargers / name)
    (home.enlargers / "empty").mkdir()
    assert list_enlargers(home) == ["mine.v2", ROWS[1].id]
    assert [find_enlarger(home, name) for name in list_enlargers(home)] == [str(home.enlargers / name) for name in list_enlargers(home)]
    assert list_offered(home)[1] == (ROWS[1].id, "Swin2SR 4x"), "nothing to download"


def test_settings_of_how_to_answer_change_nothing(tmp_path: Path) -> None:
    folder = tiny_swin2sr.write(tmp_path / "net")
    (folder / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text()) | {"return_dict": False}))
    net, facts = load_enlarger(folder)
    assert enlarge(noise(16, 16), 2, net, facts.tiling).size == (32, 32)


@pytest.mark.parametrize("own", [True, False])
def test_a_damaged_folder_is_told(tmp_path: Path, own: bool) -> None:
    """Only what is in Models can be downloaded again there."""
    folder = tiny_swin2sr.write(tmp_path / "net" if own else cached(tmp_path, list_sources(ROWS[0])[0].repo))
    (folder / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text()) | {"embed_dim": 16}))
    with pytest.raises(Trouble) as other_shapes:
        load_enlarger(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(Trouble) as incomplete:
        load_enlarger(folder)
    assert [each.value.sentence.key == "enlarger.damaged" for each in (other_shapes, incomplete)] == [own, own]
    assert other_shapes.value.cure == ("" if own else "models")


def test_a_path_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    with pytest.raises(Trouble) as told:
        find_enlarger(Home(tmp_path, tmp_path / "models"), "./nets/swin")
    assert told.value.sentence.key == "enlarger.missing"


def test_those_of_the_catalog_are_offered_and_found_in_place(tmp_path: Path) -> None:
    home, row = Home(tmp_path, tmp_path / "models"), ROWS[0]
    assert list_enlargers(home) == []
    assert list_offered(home)[0] == (row.id, "Swin2SR 2x (48 MB, Apache-2.0)")
    with pytest.raises(Trouble) as told:
        find_enlarger(home, row.id)
    assert told.value.cure == f"get:{row.id}"
    folder = tiny_swin2sr.write(cached(home.models, f"caidas/{row.id}"))
    assert list_enlargers(home) == [row.id] and list_offered(home)[0] == (row.id, "Swin2SR 2x")
    found = find_enlarger(home, row.id)
    assert Path(found).samefile(folder) and isinstance(read_enlarger(Path(found)), Swin2sr)
    assert Path(public_name(found)).stem == row.id, "a picture's settings name it so"


def test_it_stops_between_two_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enlarging, "choose_tile", lambda *_: 32)
    noise(64, 64).save(tmp_path / "p.png")
    task, control = Enlarge(str(tmp_path / "p.png"), 2, str(tiny_swin2sr.write(tmp_path / "net"))), Control()
    events = run(task, "cpu", control, tmp_path)
    first = next(events)
    assert isinstance(first, Step) and (first.done, first.total) == (1, 4)
    control.stop()
    assert [type(each) for each in events] == [Stopped]


def test_float16_is_near_and_its_breaking_is_told(tmp_path: Path) -> None:
    net, facts = load_enlarger(tiny_swin2sr.write(tmp_path / "net"))
    picture = noise(40, 24)
    expected = np.asarray(enlarge(picture, 2, net, facts.tiling), int)
    net.half()
    halves = np.asarray(enlarge(picture, 2, net, facts.tiling), int)
    assert next(net.parameters()).dtype == torch.float16 and 0 < np.abs(halves - expected).max() <= 2
    with torch.no_grad():
        net.model.upsample.final_convolution.bias.fill_(float("nan"))  # type: ignore[union-attr, operator]
    with pytest.raises(NumbersBroke):
        enlarge(picture, 2, net, facts.tiling)


def test_what_float16_breaks_is_loaded_anew_and_stays_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights were computed with as float16 had rounded them, and the next picture began in float16 again."""
    large, folder, real, loads = tiny_swin2sr.make(), tmp_path / "net", enlarging.load_enlarger, list[Path]()
    with torch.no_grad():
        large.upsample.conv_before_upsample.weight.mul_(2.0**15)
    large.save_pretrained(folder)

    def load(path: Path) -> Any:
        """Let it stay on the processor."""
        net, facts = real(path)
        loads.append(path)
        monkeypatch.setattr(net, "to", lambda *_, **__: net)
        return net, facts

    monkeypatch.setattr(enlarging, "load_enlarger", load)
    net, facts = real(folder)
    pictures, enlargers = [noise(40, 24), noise(24, 40)], Enlargers()
    for picture in pictures:
        size = picture.width * 2, picture.height * 2
        tiles, made = enlargers.enlarge_in_tiles(picture, size, str(folder), "cuda", "float16"), None
        while made is None:
            try:
                next(tiles)
            except StopIteration as end:
                made = end.value
        assert np.array_equal(np.asarray(made), np.asarray(enlarge(picture, 2, net, facts.tiling)))
    assert len(loads) == 2, "once in each precision"


def test_weights_that_are_written_over_are_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, enlargers, real, loads = tiny_swin2sr.write(tmp_path / "net"), Enlargers(), enlarging.load_enlarger, list[Path]()

    def load(path: Path) -> Any:
        loads.append(path)
        return real(path)

    monkeypatch.setattr(enlarging, "load_enlarger", load)
    weights = folder / "model.safetensors"
    for later_ns in (0, 0, 10**9):
        os.utime(
            weights, ns=(time_ns := weights.stat().st_mtime_ns + later_ns, time_ns)
        )  # as of one written in place: the folder's own time stays
        enlargers.enlarge(noise(16, 16), (32, 32), str(folder), "cpu")
    assert len(loads) == 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_processor_stays_with_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: Dtype) -> None:
    real, seen = enlarging._compute, list[torch.dtype]()

    def look(net: Any, pixels: Any) -> Any:
        seen.append(next(net.parameters()).dtype)
        return real(net, pixels)

    monkeypatch.setattr(enlarging, "_compute", look)
    net = str(tiny_swin2sr.write(tmp_path / "net"))
    assert len(list(Enlargers().enlarge_in_tiles(noise(16, 16), (32, 32), net, "cpu", dtype))) == 1 and seen == [torch.float32]
