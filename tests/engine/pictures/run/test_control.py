"""Test guiding by a picture: beside plain diffusers, within its span, in tiles, on every offload; what does not fit is refused."""

from __future__ import annotations

import json
import shutil
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from transformers.models.depth_anything import DepthAnythingForDepthEstimation
from transformers.models.dpt import DPTImageProcessor

from app.base.paths import Home
from app.base.paths import home as make_home
from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware
from app.compat.planning.memory_formulas import SCRATCH_BYTES
from app.compat.planning.types import Precision
from app.engine.jobs import schedulers
from app.engine.jobs.control import Control
from app.engine.jobs.events import Note, PartDone, Preview
from app.engine.jobs.owners import Allowance
from app.engine.jobs.request import PictureRequest
from app.engine.kinds import admit, kind_of
from app.engine.models import catalog
from app.engine.models.controls import find_control, list_controls, read_control
from app.engine.models.model import add_to_denoiser, describe_need
from app.engine.models.on_disk import Located
from app.engine.models.picture_families import FAMILIES
from app.engine.models.planned import find_need
from app.engine.pictures.families import depth_file, placement
from app.engine.pictures.families.control_file import load_control
from app.engine.pictures.families.depth_file import see_depth
from app.engine.pictures.families.pose_file import see_poses
from app.engine.pictures.families.reader_file import load_reader
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run import guide
from app.engine.pictures.run import painter as picture_painter
from app.engine.pictures.run.active_control import ActiveControl
from app.engine.pictures.run.guide import find_edges, keep_guide, make_guide, note_cut
from app.engine.pictures.run.skeleton import draw_poses
from app.engine.pictures.run.tiled_denoiser import Window, list_spans, tiles
from app.engine.pictures.steps import weigh_step
from tests.support import tiny_pictures as tiny
from tests.support import tiny_single_files as single
from tests.support.combinations import combine
from tests.support.hub import cached
from tests.support.picture_fixtures import SMALL, assert_same, list_parts, load_painter, read_pixels
from tests.support.tiny_ears import complete, place_for
from tests.support.tiny_readers import save_depth, save_finder, save_pose

pytest_plugins = ["tests.support.picture_fixtures"]
GUIDED = {"sd15": "StableDiffusion", "sdxl": "StableDiffusionXL"}


@pytest.fixture(scope="session")
def controls(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("controls")
    return {family: tiny.save_control(folders[family], root / family) for family in GUIDED}


@pytest.fixture(scope="session")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A circle and a bar, as large as what is painted."""
    path, pixels = tmp_path_factory.mktemp("guides") / "shapes.png", np.zeros((64, 64, 3), np.uint8)
    rows, columns = np.mgrid[:64, :64]
    pixels[(rows - 24) ** 2 + (columns - 24) ** 2 < 200] = (250, 40, 90)
    pixels[48:56] = 255
    Image.fromarray(pixels).save(path)
    return path


def paint_plainly(folder: Path, control: Path, kind: str, prompt: str, guide: Path, start: Path, **more: Any) -> np.ndarray:
    """Paint with diffusers' own ControlNet pipelines."""
    model = catalog.find(str(folder))
    family = FAMILIES[model.family]
    name = {"text": "ControlNetPipeline", "image": "ControlNetImg2ImgPipeline", "inpaint": "ControlNetInpaintPipeline"}[kind]
    pipe = getattr(diffusers, GUIDED[model.family] + name).from_pretrained(
        folder, controlnet=diffusers.ControlNetModel.from_pretrained(control), **family.load_arguments
    )
    row = schedulers.find_scheduler(model.settings.scheduler)
    pipe.scheduler = getattr(diffusers, row.class_name).from_config(pipe.scheduler.config, **row.settings)
    map_, gradient = Image.open(guide).convert("RGB"), Image.open(start).convert("RGB").resize((64, 64), Image.Resampling.LANCZOS)
    pictures: dict[str, Any] = {"image": map_} if kind == "text" else {"image": gradient, "control_image": map_, "strength": 0.7}
    if kind == "inpaint":
        pictures["mask_image"] = Image.fromarray(np.pad(np.full((32, 64), 255, np.uint8), ((32, 0), (0, 0))))
    made = pipe(
        prompt,
        num_inference_steps=5,
        width=64,
        height=64,
        guidance_scale=5.0,
        generator=torch.Generator("cpu").manual_seed(11),
        output_type="np",
        **pictures,
        **more,
    )
    return np.asarray(made.images[0], dtype=np.float64)


@pytest.mark.parametrize(("kind", "family"), combine(("text", "image", "inpaint"), GUIDED))
def test_it_paints_as_diffusers_does(
    family: str,
    kind: str,
    folders: dict[str, Path],
    controls: dict[str, Path],
    shapes: Path,
    gradient: Path,
    tmp_path: Path,
    decoded: list[torch.Tensor],
) -> None:
    paints, _ = load_painter(folders[family])
    files: dict[str, Any] = {}
    if kind != "text":
        files["image"] = str(gradient)
    if kind == "inpaint":
        mask = tmp_path / "mask.png"
        Image.fromarray(np.pad(np.full((32, 64), 255, np.uint8), ((32, 0), (0, 0)))).save(mask)
        files["mask"] = str(mask)
    asked = PictureRequest(
        "a red ball",
        str(folders[family]),
        guide=str(shapes),
        control=str(controls[family]),
        guide_strength=0.8,
        guide_from=0.2,
        guide_to=0.8,
        guidance=5.0,
        strength=0.7,
        **files,
        **{**SMALL, "steps": 5},
    )
    list(paints.run(asked, Control(), None, tmp_path / "job"))
    plain = paint_plainly(
        folders[family],
        controls[family],
        kind,
        "a red ball",
        shapes,
        gradient,
        controlnet_conditioning_scale=0.8,
        control_guidance_start=0.2,
        control_guidance_end=0.8,
    )
    assert_same(decoded[-1], plain)


def guided(folder: Path, control: Path, guide: Path, **more: Any) -> PictureRequest:
    return PictureRequest("a red ball", str(folder), guide=str(guide), control=str(control), **{**SMALL, **more})


def list_ways() -> list[Any]:
    """Offloads of a processor and of a pretended card, and weights that are stored narrower than they compute."""
    narrow = {
        "precision": (Precision("unet", "denoiser", "float16", "float32", "cpu"), Precision("vae", "vae", "float32", "float32", "cpu"))
    }
    return [
        pytest.param({"offload": "model"}, id="mapped from disk"),
        pytest.param({"offload": "model", "device": "cuda"}, id="model", marks=pytest.mark.slow),
        pytest.param({"offload": "group", "device": "cuda"}, id="group"),
        pytest.param({"offload": "sequential", "device": "cuda"}, id="sequential", marks=pytest.mark.slow),
        pytest.param(narrow, id="stored in float16"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("way", list_ways())
def test_every_offload_paints_the_same(
    way: dict[str, Any], folders: dict[str, Path], controls: dict[str, Path], shapes: Path, tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    whole, model = load_painter(folders["sd15"])
    asked = guided(folders["sd15"], controls["sd15"], shapes, guidance=5.0)
    paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model, **way), {}, tmp_path / "scratch")
    for paint, job in ((whole, "whole"), (paints, "there"), (paints, "again")):
        list(paint.run(asked, Control(), None, tmp_path / job))
    list(paints.run(replace(asked, guide=None, control=""), Control(), None, tmp_path / "unguided"))
    assert paints._control._control is None, "an idle control model holds memory"
    list(paints.run(asked, Control(), None, tmp_path / "guided"))
    paints.close()
    there, again, without, anew = (float((each - decoded[0]).abs().max()) for each in decoded[1:])
    assert max(there, again, anew) < (0.02 if "precision" in way else 1e-4) and without > 0.05


def test_a_batch_goes_on_where_it_was_stopped(folders: dict[str, Path], controls: dict[str, Path], shapes: Path, tmp_path: Path) -> None:
    """Resuming repeats no step, so the span must not count from there."""
    paints, _ = load_painter(folders["sd15"])
    asked = guided(folders["sd15"], controls["sd15"], shapes, guide_from=0.3, guide_to=0.8, steps=6, preview_every=2, guidance=5.0)
    whole = list_parts(list(paints.run(asked, Control(), None, tmp_path / "whole")))
    control = Control()
    for event in paints.run(asked, control, None, tmp_path / "stopped"):
        if isinstance(event, Preview):
            control.stop()
    (tmp_path / "stopped" / Path(whole[0].path).name).unlink()
    resumed = list_parts(list(paints.run(asked, Control(), None, tmp_path / "stopped")))
    assert np.abs(read_pixels(whole[0].path) - read_pixels(resumed[0].path)).max() <= 1 / 255


class Records(torch.nn.Module):
    """A control model, or a denoiser, that notes what it is given."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def forward(self, sample: torch.Tensor, *_: Any, controlnet_cond: Any = None, **given: Any) -> Any:
        self.seen.append(controlnet_cond if controlnet_cond is not None else given.get("mid_block_additional_residual"))
        return ([], sample.mean()) if controlnet_cond is not None else (sample,)


def test_a_guide_counts_where_its_tile_lies_and_within_its_span(folders: dict[str, Path], controls: dict[str, Path]) -> None:
    model = catalog.find(str(folders["sd15"]))
    picture = Image.fromarray(np.random.default_rng(1).integers(0, 255, (512, 1024, 3), np.uint8))
    asked = guided(folders["sd15"], controls["sd15"], folders["sd15"], guide_from=0.25, guide_to=0.75, steps=4)
    held, control, denoiser, window = ActiveControl("unet", tiny.make_plan(model), None), Records(), Records(), Window()
    held._control = control
    settings, place = SimpleNamespace(guide=picture, request=asked), [0, 4]
    with held.guide(settings, denoiser, window, lambda: (place[0], place[1])), tiles(denoiser, 512, 8, window):  # type: ignore[arg-type]
        for place[0] in range(4):
            denoiser(torch.rand(2, 4, 64, 128), 1, encoder_hidden_states=torch.rand(2, 1, 1))
    down, across = list_spans((64, 128), 512, 8)
    whole = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255
    assert len(across) > 1 == len(down) and len(control.seen) == 2 * len(across)
    for seen, (left, right) in zip(control.seen, 2 * list(across), strict=True):
        assert torch.equal(seen, whole[None, ..., 8 * left : 8 * right].expand(2, -1, -1, -1))
    guides = [each is not None for each in denoiser.seen]
    assert guides == [False] * len(across) + [True] * 2 * len(across) + [False] * len(across)


@pytest.mark.parametrize("family", GUIDED)
def test_files_of_other_programs_are_the_same_control_model(family: str, tmp_path: Path) -> None:
    """One .safetensors with the names of diffusers, as most for SDXL, or of the first program, as ComfyUI's for SD 1.5."""
    torch.manual_seed(3)
    unet = single.make_pipeline(family).unet
    made = diffusers.ControlNetModel.from_unet(unet, conditioning_embedding_out_channels=(8, 8, 16, 16))
    for name, tensors in (("own", made.state_dict()), ("original", single.name_control(made))):
        file = tmp_path / f"{name}.safetensors"
        save_file({each: tensor.contiguous() for each, tensor in tensors.items()}, file)
        facts = read_control(file)
        assert (facts.family, facts.original, facts.parameters) == (family, name == "original", sum(p.numel() for p in made.parameters()))
        loaded = load_control(facts, unet, torch.float32)
        assert all(torch.equal(tensor, made.state_dict()[each]) for each, tensor in loaded.state_dict().items())


def spoil_nothing(folder: Path) -> None: ...


def cut_off(folder: Path) -> None:
    file = folder / "diffusion_pytorch_model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def change_config(**values: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | values))

    return change


@pytest.mark.parametrize(
    ("family", "spoil", "key"),
    [
        ("sdxl", spoil_nothing, "control.unfit"), ("sd15", cut_off, "detect.cut-off"),
        ("sd15", change_config(cross_attention_dim=48), "control.misfit"), ("sd15", change_config(_class_name="Evil"), "control.misfit"),
        ("sd15", change_config(layers_per_block=63), "control.misfit"), ("sd15", change_config(norm_num_groups=5), "control.misfit"),
        ("sd15", change_config(block_out_channels=[10**9, 2]), "detect.fact"), ("sd15", lambda folder: shutil.rmtree(folder), "control.missing"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_a_sentence(
    family: str, spoil: Callable[[Path], None], key: str, folders: dict[str, Path], controls: dict[str, Path], shapes: Path, tmp_path: Path
) -> None:
    control = Path(shutil.copytree(controls[family], tmp_path / "control"))
    spoil(control)
    paints, model = load_painter(folders["sd15"])
    asked = guided(folders["sd15"], control, shapes)
    with pytest.raises(Trouble) as told:
        kind_of(asked).check(Home(tmp_path, tmp_path), asked, model)
        list(paints.run(asked, Control(), None, tmp_path / "job"))
    assert told.value.sentence.key == key
    unguided = replace(asked, guide=None, control="")
    assert list_parts(list(paints.run(unguided, Control(), None, tmp_path / "job"))), "what failed must not stay in the way"


def test_other_kinds_of_files_and_models_are_named(
    folders: dict[str, Path], controls: dict[str, Path], shapes: Path, tmp_path: Path
) -> None:
    for tensor, words in (
        ("lora_controlnet", "Control-LoRA"),
        ("image_proj.proj.weight", "IP-Adapter"),
        ("model.weight", "no control model"),
    ):
        save_file({tensor: torch.zeros(2)}, tmp_path / "other.safetensors")
        with pytest.raises(Trouble, match=words):
            read_control(tmp_path / "other.safetensors")
    home = Home(tmp_path, tmp_path)
    with pytest.raises(Trouble, match="cannot be guided"):
        admit(guided(folders["flux"], controls["sd15"], shapes), home)
    with pytest.raises(Trouble, match="cannot be guided"):
        admit(guided(Path(catalog.find("starter-painter").path), controls["sd15"], shapes), home)
    with pytest.raises(Trouble, match="Only the owner"):
        kind_of(guided(folders["sd15"], controls["sd15"], shapes)).grant(
            guided(folders["sd15"], controls["sd15"], shapes), Allowance(), catalog.find(str(folders["sd15"]))
        )
    with pytest.raises(Trouble, match="no control model"):
        PictureRequest("a", guide="a.png")
    with pytest.raises(Trouble, match="none"):
        PictureRequest("a", guide="a.png", control="x", guide_from=0.8, guide_to=0.8)


def test_those_of_the_own_folder_are_found_by_name(controls: dict[str, Path], tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    assert list_controls(home) == [] and find_control(home, "") == ""
    home.controls.mkdir()
    shutil.copytree(controls["sd15"], home.controls / "Lines")
    (home.controls / "canny.safetensors").write_bytes(b"?")
    (home.controls / "notes.txt").write_text("?")
    assert [each.name for each in list_controls(home)] == ["canny.safetensors", "Lines"]
    assert find_control(home, "canny") == str(home.controls / "canny.safetensors") and find_control(home, "/else") == "/else"
    with pytest.raises(Trouble, match="no control model scribble"):
        find_control(home, "scribble")


def test_its_settings_lie_in_the_file_and_paint_the_same(
    folders: dict[str, Path], controls: dict[str, Path], shapes: Path, tmp_path: Path
) -> None:
    paints, _ = load_painter(folders["sd15"])
    asked = guided(folders["sd15"], controls["sd15"], shapes, guide_as="edges", guide_strength=0.5, guide_to=0.9)
    made = list_parts(list(paints.run(asked, Control(), None, tmp_path / "job")))[0]
    found = picture_settings.read(Path(made.path))
    stored = found.request
    assert (stored.guide, stored.control, stored.guide_as, stored.guide_strength, stored.guide_to) == (
        "shapes.png",
        "sd15",
        "edges",
        0.5,
        0.9,
    )
    assert [each.key for each in found.notes] == ["restore.guide"]
    with Image.open(made.path) as picture:
        assert 'ControlNet 0: "Module: canny, Model: sd15, Weight: 0.5, Guidance Start: 0, Guidance End: 0.9"' in picture.info["parameters"]
    with Image.open(tmp_path / "job" / "guide.png") as kept:
        assert kept.size == (64, 64) and set(np.unique(np.asarray(kept))) == {0, 255}
    plain = picture_settings.read(
        Path(list_parts(list(paints.run(replace(asked, guide=None), Control(), None, tmp_path / "plain")))[0].path)
    )
    assert plain.request.control == "", "what was not used is not stored"


@pytest.mark.slow
def test_the_depth_that_a_model_sees_guides(folders: dict[str, Path], controls: dict[str, Path], shapes: Path, tmp_path: Path) -> None:
    home, model = make_home(tmp_path / "home").create(), catalog.find(str(folders["sd15"]))
    asked = guided(folders["sd15"], controls["sd15"], shapes, guide_as="depth")
    with pytest.raises(Trouble, match="needs Depth Anything V2 Small") as missing:
        kind_of(asked).check(home, asked, model)
    assert missing.value.cure == "get:depth-anything-v2-small"
    folder = complete(save_depth(place_for(home, "depth-anything-v2-small")))
    kind_of(asked).check(home, asked, model)
    paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model), {}, home=home)
    made = list_parts(list(paints.run(asked, Control(), None, tmp_path / "job")))[0]
    with Image.open(tmp_path / "job" / "guide.png") as kept, Image.open(shapes) as shown:
        seen = np.asarray(kept)
        assert kept.size == (64, 64) and seen.min() == 0 and seen.max() == 255 and (seen == seen[..., :1]).all()
        np.testing.assert_array_equal(see_depth(folder, shown.convert("RGB")), seen)
    with Image.open(made.path) as picture:
        assert "Module: depth" in picture.info["parameters"]
    paints.close()


@pytest.mark.slow
def test_the_poses_that_models_see_guide(folders: dict[str, Path], controls: dict[str, Path], shapes: Path, tmp_path: Path) -> None:
    home, model = make_home(tmp_path / "home").create(), catalog.find(str(folders["sd15"]))
    asked = guided(folders["sd15"], controls["sd15"], shapes, guide_as="pose")
    folder = save_pose(place_for(home, "vitpose-base"))
    with pytest.raises(Trouble, match="poses of people in a picture, Hearth needs ViTPose base") as missing:
        kind_of(asked).check(home, asked, model)
    assert missing.value.cure == "get:vitpose-base", "one download brings what finds the people, too"
    finder = save_finder(cached(home.models, "PekingU/rtdetr_r18vd"))
    kind_of(asked).check(home, asked, model)
    paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model), {}, home=home)
    made = list_parts(list(paints.run(asked, Control(), None, tmp_path / "job")))[0]
    with Image.open(tmp_path / "job" / "guide.png") as kept, Image.open(shapes) as shown:
        drawn = draw_poses(see_poses(folder, finder, shown), shown.size)
        assert drawn is not None and kept.size == (64, 64) and np.asarray(kept).any()
        np.testing.assert_array_equal(drawn, kept)
    with Image.open(made.path) as picture:
        assert "Module: openpose" in picture.info["parameters"]
    need = find_need(home, Hardware(), model, asked)
    assert need.reading_bytes == 4 * 85_912_337 + SCRATCH_BYTES["speech"], "one model follows the other, so the larger one counts"
    save_finder(finder, certain=-40.0)
    with pytest.raises(Trouble, match="No people"):
        list(paints.run(asked, Control(), None, tmp_path / "nobody"))
    paints.close()


def test_a_map_is_made_once_for_a_job(shapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is resumed; another picture, size or use of it, or a map that cannot be read, makes another."""
    seen: list[tuple[int, int]] = []

    def see(_: Path, picture: Image.Image) -> Image.Image:
        seen.append(picture.size)
        return Image.effect_noise(picture.size, 50).convert("RGB")

    monkeypatch.setattr(guide, "see_depth", see)
    with Image.open(shapes) as opened:
        picture = opened.convert("RGB")
    reader = Located(tmp_path)
    first = keep_guide(tmp_path, picture, "depth", 64, 48, reader)
    np.testing.assert_array_equal(keep_guide(tmp_path, picture, "depth", 64, 48, reader), first)
    assert len(seen) == 1
    assert keep_guide(tmp_path, picture, "depth", 48, 64, reader).size == (48, 64) and len(seen) == 2
    assert keep_guide(tmp_path, picture.rotate(90), "depth", 48, 64, reader).size == (48, 64) and len(seen) == 3
    assert keep_guide(tmp_path, picture, "", 64, 64) == picture and len(seen) == 3
    (tmp_path / "guide.png").write_bytes(b"no picture")
    assert keep_guide(tmp_path, picture, "", 64, 64) == picture


def test_depth_is_what_transformers_sees(tmp_path: Path) -> None:
    """At the size of the model's own processor, beside that."""
    folder, picture = save_depth(tmp_path / "depth"), Image.effect_noise((518, 518), 90).convert("RGB")
    plain = DepthAnythingForDepthEstimation.from_pretrained(folder).eval()
    processor = DPTImageProcessor(
        size={"height": 518, "width": 518},
        keep_aspect_ratio=True,
        ensure_multiple_of=14,
        image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225],
    )
    with torch.no_grad():
        seen = plain(**processor(picture, return_tensors="pt")).predicted_depth[0].numpy()
    own = see_depth(folder, picture)
    assert own is not None
    np.testing.assert_allclose(np.asarray(own)[..., 0], (seen - seen.min()) / (seen.max() - seen.min()) * 255, atol=1)
    assert (long := see_depth(folder, Image.effect_noise((700, 64), 90))) is not None and long.size == (700, 64)
    (folder / "config.json").write_text((folder / "config.json").read_text().replace('"head_hidden_size": 8', '"head_hidden_size": 16'))
    with pytest.raises(Trouble, match="damaged"):
        see_depth(folder, picture)


def test_a_guide_without_depth_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guide, "see_depth", lambda *_: None)
    with pytest.raises(Trouble, match="No depth"):
        make_guide(Image.new("RGB", (64, 64)), "depth", Located(tmp_path))


def test_edges_are_where_shapes_end() -> None:
    pixels = np.zeros((80, 96), np.uint8)
    pixels[20:60, 30:70] = 255
    edges = find_edges(Image.fromarray(pixels))
    rows, columns = np.nonzero(edges)
    on_border = (
        np.isin(rows, range(18, 23)) | np.isin(rows, range(57, 63)) | np.isin(columns, range(28, 33)) | np.isin(columns, range(67, 73))
    )
    assert on_border.all() and 140 <= edges.sum() <= 170, "lines of one pixel around the square"
    faint = Image.fromarray((pixels // 16).astype(np.uint8))
    assert not find_edges(faint).any()
    with pytest.raises(Trouble, match="No edges"):
        make_guide(faint, "edges")
    slope = np.repeat(np.linspace(40, 255, 96)[None], 80, 0)
    slope[:40] = 0
    assert find_edges(Image.fromarray(slope.astype(np.uint8)))[:, 8:].any(axis=0).sum() > 80, "a weak end hangs on to its strong part"


def test_a_guide_of_another_shape_is_cut_and_said(folders: dict[str, Path], controls: dict[str, Path], tmp_path: Path) -> None:
    wide = tmp_path / "wide.png"
    Image.new("RGB", (200, 100), "white").save(wide)
    paints, _ = load_painter(folders["sd15"])
    events = list(paints.run(guided(folders["sd15"], controls["sd15"], wide), Control(), None, tmp_path / "job"))
    assert [each.sentence.key for each in events if isinstance(each, Note)] == ["guide.cut"]
    shaped = list(
        paints.run(replace(guided(folders["sd15"], controls["sd15"], wide), width=None, height=None), Control(), None, tmp_path / "own")
    )
    part = next(each for each in shaped if isinstance(each, PartDone))
    height, width = read_pixels(part.path).shape[:2]
    assert width > height, "without a size asked for the guide gives the shape"
    with Image.open(wide) as opened:
        assert note_cut(opened, 64, 32) is None


def test_its_weights_count_with_the_denoisers(folders: dict[str, Path], controls: dict[str, Path]) -> None:
    model, control = catalog.find(str(folders["sd15"])), read_control(controls["sd15"])
    plain, with_it = describe_need(model), add_to_denoiser(describe_need(model), control.parameters)
    assert [a.parameters - b.parameters for a, b in zip(with_it.parts, plain.parts, strict=True)] == [
        control.parameters if each.role == "denoiser" else 0 for each in plain.parts
    ]
    asked = guided(folders["sd15"], controls["sd15"], folders["sd15"], guide_from=0.5)
    assert weigh_step(asked, model) == pytest.approx(1.18 * weigh_step(replace(asked, guide=None), model)), (
        "and their work in half of the steps"
    )
    quantised = next(each for each in with_it.parts if each.role == "denoiser")
    assert quantised.linear == next(each.linear for each in plain.parts if each.role == "denoiser"), "it is never quantised"
    assert placement.find_precision(tiny.make_plan(model), placement.CONTROL).role == "denoiser"


def test_a_depth_reader_gives_its_memory_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library kept 120 MB of a real one's freed blocks, through all steps."""
    load, told = load_reader, list[Any]()

    def watch(kind: Any, folder: Path) -> Any:
        told.append(weakref.ref(loaded := load(kind, folder)))
        return loaded

    monkeypatch.setattr(depth_file, "load_reader", watch)
    monkeypatch.setattr(depth_file, "release", lambda: told.append(told[0]() is None))
    assert see_depth(save_depth(tmp_path / "depth"), Image.effect_noise((64, 64), 90).convert("RGB")) is not None
    assert told[1:] == [True]
