"""One request spoken: parts in their order, each heard as it is made, stopped within a step, joined at the end."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from app.compat.meter import Meter
from app.engine import joining, script, sound, takes, turns, voices
from app.engine.codec import OVERLAP_FRAMES, Codec
from app.engine.control import Control
from app.engine.dia import Decoding, Sampling
from app.engine.event import Event, Finished, Note, Part, Sound, Step, Stopped
from app.engine.joining import Finish, Piece
from app.engine.limits import Limits
from app.engine.request import SEED_LIMIT, SpeechRequest, to_json
from app.engine.takes import Take
from app.engine.turns import Turn
from app.sentence import Trouble, say

if TYPE_CHECKING:
    from app.compat.seam import Seam

FIRST_SOUND_S = 0.5
SOUND_S = 1.0
STEP_EVERY_S = 0.1
ROOM = 3.0
"""A part may last so many times what it is thought to last, and a few seconds; then it has lost its way."""
ROOM_S = 5.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What the model hears before a part, so that its voices go on."""

    codes: torch.Tensor
    turns: tuple[Turn, ...]

    @property
    def speakers(self) -> frozenset[int]:
        return frozenset(turn.speaker for turn in self.turns)


@dataclass(slots=True)
class Pace:
    """How far the whole script is, and how fast. The estimate of what is to come is mended by what has been spoken."""

    frame_rate: float
    expected: list[float]
    """Frames of each part."""
    meter: Meter = field(default_factory=Meter)
    began_s: float = field(default_factory=time.monotonic)
    worked_s: float = 0.0
    made: int = 0
    """Frames made in this run."""
    told_s: float = 0.0
    paths: Counter[str] = field(default_factory=Counter)
    """Attention calls by their path, up to the last step that was told."""

    def step(self, part: int, frames: int, rows: int, elapsed_s: float, paths: Counter[str]) -> Step:
        before, after = sum(self.expected[:part]), sum(self.expected[part + 1 :])
        done = before + frames
        total = before + max(self.expected[part], frames) + after
        rate = rows / elapsed_s if elapsed_s > 0 else 0.0
        taken, self.paths = paths - self.paths, paths
        return Step(
            done=round(done), total=round(total), rate=rate, unit="frames", eta_s=(total - done) / rate if rate else None,
            memory=self.meter.read(), realtime=rate / self.frame_rate, part=part, parts=len(self.expected),
            attention=max(taken, key=lambda path: taken[path], default=""),
        )  # fmt: skip

    def finished(self, part: int, frames: int) -> None:
        thought, self.expected[part] = self.expected[part], frames
        mended = min(2.0, max(0.5, frames / thought)) if thought else 1.0
        for later in range(part + 1, len(self.expected)):
            self.expected[later] *= mended**0.5


class Speaking:
    def __init__(
        self, model: Any, device: str, tokenizer: Any, codec: Codec, limits: Limits, name: str, request: SpeechRequest,
        control: Control, seam: Seam | None, job: Path,
    ) -> None:  # fmt: skip
        self._model, self._device, self._tokenizer = model, device, tokenizer
        self._codec, self._limits, self._name = codec, limits, name
        self._request, self._control, self._seam, self._job = request, control, seam, job
        self._sampling = sampling(request, limits)

    def events(self) -> Iterator[Event]:
        began_s = time.monotonic()
        request, limits = self._request, self._limits
        checked = script.check(request.text, limits)
        if checked.fatal:
            first, *others = checked.fatal
            raise Trouble(first.sentence, *(each.sentence for each in others), cure=first.cure)
        for problem in checked.problems:
            yield Note(problem.sentence)
        voice: Heard | None = None
        if request.voice is not None and not limits.carries:
            yield Note(
                say("speech.own-voices", "{name} has its own two voices; the clip is not used.", name=limits.name)
            )
        elif request.voice is not None:
            prompt = voices.prepared(request.voice, limits)
            yield from map(Note, prompt.notes)
            voice = Heard(self._codec.encode(prompt.samples), prompt.turns)
        self._job.mkdir(parents=True, exist_ok=True)
        seed = self._seed()
        parts = checked.parts
        wanted = self._wanted(parts)
        pace = Pace(limits.frame_rate, [part.seconds * limits.frame_rate for part in parts])
        spoken: dict[int, Take] = {}
        for index, part in enumerate(parts):
            if index not in wanted:
                if request.keep:
                    spoken[index] = self._kept(index, part)
                continue
            if self._control.stopped:
                break
            heard = self._heard(index, parts, spoken, voice)
            take_seed = (seed + index) % SEED_LIMIT
            key = takes.key_of(
                self._name, part.text, take_seed, self._sampling, request.max_frames, heard and heard.codes.tolist()
            )
            take = takes.find(takes.sound_path(self._job, index))
            if take is None or take.key != key or not take.whole:
                take = yield from self._take(index, part, heard, take_seed, key, pace)
            if take is None:
                break
            spoken[index] = take
            pace.finished(index, take.frames)
            yield Part(index, len(parts), str(take.path), part.text, take.seed, take.seconds)
        if not spoken:
            yield Stopped((), time.monotonic() - began_s)
            return
        target = self._job / f"speech.{request.format}"
        pieces = [Piece(spoken[index].path, parts[index].pause_before_s) for index in sorted(spoken)]
        finish = Finish(request.format, request.speed, request.loudness_lufs, request.tail_s + checked.pause_after_s)
        seconds = joining.join(pieces, target, finish, to_json(replace(request, seed=seed)))
        elapsed_s = time.monotonic() - began_s
        if self._control.stopped:
            yield Stopped((str(target),), elapsed_s, seconds)
        else:
            rate = pace.made / pace.worked_s if pace.worked_s else 0.0
            yield Finished((str(target),), elapsed_s, rate, "frames", pace.meter.read().highest_bytes, seconds)

    def _take(
        self, index: int, part: turns.Part, heard: Heard | None, seed: int, key: str, pace: Pace
    ) -> Generator[Event, None, Take | None]:
        """Speaks one part; what it comes to is returned, None where it was stopped before anything could be heard."""
        limits, codec = self._limits, self._codec
        text = composed((*(heard.turns if heard else ()), *part.turns), limits)
        ids = torch.tensor(self._tokenizer(text)["input_ids"])
        decoding = Decoding(
            self._model,
            self._device,
            ids,
            heard.codes if heard else None,
            self._sampling,
            seed,
            self._new_rows(part, heard),
        )
        pieces: list[sound.Samples] = []
        heard_frames, began_s = 0, time.monotonic()
        calls_before = self._seam.calls if self._seam is not None else 0
        while not decoding.done and not self._control.stopped:
            decoding.step()
            now_s = time.monotonic()
            if now_s - pace.told_s >= STEP_EVERY_S:
                pace.told_s = now_s
                yield pace.step(index, decoding.frames, decoding.made, now_s - began_s, self._paths())
            chunk = int((SOUND_S if pieces else FIRST_SOUND_S) * codec.frame_rate)
            if decoding.frames - heard_frames >= chunk + OVERLAP_FRAMES:
                last = decoding.frames - OVERLAP_FRAMES
                pieces.append(codec.decode(decoding.codes(0, decoding.frames), heard_frames, last))
                yield self._sound(index, pieces, heard_frames)
                heard_frames = last
        if self._seam is not None and decoding.made and self._seam.calls == calls_before:
            raise RuntimeError("no attention call came through the seam: the plan was not applied")
        pace.worked_s += time.monotonic() - began_s
        pace.made += decoding.made
        codes = decoding.codes(0, decoding.frames)
        if len(codes) > heard_frames:
            pieces.append(codec.decode(codes, heard_frames))
            yield self._sound(index, pieces, heard_frames)
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
        return takes.save(
            self._job, index, np.concatenate(pieces), codec.rate, text=part.text, seed=seed, key=key,
            whole=decoding.done, codes=codes.numpy().astype(np.int16),
        )  # fmt: skip

    def _paths(self) -> Counter[str]:
        return Counter(self._seam.paths) if self._seam is not None else Counter()

    def _sound(self, index: int, pieces: list[sound.Samples], first_frame: int) -> Sound:
        path = self._job / f"sound-{index:03d}-{len(pieces) - 1:03d}.wav"
        sound.write(path, pieces[-1], self._codec.rate)
        return Sound(index, str(path), first_frame / self._codec.frame_rate, len(pieces[-1]) / self._codec.rate)

    def _new_rows(self, part: turns.Part, heard: Heard | None) -> int:
        room = self._limits.rows_most - 1 - (len(heard.codes) if heard else 0)
        roomy = int((ROOM * part.seconds + ROOM_S) * self._limits.frame_rate) + self._limits.delay + 1
        return min(room, self._request.max_frames or roomy)

    def _seed(self) -> int:
        """The request's; else one that is drawn once for this folder, so that going on goes on with the same."""
        if self._request.seed is not None:
            return self._request.seed
        drawn = self._job / "seed"
        if not drawn.is_file():
            with sound.whole(drawn) as unfinished:
                unfinished.write_text(str(random.SystemRandom().randrange(SEED_LIMIT)))
        return int(drawn.read_text())

    def _wanted(self, parts: tuple[turns.Part, ...]) -> frozenset[int]:
        chosen = frozenset(self._request.only_parts or range(len(parts)))
        if not chosen <= frozenset(range(len(parts))) or len(self._request.keep) not in (0, len(parts)):
            raise Trouble(
                say(
                    "speech.other-parts",
                    "Single parts were to be done again, but the script now has {count} parts and no longer matches them. Speak it anew.",
                    count=len(parts),
                )
            )
        return chosen

    def _kept(self, index: int, part: turns.Part) -> Take:
        path = Path(self._request.keep[index])
        if not path.is_file():
            raise Trouble(
                say("speech.kept-gone", "Part {part} was to be kept, but {path} is gone. Do it again too.", part=index + 1, path=str(path))
            )  # fmt: skip
        take = takes.adopt(path, self._job, index)
        if take.text and take.text != part.text:
            raise Trouble(
                say(
                    "speech.kept-other",
                    "Part {part} was to be kept, but the script has other words there now. Do it again too.",
                    part=index + 1,
                )
            )
        return take

    def _heard(
        self, place: int, parts: tuple[turns.Part, ...], spoken: dict[int, Take], voice: Heard | None
    ) -> Heard | None:
        """The clip if it has all of the part's speakers; else the nearest part before that has; else the clip, else the nearest."""
        part = parts[place]
        if voice is not None and part.speakers <= voice.speakers:
            return voice
        before: list[Heard] = []
        if self._request.carry_voice and self._limits.carries:
            for index in sorted(spoken, reverse=True):
                codes = spoken[index].codes
                if codes is not None and len(codes) and index < place:
                    before.append(Heard(torch.from_numpy(codes.astype(np.int64)), parts[index].turns))
        fitting = next((each for each in before if part.speakers <= each.speakers), None)
        return fitting or voice or (before[0] if before else None)


def sampling(request: SpeechRequest, limits: Limits) -> Sampling:
    """The request's settings; where it has none, the model's own."""
    own = limits.settings
    return Sampling(
        guidance=own["guidance"] if request.guidance is None else request.guidance,
        temperature=own["temperature"] if request.temperature is None else request.temperature,
        top_p=own["top_p"] if request.top_p is None else request.top_p,
        cfg_filter=int(own["cfg_filter"]) if request.cfg_filter is None else request.cfg_filter,
    )


def composed(said: tuple[Turn, ...], limits: Limits) -> str:
    """What the encoder reads. Dia begins with [S1], alternates, and ends best with the tag of the last speaker but one; where tags
    are no fixed voices, they may change places."""
    joined: list[Turn] = []
    for turn in said:
        if joined and joined[-1].speaker == turn.speaker:
            joined[-1] = Turn(turn.speaker, f"{joined[-1].text} {turn.text}")
        else:
            joined.append(turn)
    if not limits.carries:
        return " ".join(map(str, joined))
    if joined[0].speaker == 2:
        joined = [Turn(3 - turn.speaker, turn.text) for turn in joined]
    closing = f" [S{joined[-2].speaker}]" if len(joined) > 1 else ""
    return " ".join(map(str, joined)) + closing
