"""Load a pipeline part by part from local safetensors, quantised as planned, and its LoRAs. placement.py moves the parts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import diffusers
import torch
import transformers

from app.compat.planning.types import ModelPart, Plan
from app.disk_faults import is_disk_full
from app.engine.files import safetensors
from app.engine.files.path_checks import is_file
from app.engine.loading import quantise, weights_complete
from app.engine.models import detect
from app.engine.models.model import Model
from app.engine.pipelines import placement
from app.engine.pipelines.families import FAMILIES, Family
from app.engine.pipelines.parts_on_disk import DiskParts
from app.sentence import Sentence, Trouble, say

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
            add_lora(pipe, companions[FEW_STEPS], FEW_STEPS)
            pipe.disable_lora()
        placement.place_pipeline(pipe, plan)
    except BaseException as fault:
        if loading.disk_parts is not None:
            loading.disk_parts.close()
        if isinstance(fault, _BAD_FILES) and not _lacks_room(fault):
            raise _explain(folder, fault) from fault
        raise
    return Pipeline(pipe, tuple(loading.notes), loading.disk_parts)


_BAD_FILES: Final = (OSError, ValueError, KeyError, IndexError, RuntimeError, AttributeError, TypeError)
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
        loaded: dict[str, Any] = {}
        names = {each.name for each in self.folder.iterdir() if (each / "config.json").is_file()} | ({"vae"} & set(companions))
        for name in sorted(names):
            if name == "vae" and "vae" in companions:
                loaded[name] = self._load_part("vae", companions["vae"], diffusers.AutoencoderKL, "diffusers")
            elif name == self.family.denoiser and self.plan.quantised == "gguf" and "gguf" in companions:
                loaded[name] = self._load_gguf(companions["gguf"])
            elif name in _WITH_WEIGHTS:
                library, kind = detect.read_class(self.folder, name)
                loaded[name] = self._load_part(name, self.folder / name, getattr(_LIBRARIES[library], kind), library)
            if name in loaded:
                placement.place_part(name, loaded[name], self.plan, self.disk_parts)
        return getattr(diffusers, self.family.text_class).from_pretrained(
            self.folder, local_files_only=True, **dict(self.family.load_arguments), **loaded
        )

    def _load_part(self, name: str, folder: Path, kind: Any, library: str) -> Any:
        files = safetensors.list_weights(folder)
        for path in files:
            safetensors.read_header(path)
        how = placement.find_precision(self.plan, name)
        quantiser = quantise.make_part_config(library, self.plan, ModelPart(name, how.role, 0), getattr(torch, how.compute))
        part, found = kind.from_pretrained(
            folder,
            dtype=getattr(torch, how.compute if quantiser else how.storage),
            variant="fp16" if all(".fp16" in path.name for path in files) else None,
            output_loading_info=True,
            local_files_only=True,
            use_safetensors=True,
            **({"quantization_config": quantiser} if quantiser else {}),
        )
        self.notes += weights_complete.check_weights(
            folder, found["missing_keys"], found["unexpected_keys"], found.get("mismatched_keys", ())
        )
        return part.eval()

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
            arguments["vae"] = self._load_part("vae", companions["vae"], diffusers.AutoencoderKL, "diffusers")
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

    def _load_gguf(self, companion: Path) -> Any:
        file = companion if companion.is_file() else next(companion.glob("*.gguf"))
        compute = getattr(torch, placement.find_precision(self.plan, self.family.denoiser).compute)
        kind = getattr(diffusers, detect.read_class(self.folder, self.family.denoiser)[1])
        with weights_complete.explain_missing(file):
            return kind.from_single_file(
                str(file),
                quantization_config=diffusers.GGUFQuantizationConfig(compute_dtype=compute),  # type: ignore[no-untyped-call]
                config=str(self.folder),
                subfolder=self.family.denoiser,
                dtype=compute,
                local_files_only=True,
            )


_WITH_WEIGHTS: Final = frozenset({"text_encoder", "text_encoder_2", "text_encoder_3", "unet", "transformer", "vae"})
_LIBRARIES: Final = {"diffusers": diffusers, "transformers": transformers}


def add_lora(pipe: Any, given: str | Path, adapter: str) -> None:
    """Load a LoRA from a file or a folder under the name `adapter`; raise a Trouble if it does not fit the model."""
    path = Path(given)
    file = path if is_file(path) else next(iter(sorted(path.glob("*.safetensors"))), path)
    if not is_file(file):
        raise Trouble(say("lora.missing", "The LoRA {path} was not found. Choose it again or remove it.", path=str(path)))
    safetensors.read_header(file)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Already found a `peft_config`")  # having several is intended
            pipe.load_lora_weights(str(file.parent), weight_name=file.name, adapter_name=adapter, local_files_only=True)
        if not any(adapter in names for names in pipe.get_list_adapters().values()):
            raise ValueError("none of its weights belongs to this model")
        for part in placement.list_modules(pipe).values():
            placement.widen_loras(part)
    except (ValueError, KeyError, RuntimeError, AttributeError, TypeError, IndexError) as fault:
        if any(adapter in names for names in pipe.get_list_adapters().values()):
            pipe.delete_adapters(adapter)
        raise Trouble(
            say(
                "lora.misfit", "The LoRA {path} was made for another model. Remove it, or choose the model it was made for.", path=str(path)
            )
        ) from fault


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
