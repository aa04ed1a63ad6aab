"""Measure the memory that a picture's job takes beside its forecast, each case in a process of its own: `python -m tests.support.picture_memory [CASE ...]`.

What counts is what the process holds for itself beyond what it held before it loaded anything, looked at every two milliseconds. Pages of the weights'
files do not: the weights are stored in float16 here and computed in float32, so nothing computes from a file, and the system takes such pages back."""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import diffusers
import torch
import transformers
from PIL import Image, ImageDraw
from safetensors.torch import save_file
from transformers.models.depth_anything import DepthAnythingConfig, DepthAnythingForDepthEstimation
from transformers.models.dinov2 import Dinov2Config
from transformers.models.rt_detr import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig
from transformers.models.sam import SamConfig, SamModel
from transformers.models.vitpose import VitPoseConfig, VitPoseForPoseEstimation
from transformers.models.vitpose_backbone import VitPoseBackboneConfig

from app.base.paths import Home
from app.base.paths import home as make_home
from app.compat.planning.memory_formulas import MIB, peak_bytes
from app.compat.planning.types import Choice, Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Failed, Finished
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.jobs.tasks import Pick
from app.engine.models import catalog
from app.engine.models.planned import find_need
from app.engine.session.session import Session
from bench import full_size
from tests.support.hub import cached
from tests.support.tiny_ears import place_for

SIDE: Final = 384
"""Smaller pictures' steps would drown in the weights."""
WIDTHS: Final = (160, 320, 640, 640)
"""Half of SD 1.5's, for the same reason."""
STEPS: Final = 2
"""The second one begins with what the first one left in memory."""
EVERY_S: Final = 0.002


def write_models(root: Path) -> None:
    """Write a model of SD 1.5's layout with half as wide a denoiser, and what guides it at its real size, with random weights in float16."""
    painter = full_size.write_picture("sd15", root / "painter", block_out_channels=WIDTHS)
    unet: Any = full_size.libraries.diffusers.UNet2DConditionModel.from_pretrained(painter / "unet", torch_dtype=torch.float16)
    _draw_halves(diffusers.ControlNetModel.from_unet(unet)).save_pretrained(root / "control")
    attention = {
        name.removesuffix(".weight"): weight
        for name, weight in unet.named_parameters()
        if name.endswith(("to_q.weight", "to_k.weight", "to_v.weight"))
    }
    _write_lora(root / "lora.safetensors", attention)
    _write_adapter(root / "adapter", attention)
    _write_readers(make_home(root / "home").create())
    picture = Image.effect_noise((SIDE, SIDE), 60).convert("RGB")
    ImageDraw.Draw(picture).ellipse((50, 50, 200, 200), fill="red")
    picture.save(root / "picture.png")
    mask = Image.new("L", (SIDE, SIDE), 0)
    ImageDraw.Draw(mask).rectangle((70, 70, 170, 170), fill=255)
    mask.save(root / "mask.png")


def _write_readers(home: Home) -> None:
    """Write what reads pictures, at its real size. Everything is taken for people, who have all of their points."""
    depth = DepthAnythingConfig(
        backbone_config=Dinov2Config(
            hidden_size=384,
            num_attention_heads=6,
            image_size=518,
            patch_size=14,
            out_indices=[3, 6, 9, 12],
            reshape_hidden_states=False,
            apply_layernorm=True,
        ),
        reassemble_hidden_size=384,
        neck_hidden_sizes=[48, 96, 192, 384],
        fusion_hidden_size=64,
    )
    backbone = RTDetrResNetConfig(
        hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic", out_features=["stage2", "stage3", "stage4"]
    )
    people = RTDetrConfig(
        backbone_config=backbone, encoder_in_channels=[128, 256, 512], hidden_expansion=0.5, decoder_layers=3, num_labels=80
    )
    points = VitPoseConfig(backbone_config=VitPoseBackboneConfig(out_indices=[12]), num_labels=17)
    seen = {"hidden_size": 168, "mlp_dim": 696, "num_attention_heads": 12, "num_hidden_layers": 12}
    finder: Any = full_size.draw(RTDetrForObjectDetection(people))
    finder.model.decoder.class_embed[-1].bias.data[0] = 99.0
    pose: Any = full_size.draw(VitPoseForPoseEstimation(points))
    pose.head.conv.bias.data += 99.0
    depth_reader: Any = full_size.draw(DepthAnythingForDepthEstimation(depth))
    picker: Any = full_size.draw(SamModel(SamConfig(vision_config=seen)))
    depth_reader.save_pretrained(place_for(home, "depth-anything-v2-small"))
    finder.save_pretrained(cached(home.models, "PekingU/rtdetr_r18vd"))
    pose.save_pretrained(place_for(home, "vitpose-base"))
    picker.save_pretrained(place_for(home, "slimsam"))


def _draw_halves(part: Any) -> Any:
    return full_size.draw(part.half())


def _write_lora(path: Path, attention: dict[str, torch.Tensor]) -> None:
    weights = dict[str, torch.Tensor]()
    for name, weight in attention.items():
        key = f"lora_unet_{name.replace('.', '_')}"
        weights |= {f"{key}.lora_down.weight": torch.randn(8, weight.shape[1]).half() / 99, f"{key}.alpha": torch.tensor(8.0)}
        weights[f"{key}.lora_up.weight"] = torch.randn(weight.shape[0], 8).half() / 99
    save_file(weights, path)


def _write_adapter(folder: Path, attention: dict[str, torch.Tensor]) -> None:
    weights = {"image_proj.proj.weight": torch.randn(4 * 768, 1024).half() / 99, "image_proj.proj.bias": torch.zeros(4 * 768).half()}
    weights |= {"image_proj.norm.weight": torch.ones(768).half(), "image_proj.norm.bias": torch.zeros(768).half()}
    for place, width in enumerate(weight.shape[0] for name, weight in attention.items() if "attn2.to_k" in name):
        weights |= {f"ip_adapter.{2 * place + 1}.to_{each}_ip.weight": torch.randn(width, 768).half() / 99 for each in "kv"}
    folder.mkdir()
    save_file(weights, folder / "adapter.safetensors")
    settings = transformers.CLIPVisionConfig(
        hidden_size=1280,
        intermediate_size=5120,
        num_hidden_layers=32,
        num_attention_heads=16,
        patch_size=14,
        projection_dim=1024,
        hidden_act="gelu",
    )
    encoder: Any = transformers.CLIPVisionModelWithProjection(settings)
    _draw_halves(encoder).save_pretrained(folder / "image_encoder")


def list_requests(root: Path) -> dict[str, PictureRequest | Pick]:
    """List the cases."""
    picture, guided = str(root / "picture.png"), {"control": str(root / "control"), "guide": str(root / "picture.png")}
    own: dict[str, dict[str, Any]] = {
        "text": {},
        "batch": {"batch": 2},
        "image": {"image": picture, "strength": 1.0},
        "inpaint": {"image": picture, "mask": str(root / "mask.png"), "strength": 1.0},
        "lora": {"loras": (Lora(str(root / "lora.safetensors"), 1.0),)},
        "edges": {**guided, "guide_as": "edges"},
        "depth": {**guided, "guide_as": "depth"},
        "pose": {**guided, "guide_as": "pose"},
        "adapter": {"reference": picture, "adapter": str(root / "adapter/adapter.safetensors")},
        "hires": {"upscale": 2, "hires": True, "enlarger": "starter"},
        "enlarged": {"upscale": 2, "enlarger": "starter"},
    }
    plain = PictureRequest("a red ball", str(root / "painter"), width=SIDE, height=SIDE, steps=STEPS, seed=1, guidance=5.0, preview_every=0)
    return {"pick": Pick("slimsam", picture, 0.3, 0.3)} | {case: replace(plain, **values) for case, values in own.items()}


@dataclass
class Watched:
    """What a process holds for itself, over time."""

    held: list[tuple[float, int]] = field(default_factory=list)

    def find_most(self, begin_s: float = 0.0, end_s: float = float("inf")) -> int:
        return max((each for at_s, each in self.held if begin_s <= at_s < end_s), default=0)


@contextmanager
def watching() -> Iterator[Watched]:
    watched, ended = Watched(), threading.Event()

    def look() -> None:
        while not ended.wait(EVERY_S):
            watched.held.append((time.monotonic(), read_own_bytes()))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield watched
    finally:
        ended.set()
        thread.join()


def read_own_bytes() -> int:
    """Return the memory that is this process's own, as Linux counts it."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return sum(int(lines[each].split()[0]) << 10 for each in ("RssAnon", "RssShmem"))


def measure(case: str, root: Path) -> dict[str, Any]:
    """Run a case in this process; return what it took and what was forecast, and the most of each stretch between two of its events."""
    import app.engine.pictures.run.painter  # noqa: F401 - a session imports it for its first picture, as it does torch

    home = Home(root / "home", root / "home" / "models")
    session, asked, plans = Session(home), list_requests(root)[case], list[Plan]()
    (job := root / "jobs" / case).mkdir(parents=True, exist_ok=True)
    gc.collect()
    before, ends = read_own_bytes(), [("loading", time.monotonic())]
    with watching() as watched:
        for event in session.run(asked, Choice(), Control(), job, lambda _, plan: plans.append(plan)):
            if isinstance(event, Failed):
                raise SystemExit(str(event.sentence))
            ends.append((type(event).__name__, time.monotonic()))
    assert ends[-1][0] == Finished.__name__
    stretches = [(name, watched.find_most(begin, end) - before) for (_, begin), (name, end) in pairwise(ends)]
    request = asked if isinstance(asked, PictureRequest) else None
    forecast = peak_bytes(find_need(home, session.hardware, catalog.find(asked.model), request), plans[-1])
    return {"case": case, "taken": watched.find_most() - before, "forecast": forecast, "stretches": stretches}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(list_requests(Path()))}; all without any")
    parser.add_argument("--within", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.within:
        print(json.dumps(measure(given.cases[0], given.within)))
        return
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder))
        print("| Case | forecast, MiB | taken, MiB | forecast / taken |\n| --- | --- | --- | --- |", flush=True)
        for case in given.cases or list_requests(Path()):
            command = [sys.executable, "-m", "tests.support.picture_memory", case, "--within", folder]
            made = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()[-1])
            forecast, taken = made["forecast"], made["taken"]
            print(f"| {case} | {forecast // MIB} | {taken // MIB} | {forecast / taken:.2f} |", flush=True)


if __name__ == "__main__":
    main()
