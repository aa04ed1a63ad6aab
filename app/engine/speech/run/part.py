"""Speak one part of a script: decode it, send its sound as it is made, begin it anew if its length cannot be right, and save its state, so
that a stopped part can resume."""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from app.base.duration import word_duration
from app.base.sentence import say
from app.engine.jobs.control import Control
from app.engine.jobs.events import Doubt, Event, Note
from app.engine.jobs.parts import SPOKEN
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.speech.dia.codec import OVERLAP_FRAMES
from app.engine.speech.dia.decoder import Decoding, DecodingState, PartInput
from app.engine.speech.dia.dia import Dia
from app.engine.speech.dia.sampling import Sampling
from app.engine.speech.dia.voice_prompt import VoiceContext, compose_text, count_least_frames
from app.engine.speech.run.pace import STEP_EVERY_S, Pace
from app.engine.speech.run.sounding import Sounding
from app.engine.speech.sound import sound, spoken_parts
from app.engine.speech.sound.spoken_parts import ATTEMPTS, SpokenPart
from app.engine.speech.text import turns

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam

FIRST_SOUND_S = 0.5
SOUND_S = 1.0
ROOM = 3.0
"""The last attempt may take this many times the estimate, plus ROOM_S: where four in a row outgrow it, it may be the estimate that is wrong."""
ROOM_S = 5.0
LEAST_S = 1.0
"""Of a shorter text nothing more can be asked: a lone word is said as slowly as its voice likes."""
SHORTEST = 0.4
"""Nobody speaks two and a half times as fast as the forecast: words were left out."""
SEEDS_APART = 1_000_003
"""Between the attempts at a part, so that none has its neighbour's seed."""


@dataclass(frozen=True, slots=True)
class PartTask:
    """What one part is made from."""

    index: int
    part: turns.ScriptPart
    context: VoiceContext | None
    sampling: Sampling
    seed: int
    max_frames: int | None
    """Who sets them wants that length: nothing is begun anew."""
    named: tuple[str, ...]
    """Signs of the speakers' voices, where the model knows them by name."""
    key: str
    """A hash of all of this: a part saved under another key is made again."""


class PartRun:
    """One part while it is spoken."""

    def __init__(self, dia: Dia, task: PartTask, job: Path, beside: ThreadPoolExecutor | None) -> None:
        self._dia, self._task, self._job, self._beside = dia, task, job, beside
        attempt, before = _find_unfinished(job, task.index, task.key)
        self._begin(attempt, before)
        if before is not None and self._decoding.made and before.frames_sent:
            self._sounding.restore(self._decoding.get_codes(0, self._decoding.frames), before.frames_sent)

    def _begin(self, attempt: int, before: DecodingState | None = None) -> None:
        dia, task = self._dia, self._task
        self._attempt = attempt
        self._sounding = Sounding(dia.codec, self._job, task.index, attempt, self._beside)
        self._decoding = Decoding(dia.model, dia.device, _make_input(dia, task, attempt), before, dia.row)

    def events(self, control: Control, seam: Seam | None, pace: Pace) -> Generator[Event, None, SpokenPart | None]:
        """Yield progress and sound; return the part, or None if it was stopped before it made any sound."""
        yield from self._decode(control, seam, pace)
        while self._came_out_wrong() and not control.stopped:
            yield from self._finish_sound(pace)
            began_s = time.monotonic()
            pace.given_up += self._decoding.frames
            del self._decoding  # its caches make room
            self._begin(self._attempt + 1)
            pace.record_prepared(time.monotonic() - began_s)
            yield from self._decode(control, seam, pace)
        began_s, decoding = time.monotonic(), self._decoding
        yield from self._send_sound(decoding.frames, pace)
        yield from self._finish_sound(pace)
        pace.worked_s += time.monotonic() - began_s
        if not self._sounding.pieces:
            if not decoding.done:
                return None
            self._sounding.pieces.append(np.zeros(self._dia.codec.hop, np.float32))
        if decoding.cut_off and self._task.max_frames:
            yield Note(
                say(
                    "speech.cut-off",
                    "Part {part} did not end by itself and was cut off after {time}, the most that was asked for.",
                    part=self._task.index + 1,
                    time=word_duration(decoding.frames / self._dia.codec.frame_rate, exact=True),
                )
            )
        return self._save_part()

    def _judge(self) -> Doubt:
        """Tell from its length whether a part that has ended can be right."""
        task, decoding = self._task, self._decoding
        if task.max_frames or self._dia.limits.outgrown == math.inf:
            return ""
        seconds = decoding.frames / self._dia.codec.frame_rate
        if decoding.cut_off or seconds > _allow_seconds(self._dia, task):
            return "long"
        return "short" if seconds < SHORTEST * task.part.seconds else ""

    def _came_out_wrong(self) -> bool:
        """Tell whether another attempt is due."""
        return self._decoding.done and self._attempt + 1 < ATTEMPTS and self._judge() != ""

    def _decode(self, control: Control, seam: Seam | None, pace: Pace) -> Iterator[Event]:
        """Make rows until the part ends or Stop, with progress, and sound once a second."""
        decoding = self._decoding
        began_s, rows_before = time.monotonic(), decoding.made
        try:
            while not decoding.done and not control.stopped:
                decoding.step()
                now_s = time.monotonic()
                if now_s - pace.reported_s >= STEP_EVERY_S:
                    pace.reported_s = now_s
                    ran = seam.take_largest() if seam is not None else None
                    rows = decoding.made - rows_before
                    unsounded = decoding.frames - self._sounding.frames_made
                    yield pace.make_step(self._task.index, decoding.frames, unsounded, rows, now_s - began_s, ran)
                if self._has_sound_to_send():
                    yield from self._send_sound(decoding.frames - OVERLAP_FRAMES, pace)
                    self._save_state()
                elif self._sounding.is_ready:
                    yield from self._finish_sound(pace)
        finally:
            # By Stop, by an error or at its end: the next run resumes from here.
            self._save_state()
        pace.worked_s += time.monotonic() - began_s
        pace.made += decoding.made - rows_before

    def _has_sound_to_send(self) -> bool:
        seconds = SOUND_S if self._sounding.frames_begun else FIRST_SOUND_S
        frames = int(seconds * self._dia.codec.frame_rate) + OVERLAP_FRAMES
        return self._decoding.frames - self._sounding.frames_begun >= frames

    def _send_sound(self, last: int, pace: Pace) -> Iterator[Event]:
        """Begin the sound up to before frame `last`. The first piece is told at once, each other one when it is made or the next begins."""
        yield from self._finish_sound(pace)
        if last > self._sounding.frames_begun:
            self._sounding.begin(self._decoding.get_codes(0, self._decoding.frames), last)
            if not self._sounding.beside_loop:
                yield from self._finish_sound(pace)

    def _finish_sound(self, pace: Pace) -> Iterator[Event]:
        """Tell the piece that is being made, if any; only the time that the loop waits for it counts as spent on sound."""
        before, before_s = self._sounding.frames_made, time.monotonic()
        if (piece := self._sounding.finish()) is not None:
            pace.record_sound(self._sounding.frames_made - before, time.monotonic() - before_s)
            yield piece

    def _save_state(self) -> None:
        _save_unfinished(self._job, self._task.index, self._task.key, self._attempt, self._decoding.get_state(self._sounding.frames_made))

    def _save_part(self) -> SpokenPart:
        task, decoding, whole = self._task, self._decoding, self._decoding.done and not self._came_out_wrong()
        samples, rate = np.concatenate(self._sounding.pieces), self._dia.codec.rate
        codes = decoding.get_codes(0, decoding.frames).numpy().astype(np.int16)
        path = SPOKEN.shown(self._job, task.index)
        saved = SpokenPart(task.part.text, task.seed, task.key, len(samples) / rate, whole, codes, path, self._judge() if whole else "")
        spoken_parts.save(saved, samples, rate)
        if whole:
            SPOKEN.begun_path(self._job, task.index).unlink(missing_ok=True)
        return saved


def _make_input(dia: Dia, task: PartTask, attempt: int) -> PartInput:
    context = task.context
    text = compose_text((*(context.turns if context else ()), *task.part.turns), dia.limits, task.named)
    return PartInput(
        torch.tensor(dia.tokenizer(text)["input_ids"]),
        context.codes if context else None,
        task.sampling,
        (task.seed + attempt * SEEDS_APART) % SEED_LIMIT,
        _limit_rows(dia, task, last=attempt + 1 == ATTEMPTS),
        count_least_frames(task.part.turns, dia.limits),
    )


def _allow_seconds(dia: Dia, task: PartTask) -> float:
    return dia.limits.outgrown * max(task.part.seconds, LEAST_S)


def _limit_rows(dia: Dia, task: PartTask, last: bool) -> int:
    """Return how many rows the part may have: what the decoder has room for, what was asked, or what it should need. So a part that
    outgrows its text ends at that row."""
    limits = dia.limits
    available = limits.rows_most - 1 - (len(task.context.codes) if task.context else 0)
    seconds = ROOM * task.part.seconds + ROOM_S if last or limits.outgrown == math.inf else _allow_seconds(dia, task)
    return min(available, task.max_frames or int(seconds * limits.frame_rate) + 1 + limits.delay + 1)


def _save_unfinished(job: Path, index: int, key: str, attempt: int, state: DecodingState) -> None:
    values = {
        "key": key, "attempt": attempt, "rows": state.rows.tolist(), "generator": base64.b64encode(state.generator.numpy().tobytes()).decode(),
        "ended": state.ended, "given": state.frames_sent,
    }  # fmt: skip
    with sound.replacing(SPOKEN.begun_path(job, index)) as unfinished:
        unfinished.write_text(json.dumps(values), "utf-8")


def _find_unfinished(job: Path, index: int, key: str) -> tuple[int, DecodingState | None]:
    """Return which attempt was saved under this key, and its state: the first one's beginning if there is none; it may come from another
    machine."""
    try:
        values = json.loads(SPOKEN.begun_path(job, index).read_text("utf-8"))
        if values["key"] != key or not values["rows"] or values.get("attempt", 0) not in range(spoken_parts.ATTEMPTS):
            return 0, None
        generator = torch.frombuffer(bytearray(base64.b64decode(values["generator"])), dtype=torch.uint8)
        return int(values.get("attempt", 0)), DecodingState(torch.tensor(values["rows"]), generator, values["ended"], values["given"])
    except (OSError, ValueError, LookupError, TypeError, RuntimeError, RecursionError):
        return 0, None
