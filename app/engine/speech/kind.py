"""Speech as a kind of job: a script's parts, each by itself, the sound that they make together, and what comes from elsewhere. No torch."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.base.paths import Home
from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import Trouble
from app.compat.planning.attention_calls import Call, speech
from app.compat.planning.types import Plan, Row
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import PartDone
from app.engine.jobs.kind import MORE_ROOM, Part
from app.engine.jobs.owners import Allowance
from app.engine.jobs.parts import SPOKEN
from app.engine.jobs.request import Actor, KindName, Request, SpeechRequest, VoicePrompt, from_json, to_json
from app.engine.jobs.seed import draw_seed
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.models import catalog
from app.engine.models.forecast import list_measured, take_median
from app.engine.models.model import Model
from app.engine.models.on_disk import find_limits, locate, read_voice_limits
from app.engine.models.voice_limits import DIA, VoiceLimits
from app.engine.speech.sound import arrived, join_sound, sound, spoken_parts
from app.engine.speech.sound.join_sound import Finish, Joined, Segment
from app.engine.speech.text import script, subtitles, voices
from app.engine.speech.text.cast_script import FindLimits, parse_request
from app.engine.speech.text.chapter_names import name_chapter
from app.engine.speech.text.known_voices import name_voices
from app.engine.speech.text.pronounce import read_letters
from app.engine.speech.text.pronunciations import choose_rows, restore_spelling
from app.engine.speech.text.script import ParsedScript
from app.engine.speech.text.script_edits import restore_writing
from app.engine.speech.text.turns import ScriptPart, group_speakers

SHORTEST_S: Final = 1.0
"""Parts that are shorter are not split any more."""
WAV_BYTES_S: Final = 32_000
PACKED_BYTES_S: Final = 4_000
"""A second of sound takes at least so much, as it is and in the formats that pack it."""


class SpeechKind:
    name: KindName = "speech"
    loads_with = "app.engine.speech.run.loader"
    is_heard, whole_parts = True, False

    def refuse(self, model: Model, others: tuple[str, ...]) -> Trouble:
        words = say(
            "model.speaks", "{model} is a voice and cannot paint. Installed models that paint: {others}.", model=model.words, others=others
        )
        return Trouble(words, cure="models")

    def complete(self, home: Home, request: SpeechRequest) -> SpeechRequest:
        """Let words be said as the owner has listed them; what takes parts over has its own."""
        if request.keep:
            return request
        return replace(
            request, pronunciations=choose_rows(home, request.text, request.pronunciations, [each.name for each in request.cast])
        )

    def check(self, home: Home, request: SpeechRequest, model: Model) -> None:
        for other in {each.model for each in request.cast} - {"", model.id}:
            _require_voice(home, other)
        for speed in {request.speed, *(each.pace for each in request.cast)} - {1.0}:
            join_sound.require_stretch(speed)  # before an hour of speech that could not be joined, or a stream that would break off
        limits = read_voice_limits(home, model)
        if limits is None:  # a missing voice is reported when it is loaded
            return
        if limits.letters is not None:
            read_letters(limits.letters)
        parsed = script.require_no_fault(self.parse(home, request, model))
        for actor in parsed.actors:
            if actor.voice is not None:
                voices.parse_transcript(actor.voice, limits if actor.model == model.id else find_limits(home, actor.model))
        if request.voice is not None and not parsed.actors:
            voices.parse_transcript(request.voice, limits)

    def parse(self, home: Home, request: SpeechRequest, model: Model | None = None) -> ParsedScript:
        """Split a request's script as its voices speak it. `model`: the request's, where it was looked up already."""

        def find(id_: str) -> VoiceLimits:
            return (read_voice_limits(home, model) or DIA) if model is not None and id_ == model.id else find_limits(home, id_)

        return parse_request(request, find)

    def list_models(self, home: Home, request: SpeechRequest, model: Model, folder: Path) -> tuple[str, ...]:
        parts = self.parse(home, request, model).parts
        wanted = [place for place in request.choose_parts(len(parts)) if place < len(parts)]
        left = [parts[place].model or request.model for place in wanted if not spoken_parts.measure(folder, place, parts[place].text)]
        last = parts[-1].model if parts else ""
        return tuple(dict.fromkeys(left)) or (last or request.model,)

    def plan_parts(self, home: Home, request: SpeechRequest) -> tuple[Part, ...]:
        limits, parsed = find_limits(home, request.model), self.parse(home, request)
        parts = parsed.parts
        apart = (
            _find_cast_apart(parsed.actors, request, lambda model: find_limits(home, model))
            if parsed.actors
            else _find_apart(request, limits)
        )
        return tuple(Part(part.text, part.seconds, chained=apart is not None and not part.speakers <= apart) for part in parts)

    def read_part(self, request: SpeechRequest, path: Path, place: int, total: int) -> PartDone | None:
        saved = spoken_parts.find(path)
        if saved is None:
            return None
        return PartDone(place, total, str(path), saved.text, saved.seed, saved.seconds, saved.whole, saved.doubt)

    def ask_alone(self, request: SpeechRequest, place: int, seed: int) -> SpeechRequest:
        return replace(request, only_parts=(place,), seed=seed, format="wav")

    def place_alone(self, place: int) -> int:
        return place

    def measure_begun(self, path: Path, foreign: bool = False) -> int:
        return spoken_parts.measure_begun(path)

    def is_part(self, files: Sequence[Path], words: str, seed: int) -> bool:
        return arrived.is_spoken(files[0], words, seed)

    def is_result(self, request: SpeechRequest, files: Sequence[Path], longest_s: float) -> bool:
        coded = [path.suffix for path in files] == [f".{request.format}"]
        return coded and all(arrived.is_speech(path, request.format, longest_s) for path in files)

    def measure_work(self, home: Home, request: SpeechRequest) -> float:
        limits = find_limits(home, request.model)
        parts = self.parse(home, request).parts
        return sum(parts[place].seconds for place in request.choose_parts(len(parts)) if place < len(parts)) * limits.frame_rate

    def weigh_step(self, request: SpeechRequest, model: Model) -> float:
        """Rows are alike."""
        return 1.0

    def estimate_seconds(
        self, request: SpeechRequest, model: Model, past: Sequence[Creation], plan: Plan | None, work: float
    ) -> float | None:
        return take_median([work / each.rate for each in list_measured(past, model) if work > 0])

    def list_calls(self, model: Model, row: Row) -> tuple[Call, ...]:
        """Of a row: a graph's steps attend as far as it reaches, under a mask."""
        shape = model.attention
        calls = speech(shape.heads, shape.kv_heads, shape.head_dim, shape.text_tokens, shape.keys)
        steps = (each for each in calls if row == "graph" and each.queries == 1 and each.kv_heads < each.heads)
        return (*calls, *(each._replace(masked=True) for each in steps))

    def shrink(self, home: Home, request: SpeechRequest) -> tuple[SpeechRequest, Sentence]:
        """Halve the parts of a script, split by pauses of almost no length."""
        limits = find_limits(home, request.model)
        longest_s = max((part.seconds for part in self.parse(home, request).parts), default=0.0)
        half = replace(limits, part_least_s=0.0, part_aim_s=longest_s / 2, part_most_s=longest_s / 2)
        parts = parse_request(request, lambda model: half if model == request.model else find_limits(home, model)).parts
        if longest_s < SHORTEST_S or max(part.seconds for part in parts) >= longest_s:
            raise Trouble(
                say_to_all("smaller.shortest", "The parts of this script cannot get any shorter. {advice}", advice=MORE_ROOM), cure="models"
            )
        text = "".join((f" (pause {max(part.pause_before_s, 0.01):g}s) " if place else "") + part.text for place, part in enumerate(parts))
        words = say_to_all("smaller.speech", "Restarted in {parts} shorter {parts:part|parts}.", parts=len(parts))
        return replace(request, text=text, only_parts=(), keep=()), words

    def grant(self, request: SpeechRequest, most: Allowance, model: Model) -> SpeechRequest:
        if len(request.text) > most.letters:
            raise Trouble(
                say_to_all(
                    "guest.letters",
                    "The script has {asked} {asked:character|characters}; guests may use up to {most}.",
                    asked=len(request.text),
                    most=most.letters,
                )
            )
        return replace(request, cast=tuple(replace(each, model="") for each in request.cast))

    def read_made_from(self, path: Path) -> Request:
        return from_json(sound.read_settings(path) or {})

    def name_result(self, request: SpeechRequest) -> str:
        return f"speech.{request.format}"

    def estimate_bytes(self, request: SpeechRequest) -> int:
        rate = WAV_BYTES_S if request.format in ("wav", "flac") else PACKED_BYTES_S
        return round(parse_request(request, lambda _: DIA).estimate_seconds(request.speed) * rate)

    def join(
        self, home: Home, request: SpeechRequest, folder: Path, places: Collection[int], target: Path
    ) -> tuple[tuple[str, ...], float]:
        parsed = self.parse(home, request)
        files, joined = join_parts(parsed, request, folder, [place for place in places if place < len(parsed.parts)], target)
        return files, joined.seconds


def list_segments(parts: Sequence[ScriptPart], files: Mapping[int, Path]) -> list[Segment]:
    """List how these files of a script's parts, by their places, are joined."""
    voices = group_speakers(parts)
    told = [(file, parts[place], voices[place]) for place, file in sorted(files.items())]
    return [Segment(file, part.pause_before_s, part.volume_db, part.pace, voice) for file, part, voice in told]


def join_parts(
    parsed: ParsedScript, request: SpeechRequest, folder: Path, places: Collection[int], target: Path
) -> tuple[tuple[str, ...], Joined]:
    """Join parts of a job's folder, in order, to one sound; return its file and how it came out. It names the script's seed."""
    parts, files = [parsed.parts[place] for place in sorted(places)], [SPOKEN.shown(folder, place) for place in sorted(places)]
    segments = list_segments(parsed.parts, dict(zip(sorted(places), files, strict=True)))
    finish = Finish(request.format, request.speed, request.loudness_lufs, request.tail_s + parsed.pause_after_s)
    file = target / SpeechKind().name_result(request)
    settings = to_json(replace(request, seed=_find_seed(request, folder, places)))
    cues = subtitles.list_cues(parts, files, request.speed)
    said = [subtitles.list_turns(part) for part in parsed.parts]
    names = [each.name for each in request.cast]  # who reads wants the words as they are written
    spelt = restore_spelling((turn.text for turns in said for turn in turns), request.text, request.pronunciations, names)
    written = iter(restore_writing(spelt, request.text, names))
    by_part = [[next(written) for _ in turns] for turns in said]
    shown = [text for place in sorted(places) for text in by_part[place]]
    cues = [replace(each, text=text) for each, text in zip(cues, shown, strict=True)]
    told = subtitles.add_to(settings, cues, request.format)
    return (str(file),), join_sound.join(segments, file, finish, told, name_chapter(request.text))


def _find_seed(request: SpeechRequest, folder: Path, places: Collection[int]) -> int:
    """Return the seed that was drawn; where parts were taken over, that of most of these, with which the script comes out nearly the same."""
    taken = {place: spoken_parts.find(SPOKEN.shown(folder, place)) for place in places if request.keep and place not in request.only_parts}
    seeds = Counter((part.seed - place) % SEED_LIMIT for place, part in taken.items() if part is not None)
    return seeds.most_common(1)[0][0] if seeds else draw_seed(request, folder)


def _require_voice(home: Home, model: str) -> None:
    """Raise a Trouble unless this model of a cast speaks and is installed."""
    found = catalog.find(model)
    if found.kind != "speech":
        raise Trouble(say("cast.no-voice", "{model} is no voice. Choose another model for the cast.", model=found.words))
    if locate(home, found) is None:
        raise Trouble(
            say(
                "cast.not-there",
                "The cast needs {model}, which is not installed. Download it in Models, or choose another voice.",
                model=found.words,
            ),
            cure=f"get:{found.id}",
        )


def as_script(request: Request) -> SpeechRequest | None:
    """Return a request that speaks as what it is; None for any other."""
    return request if isinstance(request, SpeechRequest) else None


ModelVoice = tuple[str, str | VoicePrompt | None]
"""A model and the voice that it speaks with: a sign that it knows, a recording, or one of its own choice."""
Take = tuple[str, tuple[ModelVoice, ...]]
"""A take has the words of a part, and how each of its speakers sounds."""


def list_takes(parsed: ParsedScript, request: SpeechRequest, find: FindLimits) -> list[Take]:
    if parsed.actors:
        signs = voices.name_cast(parsed.actors, find)
        used: list[ModelVoice] = [(each.model, sign or each.voice) for each, sign in zip(parsed.actors, signs, strict=True)]
    else:
        used = _list_own_voices(parsed, request, find(request.model))
    return [(part.text, tuple(used[each - 1] for each in dict.fromkeys(turn.speaker for turn in part.turns))) for part in parsed.parts]


def _list_own_voices(parsed: ParsedScript, request: SpeechRequest, limits: VoiceLimits) -> list[ModelVoice]:
    """Return how the speakers of a script without a cast sound, as a cast would say it: its parts stay where only one of them gets another voice."""
    first = parsed.parts[0].turns[0].speaker if parsed.parts else 1
    speakers = range(1, max([limits.speakers, *(speaker for part in parsed.parts for speaker in part.speakers)]) + 1)
    named = name_voices(first, voices.find_known(Path(request.voice.path)), limits) if request.voice else limits.usual
    if named:
        return [(request.model, named[(speaker - 1) % len(named)]) for speaker in speakers]
    return [(request.model, request.voice if speaker == first else None) for speaker in speakers]


def match_takes(parts: Sequence[PartDone], before: Sequence[Take], wanted: Sequence[Take]) -> tuple[str, ...]:
    """Return for each part of a script the earlier take of the same words in the same voices, empty where there is none: the same ones at the
    script's beginning and end first, then what was moved, in order. `before`: as the parts were to be."""
    used = {place: voices_used for place, (_, voices_used) in enumerate(before)}
    takes = [((part.text, used.get(part.index, ())), part.path) for part in parts if part.whole and Path(part.path).is_file()]
    keep = [""] * len(wanted)
    most = min(len(takes), len(wanted))
    begin = next((at for at in range(most) if takes[at][0] != wanted[at]), most)
    end = next((at for at in range(most - begin) if takes[-1 - at][0] != wanted[-1 - at]), most - begin)
    left = defaultdict[Take, deque[str]](deque)
    for take, path in takes[begin : len(takes) - end]:
        left[take].append(path)
    for index, words in enumerate(wanted):
        if index < begin:
            keep[index] = takes[index][1]
        elif index >= len(wanted) - end:
            keep[index] = takes[index - len(wanted)][1]
        elif left[words]:
            keep[index] = left[words].popleft()
    return tuple(keep)


def _find_apart(request: SpeechRequest, limits: VoiceLimits) -> frozenset[int] | None:
    """Return the speakers whose voice hangs on no part before; None: all of them."""
    if not (request.carry_voice and limits.carries):
        return None
    try:
        turns = voices.parse_transcript(request.voice, limits) if request.voice is not None else ()
    except (Trouble, OSError):  # the engine says so
        turns = ()
    if request.voice is not None and not (turns or limits.needs_transcript):
        return None
    return frozenset(turn.speaker for turn in turns)


def _find_cast_apart(actors: Sequence[Actor], request: SpeechRequest, find: FindLimits) -> frozenset[int] | None:
    """Return the same of a cast's speakers: those with a recording, or a voice that the model knows."""
    if not (request.carry_voice and any(find(each.model).carries for each in actors)):
        return None
    signs = voices.name_cast(actors, find)
    return frozenset(number for number, (each, sign) in enumerate(zip(actors, signs, strict=True), 1) if sign or each.voice is not None)
