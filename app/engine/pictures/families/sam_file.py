"""Find the thing in a picture that a point lies on: transformers' Segment Anything, which looks at a picture once, and at each point for a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch
from PIL import Image
from torch.nn.functional import interpolate, pad
from transformers.models.sam import SamModel

from app.base.foreign_formats import decode, open_picture
from app.base.sentence import Sentence
from app.compat.planning.types import Plan
from app.engine.jobs.tasks import Pick
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.loading.voice_parts import device_for, load_part, split_plan
from app.engine.pictures.families import seen_pixels

PICKED: Final = "picked.png"


class Picker:
    def __init__(self, folder: Path, plan: Plan, notes: list[Sentence]) -> None:
        how, _ = split_plan(plan)
        self._model: Any = load_part(SamModel, folder, plan, how, notes)
        self._device = device_for(plan, how)
        self._side = int(self._model.config.vision_config.image_size)
        self._seen: tuple[Path, tuple[int, int], torch.Tensor] | None = None
        """The picture looked at last, its size, and what was seen in it."""

    def answer(self, task: Pick, job: Path) -> Path:
        """Leave the thing's mask in the task's folder."""
        self.pick(Path(task.picture), task.x, task.y).save(job / PICKED)
        return job / PICKED

    @torch.inference_mode()
    def pick(self, picture: Path, x: float, y: float) -> Image.Image:
        """Return where the thing is, white on black, as large as the picture. `x`, `y`: the point, as shares of its sides."""
        if self._seen is None or self._seen[0] != picture:
            self._seen = None  # before another one takes its room
            self._seen = picture, *self._look(picture)
        _, size, seen = self._seen
        wide, high = self._fit(size)
        point = torch.tensor([[[[x * wide, y * high]]]], device=self._device, dtype=seen.dtype)
        found = self._model(image_embeddings=seen, input_points=point)
        masks, scores = found.pred_masks[0, 0].float(), found.iou_scores[0, 0].float()
        if not bool(scores.isfinite().all()):
            raise NumbersBroke(0, "speech")
        whole = interpolate(masks[scores.argmax()][None, None], (self._side, self._side), mode="bilinear")[..., :high, :wide]
        likely = interpolate(whole, (size[1], size[0]), mode="bilinear")[0, 0]
        return Image.fromarray((likely > 0).byte().mul(255).cpu().numpy())

    def _look(self, picture: Path) -> tuple[tuple[int, int], torch.Tensor]:
        with open_picture(picture, ("PNG",)) as opened:
            whole = decode(opened, "RGB")
        wide, high = self._fit(whole.size)
        fitted = seen_pixels.scale(whole, (wide, high), seen_pixels.IMAGENET, Image.Resampling.BILINEAR)
        square = pad(fitted, (0, self._side - wide, 0, self._side - high))  # what lies beyond the picture is grey to the model
        seen: torch.Tensor = self._model.get_image_embeddings(square.to(self._device, self._model.dtype))
        return whole.size, seen

    def _fit(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return the sides of a picture as the model sees it: the longer one fills its square."""
        scale = self._side / max(size)
        wide, high = (max(1, int(side * scale + 0.5)) for side in size)
        return wide, high
