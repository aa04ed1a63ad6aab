"""Load a pipeline part by part from local safetensors, quantised as planned, and its LoRAs. placement.py moves the parts.

A folder comes from strangers: each part is of a class that families.py lists, and its files are checked before a library sees them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import diffusers
import torch
import transformers
from peft.tuners.lora.layer import LoraLayer
from safetensors import SafetensorError

from app.base.bounded_json import read_json
from app.base.disk_faults import is_disk_full
from app.base.path_checks import is_file
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.planning.types import ModelPart, Plan
from app.engine.models import model_folder, safetensors
from app.engine.models.gguf_header import read_gguf
from app.engine.models.loading import from_pretrained, quantise, weights_complete
from app.engine.models.loading.tokenizer import load_tokenizer
from app.engine.models.lora_header import judge_lora
from app.engine.models.model import Model
from app.engine.pictures.families import placement
from app.engine.pictures.families.families import FAMILIES, Family
from app.engine.pictures.families.lora_file import Scales, read_lora
from app.engine.pictures.families.parts_on_disk import DiskParts

FEW_STEPS: Final = "few-steps"
"""The adapter with which a model needs only 4 to 8 steps."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    pipe: Any
    notes: tuple[Sentence, ...]
    disk_parts: DiskParts | None
    """Holds the idle parts; closed with the pipeline."""


def load_pipeline(folder: Path, model: Model, plan: Plan, companions: Mapping[str, Path], scratch: Path) -> Pipeline:
    loading = _PipelineLoader(folder, FAMILIES[model.family], plan, placement.make_disk_parts(plan, scratch))
    try:
        pipe = loading.load_single_file(companions) if model.single_file else loading.load_folder(companions)
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
"""What the libraries raise for files that they cannot make sense of."""


def _lacks_room(fault: Exception) -> bool:
    """Tell whether the disk or the memory is full, which is not the fault of the files."""
    return is_disk_full(fault) or isinstance(fault, torch.OutOfMemoryError) or "memory" in str(fault)


@dataclass(slots=True)
class _PipelineLoader:
    """One pipeline while it is being loaded."""

    folder: Path
    family: Family
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
            variant = "fp16" if all(".fp16" in path.name for path in files) else None
            loaded, found = kind.from_pretrained(part, variant=variant, local_files_only=True, use_safetensors=True, **arguments)
        self.notes += weights_complete.check_weights(
            part, found["missing_keys"], found["unexpected_keys"], found.get("mismatched_keys", ())
        )
        return loaded.eval()

    def load_single_file(self, companions: Mapping[str, Path]) -> Any:
        quantise.refuse_single_file(self.plan, self.folder)
        self.notes += weights_complete.report_unused(self.folder, safetensors.read_header(self.folder))
        if "configs" not in companions:
            raise Trouble(
                say(
                    "load.no-configs",
                    "{path} contains only weights. Download the settings and the tokenizer of its base model first; they are a few megabytes.",
                    path=str(self.folder),
                ),
                cure="get-configs",
            )
        arguments = dict(self.family.load_arguments)
        if "vae" in companions:
            arguments["vae"] = self._load_part("vae", companions["vae"], companions["vae"], diffusers.AutoencoderKL)
        for name in find_kinds(companions["configs"], self.family)[1]:
            model_folder.check_part(companions["configs"] / name, companions["configs"])
        with weights_complete.explain_missing(self.folder):
            pipe = getattr(diffusers, self.family.text_class).from_single_file(
                str(self.folder), config=str(companions["configs"]), dtype=getattr(torch, self.plan.dtype),
                local_files_only=True, **arguments,
            )  # fmt: skip
        for name, part in placement.list_modules(pipe).items():
            weights_complete.check_weights(self.folder, weights_complete.find_empty(part), (), ())
            how = placement.find_precision(self.plan, name)
            quantised = quantise.make_part_config("diffusers", self.plan, ModelPart(name, how.role, 0), torch.float32) is not None
            part.to(getattr(torch, how.compute if quantised else how.storage))
            if quantised:
                quantise.quantise_part(part)
            placement.place_part(name, part, self.plan, self.disk_parts)
        return pipe

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


def library_of(part: str) -> str:
    return "transformers" if part.startswith(("text_encoder", "tokenizer")) else "diffusers"


def find_kinds(folder: Path, family: Family) -> tuple[dict[str, Any], dict[str, Any]]:
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
        raise Trouble(say("lora.missing", "The LoRA {path} was not found. Choose it again or remove it.", path=str(path)))
    judge_lora(file)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Already found a `peft_config`")  # having several is intended
            tensors, scales = read_lora(file)
            pipe.load_lora_weights(tensors, adapter_name=adapter)
        if not any(adapter in names for names in pipe.get_list_adapters().values()):
            raise ValueError("none of its weights belongs to this model")
        for name, part in placement.list_modules(pipe).items():
            if name in scales:
                _scale_lora(part, adapter, scales[name])
            placement.widen_loras(part)
    except _BAD_FILES as fault:
        if any(adapter in names for names in pipe.get_list_adapters().values()):
            pipe.delete_adapters(adapter)
        raise Trouble(
            say(
                "lora.misfit", "The LoRA {path} was made for another model. Remove it, or choose the model it was made for.", path=str(path)
            )
        ) from fault


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
