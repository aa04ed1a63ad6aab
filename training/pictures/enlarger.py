"""Train the enlarger that comes with the starter: python -m training.pictures.enlarger. Needs torch, safetensors, NumPy and Pillow alone."""

from __future__ import annotations

import argparse
import io
import json
import math
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from app.engine.pictures.run.compact import Compact
from training.muon import Muon
from training.pictures.draw import draw
from training.pictures.pen import ring
from training.pictures.scenes import scene

Bytes = NDArray[np.uint8]

SCALE, FEATURES, CONVOLUTIONS = 2, 48, 16
LARGE = 384
"""A training picture has so many pixels a side; the network gets half."""
VARIANTS = 3
"""So many small pictures are made of each, each in another way."""
SIZES = (384, 512, 768, 1024)
"""Drawings are drawn this large and cut: edges come in every width."""
PATCH, RIM = 64, 6
"""A step learns from so many pixels a side; a rim of so many is left out, as there the base knows too little."""
RATE = {"inner": 1e-3, "outer": 4e-4}
FIRST_SEED, FIRST_TEST_SEED = 6_000_000, 96_000_000
EVERY_S = 20.0


def _smooth(rng: np.random.Generator, size: int, roughness: float) -> NDArray[np.float32]:
    """Return noise from -1 to 1 as clouds, bark and grass have it: the finer, the weaker."""
    found = np.zeros((size, size), np.float32)
    cells = 4
    while cells <= size:
        grid = Image.fromarray(rng.standard_normal((cells, cells)).astype(np.float32))
        found += np.asarray(grid.resize((size, size), Image.Resampling.BICUBIC)) * cells**-roughness
        cells *= 2
    return found / max(1e-6, float(np.abs(found).max()))


def leaves(seed: int, size: int) -> Bytes:
    """Draw what no scene has: leaves of every size one over the other, each with a grain, lines and letters. Photographs have edges and grain like
    these, so that a network that learned from them does them no harm."""
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    big = size * 2
    image = Image.new("RGB", (big, big), tuple(chance.randrange(256) for _ in range(3)))
    grains = [_smooth(rng, big, chance.uniform(0.3, 1.1)) for _ in range(3)]
    depth = Image.new("I", (big, big), 0)
    pen, marks = ImageDraw.Draw(image), ImageDraw.Draw(depth)
    palette = [tuple(chance.randrange(256) for _ in range(3)) for _ in range(chance.randrange(4, 24))]
    count = chance.randrange(150, 500)
    for place in range(count):
        radius = min(0.4 * big, 0.006 * big / max(0.008, chance.random()) ** 0.8)
        x, y, colour = chance.uniform(0, big), chance.uniform(0, big), chance.choice(palette)
        kind = chance.random()
        if kind < 0.1:
            thick = chance.choice((1, 2, 3, 5, 9))
            ends = [(chance.uniform(0, big), chance.uniform(0, big)) for _ in range(2)]
            pen.line(ends, fill=colour, width=thick)
            marks.line(ends, fill=place, width=thick)
            continue
        if kind < 0.2:
            font = ImageFont.load_default(chance.uniform(18, 90))
            pen.text((x, y), "".join(chance.choice("abdegkmrswxyABEGMNRSW0258&?") for _ in range(6)), fill=colour, font=font)
            continue
        corners, turn = chance.choice((3, 4, 4, 5, 40)), chance.uniform(0, 360)
        points = [(x + radius * a, y + radius * b) for a, b in ring(1, chance.uniform(0.3, 1), begin=turn, end=turn + 360, n=corners)]
        pen.polygon(points, fill=colour)
        marks.polygon(points, fill=place)
    strengths = np.asarray([chance.choice((0.0, 0.0, 12.0, 30.0, 60.0)) for _ in range(count)], np.float32)
    which, where = np.asarray([chance.randrange(3) for _ in range(count)]), np.asarray(depth)
    grain = np.choose(which[where], grains) * strengths[where]
    pixels = np.asarray(image, np.float32) + grain[:, :, None]
    if chance.random() < 0.5:
        pixels = np.asarray(
            Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(chance.uniform(0.5, 2.5)))
        )
    return np.asarray(Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).reduce(2))


def halve(picture: Bytes, chance: random.Random) -> Bytes:
    """Make a picture half as large, in one of the ways that pictures come about: shrunk well, soft, or noisy and packed as JPEG."""
    image, way = Image.fromarray(picture), chance.random()
    half = (image.width // 2, image.height // 2)
    if way >= 0.45:
        image = image.filter(ImageFilter.GaussianBlur(chance.uniform(0.2, 1.3)))
    small = image.resize(
        half, chance.choice((Image.Resampling.BOX, Image.Resampling.BICUBIC, Image.Resampling.BICUBIC, Image.Resampling.LANCZOS))
    )
    if way >= 0.7:
        noise = np.random.default_rng(chance.randrange(1 << 30)).standard_normal((*half[::-1], 3)) * chance.uniform(0, 5)
        small = Image.fromarray(np.clip(np.asarray(small, np.float32) + noise + 0.5, 0, 255).astype(np.uint8))
    return _packed(small, chance.randrange(50, 96)) if way >= 0.6 else np.asarray(small)


def _packed(small: Image.Image, quality: int) -> Bytes:
    file = io.BytesIO()
    small.save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file).convert("RGB"))


def make_pair(place: int) -> tuple[Bytes, Bytes]:
    """Return a picture of LARGE pixels and its small ones: three drawings, then one of leaves."""
    chance = random.Random(FIRST_SEED + place)
    if place % 4 == 3:
        large = leaves(FIRST_SEED + place, LARGE)
    else:
        drawn = draw(scene(FIRST_SEED + place), chance.choice(SIZES))
        top, left = (chance.randrange(0, len(drawn) - LARGE + 1, 2) for _ in range(2))
        large = drawn[top : top + LARGE, left : left + LARGE]
    return large, np.stack([halve(large, chance) for _ in range(VARIANTS)])


def _redraw(seed: int, side: int) -> Bytes:
    return draw(scene(seed), side)


def read_painted(path: Path, pool: multiprocessing.pool.Pool) -> Iterator[tuple[Bytes, Bytes]]:
    """Yield drawings with the small ones as the painter's decoder shows them, in pieces of LARGE pixels."""
    with np.load(path) as kept:
        seeds, small = kept["seeds"], kept["small"]
    drawn = pool.imap(partial(_redraw, side=2 * small.shape[1]), seeds.tolist(), 8)
    for large, shown in zip(drawn, small, strict=True):
        for top in (0, shown.shape[0] - LARGE // 2):
            for left in (0, shown.shape[1] - LARGE // 2):
                piece = shown[top : top + LARGE // 2, left : left + LARGE // 2]
                yield large[2 * top : 2 * top + LARGE, 2 * left : 2 * left + LARGE], np.stack([piece] * VARIANTS)


def write_painted(path: Path, count: int, first_seed: int = FIRST_SEED - 100_000) -> None:
    """Write how the starter painter's decoder shows drawings of 256 px; needs diffusers."""
    from diffusers import AutoencoderKL

    from training.pictures.autoencoder import NOISE, as_input

    decoder = AutoencoderKL.from_pretrained(Path(__file__).parents[2] / "assets/starter/painter/vae", torch_dtype=torch.float32)
    torch.manual_seed(first_seed)
    found = []
    with torch.no_grad():
        for place in range(count):
            latents = decoder.encode(as_input(draw(scene(first_seed + place), 256)[None])).latent_dist.mean
            shown = decoder.decode(latents + torch.randn_like(latents) * torch.rand(1) * NOISE).sample[0]
            found.append(((shown.clamp(-1, 1) + 1) * 127.5 + 0.5).byte().permute(1, 2, 0).numpy())
    np.savez_compressed(path, seeds=np.arange(first_seed, first_seed + count), small=np.stack(found))


def gather(count: int, painted: Path | None) -> tuple[Tensor, Tensor]:
    """Draw the pictures on every core; return large ones [n, 3, LARGE, LARGE] and small ones [n, VARIANTS, 3, half, half] as bytes."""
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        pairs = list(pool.imap(make_pair, range(count), 8))
        pairs += list(read_painted(painted, pool)) if painted else []
    large, small = (torch.from_numpy(np.stack(each)) for each in zip(*pairs, strict=True))
    return large.permute(0, 3, 1, 2).contiguous(), small.permute(0, 1, 4, 2, 3).contiguous()


def make_net() -> Compact:
    """Begin as the base alone: the last layer adds nothing yet."""
    net = Compact(SCALE, FEATURES, CONVOLUTIONS, "lanczos")
    layers = [layer for layer in net.body if isinstance(layer, nn.Conv2d)]
    for layer in layers:
        nn.init.kaiming_normal_(layer.weight, 0.25, nonlinearity="leaky_relu")
        nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    nn.init.zeros_(layers[-1].weight)
    return net


def lanczos(side: int) -> Tensor:
    """Return the matrix [2 * side, side] by which Pillow enlarges a line of pixels."""
    lines = Image.fromarray(np.eye(side, dtype=np.float32)).resize((side, SCALE * side), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(lines))


class Batches:
    """Random pieces of the pictures, turned and mirrored."""

    def __init__(self, large: Tensor, small: Tensor, device: torch.device) -> None:
        self.large, self.small, self.device = large.to(device), small.flatten(0, 1).to(device), device
        self.lines = lanczos(PATCH).to(device)

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """Return small pieces from 0 to 1, and what is to be added to their base."""
        which = torch.randint(len(self.small), (count, 1, 1), device=self.device)
        top, left = (torch.randint(self.small.shape[-1] - PATCH + 1, (count, 1, 1), device=self.device) for _ in range(2))
        near, wide = torch.arange(PATCH, device=self.device), torch.arange(SCALE * PATCH, device=self.device)
        small = self.small[which, :, top + near[None, :, None], left + near[None, None]].permute(0, 3, 1, 2).float() / 255
        large = (
            self.large[which // VARIANTS, :, SCALE * top + wide[None, :, None], SCALE * left + wide[None, None]].permute(0, 3, 1, 2).float()
            / 255
        )
        turn, mirrored = random.randrange(4), random.random() < 0.5
        small, large = (torch.rot90(each.flip(3) if mirrored else each, turn, (2, 3)).contiguous() for each in (small, large))
        base = (self.lines @ small @ self.lines.T).clamp(0, 1)
        return small, large - base


def off(made: Tensor, wanted: Tensor) -> Tensor:
    """Return the error without the rim: of the pixels, and of their edges."""
    rim = SCALE * RIM
    far = (made - wanted)[:, :, rim:-rim, rim:-rim]
    loss: Tensor = (far.square() + 1e-6).sqrt().mean()
    for way in (2, 3):
        loss = loss + 0.25 * (far.diff(dim=way).square() + 1e-6).sqrt().mean()
    return loss


def train(net: Compact, batches: Batches, minutes: float, batch: int) -> Iterator[str]:
    """Train for so many minutes at a rate that rises quickly and falls to nothing; the net ends as its running mean."""
    net.to(batches.device).to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    inner = [layer.weight for layer in list(net.body)[2:-1] if isinstance(layer, nn.Conv2d)]
    known = {id(weight) for weight in inner}
    outer = [weight for weight in net.parameters() if id(weight) not in known]
    steppers: list[tuple[torch.optim.Optimizer, float]] = [
        (Muon(inner, RATE["inner"], weight_decay=0.0), RATE["inner"]),
        (torch.optim.AdamW(outer, RATE["outer"], betas=(0.9, 0.98), weight_decay=0.0), RATE["outer"]),
    ]
    weights: list[Tensor] = list(net.parameters())
    means = [weight.detach().clone() for weight in weights]
    began = told = time.monotonic()
    step, losses = 0, []
    while (share := (time.monotonic() - began) / (60 * minutes)) < 1:
        for stepper, rate in steppers:
            stepper.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / 100) * 0.5 * (1 + math.cos(math.pi * share))
        small, wanted = batches.draw(batch)
        loss = off(net(small.to(memory_format=torch.channels_last)), wanted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        for stepper, _ in steppers:
            stepper.step()
            stepper.zero_grad(set_to_none=True)
        step += 1
        with torch.no_grad():
            torch._foreach_lerp_(means, weights, 1 - min(0.999, (step + 1) / (step + 11)))
        losses.append(loss.detach())
        if time.monotonic() - told > EVERY_S:
            told = time.monotonic()
            yield f"step {step} loss {torch.stack(losses).mean().item():.5f} {told - began:.0f} s"
            losses = []
    with torch.no_grad():
        for weight, mean in zip(weights, means, strict=True):
            weight.copy_(mean)
    yield f"{step} steps"


@torch.no_grad()
def enlarge(net: Compact, small: Bytes) -> Bytes:
    """Enlarge a whole picture at once."""
    device = next(net.parameters()).device
    base = np.asarray(Image.fromarray(small).resize((SCALE * small.shape[1], SCALE * small.shape[0]), Image.Resampling.LANCZOS), np.float32)
    added = net(torch.from_numpy(small.copy()).to(device).permute(2, 0, 1)[None].float() / 255)[0].permute(1, 2, 0).cpu().numpy() * 255
    made: Bytes = np.clip(np.rint(base + added), 0, 255).astype(np.uint8)
    return made


def psnr(one: Bytes, other: Bytes) -> float:
    return 10 * math.log10(255**2 / max(1e-3, float(np.square(one.astype(np.float64) - other).mean())))


def ssim(one: Bytes, other: Bytes) -> float:
    """Return the structural similarity of the two in grey, by the usual window of 11 pixels."""
    window = torch.exp(-((torch.arange(11.0) - 5) ** 2) / (2 * 1.5**2)).double()
    window = torch.outer(window, window)[None, None] / window.sum() ** 2
    grey = torch.tensor((0.299, 0.587, 0.114), dtype=torch.double)
    x, y = (torch.from_numpy(each.astype(np.float64)) @ grey for each in (one, other))
    mean_x, mean_y, xx, yy, xy = (functional.conv2d(each[None, None], window) for each in (x, y, x * x, y * y, x * y))
    low, high = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    alike = (2 * mean_x * mean_y + low) * (2 * (xy - mean_x * mean_y) + high)
    found = alike / ((mean_x**2 + mean_y**2 + low) * (xx - mean_x**2 + yy - mean_y**2 + high))
    return float(found.mean())


def _by_box(large: Bytes) -> Bytes:
    return np.asarray(Image.fromarray(large).reduce(SCALE))


def _by_bicubic(large: Bytes) -> Bytes:
    return np.asarray(Image.fromarray(large).resize((large.shape[1] // 2, large.shape[0] // 2), Image.Resampling.BICUBIC))


def _worn(large: Bytes) -> Bytes:
    soft = Image.fromarray(large).filter(ImageFilter.GaussianBlur(0.8)).reduce(SCALE)
    noise = np.random.default_rng(1).standard_normal((soft.height, soft.width, 3)) * 3
    return _packed(Image.fromarray(np.clip(np.asarray(soft, np.float32) + noise, 0, 255).astype(np.uint8)), 75)


SHRUNK: Mapping[str, Callable[[Bytes], Bytes]] = {"bicubic": _by_bicubic, "averaged": _by_box, "soft, noisy, JPEG 75": _worn}


def compare(net: Compact, pairs: Sequence[tuple[Bytes, Bytes]]) -> dict[str, float]:
    """Score the network against formulas: how near each comes to the large pictures, in the mean."""
    ways: dict[str, Callable[[Bytes], Bytes]] = {"enlarger": partial(enlarge, net)}
    for name, filtering in (("bicubic", Image.Resampling.BICUBIC), ("lanczos", Image.Resampling.LANCZOS)):
        ways[name] = lambda small, by=filtering: np.asarray(
            Image.fromarray(small).resize((SCALE * small.shape[1], SCALE * small.shape[0]), by)
        )  # type: ignore[misc]
    found = {}
    for name, way in ways.items():
        made = [(large, way(small)) for large, small in pairs]
        found[f"{name}_psnr"] = round(float(np.mean([psnr(*each) for each in made])), 2)
        found[f"{name}_ssim"] = round(float(np.mean([ssim(*each) for each in made])), 4)
    return found


def evaluate(net: Compact, count: int, painted: Path | None, photographs: Path | None) -> dict[str, dict[str, float]]:
    """Score on scenes that were kept out of training, and on what else is given."""
    net.eval()
    subjects = {"drawings": [draw(scene(FIRST_TEST_SEED + place, held_out=True), 512) for place in range(count)]}
    if photographs:
        files = sorted(path for path in photographs.iterdir() if path.suffix in (".png", ".jpg", ".jpeg"))
        whole = [np.asarray(Image.open(path).convert("RGB")) for path in files]
        subjects["photographs"] = [each[: len(each) // 2 * 2, : each.shape[1] // 2 * 2][:1024, :1024] for each in whole]
    found = {
        f"{name}, {way}": compare(net, [(each, shrink(each)) for each in given])
        for name, given in subjects.items()
        for way, shrink in SHRUNK.items()
    }
    if painted:
        with np.load(painted) as kept:
            some = list(zip(kept["seeds"][:count].tolist(), kept["small"][:count], strict=True))
        found["the painter's"] = compare(net, [(_redraw(seed, 2 * len(small)), small) for seed, small in some])
    return found


def show(net: Compact, count: int, painted: Path | None) -> Image.Image:
    """Return a sheet of drawings, enlarged by bicubic at the left, by the network in the middle, as they are at the right."""
    given = [
        (each, SHRUNK["averaged"](each)) for each in (draw(scene(FIRST_TEST_SEED + place, held_out=True), 512) for place in range(count))
    ]
    if painted:
        with np.load(painted) as kept:
            given += [(_redraw(int(kept["seeds"][place]), 512), kept["small"][place]) for place in range(count)]
    rows = []
    for large, small in given:
        plain = np.asarray(Image.fromarray(small).resize((512, 512), Image.Resampling.BICUBIC))
        rows.append(np.concatenate([plain, enlarge(net, small), large], 1))
    return Image.fromarray(np.concatenate(rows))


def save(net: Compact, path: Path) -> None:
    """Save in half precision, with what its pixels are added to."""
    tensors = {name: value.detach().cpu().half().contiguous() for name, value in net.state_dict().items()}
    save_file(tensors, path, {"base": "lanczos", "licence": "Apache-2.0"})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.pictures.enlarger", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("enlarger-work"), help="where the weights, the scores and the log go")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to train; drawing comes before it")
    parser.add_argument("--pictures", type=int, default=400, help="how many pictures to draw")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--test", type=int, default=40, help="how many drawings to judge on")
    parser.add_argument("--painted", type=Path, help="what the painter's decoder shows, to learn from too")
    parser.add_argument("--tested", type=Path, help="the same of other seeds, to judge on")
    parser.add_argument("--photographs", type=Path, help="a folder of pictures to judge on")
    parser.add_argument("--write-painted", type=int, metavar="COUNT", help="write what --painted and --tested read, and train nothing")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.write_painted:
        write_painted(given.out / "painted.npz", given.write_painted)
        write_painted(given.out / "tested.npz", given.write_painted // 8 + 1, FIRST_TEST_SEED + 100_000)
        return
    torch.manual_seed(0)
    random.seed(0)
    with (given.out / "log.txt").open("w", encoding="utf-8") as log:

        def tell(line: str) -> None:
            print(line, flush=True)
            log.write(f"{line}\n")
            log.flush()

        began = time.monotonic()
        large, small = gather(given.pictures, given.painted)
        tell(f"{len(large)} pictures in {time.monotonic() - began:.0f} s")
        net = make_net()
        for line in train(net, Batches(large, small, torch.device(given.device)), given.minutes, given.batch):
            tell(line)
        save(net, given.out / "enlarger.safetensors")
        scores = evaluate(net, given.test, given.tested, given.photographs)
        for name, found in scores.items():
            tell(f"{name}: {json.dumps(found)}")
        (given.out / "scores.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
        show(net, 4, given.tested).save(given.out / "sheet.png")


if __name__ == "__main__":
    main()
