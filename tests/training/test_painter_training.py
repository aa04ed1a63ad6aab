"""Test how the starter painter is trained: scenes, sketches, drawings, the autoencoder, what the code sees, two steps of everything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app.engine.pictures.scenes.scene import Group
from training.pictures import train, transformer
from training.pictures.autoencoder import as_input, begin_autoencoder, cut_outs, halved, latents_of
from training.pictures.captions import say
from training.pictures.draw import draw, place_things
from training.pictures.evaluate import load
from training.pictures.figures import FIGURES
from training.pictures.looking import faults, shows
from training.pictures.model import make_autoencoder
from training.pictures.pack import MAX_BYTES, pack
from training.pictures.scenes import Scene, Spot, lay_out, scene
from training.pictures.sketch import CELLS, DOTS, ROUGH_AT, THING_AT, USED, WAVES, complete, sketch
from training.pictures.told import misread
from training.pictures.world import NOUNS

pytestmark = pytest.mark.slow  # no part of Hearth: run before weights are trained anew


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
            assert abs(want.x - got.x) < 0.16 and abs(want.y - got.y) < 0.16, (seed, want, got)
            assert (want.x - 0.5) * (got.x - 0.5) >= 0 and (want.y - 0.5) * (got.y - 0.5) >= 0, "it went over to the other side"
            assert got.x - 0.9 * got.radius > 0 and got.x + 0.9 * got.radius < 1, "it is cut off"
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


def test_an_untrained_autoencoder_passes_flat_colours() -> None:
    """It begins where only edges are left to learn."""
    torch.manual_seed(0)
    model, colour = make_autoencoder(), torch.tensor([0.9, 0.1, -0.5]).view(1, 3, 1, 1)
    begin_autoencoder(model, np.stack([draw(scene(seed), 256) for seed in range(8)]))
    with torch.no_grad():
        decoded = model.eval().decode(torch.cat([colour, torch.zeros(1, 1, 1, 1)], 1).expand(1, 4, 32, 32)).sample
        encoded = model.encode(colour.expand(1, 3, 256, 256)).latent_dist.mean[:, :3]
    assert (decoded - colour)[..., 32:-32, 32:-32].abs().max() < 0.1
    assert (encoded - colour)[..., 4:-4, 4:-4].abs().max() < 0.1


def test_cut_outs_fit_their_latents() -> None:
    pictures = as_input(np.stack([draw(scene(seed), 256) for seed in range(4)]))
    cut, latents = cut_outs(pictures, latents_of(halved(pictures)), np.random.default_rng(0))
    assert cut.shape[-1] == 128 and torch.allclose(latents_of(halved(cut)), latents, atol=1e-5)


@pytest.mark.slow
@pytest.mark.slow
def test_true_drawings_are_found_right_and_altered_ones_wrong() -> None:
    """A wrong noun, a wrong colour and a missing thing are each named, whatever the seed's light; a wrong size is a fault of some name."""
    asked = Scene((Group("cat", "black", place="left"), Group("house", "red", place="right")), ground="hills", time="night", seed=3)
    cat, house = place_things(asked)
    assert not faults(draw(asked, 256), asked)
    for other, fault in (
        ((replace(cat, kind="dog"), house), "kind: dog for cat"),
        ((cat, replace(house, colour="yellow")), "colour: yellow for red (house)"),
        ((cat,), "missing: house"),
        ((cat, replace(house, radius=0.7 * house.radius)), ""),
        ((cat, house, Spot("balloon", "red", 0.5, 0.25, 0.12)), "extra"),
    ):
        found = faults(draw(asked, 256, spots=other), asked)
        assert any(each.startswith(fault) for each in found), (fault, found)
    for whole in (
        replace(asked, ground="snow"),
        replace(asked, time="day"),
        replace(asked, weather="rain"),
        replace(asked, style="pencil"),
    ):
        assert any(each.startswith("whole") for each in faults(draw(whole, 256), asked)), whole


def test_a_thing_of_another_size_is_still_known() -> None:
    """Nouns are compared at their likeliest size: a smaller one is no other noun."""
    asked = Scene((Group("windmill", "red"),), "white")
    (mill,) = place_things(asked)
    for share in (0.6, 1.55):
        found = faults(draw(asked, 256, spots=[replace(mill, radius=share * mill.radius)]), asked)
        assert f"size: {share} of what was asked (windmill)" in found
        assert not [each for each in found if each.startswith(("kind", "missing"))]


def test_a_thing_that_is_gone_is_not_shown() -> None:
    asked = Scene((Group("cat", "black", place="left"), Group("house", "red", place="right")), ground="hills")
    cat, house = place_things(asked)
    assert shows(draw(asked, 256), asked, "house") and not shows(draw(asked, 256, spots=[cat]), asked, "house")
    assert not shows(draw(asked, 256, spots=[cat, replace(house, kind="tent")]), asked, "house")


TOLD: dict[str, Any] = {"ground": None, "background": None, "time": None, "extras": [], "style": None, "not": []}


def _thing(noun: str, **more: object) -> dict[str, object]:
    return {"count": 1, "noun": noun, "colour": None, "size": None, "place": None} | more


def test_what_was_meant_is_compared_with_what_was_read() -> None:
    read = Scene((Group("cat", "black", "big", 1, "left"), Group("dog", "", "", 2)), ground="snow", weather="rain", mountains=True)
    meant = TOLD | {"things": [_thing("dog", count=2), _thing("cat", colour="black", size="large", place="left")], "ground": "snow",
                    "extras": ["clouds", "mountains"], "style": "flat"}  # fmt: skip
    assert misread(meant, read) == []
    relation = {"relation": "left of", "other": 0}
    assert misread(meant | {"things": [_thing("dog", count=2), _thing("cat", place=relation)]}, read) == []
    for other, fault in (
        ({"things": [_thing("dog", count=2), _thing("cat", place={"relation": "right of", "other": 0})]}, "place: cat right of"),
        ({"things": [_thing("dog"), _thing("cat")]}, "thing: dog"),
        ({"things": [_thing("dog", count=2)]}, "besides: cat"),
        ({"things": [_thing("dog", count=2), _thing("cat", colour="red")]}, "thing: cat"),
        ({"things": [_thing("dog", count=2), _thing("cat", size="small")]}, "thing: cat"),
        ({"things": [_thing("dog", count=2), _thing("cat", place="right")]}, "place: cat right"),
        ({"ground": "plain"}, "ground: snow for none"),
        ({"time": "night"}, "time: day for night"),
        ({"background": "red"}, "background: none for red"),
        ({"style": "pencil"}, "style: none for pencil"),
        ({"extras": ["rainbow"]}, "extra: rainbow"),
        ({"not": ["cat"]}, "unwanted: cat"),
        ({"not": ["mountains"]}, "unwanted: mountains"),
    ):
        assert fault in misread(meant | other, read), other


@pytest.mark.slow
@pytest.mark.slow
def test_two_steps_of_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "CAPTIONS_FOR_TOKENIZER", 300)
    lines = list(train.train(tmp_path, train.SMOKE, list(train.SMOKE), None, small=True))
    for part in ("text 2/2", "unet 2/2", "autoencoder 2/2", "decoder 4/4"):
        assert any(line.startswith(part) for line in lines), part
    assert 0 < pack(tmp_path, tmp_path / "packed", train.AMOUNTS) <= MAX_BYTES
    assert str(tmp_path) not in "".join(path.read_text("utf-8") for path in (tmp_path / "packed").rglob("*.json"))
    assert load(tmp_path / "packed").unet.config.in_channels == 4


def test_a_transformer_is_trained_and_what_reusing_loses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After two steps it paints noise: a setting that reuses nothing makes the same, and each that does spares what it says."""
    monkeypatch.setattr(transformer, "DRAWINGS", 16)
    assert any(line.startswith("transformer 2/2") for line in transformer.train(tmp_path, 2))
    chosen = [each for each in transformer.CASES if each[0] in ("full", "a little", "much, always")]
    monkeypatch.setattr(transformer, "CASES", (*chosen, chosen[0]))
    told = [line.split() for line in transformer.measure(tmp_path, 1)]
    assert [line[line.index("spared") + 2] for line in told] == ["0.00", "0.00", "0.50", "0.00"]
    off = [float(line[line.index("off") + 2]) for line in told]
    assert off[0] == off[3] == 0 < off[1] < off[2]
