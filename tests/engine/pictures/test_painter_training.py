"""Test how the starter painter is trained: scenes, sketches, drawings, the grown autoencoder, two steps of everything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from assets.starter.training.pictures import train
from assets.starter.training.pictures.captions import say
from assets.starter.training.pictures.draw import draw, place_things
from assets.starter.training.pictures.evaluate import load
from assets.starter.training.pictures.figures import FIGURES
from assets.starter.training.pictures.growing import grown, halved
from assets.starter.training.pictures.model import make_autoencoder
from assets.starter.training.pictures.pack import MAX_BYTES, load_judge, pack, pack_judge
from assets.starter.training.pictures.scenes import Group, Scene, lay_out, scene
from assets.starter.training.pictures.sketch import CELLS, DOTS, ROUGH_AT, THING_AT, USED, WAVES, complete, sketch
from assets.starter.training.pictures.world import NOUNS


def test_every_noun_is_drawn_and_seen() -> None:
    """Each noun changes the picture where it stands, and no two look alike."""
    assert set(FIGURES) == set(NOUNS)
    bare = draw(Scene((), "white", seed=1), 64).astype(float)
    drawn = {kind: draw(Scene((Group(kind, "red"),), "white", seed=1), 64).astype(float) for kind in NOUNS}
    for kind, picture in drawn.items():
        assert np.abs(picture - bare)[16:48, 16:48].mean() > 6, kind
    pairs = [(a, b) for a in drawn for b in drawn if a < b]
    assert min(np.abs(drawn[a] - drawn[b]).mean() for a, b in pairs) > 0.8


def test_things_stay_where_they_are_asked_and_in_the_picture() -> None:
    for seed in range(400):
        asked = scene(seed)
        for want, got in zip(lay_out(asked), place_things(asked), strict=True):
            assert abs(want.x - got.x) < 0.13 and abs(want.y - got.y) < 0.13, (seed, want, got)
            assert 0 < got.x < 1 and 0 < got.y < 1
            assert got.colour == (want.colour or NOUNS[want.kind].natural[0])


def test_a_group_left_of_another_stands_left_of_it() -> None:
    spots = lay_out(Scene((Group("cat", place="left"), Group("dog", place="right")), "white"))
    assert [spot.kind for spot in sorted(spots, key=lambda spot: spot.x)] == ["cat", "dog"]
    above = lay_out(Scene((Group("cup", place="bottom"), Group("apple", place="top")), "white"))
    assert [spot.kind for spot in sorted(above, key=lambda spot: spot.y)] == ["apple", "cup"]


def test_a_sketch_draws_roughly_what_every_seed_draws() -> None:
    """Its waves give back the drawing's dots, which a seed's own drawing is nearer to than another scene's."""
    near, far = [], []
    for seed in range(20):
        asked = scene(seed)
        rough = sketch(asked)[:, ROUGH_AT:].reshape(CELLS, CELLS, 3, DOTS * DOTS) @ np.linalg.inv(WAVES)
        dots = rough.reshape(CELLS, CELLS, 3, DOTS, DOTS).transpose(0, 3, 1, 4, 2).reshape(CELLS * DOTS, CELLS * DOTS, 3)
        own, other = (
            draw(each, 128).reshape(32, 4, 32, 4, 3).mean((1, 3)) / 127.5 - 1 for each in (replace(asked, seed=7), scene(seed + 1000))
        )
        near.append(np.abs(dots - own).mean())
        far.append(np.abs(dots - other).mean())
    assert max(near) < 0.45 and np.mean(near) < 0.4 * np.mean(far)


def test_a_sketch_tells_where_things_are_and_is_as_the_encoders_norm_leaves_it() -> None:
    for seed in range(200):
        asked = scene(seed)
        rows = torch.from_numpy(sketch(asked))
        told = (rows[:, THING_AT] > 1).reshape(CELLS, CELLS)
        for spot in lay_out(asked):
            assert told[min(7, int(spot.y * CELLS)), min(7, int(spot.x * CELLS))], (seed, say(asked, 0))
        assert bool(told.any()) == bool(asked.groups)
        whole = complete(rows)
        assert whole.mean(-1).abs().max() < 1e-5 and (whole.pow(2).mean(-1) - 1).abs().max() < 1e-4
        assert torch.equal(whole[:, :USED], rows)


def test_seeds_change_a_drawing_but_not_its_caption() -> None:
    asked = scene(5)
    other = replace(asked, seed=asked.seed + 1)
    assert say(asked, 1) == say(other, 1)
    assert np.abs(draw(asked, 64).astype(float) - draw(other, 64)).mean() > 3


def test_the_grown_autoencoder_begins_where_the_small_one_ended() -> None:
    """Flat colours decode as before at twice the size, and encode as before from twice the size."""
    torch.manual_seed(0)
    small = make_autoencoder().eval()
    large, latents = grown(small).eval(), torch.randn(1, 4, 1, 1).expand(1, 4, 32, 32)
    with torch.no_grad():
        once, twice = (small.decode(latents).sample[..., 40:-40, 40:-40], large.decode(latents).sample[..., 80:-80, 80:-80])
        assert torch.allclose(twice, once.repeat_interleave(2, 2).repeat_interleave(2, 3), atol=0.005)
        picture = torch.ones(1, 3, 256, 256) * torch.tensor([0.9, 0.1, -0.5]).view(1, 3, 1, 1)
        found, true = (part.encode(x).latent_dist.mean[..., 8:-8, 8:-8] for part, x in ((large, picture), (small, halved(picture))))
        assert torch.allclose(found, true, atol=0.005)


def test_two_steps_of_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "CAPTIONS_FOR_TOKENIZER", 300)
    lines = list(train.train(tmp_path, train.SMOKE, list(train.SMOKE), None, small=True))
    for part in ("text", "unet", "autoencoder", "grown", "judge"):
        assert any(line.startswith(f"{part} 2/2") for line in lines), part
    pack_judge(tmp_path, tmp_path / "judge.safetensors")
    assert load_judge(tmp_path / "judge.safetensors")
    assert 0 < pack(tmp_path, tmp_path / "packed", train.AMOUNTS) <= MAX_BYTES
    assert str(tmp_path) not in "".join(path.read_text("utf-8") for path in (tmp_path / "packed").rglob("*.json"))
    assert load(tmp_path / "packed").unet.config.in_channels == 4
