"""One request spoken: parts in their order, each heard as it is made, stopped within a step, joined at the end."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from app.engine.files import join_sound, sound, spoken_parts
from app.engine.files.join_sound import Finish, Piece
from app.engine.files.spoken_parts import Take
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note, Part, Sound, Stopped
from app.engine.jobs.request import SEED_LIMIT, SpeechRequest, to_json
from app.engine.jobs.seed import seed_of
from app.engine.speech import unfinished_part
from app.engine.speech.codec import OVERLAP_FRAMES, Codec
from app.engine.speech.decoder import Decoding, Sampling
from app.engine.speech.pace import STEP_EVERY_S, Pace
from app.engine.speech.voice_prompt import VoiceContext, choose_context, compose_text
from app.engine.text import script, turns, voices
from app.engine.text.voice_limits import Limits
from app.sentence import Trouble, say

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam
from app.compat.planning.types import Ran

FIRST_SOUND_S = 0.5
SOUND_S = 1.0
ROOM = 3.0
"""A part may last so many times what it is thought to last, and a few seconds; then it has lost its way."""
ROOM_S = 5.0


class Speaking:
    def __init__(
        self, model: Any, device: str, tokenizer: Any, codec: Codec, limits: Limits, name: str, request: SpeechRequest,
        control: Control, seam: Seam | None, job: Path,
    ) -> None:  # fmt: skip
        self._model, self._device, self._tokenizer = model, device, tokenizer
        self._codec, self._limits, self._name = codec, limits, name
        self._request, self._control, self._seam, self._job = request, control, seam, job
        self._sampling = choose_sampling(request, limits)

    def events(self) -> Iterator[Event]:
        began_s = time.monotonic()
        request, limits = self._request, self._limits
        checked = script.speakable(request.text, limits)
        for problem in checked.problems:
            yield Note(problem.sentence)
        clip: VoiceContext | None = None
        if request.voice is not None:
            prompt = voices.prepared(request.voice, limits)
            yield from map(Note, prompt.notes)
            clip = VoiceContext(self._codec.encode(prompt.samples), prompt.turns)
        self._job.mkdir(parents=True, exist_ok=True)
        seed = seed_of(request, self._job)
        parts = checked.parts
        wanted = self._wanted(parts)
        spoken = {
            place: self._kept(place, part) for place, part in enumerate(parts) if request.keep and place not in wanted
        }
        pace = Pace(limits.frame_rate, [part.seconds * limits.frame_rate for part in parts])
        for place in wanted:
            if self._control.stopped:
                break
            part, own_seed = parts[place], (seed + place) % SEED_LIMIT
            heard = choose_context(part, clip, self._before(place, parts, spoken))
            key = spoken_parts.key_of(
                self._name, part.text, own_seed, self._sampling, request.max_frames, heard and heard.codes.tolist()
            )
            take = spoken_parts.find(spoken_parts.sound_path(self._job, place))
            if take is None or take.key != key or not take.whole:
                take = yield from self._take(place, part, heard, own_seed, key, pace)
            if take is None:
                break
            spoken[place] = take
            pace.record_finished(place, take.frames)
            yield Part(place, len(parts), str(take.path), part.text, take.seed, take.seconds)
        if not spoken:
            yield Stopped((), time.monotonic() - began_s)
            return
        target = self._job / f"speech.{request.format}"
        pieces = [Piece(spoken[place].path, parts[place].pause_before_s) for place in sorted(spoken)]
        finish = Finish(request.format, request.speed, request.loudness_lufs, request.tail_s + checked.pause_after_s)
        settings = to_json(replace(request, seed=seed))
        if not sound.carries(settings, request.format):
            yield Note(
                say(
                    "speech.no-room",
                    "These settings are too long for an Opus file, so it does not carry them; the shelf keeps them. WAV, FLAC, MP3 and OGG carry them all.",
                )
            )
        seconds = join_sound.join(pieces, target, finish, settings)
        elapsed_s = time.monotonic() - began_s
        if all(place in spoken and spoken[place].whole for place in wanted):
            rate = pace.made / pace.worked_s if pace.worked_s else 0.0
            yield Finished((str(target),), elapsed_s, rate, "frames", pace.meter.read().highest_bytes, seconds)
        else:
            yield Stopped((str(target),), elapsed_s, seconds)

    def _take(
        self, index: int, part: turns.Part, heard: VoiceContext | None, seed: int, key: str, pace: Pace
    ) -> Generator[Event, None, Take | None]:
        """Speaks one part; what it comes to is returned, None where it was stopped before anything could be heard."""
        limits, codec = self._limits, self._codec
        text = compose_text((*(heard.turns if heard else ()), *part.turns), limits)
        ids = torch.tensor(self._tokenizer(text)["input_ids"])
        before = unfinished_part.find(self._job, index, key)
        decoding = Decoding(
            self._model, self._device, ids, heard.codes if heard else None, self._sampling, seed, self._new_rows(part, heard), before
        )  # fmt: skip
        pieces: list[sound.Samples] = []
        given = 0
        """Frames that were handed out as sound."""
        if before is not None and before.given:
            pieces.append(codec.decode(decoding.codes(0, decoding.frames), 0, before.given))
            given = before.given
        began_s, made_before = time.monotonic(), decoding.made
        try:
            while not decoding.done and not self._control.stopped:
                decoding.step()
                now_s = time.monotonic()
                if now_s - pace.reported_s >= STEP_EVERY_S:
                    pace.reported_s = now_s
                    yield pace.step(index, decoding.frames, decoding.made - made_before, now_s - began_s, self._ran())
                chunk = int((SOUND_S if pieces else FIRST_SOUND_S) * codec.frame_rate)
                if decoding.frames - given >= chunk + OVERLAP_FRAMES:
                    last = decoding.frames - OVERLAP_FRAMES
                    pieces.append(codec.decode(decoding.codes(0, decoding.frames), given, last))
                    yield self._sound(index, pieces, given)
                    given = last
                    unfinished_part.save(self._job, index, key, decoding.state(given))
        finally:
            # However it ends, by Stop, by a fault that the ladder mends, or well: what there is is where the next run goes on.
            unfinished_part.save(self._job, index, key, decoding.state(given))
        pace.worked_s += time.monotonic() - began_s
        pace.made += decoding.made - made_before
        codes = decoding.codes(0, decoding.frames)
        if len(codes) > given:
            pieces.append(codec.decode(codes, given))
            yield self._sound(index, pieces, given)
        if not pieces:
            if not decoding.done:
                return None
            pieces.append(np.zeros(codec.hop, np.float32))
        if decoding.done and decoding.cut_off:
            yield Note(
                say(
                    "speech.cut-off",
                    "Part {part} was cut off at {seconds} s: it did not come to an end by itself. Do it again with another seed.",
                    part=index + 1,
                    seconds=round(len(codes) / codec.frame_rate, 1),
                )
            )
        take = spoken_parts.save(
            self._job, index, np.concatenate(pieces), codec.rate, text=part.text, seed=seed, key=key,
            whole=decoding.done, codes=codes.numpy().astype(np.int16),
        )  # fmt: skip
        if take.whole:
            unfinished_part.drop(self._job, index)
        return take

    def _ran(self) -> Ran | None:
        return self._seam.take_largest() if self._seam is not None else None

    def _sound(self, index: int, pieces: list[sound.Samples], first_frame: int) -> Sound:
        path = self._job / f"sound-{index:03d}-{len(pieces) - 1:03d}.wav"
        sound.write(path, pieces[-1], self._codec.rate)
        return Sound(index, str(path), first_frame / self._codec.frame_rate, len(pieces[-1]) / self._codec.rate)

    def _new_rows(self, part: turns.Part, heard: VoiceContext | None) -> int:
        room = self._limits.rows_most - 1 - (len(heard.codes) if heard else 0)
        roomy = int((ROOM * part.seconds + ROOM_S) * self._limits.frame_rate) + self._limits.delay + 1
        return min(room, self._request.max_frames or roomy)

    def _wanted(self, parts: tuple[turns.Part, ...]) -> tuple[int, ...]:
        places = tuple(sorted(set(self._request.only_parts))) or tuple(range(len(parts)))
        if not set(places) <= set(range(len(parts))) or len(self._request.keep) not in (0, len(parts)):
            raise Trouble(
                say(
                    "speech.other-parts",
                    "Single parts were to be done again, but the script now has {count} parts and no longer matches them. Speak it anew.",
                    count=len(parts),
                )
            )
        return places

    def _kept(self, index: int, part: turns.Part) -> Take:
        path = Path(self._request.keep[index])
        if not path.is_file():
            raise Trouble(
                say("speech.kept-gone", "Part {part} was to be kept, but {path} is gone. Do it again too.", part=index + 1, path=str(path))
            )  # fmt: skip
        take = spoken_parts.adopt(path, self._job, index)
        if take.text and take.text != part.text:
            raise Trouble(
                say(
                    "speech.kept-other",
                    "Part {part} was to be kept, but the script has other words there now. Do it again too.",
                    part=index + 1,
                )
            )
        return take

    def _before(self, place: int, parts: tuple[turns.Part, ...], spoken: dict[int, Take]) -> Iterator[VoiceContext]:
        """The parts that were spoken before this one, nearest first, but none so long that it would leave this one no room."""
        if not (self._request.carry_voice and self._limits.carries):
            return
        for earlier in sorted((each for each in spoken if each < place), reverse=True):
            codes = spoken[earlier].codes
            if codes is None:
                samples, rate = sound.read(spoken[earlier].path)
                yield VoiceContext(self._codec.encode(sound.resampled(samples, rate, self._codec.rate)), parts[earlier].turns)
            elif 0 < len(codes) <= self._limits.rows_most // 2:
                yield VoiceContext(torch.from_numpy(codes.astype(np.int64)), parts[earlier].turns)


def choose_sampling(request: SpeechRequest, limits: Limits) -> Sampling:
    """The request's settings; where it has none, the model's own."""
    own = limits.settings
    return Sampling(
        guidance=own["guidance"] if request.guidance is None else request.guidance,
        temperature=own["temperature"] if request.temperature is None else request.temperature,
        top_p=own["top_p"] if request.top_p is None else request.top_p,
        cfg_filter=int(own["cfg_filter"]) if request.cfg_filter is None else request.cfg_filter,
    )
