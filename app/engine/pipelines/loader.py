"""Loads a pipeline part by part: every weight there, quantised as planned, LoRAs. Local files only, no code, no pickles. Where parts lie is placing.py's."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import diffusers
import torch
import transformers

from app.compat.planning.types import ModelPart, Plan
from app.engine.files import safetensors
from app.engine.files.path_checks import is_file
from app.engine.loading import quantise, weights_complete
from app.engine.models import detect
from app.engine.models.model import Model
from app.engine.pipelines import placement
from app.engine.pipelines.families import FAMILIES, Family
from app.engine.pipelines.parts_on_disk import Turns
from app.sentence import Sentence, Trouble, say

FEW_STEPS: Final = "few-steps"
"""The adapter that makes a model paint in 4 to 8 steps."""


@dataclass(frozen=True, slots=True)
class Loaded:
    pipe: Any
    notes: tuple[Sentence, ...]
    turns: Turns | None
    """Where parts wait in files; closed with the pipeline."""


def pipeline(folder: Path, model: Model, plan: Plan, companions: Mapping[str, Path], scratch: Path) -> Loaded:
    opening = _Opening(folder, FAMILIES[model.family], plan, placement.turns_for(plan, scratch))
    try:
        pipe = opening.file(companions) if model.single_file else opening.parts(companions)
        quantise.check(plan, placement.modules(pipe), model.parts)
        pipe.set_progress_bar_config(disable=True)
        if FEW_STEPS in companions:
            add_lora(pipe, companions[FEW_STEPS], FEW_STEPS)
            pipe.disable_lora()
        placement.settle(pipe, plan)
    except BaseException as fault:
        if opening.turns is not None:
            opening.turns.close()
        full = isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT)
        if (
            full
            or not isinstance(fault, _BROKEN)
            or isinstance(fault, torch.OutOfMemoryError)
            or "memory" in str(fault)
        ):
            raise
        raise _will_not_load(folder, fault) from fault
    return Loaded(pipe, tuple(opening.notes), opening.turns)


_BROKEN: Final = (OSError, ValueError, KeyError, IndexError, RuntimeError, AttributeError, TypeError)


@dataclass(slots=True)
class _Opening:
    """One pipeline on its way into memory."""

    folder: Path
    family: Family
    plan: Plan
    turns: Turns | None
    notes: list[Sentence] = field(default_factory=list)

    def parts(self, companions: Mapping[str, Path]) -> Any:
        """One part after the other, each put where it belongs before the next takes up room."""
        there: dict[str, Any] = {}
        names = {each.name for each in self.folder.iterdir() if (each / "config.json").is_file()} | (
            {"vae"} & set(companions)
        )
        for name in sorted(names):
            if name == "vae" and "vae" in companions:
                there[name] = self._part("vae", companions["vae"], diffusers.AutoencoderKL, "diffusers")
            elif name == self.family.denoiser and self.plan.quantised == "gguf" and "gguf" in companions:
                there[name] = self._gguf(companions["gguf"])
            elif name in _WEIGHTY:
                library, kind = detect.class_of(self.folder, name)
                there[name] = self._part(name, self.folder / name, getattr(_LIBRARIES[library], kind), library)
            if name in there:
                placement.ready(name, there[name], self.plan, self.turns)
        return getattr(diffusers, self.family.text).from_pretrained(
            self.folder, local_files_only=True, **dict(self.family.loaded_with), **there
        )

    def _part(self, name: str, folder: Path, kind: Any, library: str) -> Any:
        files = safetensors.files(folder)
        for path in files:
            safetensors.header(path)
        how = placement.precision(self.plan, name)
        quantiser = quantise.config(library, self.plan, ModelPart(name, how.role, 0), getattr(torch, how.compute))
        part, told = kind.from_pretrained(
            folder,
            dtype=getattr(torch, how.compute if quantiser else how.storage),
            variant="fp16" if all(".fp16" in path.name for path in files) else None,
            output_loading_info=True,
            local_files_only=True,
            use_safetensors=True,
            **({"quantization_config": quantiser} if quantiser else {}),
        )
        self.notes += weights_complete.check(
            folder, told["missing_keys"], told["unexpected_keys"], told.get("mismatched_keys", ())
        )
        return part.eval()

    def file(self, companions: Mapping[str, Path]) -> Any:
        quantise.refuse_single_file(self.plan, self.folder)
        self.notes += weights_complete.unused(self.folder, safetensors.header(self.folder))
        if "configs" not in companions:
            raise Trouble(
                say(
                    "load.no-configs",
                    "{path} holds weights only. Its settings and tokenizer come from the model it descends from, a few megabytes: get that first.",
                    path=str(self.folder),
                ),
                cure="get-configs",
            )
        told = dict(self.family.loaded_with)
        if "vae" in companions:
            told["vae"] = self._part("vae", companions["vae"], diffusers.AutoencoderKL, "diffusers")
        with weights_complete.every_weight(self.folder):
            pipe = getattr(diffusers, self.family.text).from_single_file(
                str(self.folder), config=str(companions["configs"]), dtype=getattr(torch, self.plan.dtype),
                local_files_only=True, **told,
            )  # fmt: skip
        for name, part in placement.modules(pipe).items():
            weights_complete.check(self.folder, weights_complete.hollow(part), (), ())
            how = placement.precision(self.plan, name)
            quantised = quantise.config("diffusers", self.plan, ModelPart(name, how.role, 0), torch.float32) is not None
            part.to(getattr(torch, how.compute if quantised else how.storage))
            if quantised:
                quantise.quantise(part)
            placement.ready(name, part, self.plan, self.turns)
        return pipe

    def _gguf(self, companion: Path) -> Any:
        file = companion if companion.is_file() else next(companion.glob("*.gguf"))
        compute = getattr(torch, placement.precision(self.plan, self.family.denoiser).compute)
        kind = getattr(diffusers, detect.class_of(self.folder, self.family.denoiser)[1])
        with weights_complete.every_weight(file):
            return kind.from_single_file(
                str(file),
                quantization_config=diffusers.GGUFQuantizationConfig(compute_dtype=compute),  # type: ignore[no-untyped-call]
                config=str(self.folder),
                subfolder=self.family.denoiser,
                dtype=compute,
                local_files_only=True,
            )


_WEIGHTY: Final = frozenset({"text_encoder", "text_encoder_2", "text_encoder_3", "unet", "transformer", "vae"})
_LIBRARIES: Final = {"diffusers": diffusers, "transformers": transformers}


def add_lora(pipe: Any, given: str | Path, adapter: str) -> None:
    path = Path(given)
    file = path if is_file(path) else next(iter(sorted(path.glob("*.safetensors"))), path)
    if not is_file(file):
        raise Trouble(
            say("lora.missing", "The LoRA {path} is not there. Choose it again, or leave it out.", path=str(path))
        )
    safetensors.header(file)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Already found a `peft_config`")  # several at once are what is wanted
            pipe.load_lora_weights(str(file.parent), weight_name=file.name, adapter_name=adapter, local_files_only=True)
        if not any(adapter in names for names in pipe.get_list_adapters().values()):
            raise ValueError("nothing in it belongs to this model")
        for part in placement.modules(pipe).values():
            placement.widen_loras(part)
    except (ValueError, KeyError, RuntimeError, AttributeError, TypeError, IndexError) as fault:
        if any(adapter in names for names in pipe.get_list_adapters().values()):
            pipe.delete_adapters(adapter)
        raise Trouble(
            say(
                "lora.misfit",
                "The LoRA {path} does not fit this model: it was made for another one. Leave it out, or choose its model.",
                path=str(path),
            )
        ) from fault


def _will_not_load(folder: Path, fault: Exception) -> Trouble:
    return Trouble(
        say(
            "load.broken",
            "The model in {folder} cannot be loaded: {words}. Its files may be incomplete; download it again.",
            folder=str(folder),
            words=(str(fault).strip().splitlines() or [type(fault).__name__])[0][:300],
        ),
        cure="models",
    )
