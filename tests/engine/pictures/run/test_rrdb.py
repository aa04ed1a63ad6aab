"""Test ESRGAN enlargers: each layout of their files, the same numbers as a plain forward, no seams, memory as forecast, other kinds named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import conv2d, interpolate, leaky_relu, pixel_unshuffle

from app.base.trouble import Trouble
from app.engine.models.enlargers import read_enlarger
from app.engine.models.rrdb import Rrdb, Tiling
from app.engine.pictures.run.enlarge import choose_tile, enlarge, load_enlarger
from tests.support.places import TOP

Weights = dict[str, Tensor]


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8))


def make_old(blocks: int = 2, doublings: int = 2, fold: int = 1, features: int = 16, growth: int = 8) -> Weights:
    """Return random weights as the first ESRGAN keeps them; as in a trained one, the parts are about as strong as what they are added to."""
    torch.manual_seed(3)
    wide = {"model.0": (3 * fold * fold, features), f"model.1.sub.{blocks}": (features, features)}
    for block in range(blocks):
        for dense in (1, 2, 3):
            for place in range(5):
                made = growth if place < 4 else features
                wide[f"model.1.sub.{block}.RDB{dense}.conv{place + 1}.0"] = features + place * growth, made
    wide |= {f"model.{3 * each}": (features, features) for each in range(1, doublings + 1)}
    wide |= {f"model.{3 * doublings + 2}": (features, features), f"model.{3 * doublings + 4}": (features, 3)}
    found: Weights = {}
    for name, (read, made) in wide.items():
        found |= {f"{name}.weight": torch.randn(made, read, 3, 3) / (read * 9) ** 0.5, f"{name}.bias": 0.1 * torch.randn(made)}
    return found


def rename(old: Weights, blocks: int, doublings: int, names: tuple[str, ...]) -> Weights:
    """Give the first layout's weights the names of a later one."""
    block, dense, trunk, up, late = names
    later = {
        "model.0": "conv_first",
        f"model.1.sub.{blocks}": trunk,
        f"model.{3 * doublings + 2}": late,
        f"model.{3 * doublings + 4}": "conv_last",
    }
    later |= {f"model.{3 * each}": f"{up}{each}" for each in range(1, doublings + 1)}
    found: Weights = {}
    for name, weight in old.items():
        stem, _, end = name.rpartition(".")
        inner = stem.replace("model.1.sub.", block).replace(".RDB", dense).removesuffix(".0")
        found[f"{later.get(stem, inner)}.{end}"] = weight
    return found


NEW = ("body.", ".rdb", "conv_body", "conv_up", "conv_hr")
MIDDLE = ("RRDB_trunk.", ".RDB", "trunk_conv", "upconv", "HRconv")


def plain_forward(old: Weights, small: Tensor, blocks: int, doublings: int, fold: int) -> Tensor:
    """Compute what the paper says, step by step, by the first layout's names."""

    def convolve(name: str, read: Tensor) -> Tensor:
        return conv2d(read, old[f"{name}.weight"], old[f"{name}.bias"], padding=1)

    first = convolve("model.0", pixel_unshuffle(small, fold))
    body = first
    for block in range(blocks):
        inner = body
        for dense in (1, 2, 3):
            seen = [inner]
            for place in range(1, 5):
                seen.append(leaky_relu(convolve(f"model.1.sub.{block}.RDB{dense}.conv{place}.0", torch.cat(seen, 1)), 0.2))
            inner = inner + 0.2 * convolve(f"model.1.sub.{block}.RDB{dense}.conv5.0", torch.cat(seen, 1))
        body = body + 0.2 * inner
    found = first + convolve(f"model.1.sub.{blocks}", body)
    for each in range(1, doublings + 1):
        found = leaky_relu(convolve(f"model.{3 * each}", interpolate(found, scale_factor=2, mode="nearest")), 0.2)
    return convolve(f"model.{3 * doublings + 4}", leaky_relu(convolve(f"model.{3 * doublings + 2}", found), 0.2))


def save(weights: Weights, path: Path) -> Path:
    save_file({name: each.contiguous() for name, each in weights.items()}, path)
    return path


@pytest.mark.parametrize(("blocks", "doublings", "fold"), [(2, 2, 1), (1, 1, 1), (2, 0, 1), (6, 2, 2), (1, 2, 4), (1, 3, 1)])
def test_each_layout_computes_what_the_paper_says(tmp_path: Path, blocks: int, doublings: int, fold: int) -> None:
    old, small = make_old(blocks, doublings, fold), torch.rand(1, 3, 16, 12)
    expected = plain_forward(old, small, blocks, doublings, fold)
    layouts = {"old": old, "new": rename(old, blocks, doublings, NEW), "middle": rename(old, blocks, doublings, MIDDLE)}
    for name, weights in layouts.items():
        net, facts = load_enlarger(save(weights, tmp_path / f"{name}.safetensors"))
        assert isinstance(facts, Rrdb) and (facts.scale, facts.features, facts.growth, facts.blocks) == (
            2**doublings // fold,
            16,
            8,
            blocks,
        )
        with torch.no_grad():
            made = net(small)
        assert made.shape == expected.shape == (1, 3, 16 * facts.scale, 12 * facts.scale)
        assert (made - expected).abs().max() < 1e-4, name


def test_halves_are_read_and_odd_sides_folded(tmp_path: Path) -> None:
    old = make_old(1, 2, 2)
    halves = {name: each.half() for name, each in old.items()}
    net, facts = load_enlarger(save(halves, tmp_path / "net.safetensors"))
    assert enlarge(noise(17, 3), 2, net, facts.tiling).size == (34, 6) and enlarge(noise(1, 1), 4, net, facts.tiling).size == (4, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "fold"), [(2, 1), (23, 1), (6, 2)])
def test_tiles_leave_no_seam(tmp_path: Path, blocks: int, fold: int) -> None:
    """Noise through random weights: whatever a tile lacks would show at its border. 23 blocks see 350 pixels far, which no tile has around it."""
    net, facts = load_enlarger(save(make_old(blocks, 2, fold), tmp_path / "net.safetensors"))
    assert isinstance(facts, Rrdb)
    picture = noise(130, 70)
    with torch.no_grad():  # as random weights draw it, it has next to no contrast
        net.conv_last.weight.mul_(4)  # type: ignore[operator, union-attr]
    whole, tiled, blind = (
        np.asarray(enlarge(picture, facts.scale, net, tiling, tile), int)
        for tiling, tile in ((facts.tiling, 1_000), (facts.tiling, 48), (Tiling(0, 0, fold), 48))
    )
    assert np.abs(whole - tiled).max() <= 1
    assert np.abs(whole - blind).max() > 8, "a seam would be seen here"


def test_tiles_are_as_large_as_memory_allows(tmp_path: Path) -> None:
    facts = read_enlarger(save(make_old(1, 2, 1, 64, 32), tmp_path / "net.safetensors"))
    assert [choose_tile(facts, mib << 20) for mib in (8_000, 1_000, 200, 1)] == [256, 128, 32, 32]


MEASURE = """
import resource, sys, torch
from pathlib import Path
from app.engine.pictures.run.enlarge import load_enlarger
net, facts = load_enlarger(Path(sys.argv[1]))
net.to(memory_format=torch.channels_last)  # as on a processor
side = int(sys.argv[2])
small = torch.rand(1, side, side, 3).permute(0, 3, 1, 2)
with torch.no_grad():
    net(small[..., :64, :64])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    net(small)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, facts.count_bytes(side, side))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the highest memory as Linux tells it")
@pytest.mark.parametrize(("doublings", "fold"), [(2, 1), (0, 1), (2, 2)])
def test_memory_is_as_forecast(tmp_path: Path, doublings: int, fold: int) -> None:
    path = save(make_old(1, doublings, fold, 64, 32), tmp_path / "net.safetensors")
    told = subprocess.run([sys.executable, "-c", MEASURE, str(path), "512"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    taken, forecast = map(int, told.split())
    assert abs(taken - forecast) < 0.15 * taken, (taken, forecast)


@pytest.mark.parametrize("kind", ["HAT", "DAT", "SPAN", "SwinIR", "OmniSR", "ESRGAN+"])
def test_other_kinds_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    swin = ("conv_first.weight", "layers.0.residual_group.blocks.0.attn.relative_position_bias_table")
    held = {
        "HAT": ("conv_first.weight", "relative_position_index_SA", "layers.0.residual_group.overlap_attn.qkv.weight", swin[1]),
        "DAT": ("conv_first.weight", "before_RG.1.weight", "layers.0.blocks.0.attn.channel_interaction.1.weight"),
        "SPAN": ("conv_1.sk.weight", "block_1.c1_r.sk.weight"), "SwinIR": swin,
        "OmniSR": ("input.weight", "residual_layer.0.residual_layer.0.layer.0.fn.0.weight"),
        "ESRGAN+": (*make_old(1), "model.1.sub.0.RDB1.conv1x1.weight"),
    }  # fmt: skip
    with pytest.raises(Trouble) as told:
        read_enlarger(save({name: torch.zeros(1) for name in held[kind]}, tmp_path / "4x.safetensors"))
    assert told.value.sentence.key == "enlarger.kind" and dict(told.value.sentence.values)["kind"] == kind


def test_a_file_with_a_tensor_too_many_or_of_another_size_is_none(tmp_path: Path) -> None:
    old = make_old(1)
    for odd in (
        {"model.11.weight": torch.zeros(1)}, {"model.3.bias": torch.zeros(5)}, {"model.0.weight": torch.zeros(16, 1, 3, 3)},
        {"model.1.sub.0.RDB1.conv1.0.weight": torch.zeros(())},
    ):  # fmt: skip
        with pytest.raises(Trouble) as told:
            read_enlarger(save(old | odd, tmp_path / "odd.safetensors"))
        assert told.value.sentence.key == "enlarger.other"
