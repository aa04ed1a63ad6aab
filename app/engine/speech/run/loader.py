"""Load Dia from a local folder as the plan says. decoder.py has the decode loop, run.py speaks a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import torch
from safetensors import SafetensorError
from transformers import DacModel, DiaForConditionalGeneration, DiaTokenizer

from app.base.bounded_json import read_json
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.planning.types import Dtype, Plan, Precision
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event
from app.engine.jobs.request import SpeechRequest
from app.engine.models import model_folder, safetensors
from app.engine.models.fingerprint import fingerprint
from app.engine.models.loading import from_pretrained
from app.engine.models.loading.loaded import same_placement
from app.engine.models.loading.packed_linears import BITS
from app.engine.models.loading.tokenizer import load_tokenizer
from app.engine.models.model import Model
from app.engine.models.on_disk import Located
from app.engine.models.voice_limits import read_limits
from app.engine.speech.dia.codec import Codec
from app.engine.speech.dia.dia import Dia
from app.engine.speech.dia.fused_projections import fuse_projections
from app.engine.speech.dia.linears import StoredLinears
from app.engine.speech.dia.packed_voice import pack_voice
from app.engine.speech.dia.reordered_linears import is_quicker_here, reorder_weights
from app.engine.speech.run.run import SpeechRun

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam


_HELD: Final[dict[str, Dtype]] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


class _DiaModel(DiaForConditionalGeneration):  # type: ignore[no-untyped-call]
    """Adds the input embeddings, which transformers' torchao quantiser asks every model for and its Dia does not report."""

    def get_input_embeddings(self) -> torch.nn.Module:
        return cast(torch.nn.Module, self.model.encoder.embedding)


class Speaker:
    """A loaded voice; one run at a time."""

    def __init__(self, dia: Dia, plan: Plan, notes: tuple[Sentence, ...] = (), linears: StoredLinears | None = None) -> None:
        self.limits, self.notes = dia.limits, notes
        self._dia, self._plan, self._linears = dia, plan, linears

    @property
    def dia(self) -> Dia:
        """Its parts, for a bench, which decodes without a request."""
        return self._dia

    def run(self, request: SpeechRequest, control: Control, seam: Seam | None, job: Path) -> Iterator[Event]:
        """Speak the parts that `job` lacks; the last event is Finished or Stopped."""
        yield from SpeechRun(self._dia, request, control, seam, job).events()

    def adapt(self, plan: Plan) -> bool:
        """Tell whether the weights need not be loaded again; the attention seam does the rest of a plan."""
        if not same_placement(self._plan, plan):
            return False
        if self._linears is not None:
            self._linears.keep(_kept_bytes(plan))
        self._dia, self._plan = replace(self._dia, row=plan.row), plan
        return True

    def close(self) -> None:
        del self._dia, self._linears


def load_found(found: Located, model: Model, plan: Plan, scratch: Path) -> Speaker:
    name = fingerprint(found.folder) if model.is_local else ""  # every machine has it in another folder
    return load(found.folder, plan, found.companions.get("codec"), name)


def load(folder: Path, plan: Plan, codec: Path | None = None, name: str = "") -> Speaker:
    """Load the voice in `folder`. `codec`: where DAC is, if not in the folder itself. `name`: what parts are kept under; empty: the
    folder's own."""
    own = folder / "codec"
    sound = own if own.is_dir() else codec
    model_folder.check_part(folder, folder)
    _check_kind(folder, "dia")
    if sound is None:
        raise Trouble(
            say(
                "speech.no-codec",
                "The voice in {folder} has no codec (DAC), so it cannot make sound. Put the codec into {folder}/codec, or download Dia again.",
                folder=str(folder),
            ),
            cure="get:dia-1.6b",
        )
    model_folder.check_part(sound, folder if sound == own else sound)
    _check_kind(sound, "dac")
    speech = plan.of("speech") or Precision("model", "speech", plan.dtype, plan.dtype, plan.device)
    codec_precision = plan.of("codec") or Precision("codec", "codec", "float32", "float32", plan.device)
    if plan.offload != "none":  # the codec is small and runs once a second: the CPU is fast enough
        codec_precision = replace(codec_precision, device="cpu", storage="float32", compute="float32")
    given, plan = plan, replace(plan, precision=(speech, codec_precision))
    notes: list[Sentence] = []
    streams, bits = plan.offload in ("group", "sequential"), BITS.get(plan.quantised)
    how = _read_as_held(folder, speech) if bits else speech
    reading = replace(plan, precision=(how, codec_precision), runs_on="cpu" if streams or bits else plan.runs_on)
    model = _load_model(_DiaModel, folder, reading, how, notes)
    device = _device_for(plan, speech)
    linears = None
    if bits:
        pack_voice(model, bits, device, getattr(torch, speech.storage), getattr(torch, speech.compute))
    elif plan.quantised != "none":
        model = _send_packed(model, device) if streams else model
    elif streams or speech.storage != speech.compute:
        linear = getattr(torch, speech.linear or speech.compute)
        linears = StoredLinears(model, device, linear, getattr(torch, speech.compute))
        linears.keep(_kept_bytes(plan))
    else:
        fuse_projections(model)
        if device == "cpu" and is_quicker_here(speech.compute):
            reorder_weights(model)
    codec_plan = replace(plan, quantised="none", attention="eager")  # DAC has no attention
    dac = _load_model(DacModel, sound, codec_plan, codec_precision, notes)
    with _explaining(folder):
        tokenizer = load_tokenizer(DiaTokenizer, folder)
    loaded_codec = Codec(dac, _device_for(plan, codec_precision), getattr(torch, codec_precision.compute))
    dia = Dia(model, device, tokenizer, loaded_codec, read_limits(folder, codec), name or folder.name, plan.row)
    return Speaker(dia, given, tuple(notes), linears)


def _read_as_held(folder: Path, speech: Precision) -> Precision:
    """Read weights that will be packed in the file's own dtype: then they stay there, mapped, and each is read as it is packed."""
    held = {entry.dtype for path in safetensors.list_weights(folder) for entry in safetensors.read_header(path).values()}
    dtype = _HELD.get(next(iter(held))) if len(held) == 1 else None
    return replace(speech, storage=dtype or speech.storage)


def _kept_bytes(plan: Plan) -> int:
    return next((how.kept_bytes for how in plan.precision if how.role == "speech"), 0)


def _device_for(plan: Plan, how: Precision) -> str:
    """Return the device; on a pretended machine everything is on the CPU."""
    return "cpu" if plan.runs_on == "cpu" else how.device


def _check_kind(folder: Path, kind: str) -> None:
    path = folder / "config.json"
    try:
        found = str(read_json(path).get("model_type", "none"))
    except (OSError, ValueError, AttributeError) as fault:
        raise Trouble(
            say("speech.no-config", "The voice's settings in {path} cannot be read: {fault}. Download the voice again.", path=str(path), fault=str(fault)),
            cure="get:dia-1.6b",
        ) from fault  # fmt: skip
    if found != kind:
        raise Trouble(
            say(
                "speech.other-kind",
                "{folder} contains a model of type {found}; a model of type {kind} is needed. Choose another folder.",
                folder=str(folder),
                kind=kind,
                found=found,
            )
        )


def _load_model(kind: Any, folder: Path, plan: Plan, how: Precision, notes: list[Sentence]) -> Any:
    for path in safetensors.list_weights(folder):
        safetensors.read_header(path)
    with _explaining(folder):
        model, found = from_pretrained.load(kind, folder, plan, how.role)
    notes += found
    return model.requires_grad_(False)


@contextmanager
def _explaining(folder: Path) -> Iterator[None]:
    """Raise a Trouble for what the libraries raise for files that they cannot make sense of."""
    try:
        yield
    except (OSError, SafetensorError, ValueError, KeyError, IndexError, RuntimeError, AttributeError, TypeError) as fault:
        if isinstance(fault, torch.OutOfMemoryError) or "memory" in str(fault):
            raise
        raise Trouble(
            say(
                "speech.broken",
                "{folder} cannot be loaded ({fault}). Its files may be incomplete; download it again.",
                folder=str(folder),
                fault=(str(fault).splitlines() or [type(fault).__name__])[0],
            ),
            cure="get:dia-1.6b",
        ) from fault


def _send_packed(model: Any, device: str) -> Any:
    """Keep quantised weights on the CPU; each is sent while its layer computes, then dropped. linears.py does it for the others."""
    from accelerate import cpu_offload

    return cpu_offload(model, torch.device(device))
