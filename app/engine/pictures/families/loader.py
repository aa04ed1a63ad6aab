"""Load a pipeline part by part from local safetensors, quantised as planned, and its LoRAs. placement.py moves the parts.

A folder comes from strangers: each part is of a class that families.py lists, and its files are checked before a library sees them."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import diffusers
import torch
import transformers
from diffusers.loaders.single_file_utils import convert_ldm_vae_checkpoint
from diffusers.models.model_loading_utils import load_gguf_checkpoint
from peft.tuners.lora.layer import LoraLayer
from safetensors import SafetensorError, safe_open

from app.base.bounded_json import read_json
from app.base.disk_faults import is_disk_full
from app.base.path_checks import is_file
from app.base.sentence import Sentence, say
from app.base.trouble import Impossible, Trouble
from app.compat.planning.types import ModelPart, Plan
from app.engine.models import model_folder, safetensors
from app.engine.models.families.family import PictureFamily
from app.engine.models.file_facts import PLAIN_LORA, FileFacts, read_facts
from app.engine.models.gguf_header import read_gguf
from app.engine.models.loading import from_pretrained, quantise, weights_complete
from app.engine.models.loading.tokenizer import load_tokenizer
from app.engine.models.lora_facts import NO_LORA
from app.engine.models.lora_header import judge_lora
from app.engine.models.model import FEW_STEPS, Model
from app.engine.models.picture_families import FAMILIES
from app.engine.pictures.families import placement
from app.engine.pictures.families.lora_file import Scales, read_adapter, read_lora
from app.engine.pictures.families.parts_on_disk import DiskParts


@dataclass(frozen=True, slots=True)
class Pipeline:
    pipe: Any
    notes: tuple[Sentence, ...]
    disk_parts: DiskParts | None
    """It holds the idle parts, and is closed with the pipeline."""


def load_pipeline(folder: Path, model: Model, plan: Plan, companions: Mapping[str, Path], scratch: Path) -> Pipeline:
    loading = _PipelineLoader(folder, FAMILIES[model.family], plan, placement.make_disk_parts(plan, scratch))
    try:
        pipe = loading.load_single_file(companions, model) if model.single_file else loading.load_folder(companions)
        denoiser = getattr(pipe, loading.family.denoiser)
        denoiser.register_to_config(**{**loading.family.asked_of_denoiser, **denoiser.config})
        quantise.check_quantised(plan, placement.list_modules(pipe), model.parts)
        pipe.set_progress_bar_config(disable=True)
        if FEW_STEPS in companions:
            add_lora(pipe, find_few_steps(model, companions[FEW_STEPS]), FEW_STEPS)
            pipe.disable_lora()
        placement.place_pipeline(pipe, plan)
    except BaseException as fault:
        if loading.disk_parts is not None:
            loading.disk_parts.close()
        if isinstance(fault, _BAD_FILES) and not _lacks_room(fault):
            raise _explain(folder, fault) from fault
        raise
    return Pipeline(pipe, tuple(loading.notes), loading.disk_parts)


_BAD_FILES: Final = (OSError, SafetensorError, ValueError, KeyError, IndexError, RuntimeError, AttributeError, TypeError)
"""The libraries raise these for files that they cannot make sense of."""
_DORA: Final = ("lora_magnitude_vector", "dora_scale")
"""Names of tensors hold one of these, as peft and kohya write them."""


def _lacks_room(fault: Exception) -> bool:
    """Tell whether the disk or the memory is full, which is not the fault of the files."""
    return is_disk_full(fault) or isinstance(fault, torch.OutOfMemoryError) or "memory" in str(fault)


@dataclass(slots=True)
class _PipelineLoader:
    """One pipeline while it is being loaded."""

    folder: Path
    family: PictureFamily
    plan: Plan
    disk_parts: DiskParts | None
    notes: list[Sentence] = field(default_factory=list)

    def load_folder(self, companions: Mapping[str, Path]) -> Any:
        """Load a diffusers folder; each part is moved to its device before the next one is loaded."""
        index, kinds = find_kinds(self.folder, self.family)
        loaded: dict[str, Any] = {}
        for name, kind in sorted(kinds.items()):
            part = companions["vae"] if name == "vae" and "vae" in companions else self.folder / name
            if name == "vae" and "vae" in companions:
                loaded[name] = self._load_part("vae", companions["vae"], companions["vae"], diffusers.AutoencoderKL)
            elif name == self.family.denoiser and self.plan.quantised == "gguf" and "gguf" in companions:
                loaded[name] = self._load_gguf(companions["gguf"], kind)
            elif kind is None:
                loaded[name] = None
            else:
                loaded[name] = self._load_part(name, self.folder / name, self.folder, kind)
            if isinstance(loaded[name], torch.nn.Module):
                placement.place_part(name, loaded[name], self.plan, self.disk_parts, sorted(part.glob("*.safetensors")))
        pipeline = getattr(diffusers, self.family.text_class)
        taken = inspect.signature(pipeline.__init__).parameters
        switches = {name: value for name, value in index.items() if name in taken and isinstance(value, bool)}
        return pipeline(**{**switches, **self.family.load_arguments, **loaded})

    def _load_part(self, name: str, part: Path, model: Path, kind: Any) -> Any:
        """Load one part of the model in the folder `model`."""
        model_folder.check_part(part, model)
        if not any(part.glob("*")):
            raise Trouble(
                say(
                    "load.no-part",
                    "The model in {folder} has no {part}, without which it cannot paint. Download it again, with all its folders.",
                    folder=str(model),
                    part=name,
                ),
                cure="models",
            )
        if name == SCHEDULER:
            return kind.from_pretrained(part, local_files_only=True)
        if name.startswith("tokenizer"):
            return load_tokenizer(kind, part, self.family.chat_template)
        files = safetensors.list_weights(part)
        for path in files:
            safetensors.read_header(path)
        how, library = placement.find_precision(self.plan, name), library_of(name)
        quantiser = quantise.make_part_config(library, self.plan, ModelPart(name, how.role, 0), getattr(torch, how.compute))
        arguments = {
            "dtype": getattr(torch, how.compute if quantiser else how.storage),
            "output_loading_info": True,
            **({"quantization_config": quantiser} if quantiser else {}),
        }
        if library == "transformers":
            with from_pretrained.open_weights(part) as weights:
                loaded, found = kind.from_pretrained(None, config=from_pretrained.read_config(kind, part), state_dict=weights, **arguments)
        else:
            quantise.check_packing(part, read_json(part / "config.json"))
            variant = model_folder.find_variant(files)
            loaded, found = kind.from_pretrained(part, variant=variant, local_files_only=True, use_safetensors=True, **arguments)
        self.notes += weights_complete.check_weights(
            part, found["missing_keys"], found["unexpected_keys"], found.get("mismatched_keys", ())
        )
        return loaded.eval()

    def load_single_file(self, companions: Mapping[str, Path], model: Model) -> Any:
        """Load a file of weights; what it lacks comes from files beside it, or from its base model."""
        quantise.refuse_single_file(self.plan, self.folder)
        if "configs" not in companions:
            raise Impossible(
                say(
                    "load.lacks",
                    "{path} lacks parts or settings. Download what it lacks on the Models tab, or run: {hearth} models get {path}",
                    path=str(self.folder),
                ),
                cure="get-configs",
            )
        facts, base = read_facts(self.folder), companions["configs"]
        for name in find_kinds(base, self.family)[1]:
            model_folder.check_part(base / name, base)
        if facts.what == "model" and self.family.denoiser == "unet":
            pipe = self._load_original(base, "vae" not in facts.holds)
        else:
            pipe = self._assemble(base, facts, model)
        if model.scheduler:
            pipe.scheduler = type(pipe.scheduler).from_config(pipe.scheduler.config, **dict(model.scheduler))
        return pipe

    def _load_original(self, base: Path, lacks_vae: bool) -> Any:
        """Load a file of Stable Diffusion's first kinds, whose encoders the library converts."""
        self.notes += weights_complete.report_unused(self.folder, safetensors.read_header(self.folder))
        arguments = dict(self.family.load_arguments)
        if lacks_vae:
            arguments["vae"] = self._load_part("vae", base / "vae", base, diffusers.AutoencoderKL)
        with weights_complete.explain_missing(self.folder):
            pipe = getattr(diffusers, self.family.text_class).from_single_file(
                str(self.folder), config=str(base), dtype=getattr(torch, self.plan.dtype), local_files_only=True, **arguments
            )
        for name, part in placement.list_modules(pipe).items():
            self._place_converted(name, part)
        return pipe

    def _assemble(self, base: Path, facts: FileFacts, model: Model) -> Any:
        """Put a denoiser together with encoders and a VAE: from its own file, from files beside it, or from its base model."""
        index, kinds = find_kinds(base, self.family)
        beside = {part: (Path(file), "") for part, file in model.beside}
        held = {part: (self.folder, prefix) for part, prefix in facts.holds.items()} | beside
        loaded: dict[str, Any] = {}
        for name, kind in sorted(kinds.items()):
            if kind is None:
                loaded[name] = None
            elif name == self.family.denoiser:
                loaded[name] = self._load_denoiser(base, facts, kind)
                self._place_converted(name, loaded[name])
            elif name in held and name == "vae":
                loaded[name] = self._load_vae(base, kind, *held[name])
                self._place_converted(name, loaded[name])
            elif name in held:
                loaded[name] = self._load_encoder(name, base / name, kind, *held[name])
                placement.place_part(name, loaded[name], self.plan, self.disk_parts)
            else:
                loaded[name] = self._load_part(name, base / name, base, kind)
                if isinstance(loaded[name], torch.nn.Module):
                    files = sorted((base / name).glob("*.safetensors"))
                    placement.place_part(name, loaded[name], self.plan, self.disk_parts, files)
        pipeline = getattr(diffusers, self.family.text_class)
        taken = inspect.signature(pipeline.__init__).parameters
        switches = {name: value for name, value in index.items() if name in taken and isinstance(value, bool)}
        if "is_distilled" in switches:  # the base model's files say what that is
            switches["is_distilled"] = not facts.whole_steps
        return pipeline(**{**switches, **self.family.load_arguments, **loaded})

    def _load_denoiser(self, base: Path, facts: FileFacts, kind: Any) -> torch.nn.Module:
        name = self.family.denoiser
        how = placement.find_precision(self.plan, name)
        prefix = UNET_PREFIX if name == "unet" else ""
        arguments: dict[str, Any] = {"guidance_embeds": facts.guided} if self.family.numbered else {}
        if facts.gguf:
            tensors = load_gguf_checkpoint(str(self.folder))
            compute = getattr(torch, how.compute)
            arguments |= {"dtype": compute, "quantization_config": diffusers.GGUFQuantizationConfig(compute_dtype=compute)}  # type: ignore[no-untyped-call]
        else:
            with safe_open(self.folder, "pt") as opened:
                tensors = {each: opened.get_tensor(each) for each in _list_own(opened.keys(), facts)}
            arguments["dtype"] = getattr(torch, how.storage)
        named = {prefix + each.removeprefix(facts.prefix): tensor for each, tensor in tensors.items()}
        with weights_complete.explain_missing(self.folder):
            part: torch.nn.Module = kind.from_single_file(named, config=str(base), subfolder=name, local_files_only=True, **arguments)
        return part

    def _load_vae(self, base: Path, kind: Any, file: Path, prefix: str) -> torch.nn.Module:
        dtype = getattr(torch, placement.find_precision(self.plan, "vae").storage)
        with from_pretrained.open_file(file, prefix) as weights, weights_complete.explain_missing(file):
            tensors = {name: tensor[...] for name, tensor in weights.items()}
            if kind is not diffusers.AutoencoderKL:
                return _make_vae(kind, base / "vae", file, tensors).to(dtype)
            part: torch.nn.Module = diffusers.AutoencoderKL.from_single_file(
                tensors, config=str(base), subfolder="vae", dtype=dtype, local_files_only=True
            )
        return part

    def _load_encoder(self, name: str, config: Path, kind: Any, file: Path, prefix: str) -> torch.nn.Module:
        how = placement.find_precision(self.plan, name)
        quantiser = quantise.make_part_config("transformers", self.plan, ModelPart(name, how.role, 0), getattr(torch, how.compute))
        dtype = getattr(torch, how.compute if quantiser else how.storage)
        arguments = {"quantization_config": quantiser} if quantiser else {}
        with from_pretrained.open_file(file, prefix) as weights:
            part, found = kind.from_pretrained(
                None,
                config=from_pretrained.read_config(kind, config),
                state_dict={each: tensor[...].to(dtype) for each, tensor in weights.items()},
                dtype=dtype,
                output_loading_info=True,
                **arguments,
            )
        weights_complete.check_weights(file, found["missing_keys"], (), found.get("mismatched_keys", ()))
        evaluated: torch.nn.Module = part.eval()
        return evaluated

    def _place_converted(self, name: str, part: torch.nn.Module) -> None:
        """Quantise and place a part that came out of a single file."""
        weights_complete.check_weights(self.folder, weights_complete.find_empty(part), (), ())
        how = placement.find_precision(self.plan, name)
        if quantise.has_quantised_weights(part):
            placement.place_part(name, part, self.plan, self.disk_parts)
            return
        quantised = quantise.make_part_config("diffusers", self.plan, ModelPart(name, how.role, 0), torch.float32) is not None
        part.to(getattr(torch, how.compute if quantised else how.storage))
        if quantised:
            quantise.quantise_part(part)
        placement.place_part(name, part, self.plan, self.disk_parts)

    def _load_gguf(self, companion: Path, kind: Any) -> Any:
        file = companion if companion.is_file() else next(companion.glob("*.gguf"))
        read_gguf(file)
        compute = getattr(torch, placement.find_precision(self.plan, self.family.denoiser).compute)
        model_folder.require_inside(self.folder / self.family.denoiser / "config.json", self.folder)
        with weights_complete.explain_missing(file):
            return kind.from_single_file(
                str(file),
                quantization_config=diffusers.GGUFQuantizationConfig(compute_dtype=compute),  # type: ignore[no-untyped-call]
                config=str(self.folder),
                subfolder=self.family.denoiser,
                dtype=compute,
                local_files_only=True,
            )


SCHEDULER: Final = "scheduler"
UNET_PREFIX: Final = "model.diffusion_model."
"""The library's converter of UNets looks for them there."""


def _make_vae(kind: Any, config: Path, file: Path, tensors: Mapping[str, torch.Tensor]) -> torch.nn.Module:
    """Make a VAE whose class diffusers fills from no single file: FLUX.2's, which has its latents' statistics, too."""
    part: torch.nn.Module = kind.from_config(kind.load_config(str(config), local_files_only=True))
    named = {re.sub(r"^(?:encoder|decoder)\.((?:post_)?quant_conv\.)", r"\1", name): tensor for name, tensor in tensors.items()}
    renamed = convert_ldm_vae_checkpoint(named, part.config)  # type: ignore[no-untyped-call]
    found = {name: tensor for name, tensor in renamed.items() if tensor is not None}
    found |= {name: tensor for name, tensor in named.items() if name.startswith("bn.")}
    own = part.state_dict()
    mismatched = [name for name in own.keys() & found.keys() if own[name].shape != found[name].shape]
    weights_complete.check_weights(file, own.keys() - found.keys() - {"bn.num_batches_tracked"}, (), mismatched)
    part.load_state_dict(found, strict=False)
    return part.eval()


def _list_own(names: Iterable[str], facts: FileFacts) -> list[str]:
    """List the names of a denoiser's tensors in a file that may hold other parts too."""
    others = tuple(facts.holds.values())
    return [each for each in names if each.startswith(facts.prefix) and not each.startswith((*others, "text_encoders."))]


def library_of(part: str) -> str:
    return "transformers" if part.startswith(("text_encoder", "tokenizer")) else "diffusers"


def find_kinds(folder: Path, family: PictureFamily) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what model_index.json says, and the class of each part that the family has, None where the model leaves it out. What else
    is named there, as a safety checker, is never loaded."""
    model_folder.require_inside(folder / "model_index.json", folder)
    index = read_json(folder / "model_index.json")
    kinds: dict[str, Any] = {}
    for part in (*family.parts, SCHEDULER):
        library, name = index[part]
        if library is None and name is None:
            kinds[part] = None
            continue
        kind = (
            getattr({"diffusers": diffusers, "transformers": transformers}[library_of(part)], name, None) if isinstance(name, str) else None
        )
        known = name in family.parts[part] if part in family.parts else inspect.isclass(kind) and issubclass(kind, diffusers.SchedulerMixin)
        if library != library_of(part) or not known:
            raise Trouble(
                say(
                    "load.class",
                    "The model in {folder} wants {kind} of {library} as its {part}, which a model of its kind does not have. Choose another model.",
                    folder=str(folder),
                    kind=str(name),
                    library=str(library),
                    part=part,
                )
            )
        kinds[part] = kind
    return index, kinds


def find_few_steps(model: Model, there: Path) -> Path:
    """Return the LoRA that the model names in a folder, in which other programs may have put others of the same repository."""
    named = next((each.source.files[0] for each in model.companions if each.name == FEW_STEPS), "")
    return there / named if named and is_file(there / named) else there


def add_lora(pipe: Any, given: str | Path, adapter: str) -> None:
    """Load a LoRA from a file or a folder under the name `adapter`; raise a Trouble if it does not fit the model."""
    path = Path(given)
    file = path if is_file(path) else next(iter(sorted(path.glob("*.safetensors"))), path)
    if not is_file(file):
        raise Impossible(say("lora.missing", "The LoRA {path} was not found. Choose it again or remove it.", path=str(path)))
    judge_lora(file)
    _require_lora(file)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Already found a `peft_config`")  # having several is intended
            tensors, scales = read_lora(file)
            if any(mark in name for name in tensors for mark in _DORA) and placement.is_sent_in_pieces(pipe):
                raise Trouble(
                    say(
                        "lora.dora",
                        "{path} is a DoRA. It needs the whole model on the card, and here its layers are sent one after another. Get it as a plain "
                        "LoRA, remove it, or choose a smaller model.",
                        path=str(path),
                    )
                )
            tensors, scales = read_adapter(file, tensors, "unet" if hasattr(pipe, "unet") else "transformer") or (tensors, scales)
            pipe.load_lora_weights(tensors, adapter_name=adapter)
        if not any(adapter in names for names in pipe.get_list_adapters().values()):
            raise ValueError("none of its weights belongs to this model")
        for name, part in placement.list_modules(pipe).items():
            if name in scales:
                _scale_lora(part, adapter, scales[name])
            placement.fit_loras(part)
    except (*_BAD_FILES, AssertionError) as fault:
        if any(adapter in names for names in pipe.get_list_adapters().values()):
            pipe.delete_adapters(adapter)
        raise Trouble(
            say(
                "lora.misfit", "The LoRA {path} was made for another model. Remove it, or choose the model it was made for.", path=str(path)
            )
        ) from fault


def _require_lora(file: Path) -> None:
    """Refuse a file by what it is, where that is no LoRA that the library reads."""
    facts = read_facts(file)
    if facts.what == "embedding":
        raise Trouble(say("lora.unfit", "The LoRA {name} cannot be used here. {why}", name=file.stem, why=NO_LORA))
    if facts.what == "lora" and facts.other not in (PLAIN_LORA, ""):
        raise Trouble(
            say(
                "lora.kind",
                "{path} is of the kind {kind}, which Hearth does not use. Get it as a plain LoRA, or remove it.",
                path=str(file),
                kind=facts.other,
            )
        )


def _scale_lora(part: torch.nn.Module, adapter: str, scales: Scales) -> None:
    for name, layer in part.named_modules():
        if isinstance(layer, LoraLayer) and adapter in layer.lora_alpha:
            layer.lora_alpha[adapter] = scales.find(name, layer.r[adapter])
            layer.set_scale(adapter, 1.0)


def _explain(folder: Path, fault: Exception) -> Trouble:
    return Trouble(
        say(
            "load.broken",
            "The model in {folder} cannot be loaded: {words}. Its files may be incomplete; download it again.",
            folder=str(folder),
            words=(str(fault).strip().splitlines() or [type(fault).__name__])[0][:300],
        ),
        cure="models",
    )
