"""What is made so far of a task: which files travel, and what of another machine's is put into a job's folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from app.engine.jobs.parts import ELSEWHERE, SPOKEN, drop_elsewhere, is_elsewhere, mark_elsewhere
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.speech.sound import spoken_parts
from app.engine.speech.sound.spoken_parts import SpokenPart
from app.machines.tasks import begun
from app.machines.tasks.begun import is_name, keep, list_begun, measure, put_into, set_aside
from app.machines.tasks.portable import pack


def save_latent(path: Path, done: object = 3, whole: str = "0", name: str = "latents") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: np.zeros(4, np.float32)}, path, {"done": str(done), "whole": whole})
    return path


def save_part(folder: Path, level: float = 0.1) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = SPOKEN.shown(folder, 0)
    spoken_parts.save(SpokenPart("one", 5, "key", 0.5, True, np.zeros((8, 1), np.int16), path), np.full(4000, level, np.float32), 8000)
    return path


def test_which_files_a_task_has_begun(tmp_path: Path) -> None:
    for name in (
        "latent-0.safetensors",
        "picture-0.png",
        "preview-0-1.jpg",
        "unfinished-001.json",
        "part-000.wav",
        "part-000.json",
        "seed",
    ):
        (tmp_path / name).touch()
    script, picture = SpeechRequest("[S1] hello."), PictureRequest("a ball")
    assert [each.name for each in list_begun(picture, tmp_path)] == ["latent-0.safetensors"]
    assert [each.name for each in list_begun(script, tmp_path)] == ["part-000.wav", "part-000.json", "unfinished-001.json"]
    only = SpeechRequest("[S1] hello.", only_parts=(1,))
    assert [each.name for each in list_begun(only, tmp_path)] == ["unfinished-001.json"], "the part itself is its result"


def test_the_one_that_is_further_stays(tmp_path: Path) -> None:
    target = tmp_path / "job" / "latent-7.safetensors"
    target.parent.mkdir()
    for done, kept in ((3, True), (5, True), (5, False), (4, False)):
        assert keep(save_latent(tmp_path / "latent-0.safetensors", done), target) is kept
    assert measure(target) == 5
    rows = tmp_path / "unfinished-000.json"
    rows.write_text(json.dumps({"rows": [[1], [2]]}))
    assert keep(rows, tmp_path / "job" / "unfinished-000.json")
    (target.with_name("latent-8.safetensors")).touch()
    assert drop_elsewhere(target.parent) and [each.name for each in target.parent.iterdir()] == ["latent-8.safetensors"]
    assert not drop_elsewhere(target.parent)
    (target.parent / "latent-9.safetensors").mkdir()
    mark_elsewhere(target.parent / "latent-9.safetensors")
    assert not drop_elsewhere(target.parent), "a folder cannot be deleted so, which ends nothing"


@pytest.mark.parametrize(
    ("done", "whole", "name"), [(0, "0", "latents"), (-3, "0", "latents"), ("x", "0", "latents"), (3, "1", "latents"), (3, "0", "other")]
)
def test_a_picture_that_is_not_begun_is_not_kept(done: object, whole: str, name: str, tmp_path: Path) -> None:
    """One whose steps are all done is not either: its latents would be decoded unseen."""
    assert not keep(save_latent(tmp_path / "latent-0.safetensors", done, whole, name), tmp_path / "latent-1.safetensors")


@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"\xff" * 200, b'{"rows": 5}', b"[" * 100_000, b"{}", b'{"rows": []}'])
def test_what_is_no_such_file_is_not_kept(content: bytes, tmp_path: Path) -> None:
    for name in ("latent-0.safetensors", "unfinished-000.json"):
        (tmp_path / name).write_bytes(content)
        assert not keep(tmp_path / name, tmp_path / "job" / name)


def test_a_file_that_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_latent(tmp_path / "latent-0.safetensors")
    monkeypatch.setattr(begun, "BYTES_MOST", path.stat().st_size - 1)
    assert not keep(path, tmp_path / "latent-1.safetensors")


def test_a_part_of_a_script_is_kept_with_its_words_only(tmp_path: Path) -> None:
    there, job = save_part(tmp_path / "there"), tmp_path / "job"
    job.mkdir()
    assert keep(there, job / there.name) and spoken_parts.find(job / there.name) is None
    assert keep(there.with_suffix(".json"), job / "part-000.json") and spoken_parts.find(job / there.name) is not None
    other = save_part(tmp_path / "other", 0.5)
    assert not keep(other, job / there.name) and not keep(other.with_suffix(".json"), job / "part-000.json"), "it is there"
    (job / "part-000.json").unlink()
    (tmp_path / "part-000.json").write_text("{}")
    assert not keep(tmp_path / "part-000.json", job / "part-000.json") and not (job / "part-000.json").exists()
    newer = save_part(tmp_path / "newer", 0.5)
    assert keep(newer, job / there.name), "sound without its words is nobody's"


def test_that_another_machine_spoke_a_part_goes_where_the_part_goes(tmp_path: Path) -> None:
    there, job, redone = save_part(tmp_path / "there"), tmp_path / "job", tmp_path / "redone"
    job.mkdir()
    redone.mkdir()
    spoken_parts.adopt(there, redone, 0)
    assert not is_elsewhere(redone / there.name), "it is this machine's"
    for file in (there, there.with_suffix(".json")):
        keep(file, job / file.name)
    assert is_elsewhere(job / there.name) and not drop_elsewhere(job) and spoken_parts.find(job / there.name) is not None
    spoken_parts.adopt(job / there.name, redone, 0)
    assert is_elsewhere(redone / there.name)
    save_part(redone)
    assert not is_elsewhere(redone / there.name), "it was made anew here"


@pytest.mark.parametrize(
    "name", ["../latent-0.safetensors", "latent-0.safetensors/../x", "seed", "picture-0.png", "latent-x.safetensors", "part-000.exe",
      "latent-5.safetensors", "", None]
)  # fmt: skip
def test_names_that_no_task_has(name: object) -> None:
    assert not is_name(name, pieces=5)


def test_what_is_begun_travels_with_its_task(tmp_path: Path) -> None:
    kept = save_latent(tmp_path / "job" / "latent-7.safetensors", 6)
    aside = set_aside({"latent-0.safetensors": kept, "latent-1.safetensors": tmp_path / "gone"}, tmp_path / "aside")
    packed = pack(PictureRequest("a ball", model="starter-painter"), aside)
    kept.write_bytes(b"the next step")
    ((sha256, path),) = packed.files.items()
    assert json.loads(packed.body)["files"] == {sha256: path.stat().st_size} and path.name == sha256
    put_into(tmp_path / "there", packed.body, tmp_path / "aside")
    there = {each.name for each in (tmp_path / "there").iterdir()}
    assert there == {"latent-0.safetensors", "latent-0.safetensors" + ELSEWHERE}
    assert measure(tmp_path / "there" / "latent-0.safetensors") == 6
    save_latent(tmp_path / "there" / "latent-0.safetensors", 9)
    put_into(tmp_path / "there", packed.body, tmp_path / "aside")
    assert measure(tmp_path / "there" / "latent-0.safetensors") == 9, "it was further itself"


@pytest.mark.parametrize(
    "begun", [{"../../evil.json": "0" * 64}, {"unfinished-000.json": "../../etc/passwd"}, {"unfinished-000.json": 5}, [], "x", None]
)
def test_what_a_task_brings_along_leads_nowhere(begun: object, tmp_path: Path) -> None:
    (tmp_path / "aside").mkdir()
    (tmp_path / "aside" / ("0" * 64)).write_text('{"rows": [[1]]}')
    put_into(tmp_path / "a" / "job", json.dumps({"begun": begun}), tmp_path / "aside")
    assert [*tmp_path.rglob("*.json")] == []
