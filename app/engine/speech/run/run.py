"""Speak a request: its parts in order, each heard while it is made, joined into one file at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note, PartDone, Stopped
from app.engine.jobs.parts import LESSONS, SPOKEN, is_elsewhere
from app.engine.jobs.request import SpeechRequest, to_json
from app.engine.jobs.seed import draw_seed, seed_of_part
from app.engine.jobs.settings import SPEECH
from app.engine.models.model_names import word_name
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.family import PartTask, Voice, VoiceContext
from app.engine.speech.kind import join_parts
from app.engine.speech.run.actors import Actors, renumber
from app.engine.speech.run.pace import Pace
from app.engine.speech.run.part import PartRun
from app.engine.speech.run.sounding import open_beside
from app.engine.speech.sound import sound, spoken_parts
from app.engine.speech.sound.spoken_parts import SpokenPart
from app.engine.speech.text import script, voices
from app.engine.speech.text.cast_script import FindLimits, parse_request
from app.engine.speech.text.known_voices import name_voices
from app.engine.speech.text.turns import ScriptPart

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam

SHORT_LU: Final = 0.5
"""A loudness that is missed by more is told."""


class SpeechRun:
    """One request while it is spoken; `job` holds what earlier runs of it finished."""

    def __init__(
        self,
        voice: Voice,
        request: SpeechRequest,
        control: Control,
        seam: Seam | None,
        job: Path,
        *,
        model: str = "",
        find_limits: FindLimits | None = None,
    ) -> None:
        """`model`: the id of the voice's model, which speaks its own parts alone; empty: there is no other."""
        self._voice, self._request, self._control, self._seam, self._job = voice, request, control, seam, job
        self._script = script.require_no_fault(parse_request(request, find_limits or (lambda _: voice.limits)))
        self._model = model or request.model
        self._actors = Actors(voice, self._script.actors, self._model) if self._script.actors else None
        known = voices.find_known(Path(request.voice.path)) if request.voice else ()
        self._named = () if self._actors else name_voices(self._script.parts[0].turns[0].speaker, known, voice.limits)
        self._spoken: dict[int, SpokenPart] = {}
        self._beside: ThreadPoolExecutor | None = None

    def events(self) -> Iterator[Event]:
        with open_beside(self._voice.device, self._voice.codec.device) as self._beside:
            yield from self._events()

    def _events(self) -> Iterator[Event]:
        began_s = time.monotonic()
        limits, parts = self._voice.limits, self._script.parts
        if all(self._is_own(index) or self._find_spoken(index) is None for index in range(len(parts))):  # else another model has said it
            yield from (Note(problem.sentence) for problem in self._script.problems)
        yield from map(Note, _describe_ignored(self._request, limits))
        clip = yield from self._encode_clip()
        self._job.mkdir(parents=True, exist_ok=True)
        seed = draw_seed(self._request, self._job)
        wanted = self._choose_parts(parts)
        own = [index for index in wanted if self._is_own(index)]
        if self._actors is not None:
            yield from map(Note, self._actors.hear(speaker for index in own for speaker in parts[index].speakers))
        if self._request.keep:
            self._spoken = {
                index: self._keep(index, part) for index, part in enumerate(parts) if index not in wanted and self._request.keep[index]
            }
            yield from (self._tell(index) for index in self._spoken)
        pace = Pace(limits.frame_rate, [part.seconds * limits.frame_rate * (index in wanted) for index, part in enumerate(parts)])
        for index in set(wanted) - set(own):
            if (spoken := self._find_spoken(index)) is not None:
                self._spoken[index] = spoken
                pace.record_finished(index, round(spoken.seconds * limits.frame_rate))
                yield self._tell(index)
        for index in own:
            if self._control.stopped:
                break
            saved = yield from self._speak(index, clip, seed_of_part(seed, index), pace)
            if saved is None:
                break
            self._spoken[index] = saved
            pace.record_finished(index, saved.frames)
            yield self._tell(index)
        if not self._control.stopped and not set(wanted) - set(own) <= self._spoken.keys():
            return  # another model's turn
        due = range(len(parts)) if self._request.keep else wanted
        finished = all(index in self._spoken and self._spoken[index].whole for index in due)
        if self._request.keep:  # a part that was to be redone stays as it was where a stop came before its first sound
            for index in (each for each in wanted if each not in self._spoken and self._request.keep[each]):
                self._spoken[index] = self._keep(index, parts[index])
                yield self._tell(index)
        if not self._spoken:
            yield Stopped((), time.monotonic() - began_s)
            return
        files, seconds = yield from self._join(seed)
        elapsed_s = time.monotonic() - began_s
        if finished:
            rate = pace.made / pace.worked_s if pace.worked_s and own == [*wanted] else 0.0
            yield Finished(files, elapsed_s, rate, "frames", pace.meter.read().highest_bytes, seconds)
        else:
            yield Stopped(files, elapsed_s, seconds)

    def _encode_clip(self) -> Generator[Event, None, VoiceContext | None]:
        """Encode the request's recording of a voice, if there is one and the model does not know the voice by name."""
        if self._request.voice is None or self._named or self._actors is not None:
            return None
        prompt = voices.prepare_prompt(self._request.voice, self._voice.limits)
        yield from map(Note, prompt.notes)
        return VoiceContext(self._voice.codec.encode(prompt.samples), prompt.turns)

    def _is_own(self, index: int) -> bool:
        return self._script.parts[index].model in ("", self._model)

    def _find_spoken(self, index: int) -> SpokenPart | None:
        """Return a part that another model of the cast has finished."""
        saved = spoken_parts.find(SPOKEN.shown(self._job, index))
        return saved if saved is not None and saved.whole and saved.text == self._script.parts[index].text else None

    def _choose_parts(self, parts: tuple[ScriptPart, ...]) -> tuple[int, ...]:
        """Return the indices of the parts to speak; the others are kept as they are."""
        indices = self._request.choose_parts(len(parts))
        if not set(indices) <= set(range(len(parts))) or len(self._request.keep) not in (0, len(parts)):
            raise Trouble(
                say(
                    "speech.other-parts",
                    "The script has changed and now has {count} {count:part|parts}, so single parts cannot be redone. Speak the whole script again.",
                    count=len(parts),
                )
            )
        return indices

    def _keep(self, index: int, part: ScriptPart) -> SpokenPart:
        """Take over a part that was spoken before; raise a Trouble if it is gone or its text has changed."""
        path, own = Path(self._request.keep[index]), SPOKEN.shown(self._job, index)
        if not path.is_file() and own.is_file():
            path = own  # taken over before this job was interrupted, and the earlier job's parts are gone since
        if not path.is_file():
            raise Trouble(
                say(
                    "speech.kept-gone",
                    "The sound of part {part} is missing: {path} was not found. Redo this part too.",
                    part=index + 1,
                    path=str(path),
                )
            )
        saved = spoken_parts.adopt(path, self._job, index)
        if saved.text and saved.text != part.text:
            raise Trouble(
                say("speech.kept-other", "The text of part {part} has changed since it was spoken. Redo this part too.", part=index + 1)
            )
        return saved

    def _tell(self, index: int) -> PartDone:
        part, parts = self._spoken[index], self._script.parts
        return PartDone(index, len(parts), str(part.path), parts[index].text, part.seed, part.seconds, part.whole, part.doubt)

    def _speak(self, index: int, clip: VoiceContext | None, seed: int, pace: Pace) -> Generator[Event, None, SpokenPart | None]:
        """Speak one part, unless an earlier run finished it; None if it was stopped before it made any sound."""
        began_s = time.monotonic()
        request, part = self._request, self._script.parts[index]
        settings = self._voice.choose_settings(request)
        if self._actors is None:
            named, context = self._named, choose_context(part, clip, self._list_contexts(index))
        else:
            named = self._actors.name(part)
            part, context = renumber(part, None if named else self._actors.choose_context(part, self._list_contexts(index)))
        made_from = (self._voice.name, part.text, seed, settings, request.max_frames, context and context.codes.tolist())
        key = spoken_parts.hash_inputs(*made_from, *named, *filter(None, [self._voice.limits.edition]))
        saved = spoken_parts.find(SPOKEN.shown(self._job, index))
        if saved is not None and saved.key == key and saved.whole:
            return saved
        asked_s = self._voice.limits.time_rows(request.max_frames) if request.max_frames else None
        task = PartTask(index, part, context, settings, seed, asked_s, named, key)
        run = PartRun(self._voice, task, self._job, self._beside)
        pace.record_prepared(time.monotonic() - began_s)
        return (yield from run.events(self._control, self._seam, pace))

    def _list_contexts(self, index: int) -> Iterator[VoiceContext]:
        """Yield the parts that come before this one, nearest first, then those after it that were taken over, so that a new first part
        has their voice; those that are likely wrong last, without those too long to leave room for it."""
        limits, parts = self._voice.limits, self._script.parts
        if not (self._request.carry_voice and limits.carries):
            return
        others = (each for each in self._spoken if each != index and self._is_own(each))
        for earlier in sorted(others, key=lambda each: (self._spoken[each].doubt != "", each > index, abs(each - index))):
            if is_elsewhere(self._spoken[earlier].path):
                (self._job / LESSONS).mkdir(exist_ok=True)
            codes = self._read_codes(self._spoken[earlier], limits.rows_most // 2)
            if codes is not None:
                yield VoiceContext(codes, parts[earlier].turns)

    def _read_codes(self, part: SpokenPart, most: int) -> torch.Tensor | None:
        """Return the codes of a spoken part, None if they are none or more than `most`. What is no code of this model, as another program or
        machine may leave it, is encoded from the sound."""
        codec = self._voice.codec
        if part.codes is not None and self._voice.is_code(part.codes):
            return torch.from_numpy(part.codes.astype(np.int64)) if 0 < len(part.codes) <= most else None
        if sound.measure_seconds(part.path) * codec.frame_rate > most:
            return None
        samples, rate = sound.read(part.path)
        return codec.encode(sound.resample(samples, rate, codec.rate))

    def _join(self, seed: int) -> Generator[Event, None, tuple[tuple[str, ...], float]]:
        """Join all parts into the result; return its file and its seconds."""
        request = self._request
        if not sound.has_room_for(to_json(replace(request, seed=seed)), request.format):
            yield Note(
                say(
                    "speech.no-room",
                    "The settings are too long for an Opus file; they are only kept on the shelf. To store them in the file, choose WAV, FLAC, MP3 or OGG.",
                )
            )
        files, joined = join_parts(self._script, request, self._job, self._spoken, self._job)
        wanted = request.loudness_lufs
        if wanted is not None and SHORT_LU < wanted - joined.lufs < math.inf:
            yield Note(
                say(
                    "speech.quieter",
                    "The loudness is {reached} LUFS in place of {wanted}: made any louder, the loudest moments would sound squashed.",
                    reached=f"{joined.lufs:.1f}",
                    wanted=f"{wanted:g}",
                )
            )
        return files, joined.seconds


def _describe_ignored(request: SpeechRequest, limits: VoiceLimits) -> list[Sentence]:
    """Return a sentence for each setting that this voice does not have."""
    return [
        say("speech.no-setting", "{name} has no {setting}; yours was ignored.", name=word_name(limits.name), setting=each.said)
        for each in SPEECH.values()
        if each.by_hand is not None and getattr(request, each.field) is not None and each.name not in limits.settings
    ]


def choose_context(part: ScriptPart, clip: VoiceContext | None, before: Iterable[VoiceContext]) -> VoiceContext | None:
    """Choose the clip if it has all of the part's speakers, or may have, as nobody said what is said in it; else the first of `before` (nearest
    first) that has, else the clip, else the nearest."""
    if clip is not None and (part.speakers <= clip.speakers or not clip.turns):
        return clip
    nearest = None
    for earlier in before:
        if part.speakers <= earlier.speakers:
            return earlier
        nearest = nearest or earlier
    return clip or nearest
