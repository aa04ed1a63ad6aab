"""Run full-size Dia with random weights, as planned for old cards and within their memory, and compare it with float32."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import pytest
import torch
from transformers import DacModel, DiaForConditionalGeneration

from app.base.paths import home
from app.compat.machine.meter import read
from app.compat.planning.types import Choice, Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Adjusted, Event, Failed, Finished, PartDone, Unloaded
from app.engine.jobs.request import SpeechRequest
from app.engine.session.session import Session
from app.engine.speech.families.dia.codec import Codec
from app.engine.speech.families.dia.decoder import Decoding
from app.engine.speech.sound.sound import read as heard
from tests.card import full_size
from tests.card.old_cards import CARDS, GIB, acting, alone, off, peak_gib

pytestmark = pytest.mark.card
SCRIPT = "[S1] The card is old, and the model is as large as ever. [S2] Then let us see what becomes of it."
ROWS, FEW_ROWS = 160, 40
WITHIN = {"float32": 1e-4, "float16": 3e-2}


@dataclass
class Watch:
    """The input, output and time of one run of the decode loop."""

    given: tuple[Any, ...] = ()
    logits: list[torch.Tensor] = field(default_factory=list)
    step_s: list[float] = field(default_factory=list)
    rows: torch.Tensor = field(default_factory=lambda: torch.zeros(0))


def watched(watch: Watch, forced: torch.Tensor | None) -> type[Decoding]:
    """Record a run. `forced`: rows of another run that replace its own, so that rounding does not change them."""

    class Watched(Decoding):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            watch.given = given

        def compute_logits(self) -> torch.Tensor:
            answer = super().compute_logits()
            watch.logits.append(answer.float().cpu())
            return answer

        def step(self) -> None:
            began_s = time.perf_counter()
            super().step()
            watch.step_s.append(time.perf_counter() - began_s)
            if forced is not None:
                self._rows[self.length - 1] = forced[self.length - 1]
            watch.rows = self.rows

    return Watched


@dataclass
class Spoken:
    events: list[Event]
    plan: Plan
    watch: Watch
    session: Session

    @property
    def sound(self) -> torch.Tensor:
        (part,) = (event for event in self.events if isinstance(event, PartDone))
        return torch.from_numpy(heard(Path(part.path))[0])


Speak = Callable[..., Spoken]


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full_size.voice(tmp_path_factory.mktemp("voice"))


@contextmanager
def speaking(
    voice: Path,
    folder: Path,
    rows: int,
    forced: torch.Tensor | None = None,
    choice: Choice = Choice(),  # noqa: B008
) -> Iterator[Spoken]:
    watch, plans = Watch(), []
    session = Session(home(folder / "home").create())
    request = SpeechRequest(SCRIPT, model=str(voice), seed=5, max_frames=rows, loudness_lufs=None)
    with patch("app.engine.speech.families.dia.voice.Decoding", watched(watch, forced)):
        ran = session.run(request, choice, Control(), folder / "job", lambda _, plan: plans.append(plan))
        events = list(ran)
    assert not isinstance(events[-1], Failed), (str(events[-1].sentence), [str(each) for each in events[-1].objections])
    try:
        yield Spoken(events, plans[-1], watch, session)
    finally:
        session.free()


@dataclass
class Reference:
    rows: torch.Tensor
    logits: list[torch.Tensor]
    sound: torch.Tensor


@pytest.fixture(scope="module")
def reference(voice: Path, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Run transformers in float32 with torch's attention, over the rows of the first run."""
    with acting("GTX 1080, 8 GB"), speaking(voice, tmp_path_factory.mktemp("first"), ROWS) as first:
        given, rows, frames = first.watch.given, first.watch.rows.clone(), len(first.sound)
    with acting("T4, 15 GB"), torch.inference_mode():
        model = DiaForConditionalGeneration.from_pretrained(voice, dtype=torch.float32).to(full_size.DEVICE).eval()  # type: ignore[arg-type]
        watch = Watch()
        decoding = watched(watch, rows)(model, full_size.DEVICE, *given[2:])
        while not decoding.done:
            decoding.step()
        dac = DacModel.from_pretrained(voice / "codec", dtype=torch.float32).to(full_size.DEVICE).eval()  # type: ignore[arg-type]
        codec = Codec(dac, full_size.DEVICE, torch.float32)
        sound = torch.from_numpy(codec.decode(decoding.get_codes(0, decoding.frames)))
    assert len(sound) == frames
    return Reference(rows, watch.logits, sound)


@pytest.mark.parametrize("card", CARDS)
def test_dia_speaks_as_this_card(card: str, voice: Path, reference: Reference, tmp_path: Path) -> None:
    rows = FEW_ROWS if card == "GTX 1650, 4 GB" else ROWS
    with alone(), acting(card) as hardware:
        with speaking(voice, tmp_path, rows, reference.rows) as spoken:
            assert isinstance(spoken.events[-1], Finished)
            reading = read()
            assert reading.device_bytes == torch.cuda.memory_reserved()
            assert reading.allocated_bytes == torch.cuda.memory_allocated()
            highest, peak = spoken.events[-1].highest_bytes, torch.cuda.max_memory_reserved()
            (gone,) = (each for each in spoken.session.holder.unload() if isinstance(each, Unloaded))
            left = torch.cuda.memory_allocated()
        errors = [off(one, other) for one, other in zip(spoken.watch.logits, reference.logits, strict=False)]
        plan, made_s = spoken.plan, spoken.watch.step_s[5:]
        print(
            f"| Dia 1.6B | {card} | {plan.dtype}, offload {plan.offload}, {plan.quantised} | {1000 * median(made_s):.1f} ms a row "
            f"| {peak_gib():.2f} of {hardware.free_bytes / GIB:.2f} GiB | logits off {max(errors):.1e} "
            f"| meter saw {highest / peak:.2f} of the peak, {gone.freed_bytes / GIB:.2f} GiB given back, {left >> 20} MiB left |"
        )
        print([event.fallback for event in spoken.events if isinstance(event, Adjusted)])
    assert len(errors) >= rows and max(errors) < WITHIN[plan.dtype]
    assert peak <= hardware.free_bytes and not any(isinstance(event, Adjusted) for event in spoken.events)
    assert left < 256 << 20
    assert 0.9 < highest / peak <= 1
    if rows == ROWS:
        assert off(spoken.sound, reference.sound) < 1e-3, "the codec computes in float32 everywhere"


@pytest.mark.parametrize("offload", ["model", "group", "sequential"])
def test_every_offload_says_the_same(offload: Any, voice: Path, reference: Reference, tmp_path: Path) -> None:
    with acting("GTX 1060, 6 GB"), speaking(voice, tmp_path, 17, reference.rows, Choice(offload=offload)) as spoken:
        assert spoken.plan.offload == offload
        errors = [off(one, other) for one, other in zip(spoken.watch.logits, reference.logits, strict=False)]
        print(f"Dia, offload {offload}: {1000 * median(spoken.watch.step_s):.0f} ms a row, {peak_gib():.2f} GiB, off {max(errors):.1e}")
    assert max(errors) < 1e-4
    assert peak_gib() < 4


def test_memory_that_runs_out_while_it_speaks(voice: Path, reference: Reference, tmp_path: Path) -> None:
    """The card refuses memory at row 60: the same rows continue from there."""
    real, calls = Decoding.compute_logits, []

    def full(self: Decoding) -> torch.Tensor:
        calls.append(self.length)
        if len(calls) == 60:
            torch.empty(64 * GIB, dtype=torch.uint8, device=full_size.DEVICE)
        return real(self)

    with acting("GTX 1060, 6 GB"), patch.object(Decoding, "compute_logits", full), speaking(voice, tmp_path, 120) as spoken:
        assert [event.fallback for event in spoken.events if isinstance(event, Adjusted)] == ["smaller-chunk"]
        assert calls.count(calls[59]) == 2 and len(calls) == len(set(calls)) + 1
        errors = [off(one, other) for one, other in zip(spoken.watch.logits, reference.logits[:59], strict=False)]
        assert max(errors) < 1e-4
        assert torch.equal(spoken.watch.rows[:100], reference.rows[:100]), "its last ones are its own, for it ends sooner"
