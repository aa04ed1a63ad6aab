"""Models from strangers: no part of another class is built, nothing outside the folder is read, no pickle, and nobody is asked."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from app.base.trouble import Trouble
from app.compat.machine.hardware import probe
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice, ModelPart, Need
from app.engine.models import catalog
from app.engine.models.loading.tokenizer import load_tokenizer
from app.engine.models.model import Model
from app.engine.models.picture_families import FAMILIES
from app.engine.pictures.families import loader
from app.engine.pictures.run import painter, tiny_vae
from app.engine.speech.run import loader as speech_loader
from tests.support import tiny_pictures as tiny
from tests.support.tiny_voices import save_voice

VOICE = (ModelPart("model", "speech", 10_000), ModelPart("codec", "codec", 10_000))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save("sd15", tmp_path_factory.mktemp("made") / "model")


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(made, tmp_path / "model"))
    whole[folder] = catalog.find(str(folder))
    return folder


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    return save_voice(tmp_path / "voice")


def change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps((json.loads(file.read_text()) if file.exists() else {}) | values))


def load(folder: Path) -> Any:
    """Load it as what it was when it was whole: detection, which looks at it first, is tested elsewhere."""
    row = whole.get(folder) or catalog.find(str(folder))
    return painter.load(folder, row, tiny.make_plan(row), {})


def speak(folder: Path) -> None:
    speech_loader.load(folder, decide(probe(), Need(kind="speech", parts=VOICE), Choice(dtype="float32"), {})).close()


def refused(act: Callable[[], object]) -> Trouble:
    with pytest.raises(Trouble) as told:
        act()
    return told.value


watched: list[list[str]] = []
whole: dict[Path, Model] = {}


def _watch(event: str, given: tuple[Any, ...]) -> None:
    for seen in watched:
        if event in ("open", "socket.connect", "socket.getaddrinfo"):
            seen.append(f"{event} {given[0] if event == 'open' else given}")


@pytest.fixture
def seen() -> Any:
    """What is opened and whom Python asks, by an audit hook, which cannot be removed: it stays, and hears nothing."""
    if not hasattr(sys, "_hearth_watch"):
        sys.addaudithook(_watch)
        sys._hearth_watch = True  # type: ignore[attr-defined]
    heard: list[str] = []
    watched.append(heard)
    yield heard
    watched.remove(heard)


@pytest.mark.parametrize(
    ("part", "made_of"),
    [
        ("text_encoder", ["transformers", "DPTForDepthEstimation"]),
        ("text_encoder", ["diffusers", "CLIPTextModel"]),
        ("vae", ["diffusers", "StableDiffusionPipeline"]),
        ("unet", ["diffusers", "ControlNetModel"]),
        ("tokenizer", ["transformers", "AutoTokenizer"]),
        ("scheduler", ["diffusers", "UNet2DConditionModel"]),
        ("scheduler", ["diffusers", "utils"]),
    ],
)
def test_a_part_of_another_class_is_refused_by_name(model: Path, part: str, made_of: list[str], seen: list[str]) -> None:
    change(model / "model_index.json", **{part: made_of})
    change(model / "text_encoder" / "config.json", backbone="evil/backbone", use_pretrained_backbone=True)
    seen.clear()
    trouble = refused(lambda: load(model))
    assert trouble.sentence.key == "load.class" and part in str(trouble) and made_of[1] in str(trouble)
    assert not [each for each in seen if each.startswith("socket.")]


def test_the_table_names_classes_that_there_are() -> None:
    for family in FAMILIES.values():
        for part, names in family.parts.items():
            library = {"diffusers": diffusers, "transformers": transformers}[loader.library_of(part)]
            assert all(isinstance(getattr(library, name), type) for name in names), part


def test_parts_that_no_request_uses_are_never_opened(model: Path, seen: list[str]) -> None:
    (model / "image_encoder").mkdir()
    (model / "image_encoder" / "config.json").write_text("{}")
    torch.save({}, model / "image_encoder" / "pytorch_model.bin")
    change(model / "model_index.json", image_encoder=["transformers", "CLIPVisionModelWithProjection"])
    seen.clear()
    load(model)
    assert not [each for each in seen if "image_encoder" in each]


def spread(part: Path, named: str) -> None:
    """Let an index name where all weights of a part are."""
    names = load_file(part / "model.safetensors")
    (part / "model.safetensors").rename(part / "other.safetensors")
    (part / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, named)}))


@pytest.mark.parametrize("named", ["x.bin", "../../out.bin", "../../out.safetensors", "{there}/out.safetensors"])
@pytest.mark.parametrize("kind", ["picture", "voice"])
def test_an_index_opens_no_pickle_and_nothing_elsewhere(kind: str, named: str, model: Path, voice: Path) -> None:
    part = model / "text_encoder" if kind == "picture" else voice
    place = named.format(there=part.parent.parent)
    (part / place).write_bytes((part / "model.safetensors").read_bytes())
    if place.endswith(".bin"):
        torch.save(load_file(part / "model.safetensors"), part / place)
    spread(part, place)
    trouble = refused((lambda: load(model)) if kind == "picture" else (lambda: speak(voice)))
    assert trouble.sentence.key == "model.index" and place in str(trouble)


def test_shards_beside_an_index_are_read(model: Path) -> None:
    part = model / "text_encoder"
    before = load(model).pipe.text_encoder.state_dict()
    weights = load_file(part / "model.safetensors")
    (part / "model.safetensors").unlink()
    halves = [dict(list(weights.items())[half::2]) for half in (0, 1)]
    names = [f"model-0000{half}-of-00002.safetensors" for half in (1, 2)]
    for name, half in zip(names, halves, strict=True):
        save_file(half, part / name, {"format": "pt"})
    index = {key: name for name, half in zip(names, halves, strict=True) for key in half}
    (part / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    after = load(model).pipe.text_encoder.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("part", ["text_encoder", "unet", "vae", "tokenizer", "scheduler"])
def test_a_link_out_of_the_model_is_not_followed(part: str, model: Path, tmp_path: Path) -> None:
    file = next(each for each in sorted((model / part).iterdir()) if each.suffix in (".safetensors", ".json"))
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    trouble = refused(lambda: load(model))
    assert trouble.sentence.key == "model.outside" and file.name in str(trouble)


def test_a_model_in_the_hubs_cache_is_links_to_its_blobs(made: Path, tmp_path: Path) -> None:
    repository = tmp_path / "models--maker--model"
    snapshot, blobs = Path(shutil.copytree(made, repository / "snapshots" / "abc")), repository / "blobs"
    blobs.mkdir()
    for number, file in enumerate([each for each in snapshot.rglob("*") if each.is_file()]):
        file.rename(blobs / str(number))
        file.symlink_to(os.path.relpath(blobs / str(number), file.parent))
    assert (snapshot / "unet" / "config.json").is_symlink() and load(snapshot).pipe.tokenizer("a ball").input_ids


def test_a_tiny_vae_that_lies_elsewhere_is_not_the_models(model: Path, tmp_path: Path) -> None:
    (tmp_path / "taesd").mkdir()
    (tmp_path / "taesd" / "config.json").write_text("{}")
    (model / "taesd").symlink_to(tmp_path / "taesd")
    assert tiny_vae.find(model) is None and tiny_vae.find(tmp_path / "one.safetensors") == tmp_path / "taesd"


def test_an_adapter_in_a_parts_folder_does_not_put_another_model_in_its_place(model: Path, made: Path, seen: list[str]) -> None:
    for base in ("evil/base", str(made / "text_encoder")):
        change(model / "text_encoder" / "adapter_config.json", base_model_name_or_path=base, peft_type="LORA", target_modules=["q_proj"])
        seen.clear()
        load(model)
        assert not [each for each in seen if each.startswith("socket.") or str(made) in each]


def test_a_tokenizer_reads_its_own_files_whatever_its_settings_name(model: Path, tmp_path: Path, seen: list[str]) -> None:
    words = load(model).pipe.tokenizer("a red ball").input_ids
    part, private = model / "tokenizer", tmp_path / "private.json"
    private.write_bytes((part / "tokenizer.json").read_bytes())
    settings = json.loads((part / "tokenizer_config.json").read_text())
    settings.pop("added_tokens_decoder", None)  # with it transformers would not look at the older file
    (part / "tokenizer_config.json").write_text(json.dumps(settings | {"auto_map": {"AutoTokenizer": ["evil/x--y.Z", None]}}))
    change(part / "special_tokens_map.json", tokenizer_file=str(private), vocab_file=str(private))
    seen.clear()
    assert load(model).pipe.tokenizer("a red ball").input_ids == words
    assert not [each for each in seen if str(private) in each or each.startswith("socket.")]


@pytest.mark.parametrize("broken", [{"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, {"version": "9"}])
def test_a_tokenizer_that_its_library_cannot_read_is_told(broken: dict[str, Any], model: Path) -> None:
    """The first is a panic, which is no Exception and ended the engine; the second a bare Exception."""
    change(model / "tokenizer" / "tokenizer.json", **broken)
    assert refused(lambda: load(model)).sentence.key == "load.tokenizer"


def test_a_tokenizer_that_breaks_off_over_a_prompt_is_told(model: Path) -> None:
    """A panic, which ended the engine, and taught it that this machine cannot run the model."""
    piece = {"SpecialToken": {"id": "nowhere", "type_id": 0}}
    around = {"type": "TemplateProcessing", "single": [piece], "pair": [], "special_tokens": {}}
    change(model / "tokenizer" / "tokenizer.json", post_processor=around)
    tokenizer = load_tokenizer(transformers.PreTrainedTokenizerFast, model / "tokenizer")
    assert refused(lambda: tokenizer("a red ball")).sentence.key == "load.tokenizer"


def test_a_tokenizer_that_has_no_length_is_told(model: Path) -> None:
    (model / "tokenizer" / "tokenizer_config.json").unlink()
    tokenizer = load_tokenizer(transformers.PreTrainedTokenizerFast, model / "tokenizer")
    assert refused(lambda: tokenizer("a red ball", truncation=True, max_length=tokenizer.model_max_length)).sentence.key == "load.tokenizer"


def test_a_voices_tokenizer_that_its_library_cannot_read_is_told(voice: Path) -> None:
    change(voice / "tokenizer_config.json", added_tokens_decoder={"0": 131072})
    assert refused(lambda: speak(voice)).sentence.key == "speech.broken"


@pytest.mark.parametrize("family", ["z-image", "flux2-klein"])
def test_a_chat_template_is_not_run(family: str, tmp_path: Path) -> None:
    """One took 100 GB of memory, another never ended."""
    folder = tiny.save(family, tmp_path / family)
    asked = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": family == "z-image"}
    messages = [{"role": "user", "content": "a red\nball\n"}]
    own = transformers.Qwen2Tokenizer.from_pretrained(folder / "tokenizer").apply_chat_template(messages, **asked)
    (folder / "tokenizer" / "chat_template.jinja").write_text("{{ 'x' * 10**11 }}")
    pipe = load(folder).pipe
    assert pipe.tokenizer.apply_chat_template(messages, **asked) == own
    assert own.startswith("<|im_start|>user\na red\nball\n<|im_end|>\n<|im_start|>assistant\n") and ("think" in own) == (
        family == "flux2-klein"
    )


def test_a_value_of_another_type_is_told(model: Path, voice: Path) -> None:
    change(model / "text_encoder" / "config.json", layer_norm_eps={"a": 1})
    change(voice / "config.json", norm_eps={"a": 1})
    for act, key in ((lambda: load(model), "load.broken"), (lambda: speak(voice), "speech.broken")):
        assert (trouble := refused(act)).sentence.key == key and "norm_eps" in str(trouble)


def test_a_config_steers_no_library(model: Path, voice: Path, seen: list[str]) -> None:
    """Names of kernels, code and weights in a config: transformers would fetch the first two, and open the third."""
    steering = {
        "_attn_implementation": "evil/kernel", "attn_implementation": "evil/kernel", "auto_map": {"AutoModel": "evil/x--y.Z"},
        "transformers_weights": "other.safetensors", "fusion_config": {"patch_embeddings": True}, "_name_or_path": "evil/base",
    }  # fmt: skip
    for part in (model / "text_encoder", model / "vae", model / "unet", voice, voice / "codec"):
        change(part / "config.json", **steering)
    seen.clear()
    config = load(model).pipe.text_encoder.config
    speak(voice)
    assert config._attn_implementation in ("sdpa", "eager") and not any(
        hasattr(config, name) for name in ("auto_map", "transformers_weights")
    )
    assert not [each for each in seen if each.startswith("socket.")]


@pytest.mark.parametrize("part", ["text_encoder", "unet"])
@pytest.mark.parametrize("packing", [{"quant_method": "finegrained_fp8"}, {"quant_method": "evil"}, "evil"])
def test_weights_packed_in_another_way_are_refused(part: str, packing: object, model: Path) -> None:
    change(model / part / "config.json", quantization_config=packing)
    assert refused(lambda: load(model)).sentence.key == "quantise.unknown"


def test_the_settings_of_a_pipeline_are_kept(tmp_path: Path) -> None:
    folder = tiny.save("flux2-klein", tmp_path / "klein")
    assert load(folder).pipe.config.is_distilled is True


def test_a_lora_whose_header_lies_is_told_and_no_pickle_is_looked_for(model: Path, tmp_path: Path) -> None:
    """diffusers alone would then unpickle the file beside it that has its usual name."""
    pipe = load(model).pipe
    file = tmp_path / "lora.safetensors"
    header = json.dumps({"unet.x.lora_A.weight": {"dtype": "F32", "shape": [9, 9], "data_offsets": [0, 4]}}).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    torch.save({"unet.x": torch.zeros(1)}, tmp_path / "pytorch_lora_weights.bin")
    trouble = refused(lambda: loader.add_lora(pipe, file, "lora1"))
    assert trouble.sentence.key == "detect.fact" and file.name in str(trouble) and "[9, 9]" in str(trouble)
