"""Test what is seen of people: their boxes and what is cut out as transformers has it, peaks between pixels; memory comes back."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers.models.rt_detr import RTDetrForObjectDetection
from transformers.models.rt_detr.image_processing_pil_rt_detr import RTDetrImageProcessorPil
from transformers.models.vitpose import VitPoseForPoseEstimation

from app.base.trouble import Trouble
from app.engine.pictures.families import pose_file, seen_pixels
from app.engine.pictures.families.pose_file import find_peaks, see_poses
from app.engine.pictures.families.reader_file import load_reader
from tests.support.tiny_readers import save_finder, save_pose


@pytest.fixture(scope="module")
def noise() -> Image.Image:
    return Image.fromarray(np.random.default_rng(4).integers(0, 256, (200, 300, 3), dtype=np.uint8))


@torch.no_grad()
def test_people_are_found_as_transformers_finds_them(noise: Image.Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, processor = save_finder(tmp_path / "finder"), RTDetrImageProcessorPil()
    seen = RTDetrForObjectDetection.from_pretrained(folder).eval()(**processor(noise, return_tensors="pt"))
    monkeypatch.setattr(pose_file, "CERTAIN", middling := float(seen.logits[0, :, 0].sigmoid().mean()))
    found = processor.post_process_object_detection(seen, threshold=middling, target_sizes=[(200, 300)])[0]
    corners = found["boxes"][found["labels"] == 0].numpy()
    own = pose_file._find_people(folder, noise)
    assert 0 < len(own) < 8, "some are certain enough, and others are not"
    np.testing.assert_allclose(np.hstack([own[:, :2] - own[:, 2:] / 2, own[:, :2] + own[:, 2:] / 2]), corners, atol=0.1)


@torch.no_grad()
def test_a_person_is_cut_out_as_in_training(noise: Image.Image, tmp_path: Path) -> None:
    """The first pixel of the cut lies in the corner of the enlarged box, the last one opposite; what lies beyond the picture is black."""
    box, (left, top), (width, height) = np.array([80.0, 90.0, 30.0, 100.0], np.float32), (33.125, 27.5), (93.75, 125.0)
    xs, ys = left + np.arange(192) * width / 191, top + np.arange(256) * height / 255
    pixels, (x, y) = np.asarray(noise, np.float32), (xs.astype(int), ys.astype(int))
    right, below = (xs - x)[None, :, None], (ys - y)[:, None, None]
    upper, lower = (pixels[row][:, x] * (1 - right) + pixels[row][:, x + 1] * right for row in (y, y + 1))
    cut = Image.fromarray(np.rint(upper * (1 - below) + lower * below).astype(np.uint8))
    plain = VitPoseForPoseEstimation.from_pretrained(save_pose(tmp_path / "pose")).eval()
    heat = plain(seen_pixels.scale(cut, cut.size, seen_pixels.IMAGENET)).heatmaps[0].numpy()
    expected = find_peaks(heat)
    expected[:, :2] = expected[:, :2] * (width / 47, height / 63) + (left, top)
    np.testing.assert_allclose(pose_file._see_pose(plain, noise, box), expected, atol=0.05)


def test_peaks_lie_between_pixels() -> None:
    rows, columns = np.mgrid[:64, :48]
    wanted = np.array([(10.3, 20.8, 0.9), (0.2, 63.0, 0.5), (31.5, 5.0, 0.2)])
    heat = np.stack([high * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 8) for x, y, high in wanted]).astype(np.float32)
    found = find_peaks(heat)
    np.testing.assert_allclose(found[[0, 2], :2], wanted[[0, 2], :2], atol=1e-3)
    assert tuple(found[1, :2]) == (0, 63), "at the border there is nothing beside it to go by"
    np.testing.assert_allclose(found[:, 2], wanted[:, 2], atol=0.02)
    assert np.isfinite(find_peaks(np.zeros((2, 8, 8), np.float32))).all()


@pytest.mark.slow
def test_each_person_is_seen_and_nobody_needs_no_second_model(noise: Image.Image, tmp_path: Path) -> None:
    pose, finder = save_pose(tmp_path / "pose"), save_finder(tmp_path / "finder")
    assert see_poses(pose, finder, noise).shape == (8, 17, 3)
    nobody = save_finder(tmp_path / "nobody", certain=-40.0)
    assert see_poses(tmp_path / "not there", nobody, noise).shape == (0, 17, 3)
    (pose / "config.json").write_text((pose / "config.json").read_text().replace('"hidden_size": 16', '"hidden_size": 32'))
    with pytest.raises(Trouble, match="damaged"):
        see_poses(pose, finder, noise)


def test_both_models_leave_the_memory(noise: Image.Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[Any]()

    def watch(kind: Any, folder: Path) -> Any:
        told.append(weakref.ref(loaded := load_reader(kind, folder)))
        return loaded

    monkeypatch.setattr(pose_file, "load_reader", watch)
    monkeypatch.setattr(pose_file, "release", lambda: told.append(told[-1]() is None))
    see_poses(save_pose(tmp_path / "pose"), save_finder(tmp_path / "finder"), noise)
    assert told[1::2] == [True, True]
