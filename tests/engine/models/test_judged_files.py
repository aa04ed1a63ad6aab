"""What a stranger's model may make Hearth read before anybody uses it: links cost nothing, so the same file may be named again and again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.trouble import Trouble
from app.engine.models import judged_files
from app.engine.models.detect import detect_model


def make_model(folder: Path, parts: int, files: dict[str, str]) -> list[str]:
    """Make a model whose parts are all links to one folder; return their names."""
    (folder / "one").mkdir(parents=True)
    for name, text in files.items():
        (folder / "one" / name).write_text(text, "utf-8")
    names = [f"part-{index}" for index in range(parts)]
    for name in names:
        (folder / name).symlink_to("one", target_is_directory=True)
    listed = {name: ["diffusers", "UNet2DConditionModel"] for name in names}
    (folder / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline", **listed}), "utf-8")
    return names


def test_more_parts_than_any_model_has_are_told_with_their_number(tmp_path: Path) -> None:
    """3,000 parts kept a thread busy for half a minute, and the disk was blamed."""
    make_model(tmp_path, judged_files.PARTS_MOST + 1, {})
    with pytest.raises(Trouble) as told:
        detect_model(tmp_path, {}, {})
    assert told.value.sentence.key == "detect.fact"
    assert "parts 33, which no such model has" in str(told.value)


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [("config.json", '{"a": "' + "x" * 1_900_000 + '"}', 12), ("a.safetensors.index.json", '{"weight_map": {}}'.ljust(12 << 20), 2)],
    ids=["settings", "indexes"],
)
def test_settings_that_are_large_only_together(tmp_path: Path, name: str, text: str, parts: int) -> None:
    names = make_model(tmp_path, parts, {name: text})
    judged_files.judge_folder(tmp_path, names[: parts // 2])
    with pytest.raises(Trouble) as told:
        judged_files.judge_folder(tmp_path, names)
    assert told.value.sentence.key == "detect.much"


def test_as_many_parts_as_may_be_pass(tmp_path: Path) -> None:
    judged_files.judge_folder(tmp_path, make_model(tmp_path, judged_files.PARTS_MOST, {"config.json": "{}"}))
