"""Models of other programs: found in their usual places, listed quickly, read by their headers, and nothing there is changed or run."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import struct
import sys
import time
from pathlib import Path

import pytest

from app.base.paths import home as new_home
from app.compat.machine.pretended import MACHINES, machine
from app.engine.models import catalog
from app.engine.models.found import Finder, Kept, list_kept
from app.engine.models.other_tools import Places, Tool, find_snapshot, find_tools, list_places
from app.engine.models.planned import make_plan

SD15 = {
    "model.diffusion_model.input_blocks.0.0.weight": (4, 4, 3, 3),
    "model.diffusion_model.input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight": (4, 768),
    "first_stage_model.decoder.conv_in.weight": (4, 4), "cond_stage_model.transformer.text_model.x": (1, 1),
}  # fmt: skip
"""A single file of SD 1.5 is known by these."""

SDXL = {
    "model.diffusion_model.input_blocks.0.0.weight": (4, 4, 3, 3), "model.diffusion_model.label_emb.0.0.weight": (4, 4),
    "first_stage_model.decoder.conv_in.weight": (4, 4), "conditioner.embedders.0.transformer.text_model.x": (1, 1),
    "conditioner.embedders.1.model.x": (1, 1),
}  # fmt: skip


def write(path: Path, shapes: dict[str, tuple[int, ...]], fill: int = 0, dtype: str = "F16") -> Path:
    """Write a .safetensors file of bytes that are all the same."""
    table, at = {}, 0
    for name, shape in shapes.items():
        size = 2
        for side in shape:
            size *= side
        table[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(table).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes([fill]) * at)
    return path


def look(tools: tuple[Tool, ...]) -> Finder:
    finder = Finder((catalog.BY_ID, catalog.CONFIGS), lambda: tools)
    finder.look_now()
    return finder


def read_tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(each): (each.lstat().st_size, each.lstat().st_mtime_ns) for each in folder.rglob("*")}


def make_invoke(root: Path, schema: str = "CREATE TABLE models (id TEXT, config TEXT)") -> None:
    (root / "databases").mkdir(parents=True)
    with sqlite3.connect(root / "databases/invokeai.db") as database:
        database.execute(schema)
        rows: list[dict[str, object]] = [
            {"path": "abc/x.safetensors", "name": "Dreamy", "type": "main"},
            {"path": "def/l.safetensors", "name": "Inky", "type": "lora"},
        ]
        rows += [{"path": "gone.safetensors", "name": "Gone", "type": "main"}, {"path": 5, "name": "Odd", "type": "main"}]
        if "config" in schema and "TABLE" in schema:
            database.executemany("INSERT INTO models VALUES ('1', ?)", [(json.dumps(each),) for each in rows])
    database.close()
    for name in ("abc/x", "def/l"):
        write(root / "models" / f"{name}.safetensors", SD15)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with eight programs in their own layouts."""
    home = tmp_path / "home"
    comfy = home / "ComfyUI"
    for name in ("checkpoints/a", "checkpoints/sub/b", "diffusion_models/c", "loras/l1", "loras/style/l2", "vae/v", "text_encoders/t"):
        write(comfy / "models" / f"{name}.safetensors", SD15)
    write(home / "elsewhere/far.safetensors", SD15)
    (comfy / "extra_model_paths.yaml").write_text(
        "# of mine\nmine:\n    base_path: ../elsewhere\n    is_default: true\n    checkpoints: .\n    loras: |\n        nothing\n        more loras/\n"
        'other:\n    base_path: "~nobody-of-this-name"\n    vae: x\nnot yaml at all\n  : :\n'
    )
    write(home / "elsewhere/more loras/l3.safetensors", SD15)
    write(home / "AI/stable-diffusion-webui/models/Stable-diffusion/a1.safetensors", SD15)
    write(home / "AI/stable-diffusion-webui/models/Lora/al.safetensors", SD15)
    write(home / "stable-diffusion-webui-forge/models/Stable-diffusion/f1.safetensors", SD15)
    matrix = tmp_path / "matrix"
    write(matrix / "Models/StableDiffusion/m.safetensors", SD15)
    kept = home / ".config/StabilityMatrix"
    kept.mkdir(parents=True)
    (kept / "library.json").write_text(json.dumps({"LibraryPath": str(matrix)}))
    make_invoke(home / "invokeai")
    drawn = home / "Library/Containers/com.liuliu.draw-things/Data/Documents/Models"
    drawn.mkdir(parents=True)
    for name in ("sd_v1.5_f16.ckpt", "my_lora_f16.ckpt"):
        (drawn / name).write_bytes(b"SQLite format 3\0")
    hub = home / ".cache/huggingface/hub/models--somebody--nice-model"
    (hub / "refs").mkdir(parents=True)
    (hub / "refs/main").write_text("abc123")
    (hub / "snapshots/abc123").mkdir(parents=True)
    (hub / "snapshots/abc123/model_index.json").write_text("{}")
    own = hub.with_name("models--stabilityai--stable-diffusion-xl-base-1.0")
    for part in ("refs", "snapshots/def456"):
        (own / part).mkdir(parents=True)
    (own / "refs/main").write_text("def456")
    (own / "snapshots/def456/model_index.json").write_text("{}")
    return home


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_each_program_is_found_where_people_have_it_and_nothing_there_changes(home: Path) -> None:
    before = read_tree(home)
    finder = look(find_tools(list_places("darwin", home, {})))
    assert [(str(each.words), each.root.name) for each in finder.kept] == [
        ("ComfyUI (4 models, 3 LoRAs)", "ComfyUI"),
        ("AUTOMATIC1111 (1 model, 1 LoRA)", "stable-diffusion-webui"),
        ("Forge (1 model, 0 LoRAs)", "stable-diffusion-webui-forge"),
        ("Stability Matrix (1 model, 0 LoRAs)", "matrix"),
        ("InvokeAI (1 model, 1 LoRA)", "invokeai"),
        ("Draw Things (1 model, 1 LoRA)", "Models"),
        ("Hugging Face (1 model, 0 LoRAs)", "hub"),
    ]
    titles = [file.title for kept in finder.kept for file in kept.search()]
    assert titles == ["a", "b", "c", "far", "a1", "f1", "m", "Dreamy", "sd_v1.5_f16.ckpt", "somebody/nice-model"]
    words = [finder.word(file) for kept in finder.kept for file in kept.search()]
    assert words[0] == (("Stable Diffusion 1.5", "float16"), None)
    assert words[1][0][-1].values == (("path", str(home / "ComfyUI/models/checkpoints/a.safetensors")),)  # type: ignore[union-attr]
    assert words[8][1] is not None and words[8][1].key == "found.draw-things"
    assert read_tree(home) == before
    assert [file.title for file in finder.kept[0].search("SUB b")] == ["b"]


def test_where_to_look_follows_from_home_and_environment_alone() -> None:
    home, drive = Path("/nowhere/at/all"), "C:/"
    linux, windows = (
        list_places("linux", home, {}),
        list_places("win32", home, {"APPDATA": "X:/roaming", "INVOKEAI_ROOT": "X:/inv", "HF_HOME": "X:/hf"}),
    )
    assert ("ComfyUI", home / "Documents/ComfyUI") in linux.roots and linux.hub == home / ".cache/huggingface/hub"
    assert windows.roots[0] == ("InvokeAI", Path("X:/inv")) and windows.hub == Path("X:/hf/hub")
    assert ("ComfyUI", Path(drive) / "ComfyUI_windows_portable/ComfyUI") in windows.roots
    assert ("ComfyUI", Path("X:/roaming/ComfyUI/extra_models_config.yaml")) in windows.settings
    assert "Draw Things" not in dict(linux.roots) and "Draw Things" in dict(list_places("darwin", home, {}).roots)
    assert find_tools(linux) == ()


def test_the_folders_of_loras_are_named_with_their_program(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HOME", "HF_HUB_CACHE", "INVOKEAI_ROOT", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: home)
    assert tuple((tool.name, folder) for tool in find_tools() for role, folder in tool.folders if role == "lora") == (
        ("ComfyUI", home / "ComfyUI/models/loras"),
        ("ComfyUI", home / "elsewhere/more loras"),
        ("AUTOMATIC1111", home / "AI/stable-diffusion-webui/models/Lora"),
    )


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("dreamshaperXL_v21TurboDPMSDE", 8), ("juggernaut-lightning", 8), ("sdxl_lcm_v1", 8), ("Hyper-SDXL-8steps", 8), ("DMD2 mix", 8),
        ("hyperrealism_v3", 25), ("falcmatic", 25), ("juggernautXL_v9", 25),
    ],
)  # fmt: skip
def test_a_name_that_says_few_steps_is_believed_with_a_note(name: str, steps: int, tmp_path: Path) -> None:
    file = write(tmp_path / f"{name}.safetensors", SDXL)
    found = catalog.find(str(file))
    assert (found.family, found.settings.steps, found.note is not None) == ("sdxl", steps, steps == 8)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("z_image_bf16", 50), ("z_image_fp8_e4m3fn", 50), ("z-image-Q4_K_M", 50), ("Z-Image", 50),
        ("z_image_turbo_bf16", 9), ("zImage_v2", 9), ("my z image", 9),
    ],
)  # fmt: skip
def test_the_familys_name_alone_is_z_images_base(name: str, steps: int, tmp_path: Path) -> None:
    """ComfyUI's files: z_image_bf16 is the base model, and Turbo says so. Of any other name nothing is known."""
    file = write(tmp_path / f"{name}.safetensors", {"layers.0.adaLN_modulation.0.weight": (60, 1)})
    found = catalog.find(str(file))
    assert (found.family, found.settings.steps) == ("z-image", steps)
    assert (found.note is not None) == (name in ("zImage_v2", "my z image"))


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("Chroma1-Flash-Q4_K_S", 8), ("chroma1_flash_bf16", 8), ("chroma-unlocked-v47-flash-heun", 8), ("Chroma1-HD-Hyper", 8),
        ("chroma1HDFlash_v1", 8), ("Chroma1-HD-Q8_0", 40), ("chroma-unlocked-v48-detail-calibrated", 40), ("Chroma1-HD-flashlight-photo", 40),
        ("chromaFlashlight_v1", 40), ("Chroma1-HD-newsflash", 40), ("chroma-flashv2", 8), ("CHROMA1HDFLASH", 8),
        ("chromaFlashHeun_v1", 8), ("Chroma1-HD-FlashHeun", 8), ("chroma1HDFlashFp8", 8), ("Chroma1-HD-FlashQ8_0", 8), ("chromaFlashGGUF", 8),
        ("Chroma1-HD-Flashlights", 40), ("chroma-FLASHLIGHT", 40), ("chromaFlashLight_v1", 40), ("Chroma1-HD-FlashLight", 40),
        ("chromaFlashBack", 40),
    ],
)  # fmt: skip
def test_chromas_few_steps_are_told_by_the_name_alone(name: str, steps: int, tmp_path: Path) -> None:
    """Of a file, and of a folder's repository in the hub's cache."""
    found = catalog.find(str(write(tmp_path / f"{name}.safetensors", {"distilled_guidance_layer.in_proj.bias": (2,)})))
    assert (found.family, found.settings.steps, found.settings.guidance) == ("chroma", steps, 1.0 if steps == 8 else 3.0)
    folder = tmp_path / f"models--someone--{name}" / "snapshots" / "1"
    (folder / "transformer").mkdir(parents=True)
    (folder / "transformer" / "config.json").write_text(json.dumps({"num_attention_heads": 24, "attention_head_dim": 128}))
    (folder / "model_index.json").write_text(json.dumps({"_class_name": "ChromaPipeline"}))
    same = catalog.find(str(folder))
    assert (same.family, same.settings.steps, same.settings.guidance) == ("chroma", steps, found.settings.guidance)
    assert (found.note is not None) == (same.note is not None) == (steps == 8)


@pytest.mark.parametrize("shapes", [SDXL, {"layers.0.adaLN_modulation.0.weight": (6_000_000, 1)}])
def test_no_machine_plans_what_cannot_be_made_of_a_single_file(shapes: dict[str, tuple[int, ...]], tmp_path: Path) -> None:
    file = write(tmp_path / "turbo.safetensors", shapes)
    found = catalog.find(str(file))
    plans = {name: make_plan(new_home(tmp_path), machine(name), found, itself=True) for name in MACHINES}
    assert {plan.quantised for plan in plans.values()} <= {"none", "torchao-int8"}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_links_in_circles_end_and_what_is_there_twice_counts_once(tmp_path: Path) -> None:
    models = tmp_path / "ComfyUI/models/checkpoints"
    file = write(models / "real.safetensors", SD15)
    (models / "round").symlink_to(models)
    (models / "self").symlink_to(models / "self")
    (models / "gone.safetensors").symlink_to(tmp_path / "gone")
    (models / "twice.safetensors").symlink_to(file)
    os.mkfifo(models / "pipe.safetensors")
    deep = models
    for _ in range(12):
        deep /= "deeper"
    write(deep / "too deep.safetensors", SD15)
    (kept,) = list_kept(find_tools(list_places("linux", tmp_path, {})))
    assert [each.title for each in kept.files] == ["real"]


def test_what_is_hostile_is_told_and_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = tmp_path / "models"
    write(models / "z good.safetensors", SD15)
    (models / "a lying.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}")
    (models / "b deep.safetensors").write_bytes(struct.pack("<Q", 100_000) + b"[" * 100_000)
    (models / "c pickle.ckpt").write_bytes(pickle.dumps([1], 2))
    (models / "d text.gguf").write_bytes(b"<html>")
    opened, original = [], os.open

    def open_told(path: str, *rest: int) -> int:
        opened.append(str(path))
        return original(path, *rest)

    monkeypatch.setattr(os, "open", open_told)
    finder = look((Tool("ComfyUI", tmp_path, (("model", models),)),))
    words = [finder.word(file) for file in finder.kept[0].search()]
    assert [None if said is None else said.key for _, said in words] == [
        "detect.not-safetensors",
        "detect.not-safetensors",
        "found.pickle",
        "detect.not-gguf",
        None,
    ]
    assert not [each for each in opened if each.endswith(".ckpt")]


def test_a_database_of_strangers_neither_runs_nor_hangs(tmp_path: Path) -> None:
    for name, schema in {
        "endless": "CREATE VIEW models AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS config FROM n WHERE x < 0",
        "other": "CREATE TABLE other (x TEXT)",
    }.items():
        make_invoke(tmp_path / name, schema)
    (tmp_path / "torn/databases").mkdir(parents=True)
    (tmp_path / "torn/databases/invokeai.db").write_bytes(b"SQLite format 3\0" + bytes(5000))
    began = time.monotonic()
    assert find_tools(Places(tuple(("InvokeAI", tmp_path / each) for each in ("endless", "other", "torn")))) == ()
    assert time.monotonic() - began < 10


def test_the_same_file_by_another_name_is_told(tmp_path: Path) -> None:
    models = tmp_path / "models"
    same, again = write(models / "a.safetensors", SD15, 1), write(models / "b.safetensors", SD15, 1)
    write(models / "c.safetensors", SD15, 2)
    finder = look((Tool("ComfyUI", tmp_path, (("model", models),)),))
    assert finder.doubles == {again: same}


@pytest.mark.slow
def test_five_thousand_models_are_listed_within_a_second(tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    for index in range(5000):
        (models / f"{index}.safetensors").write_bytes(b"12345678")
    began = time.monotonic()
    (kept,) = list_kept((Tool("ComfyUI", tmp_path, (("model", models),)),))
    assert kept.count("model") == 5000 and time.monotonic() - began < 1


def test_what_was_read_is_read_again_only_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "models/a.safetensors", SD15)
    finder = look((Tool("ComfyUI", tmp_path, (("model", tmp_path / "models"),)),))
    first = finder.told.copy()
    finder.look_now()
    assert [*map(id, finder.told.values())] == [*map(id, first.values())]
    write(file, {**SD15, "x": (1,)})
    finder.look_now()
    assert len(finder.told) == 2


def test_a_folder_of_the_hubs_cache_is_its_newest_revision(tmp_path: Path) -> None:
    from tests.support import tiny_pictures as tiny

    folder = tiny.save("sd15", tmp_path / "models--somebody--nice-model/snapshots/abc123")
    (tmp_path / "models--somebody--nice-model/refs").mkdir()
    (tmp_path / "models--somebody--nice-model/refs/main").write_text("abc123")
    found = catalog.find(str(tmp_path / "models--somebody--nice-model"))
    assert (found.id, found.title, found.family) == (str(folder), "nice-model", "sd15")


def test_kept_counts_by_what_a_program_says() -> None:
    assert str(Kept("ComfyUI", Path("x"), ()).words) == "ComfyUI (0 models, 0 LoRAs)"


def test_a_repository_fetched_by_a_commit_or_a_branch_is_its_only_revision(tmp_path: Path) -> None:
    """The hub's library then writes refs/BRANCH, or none at all."""
    repository = tmp_path / "hub/models--somebody--model"
    first = repository / "snapshots/abc123"
    first.mkdir(parents=True)
    (first / "model_index.json").write_text("{}")
    assert find_snapshot(repository) == first
    assert [each.named for each in find_tools(Places((), hub=tmp_path / "hub"))] == [(("model", first, "somebody/model"),)]
    (repository / "snapshots/def456").mkdir()
    assert find_snapshot(repository) is None, "which of the two is meant, nobody says"
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text("def456")
    assert find_snapshot(repository) == repository / "snapshots/def456"
    (tmp_path / "plain/snapshots/abc123").mkdir(parents=True)
    assert find_snapshot(tmp_path / "plain") is None


def test_files_with_the_short_ending_are_read(tmp_path: Path) -> None:
    """As black-forest-labs published FLUX.1's: flux1-dev.sft, ae.sft."""
    comfy = tmp_path / "ComfyUI"
    model = write(comfy / "models/diffusion_models/flux1-schnell.sft", {"double_blocks.0.img_attn.norm.key_norm.scale": (4,)})
    vae = write(comfy / "models/vae/ae.sft", {"decoder.conv_in.weight": (4, 4)})
    whole = write(comfy / "models/checkpoints/whole.sft", SD15)
    finder = look(find_tools(Places((("ComfyUI", comfy),))))
    files = {each.path: each for each in finder.kept[0].files}
    assert files[model].readable and files[model].title == "flux1-schnell" and files[vae].role == "part"
    found = finder.told[files[model]].model
    assert found is not None and ("vae", str(vae)) in found.beside
    trouble = finder.told[files[whole]].trouble
    assert trouble is not None and trouble.sentence.key == "detect.rename"
