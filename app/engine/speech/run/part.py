"""Speak one part of a script: decode it, send its sound as it is made, begin it anew if its length cannot be right, and save its state, so
that a stopped part can resume."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from app.base.duration import word_duration
from app.base.sentence import say
from app.engine.jobs.control import Control
from app.engine.jobs.events import Doubt, Event, Note
from app.engine.jobs.parts import SPOKEN, drop_begun
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.speech.family import PartTask, Voice
from app.engine.speech.run.pace import STEP_EVERY_S, Pace
from app.engine.speech.run.sounding import Sounding
from app.engine.speech.sound import sound, spoken_parts
from app.engine.speech.sound.spoken_parts import ATTEMPTS, SpokenPart

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam

FIRST_SOUND_S = 0.5
SOUND_S = 1.0
ROOM = 3.0
"""The last attempt may take this many times the estimate, plus ROOM_S: where four in a row outgrow it, it may be the estimate that is wrong."""
ROOM_S = 5.0
LEAST_S = 1.0
"""A shorter text may take as long as one of this length: a lone word is said as slowly as its voice likes."""
SHORTEST = 0.4
"""Nobody speaks two and a half times as fast as the forecast: words were left out."""
SEEDS_APART = 1_000_003
"""The seeds of a part's attempts are this far apart, so that none has its neighbour's."""


class PartRun:
    """One part while it is spoken."""

    def __init__(self, voice: Voice, task: PartTask, job: Path, beside: ThreadPoolExecutor | None) -> None:
        self._voice, self._task, self._job, self._beside = voice, task, job, beside
        attempt, saved = _find_unfinished(job, task.index, task.key)
        self._begin(attempt, saved)
        given = saved["given"] if saved is not None and self._making.made else 0
        if type(given) is int and 0 < given <= self._making.frames:
            self._sounding.restore(self._making.get_codes(0, self._making.frames), given)

    def _begin(self, attempt: int, saved: dict[str, Any] | None = None) -> None:
        task, seconds = self._task, self._task.part.seconds
        if task.asked_s is not None:
            most_s = task.asked_s
        elif attempt + 1 == ATTEMPTS or self._voice.limits.outgrown == math.inf:
            most_s = ROOM * seconds + ROOM_S
        else:
            most_s = self._allow_seconds()
        self._attempt = attempt
        self._sounding = Sounding(self._voice.codec, self._job, task.index, attempt, self._beside)
        self._making = self._voice.begin(task, (task.seed + attempt * SEEDS_APART) % SEED_LIMIT, most_s, saved)

    def _allow_seconds(self) -> float:
        return self._voice.limits.outgrown * max(self._task.part.seconds, LEAST_S)

    def events(self, control: Control, seam: Seam | None, pace: Pace) -> Generator[Event, None, SpokenPart | None]:
        """Yield progress and sound; return the part, or None if it was stopped before it made any sound."""
        yield from self._make(control, seam, pace)
        while self._came_out_wrong() and not control.stopped:
            yield from self._finish_sound(pace)
            began_s = time.monotonic()
            pace.given_up += self._making.frames
            del self._making  # its caches make room
            self._begin(self._attempt + 1)
            pace.record_prepared(time.monotonic() - began_s)
            yield from self._make(control, seam, pace)
        began_s, making = time.monotonic(), self._making
        yield from self._send_sound(making.frames, pace)
        yield from self._finish_sound(pace)
        pace.worked_s += time.monotonic() - began_s
        if not self._sounding.pieces:
            if not making.done:
                return None
            self._sounding.pieces.append(np.zeros(self._voice.codec.hop, np.float32))
        if making.cut_off and self._task.asked_s is not None:
            yield Note(
                say(
                    "speech.cut-off",
                    "Part {part} did not end by itself and was cut off after {time}, the most that was asked for.",
                    part=self._task.index + 1,
                    time=word_duration(making.frames / self._voice.codec.frame_rate, exact=True),
                )
            )
        return self._save_part()

    def _judge(self) -> Doubt:
        """Tell from its length whether a part that has ended can be right."""
        task, making = self._task, self._making
        if task.asked_s is not None or self._voice.limits.outgrown == math.inf:
            return ""
        seconds = making.frames / self._voice.codec.frame_rate
        if making.cut_off or seconds > self._allow_seconds():
            return "long"
        return "short" if seconds < SHORTEST * task.part.seconds else ""

    def _came_out_wrong(self) -> bool:
        """Tell whether another attempt is due."""
        return self._making.done and self._attempt + 1 < ATTEMPTS and self._judge() != ""

    def _make(self, control: Control, seam: Seam | None, pace: Pace) -> Iterator[Event]:
        """Make rows until the part ends or Stop, with progress, and sound once a second."""
        making = self._making
        began_s, rows_before = time.monotonic(), making.made
        try:
            while not making.done and not control.stopped:
                making.step()
                now_s = time.monotonic()
                if now_s - pace.reported_s >= STEP_EVERY_S:
                    pace.reported_s = now_s
                    ran = seam.take_largest() if seam is not None else None
                    rows = making.made - rows_before
                    unsounded = making.frames - self._sounding.frames_made
                    yield pace.make_step(self._task.index, making.frames, unsounded, rows, now_s - began_s, ran)
                if self._has_sound_to_send():
                    yield from self._send_sound(making.frames - self._voice.codec.overlap, pace)
                    self._save_state()
                elif self._sounding.is_ready:
                    yield from self._finish_sound(pace)
        finally:
            # By Stop, by an error or at its end: the next run resumes from here.
            self._save_state()
        pace.worked_s += time.monotonic() - began_s
        pace.made += making.made - rows_before

    def _has_sound_to_send(self) -> bool:
        seconds = SOUND_S if self._sounding.frames_begun else FIRST_SOUND_S
        frames = int(seconds * self._voice.codec.frame_rate) + self._voice.codec.overlap
        return self._making.frames - self._sounding.frames_begun >= frames

    def _send_sound(self, last: int, pace: Pace) -> Iterator[Event]:
        """Begin the sound up to before frame `last`. The first piece is told at once, each other one when it is made or the next begins."""
        yield from self._finish_sound(pace)
        if last > self._sounding.frames_begun:
            self._sounding.begin(self._making.get_codes(0, self._making.frames), last)
            if not self._sounding.beside_loop:
                yield from self._finish_sound(pace)

    def _finish_sound(self, pace: Pace) -> Iterator[Event]:
        """Tell the piece that is being made, if any; only the time that the loop waits for it counts as spent on sound."""
        before, before_s = self._sounding.frames_made, time.monotonic()
        if (piece := self._sounding.finish()) is not None:
            pace.record_sound(self._sounding.frames_made - before, time.monotonic() - before_s)
            yield piece

    def _save_state(self) -> None:
        values = {"key": self._task.key, "attempt": self._attempt, **self._making.save(self._sounding.frames_made)}
        with sound.replacing_or_explaining(SPOKEN.begun_path(self._job, self._task.index)) as unfinished:
            unfinished.write_text(json.dumps(values), "utf-8")

    def _save_part(self) -> SpokenPart:
        task, making, whole = self._task, self._making, self._making.done and not self._came_out_wrong()
        samples, rate = np.concatenate(self._sounding.pieces), self._voice.codec.rate
        codes = making.get_codes(0, making.frames).numpy()
        stored = codes.astype(np.int16) if codes.dtype.kind == "i" else None  # what is no code is heard again from the sound
        path = SPOKEN.shown(self._job, task.index)
        saved = SpokenPart(
            task.part.text, task.seed, task.key, len(samples) / rate, whole, stored, path, making.frames, self._judge() if whole else ""
        )
        spoken_parts.save(saved, samples, rate)
        if whole:
            drop_begun(SPOKEN.begun_path(self._job, task.index))
        return saved


def _find_unfinished(job: Path, index: int, key: str) -> tuple[int, dict[str, Any] | None]:
    """Return which attempt was saved under this key, and its state: the first one's beginning if there is none; it may come from another
    machine."""
    try:
        values = json.loads(SPOKEN.begun_path(job, index).read_text("utf-8"))
        if values["key"] != key or not values["rows"] or values.get("attempt", 0) not in range(ATTEMPTS):
            return 0, None
        return int(values.get("attempt", 0)), values
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return 0, None
