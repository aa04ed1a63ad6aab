"""Dia: loaded from any local folder as the plan says, and run. The decode loop is dia.py, the run of a script speaking.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from safetensors import SafetensorError
from transformers import DacModel, DiaForConditionalGeneration, DiaTokenizer

from app.compat.planning.types import Offload, Plan, Precision
from app.engine.files import safetensors
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event
from app.engine.jobs.request import SpeechRequest
from app.engine.loading import from_pretrained
from app.engine.loading.loaded import same_placement
from app.engine.speech.codec import Codec
from app.engine.speech.run import Speaking
from app.engine.text.voice_limits import Limits, limits_of
from app.sentence import Sentence, Trouble, say

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam


class _Dia(DiaForConditionalGeneration):  # type: ignore[no-untyped-call]
    """transformers' own does not say where its embeddings lie, and its torchao quantiser asks every model."""

    def get_input_embeddings(self) -> torch.nn.Module:
        return cast(torch.nn.Module, self.model.encoder.embedding)


class Speaker:
    """A loaded voice. One run at a time."""

    def __init__(
        self, model: Any, device: str, tokenizer: Any, codec: Codec, limits: Limits, name: str, plan: Plan,
        notes: tuple[Sentence, ...] = (),
    ) -> None:  # fmt: skip
        self.limits, self.notes, self._plan = limits, notes, plan
        self._model, self._device, self._tokenizer, self._codec, self._name = model, device, tokenizer, codec, name

    def run(self, request: SpeechRequest, control: Control, seam: Seam | None, job: Path) -> Iterator[Event]:
        """Ends with Finished or Stopped. What was finished in `job` is not done again."""
        return Speaking(
            self._model,
            self._device,
            self._tokenizer,
            self._codec,
            self.limits,
            self._name,
            request,
            control,
            seam,
            job,
        ).events()

    def adapt(self, plan: Plan) -> bool:
        """All but how its weights are held is the seam's."""
        return same_placement(self._plan, plan)

    def close(self) -> None:
        del self._model, self._codec


def load(folder: Path, plan: Plan, codec: Path | None = None) -> Speaker:
    """`codec`: where DAC lies if not in the folder itself; the processor's file knows only where it once was."""
    own = folder / "codec"
    sound = own if own.is_dir() else codec
    _check_kind(folder, "dia")
    if sound is None:
        raise Trouble(
            say(
                "speech.no-codec",
                "{folder} holds a voice, but its codec (DAC) is missing: nothing could be heard. Put it into {folder}/codec, or get Dia again.",
                folder=str(folder),
            ),
            cure="get:dia-1.6b",
        )
    _check_kind(sound, "dac")
    speaks = plan.of("speech") or Precision("model", "speech", plan.dtype, plan.dtype, plan.device)
    sounds = plan.of("codec") or Precision("codec", "codec", "float32", "float32", plan.device)
    if plan.offload != "none":  # small and asked for once a second: it may as well stay and work on the processor
        sounds = replace(sounds, device="cpu", storage="float32", compute="float32")
    given, plan = plan, replace(plan, precision=(speaks, sounds))
    notes: list[Sentence] = []
    waits = plan.offload in ("group", "sequential")
    model = _load_model(_Dia, folder, replace(plan, runs_on="cpu") if waits else plan, speaks, notes)
    device = _device_for(plan, speaks)
    if waits:
        model = _offload(model, plan.offload, device)
    dac = _load_model(DacModel, sound, replace(plan, quantised="none", attention="eager"), sounds, notes)  # it has none
    tokenizer = DiaTokenizer.from_pretrained(folder, local_files_only=True)
    codes = Codec(dac, _device_for(plan, sounds), getattr(torch, sounds.compute))
    return Speaker(model, device, tokenizer, codes, limits_of(folder, codec), folder.name, given, tuple(notes))


def _device_for(plan: Plan, how: Precision) -> str:
    """On a pretended machine everything is on the processor."""
    return "cpu" if plan.runs_on == "cpu" else how.device


def _check_kind(folder: Path, kind: str) -> None:
    path = folder / "config.json"
    try:
        found = str(json.loads(path.read_text("utf-8")).get("model_type", "none"))
    except (OSError, ValueError, AttributeError) as fault:
        raise Trouble(
            say("speech.no-config", "{path} was to describe the voice, but it cannot be read: {fault}", path=str(path), fault=str(fault)),
            cure="get:dia-1.6b",
        ) from fault  # fmt: skip
    if found != kind:
        raise Trouble(
            say("speech.other-kind", "{folder} was to hold a model of kind {kind}, but it holds {found}.", folder=str(folder), kind=kind, found=found)
        )  # fmt: skip


def _load_model(kind: Any, folder: Path, plan: Plan, how: Precision, notes: list[Sentence]) -> Any:
    for path in safetensors.files(folder):
        safetensors.header(path)
    try:
        model, strange = from_pretrained.load(kind, folder, plan, how.role)
    except (OSError, SafetensorError, ValueError, KeyError, RuntimeError) as fault:
        if isinstance(fault, torch.OutOfMemoryError) or "memory" in str(fault):
            raise
        raise Trouble(
            say(
                "speech.broken",
                "{folder} cannot be loaded ({fault}). If its download was cut short, get it again.",
                folder=str(folder),
                fault=(str(fault).splitlines() or [type(fault).__name__])[0],
            ),
            cure="get:dia-1.6b",
        ) from fault
    notes += strange
    model.requires_grad_(False)
    if how.storage != how.compute and plan.quantised == "none":
        _cast_while_computing(model, how)
    return model


def _cast_while_computing(model: Any, how: Precision) -> None:
    """Weights stay small; each layer's are made wide only while it computes."""
    from diffusers.hooks.layerwise_casting import apply_layerwise_casting

    storage, compute = getattr(torch, how.storage), getattr(torch, how.compute)
    apply_layerwise_casting(model, storage_dtype=storage, compute_dtype=compute, skip_modules_pattern=())
    for module in model.modules():
        if not isinstance(module, torch.nn.Linear | torch.nn.Embedding | torch.nn.Conv1d | torch.nn.ConvTranspose1d):
            for parameter in module.parameters(recurse=False):
                parameter.data = parameter.data.to(compute)


def _offload(model: Any, how: Offload, device: str) -> Any:
    """Weights wait on the processor and come to the device when their layer computes."""
    if how == "sequential":
        from accelerate import cpu_offload

        return cpu_offload(model, torch.device(device))
    from diffusers.hooks.group_offloading import apply_group_offloading

    # A stream learns what to fetch beforehand from a call of the whole model: dia.py calls its layers, so it would only take notes
    # for ever, and have every weight lie in memory that the system cannot move.
    apply_group_offloading(
        model, torch.device(device), torch.device("cpu"), offload_type="leaf_level", use_stream=False
    )
    return model
