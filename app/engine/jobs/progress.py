"""Fold a job's events into its progress, for pages that open in the middle of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.compat.planning.types import Plan
from app.engine.jobs.events import (
    RESTART,
    Adjusted,
    Event,
    Failed,
    Finished,
    Loading,
    Note,
    PartDone,
    Preview,
    Sound,
    Step,
    Stopped,
    Unloaded,
)


@dataclass(frozen=True, slots=True)
class Progress:
    loading: Loading | None = None
    step: Step | None = None
    preview: Preview | None = None
    parts: tuple[PartDone, ...] = ()
    sounds: tuple[Sound, ...] = ()
    """These pieces of sound are of the part being spoken; finished parts are in `parts`."""
    said: tuple[Adjusted | Note | Unloaded, ...] = ()
    end: Finished | Stopped | Failed | None = None
    model: str = ""
    plan: Plan | None = None

    @property
    def share(self) -> float:
        """How much of the job is done, from 0 to 1. Frames are counted over all parts of a script, steps within one picture."""
        step = self.step
        if step is None or not step.total:
            return len(self.parts) / max(1, self.parts[0].total) if self.parts else 0.0
        here = min(1.0, step.done / step.total)
        before = sum(not 0 <= part.index - step.part < step.at_once for part in self.parts)
        return min(1.0, (before + here * step.at_once) / step.parts) if step.unit == "steps" else here

    def add(self, event: Event) -> Progress:
        match event:
            case Loading():
                return replace(self, loading=event)
            case Step():
                return replace(self, step=event, loading=None)
            case Preview():
                return replace(self, preview=event)
            case Sound():
                kept = (each for each in self.sounds if (each.part, each.attempt) == (event.part, event.attempt) or each.part != event.part)
                return replace(self, sounds=(*kept, event))
            case PartDone():
                others = tuple(part for part in self.parts if part.index != event.index)
                parts = tuple(sorted((*others, event), key=lambda part: part.index))
                return replace(self, parts=parts, sounds=tuple(s for s in self.sounds if s.part != event.index))
            case Adjusted() if event.fallback == RESTART:
                # what the dead engine did last is no longer true; its files are still there
                return replace(self, said=(*self.said, event), loading=None, step=None)
            case Adjusted() | Note() | Unloaded():
                return replace(self, said=(*self.said, event))
            case Finished() | Stopped() | Failed():
                # their files are deleted after the end
                return replace(self, end=event, loading=None, preview=None, sounds=())

    def with_plan(self, model: str, plan: Plan) -> Progress:
        return replace(self, model=model, plan=plan)

    def replay(self) -> tuple[Event, ...]:
        """Yield a short history that folds to this same progress, for followers that join late."""
        so_far = (*self.said, self.loading, *self.parts, *self.sounds, self.preview, self.step, self.end)
        return tuple(event for event in so_far if event is not None)
