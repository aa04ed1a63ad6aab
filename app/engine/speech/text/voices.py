"""Prepare a voice clip with its words as a prompt, and save voices under a name. No torch."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from app.base.bounded_json import read_json
from app.base.disk_faults import word_fault
from app.base.duration import word_duration
from app.base.paths import Home, assets
from app.base.regular_file import is_inside
from app.base.sentence import Sentence, say, say_to_all
from app.base.stored_json import is_right, read_stored
from app.base.trouble import Trouble
from app.engine.jobs.request import Actor, VoicePrompt
from app.engine.models.model_names import word_name
from app.engine.models.voice_limits import VoiceLimits, clip_key
from app.engine.speech.sound import sound
from app.engine.speech.sound.sound import Samples
from app.engine.speech.text import script
from app.engine.speech.text.clip_cut import LEAST_S, cut_clip
from app.engine.speech.text.known_voices import name_actors
from app.engine.speech.text.turns import Turn

GOOD_S = (5.0, 10.0)
NAME_MOST, ABOUT_MOST = 60, 400
"""A voice's name, and what is said of it, have at most so many letters."""
FORMER_MOST: Final = 8
"""So many earlier names of a voice are kept."""
REMOVED: Final = "removed-voices"
"""Removed voices lie in this folder of the scratch's, so that their removal can be undone."""
REMOVED_S: Final = 86_400
"""They lie there for so long at least."""
RECORDING: Final = say_to_all("voice.recording", "The recording")
RESULT: Final = say_to_all("voice.result", "The sound kept from one of your results")


@dataclass(frozen=True, slots=True)
class Prompt:
    samples: Samples
    rate: int
    turns: tuple[Turn, ...]
    notes: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Voice:
    """A saved voice, or one that comes with the starter voice."""

    name: str
    prompt: VoicePrompt
    seconds: float
    spoken_by: str | None
    """This model spoke it; "": it is any other recording; None: it was saved before Hearth recorded this."""
    about: str = ""
    """Its owner says this of it."""
    formerly: tuple[str, ...] = ()
    """It had these names; casts, presets and programs may still call it so."""


def find_named(name: str, offered: Sequence[Voice]) -> Voice | None:
    """Find a voice by its name, whatever its capitals, else by one that it had."""
    wanted = name.casefold()
    found = next((each for each in offered if each.name.casefold() == wanted), None)
    return found or next((each for each in offered if wanted in (former.casefold() for former in each.formerly)), None)


def parse_transcript(prompt: VoicePrompt, limits: VoiceLimits) -> tuple[Turn, ...]:
    """Return the words of a clip this model can follow, none where nobody wrote them down and it needs none; raise a Trouble if it cannot. Reads
    no sound."""
    if is_brought(prompt, limits):
        return ()
    if not limits.imitates:
        advice = say("owner.dia-clips", "Dia can imitate any recording.")
        raise Trouble(
            say_to_all("voice.none", "{name} cannot imitate recordings. {advice}", name=word_name(limits.name), advice=advice),
            cure="use:dia-1.6b",
        )
    if limits.own_voices is not None and find_speaker(Path(prompt.path)) not in limits.own_voices:
        raise Trouble(
            say_to_all(
                "voice.not-own",
                "{name} cannot imitate this recording, only voices that it spoke itself. Choose one of its ready voices. {advice}",
                name=word_name(limits.name),
                advice=say("owner.dia-voices", "A voice saved from its own results can be used too, and Dia can imitate any recording."),
            ),
            cure="use:dia-1.6b",
        )
    if not prompt.transcript.strip():
        if limits.needs_transcript:
            raise Trouble(say_to_all("voice.no-words", "Type exactly what is said in the recording, or the voice will repeat it."))
        return ()
    checked = script.parse_script(prompt.transcript, limits)
    if checked.fatal:
        raise Trouble(
            say_to_all("voice.bad-words", "What is said in the clip of this voice cannot be used. Correct it."),
            *(problem.sentence for problem in checked.fatal),
        )
    return tuple(turn for part in checked.parts for turn in part.turns)


def prepare_prompt(prompt: VoicePrompt, limits: VoiceLimits) -> Prompt:
    """Return the clip at the model's rate, trimmed of silence and shortened to the limit, with the words that remain in
    it."""
    path = Path(prompt.path)
    samples, rate = sound.read(path, most_s=60.0)
    first, last = sound.find_spoken_span(samples, rate)
    heard = samples[first:last]
    if not last:
        raise Trouble(say_to_all("voice.silent", "The recording {name} is silent. Choose another one.", name=path.name))
    if len(heard) < LEAST_S * rate:
        raise Trouble(
            say_to_all(
                "voice.short",
                "Only {time} of speech can be heard in {name}. Choose a clip with 5 to 10 s.",
                name=path.name,
                time=word_duration(len(heard) / rate, exact=True),
            )
        )
    turns = parse_transcript(prompt, limits)
    notes: list[Sentence] = []
    whole_s = len(heard) / rate + max(0.0, _measure_seconds(path) - len(samples) / rate)
    kept, turns = cut_clip(heard, rate, turns, whole_s, limits)
    clip = RESULT if find_speaker(path) else RECORDING
    if len(kept) < len(heard):
        lengths = {"clip": clip, "whole": word_duration(whole_s, exact=True), "kept": word_duration(len(kept) / rate, exact=True)}
        notes.append(
            say_to_all(
                "voice.trimmed",
                '{clip} is {whole} long; only {kept} of it are used. The words in that time are probably: "{words}"',
                **lengths,
                words=" ".join(map(str, turns)),
            )
            if turns
            else say_to_all("voice.shortened", "{clip} is {whole} long; only {kept} of it are used.", **lengths)
        )
    elif len(heard) < GOOD_S[0] * rate and limits.heard_most_s > GOOD_S[0]:
        notes.append(
            say_to_all(
                "voice.brief",
                "{clip} is only {time} long. A clip of 5 to 10 s works better.",
                clip=clip,
                time=word_duration(len(heard) / rate, exact=True),
            )
        )
    room = limits.bytes_most // 2
    if len(" ".join(map(str, turns)).encode()) > room:
        raise Trouble(
            say_to_all(
                "voice.wordy", "The text of the recording is too long: nobody says that much in this time. Type only what is said in it."
            )
        )
    return Prompt(sound.resample(kept, rate, limits.rate), limits.rate, turns, tuple(notes))


class StoredVoice(TypedDict, total=False):
    name: str
    transcript: str
    spoken_by: str | None
    known: list[str]
    about: str
    formerly: list[str]


STORED: Final = TypeAdapter(StoredVoice)


def find_speaker(clip: Path) -> str | None:
    """Find the model that spoke a clip, from the note beside a saved voice or the settings in Hearth's file; "" if
    neither says. None: a voice saved before Hearth recorded this."""
    try:
        if noted := read_note(clip):
            return noted.get("spoken_by")
        return str((sound.read_settings(clip) or {}).get("model", ""))
    except (OSError, ValueError, TypeError, RecursionError):
        return ""


def find_known(clip: Path) -> tuple[str, ...]:
    """Find which ready voices are heard in a clip, each by its `clip_key`: the clip itself where it is one, and what the note beside a saved
    voice says."""
    try:
        return tuple(read_note(clip).get("known", ())) or (clip_key(clip),)
    except (OSError, ValueError, TypeError, RecursionError):
        return (clip_key(clip),)


def name_cast(actors: Sequence[Actor], find: Callable[[str], VoiceLimits]) -> tuple[str, ...]:
    """Return for each actor the sign by which the model knows the voice; empty where it knows none. `find`: the limits of a model, by its id."""
    signs = [""] * len(actors)
    for model in {each.model for each in actors}:
        own = [place for place, each in enumerate(actors) if each.model == model]
        known = [find_known(Path(voice.path)) if (voice := actors[place].voice) is not None else None for place in own]
        for place, sign in zip(own, name_actors(known, find(model)), strict=True):
            signs[place] = sign
    return tuple(signs)


def settle_voices(
    actors: Sequence[Actor], find: Callable[[str], VoiceLimits], offer: Callable[[str], Sequence[Voice]]
) -> tuple[Actor, ...]:
    """Return the actors, each with the voice that would come by itself as one that was chosen: so it stays in scripts where others speak. Whoever's
    model makes voices up stays without. `offer`: the voices that a model can speak with, by its id."""
    settled = list[Actor]()
    for each, sign in zip(actors, name_cast(actors, find), strict=True):
        keys = {key for key, known in find(each.model).ready.items() if known == sign} if sign and each.voice is None else set()
        voice = next((one for one in offer(each.model) if keys & {*find_known(Path(one.prompt.path))}), None) if keys else None
        settled.append(replace(each, voice=voice.prompt) if voice is not None else each)
    return tuple(settled)


def read_note(clip: Path) -> StoredVoice:
    """Read the note beside a saved voice's clip; empty if there is none, it lies elsewhere, or it is another program's file."""
    about = clip.with_suffix(".json")
    noted: StoredVoice = read_json(about) if is_inside(about, clip.parent) and about.is_file() else {}
    return noted if is_right(STORED, noted) and "transcript" in noted else {}


def note_speaker(clip: Path, transcript: str, spoken_by: str | None, known: Sequence[str] = ()) -> None:
    """Note beside a clip which model spoke it, and in which ready voices, where `find_speaker` and `find_known` look; raise TypeError if these
    are no names."""
    noted = StoredVoice(name=clip.stem, transcript=transcript, spoken_by=spoken_by, known=list(known))
    if not is_right(STORED, noted):
        raise TypeError(noted)
    with sound.replacing_or_explaining(clip.with_suffix(".json")) as unfinished:
        unfinished.write_text(json.dumps(noted), "utf-8")


@functools.cache
def find_ready_clip(sha256: str) -> Path | None:
    """Find the clip with this hash among the ready voices; what is known of them hangs on where it lies."""
    clips = (Path(each.prompt.path) for each in list_ready_voices())
    return next((clip for clip in clips if hashlib.sha256(clip.read_bytes()).hexdigest() == sha256), None)


def keep_voice(
    home: Home,
    name: str,
    clip: Path,
    transcript: str,
    limits: VoiceLimits,
    *,
    spoken_by: str = "",
    known: Sequence[str] = (),
    about: str = "",
) -> Voice:
    """Save a voice under a name, from any clip: the user's recording or a result of Hearth. `known`: the ready voices heard in it, each by its
    `clip_key`."""
    name, slug = _require_name(name)
    there = list_voices(home)
    taken = next((each.name for each in there if _name_file(each.name) == slug), None)
    renamed = {each.prompt.path for each in there}  # whose files keep the name that they had
    paths = (home.voices / f"{slug}{f'-{number}' if number else ''}.wav" for number in (0, *range(2, len(there) + 3)))
    path = next(each for each in paths if str(each) not in renamed)
    if taken is not None:
        raise Trouble(
            say_to_all("voice.taken", "A voice named {name} already exists. Choose another name, or delete that voice first.", name=taken)
        )
    try:
        if not is_inside(path.with_suffix(".json"), home.voices):
            raise OSError(errno.EINVAL, "it leads elsewhere")
        read_stored(path.with_suffix(".json"), STORED)
    except OSError as fault:
        raise Trouble(
            say_to_all(
                "voice.not-now",
                "There is a voice of this name, but {file} cannot be read now ({fault}). Choose another name.",
                file=str(path.with_suffix(".json")),
                fault=word_fault(fault),
            )
        ) from fault
    prompt = prepare_prompt(VoicePrompt(str(clip), transcript), limits)
    words = " ".join(map(str, prompt.turns))
    sound.write(path, prompt.samples, prompt.rate)
    spoken_by = spoken_by or find_speaker(clip) or ""
    _write_note(path, StoredVoice(name=name, transcript=words, spoken_by=spoken_by, known=list(known), about=about[:ABOUT_MOST]))
    return Voice(name, VoicePrompt(str(path), words), len(prompt.samples) / prompt.rate, spoken_by, about[:ABOUT_MOST])


def _require_name(name: str) -> tuple[str, str]:
    """Return a new name of a voice, and that of its file."""
    name = " ".join(name.split())
    slug = _name_file(name)
    if not slug:
        raise Trouble(say_to_all("voice.no-name", "The name of a voice needs at least one letter or digit."))
    if name.lower() in {each.name.lower() for each in list_ready_voices()}:
        raise Trouble(
            say_to_all("voice.ready-name", "{name} is the name of a voice that comes with Hearth. Choose another name.", name=name)
        )
    return name, slug


def _name_file(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name.lower()).strip("-")[:NAME_MOST]


def _write_note(clip: Path, note: StoredVoice) -> None:
    with sound.replacing_or_explaining(clip.with_suffix(".json")) as unfinished:
        unfinished.write_text(json.dumps(note), "utf-8")


def find_kept(home: Home, name: str) -> Voice:
    """Find a saved voice by its name; raise a Trouble if there is none."""
    found = next((each for each in list_voices(home) if each.name == name), None)
    if found is None:
        raise Trouble(say("voice.unknown", "There is no saved voice named {name}.", name=name[:NAME_MOST]))
    return found


def rename_voice(home: Home, name: str, wanted: str) -> None:
    """Give a saved voice another name; its files keep theirs, so that what was made with it finds them."""
    voice, (named, slug) = find_kept(home, name), _require_name(wanted[:NAME_MOST])
    if any(_name_file(each.name) == slug and each.name != name for each in list_voices(home)):
        raise Trouble(
            say_to_all("voice.taken", "A voice named {name} already exists. Choose another name, or delete that voice first.", name=named)
        )
    clip = Path(voice.prompt.path)
    formerly = [each for each in dict.fromkeys((voice.name, *voice.formerly)) if each != named][:FORMER_MOST]
    _write_note(clip, StoredVoice(**{**read_note(clip), "name": named, "formerly": formerly}))


def describe_voice(home: Home, name: str, about: str) -> None:
    clip = Path(find_kept(home, name).prompt.path)
    _write_note(clip, StoredVoice(**{**read_note(clip), "about": " ".join(about.split())[:ABOUT_MOST]}))


def remove_voice(home: Home, name: str) -> None:
    """Put a saved voice aside, so that it can be brought back."""
    clip, aside = Path(find_kept(home, name).prompt.path), home.scratch / REMOVED
    aside.mkdir(parents=True, exist_ok=True)
    for old in [each for each in aside.iterdir() if time.time() - each.stat().st_mtime > REMOVED_S]:
        old.unlink(missing_ok=True)
    for file in (clip, clip.with_suffix(".json")):
        os.utime(file)
    for file in (clip, clip.with_suffix(".json")):
        shutil.move(file, aside / file.name)


def bring_back_voice(home: Home, name: str) -> None:
    """Bring a removed voice back; raise a Trouble if it is gone, or its place taken."""
    aside = home.scratch / REMOVED
    found = next((Path(each.prompt.path) for each in _list_folder(aside, ".wav") if each.name == name), None)
    if found is None:
        raise Trouble(say("voice.not-back", "The voice {name} cannot be brought back any more.", name=name[:NAME_MOST]))
    if (home.voices / found.name).exists() or any(each.name == name for each in list_voices(home)):
        raise Trouble(
            say_to_all("voice.taken", "A voice named {name} already exists. Choose another name, or delete that voice first.", name=name)
        )
    for file in (found, found.with_suffix(".json")):  # the note last: with it the voice is there
        shutil.move(file, home.voices / file.name)


def list_voices(home: Home) -> tuple[Voice, ...]:
    """List saved voices by name; skip anything else in the folder, and what a link leads out of it."""
    return _list_folder(home.voices, ".wav")


@functools.cache
def list_ready_voices() -> tuple[Voice, ...]:
    """List the voices that come with the starter voice."""
    return _list_folder(assets() / "starter" / "voice" / "voices", ".ogg")


def is_same(voice: Voice, prompt: VoicePrompt) -> bool:
    """Tell whether a clip with its words is this voice, a ready one also where Hearth was moved or its words were put otherwise."""
    return voice.prompt == prompt or (voice in list_ready_voices() and clip_key(voice.prompt.path) == clip_key(prompt.path))


def is_brought(prompt: VoicePrompt, limits: VoiceLimits) -> bool:
    """Tell whether this is the file of a voice that lies with the model, or a copy of it."""
    return bool(limits.brought) and all(key in limits.ready for key in find_known(Path(prompt.path)))


def is_ready(prompt: VoicePrompt) -> bool:
    """Tell whether a clip with its words is a voice that comes with Hearth."""
    return any(each.prompt == prompt for each in list_ready_voices())


def list_offered_voices(home: Home, limits: VoiceLimits, guest: bool = False) -> tuple[Voice, ...]:
    """List the saved voices that a model can follow, then those that lie with it, else the ready ones where it speaks their English; a saved voice hides
    another of its name. A guest sees no saved ones."""
    saved = () if guest or not limits.imitates else list_voices(home)
    ready = list_ready_voices() if limits.imitates and not limits.brought and limits.speaks("en") else ()
    brought = (Voice(name, VoicePrompt(str(file), ""), 0.0, None) for name, file in limits.brought.items())
    names = {each.name.lower() for each in saved}
    return *saved, *(each for each in (*brought, *ready) if each.name.lower() not in names)


def _list_folder(folder: Path, suffix: str) -> tuple[Voice, ...]:
    found = []
    for about in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        path = about.with_suffix(suffix)
        if not (is_inside(about, folder) and is_inside(path, folder)):
            continue
        try:
            values = read_stored(about, STORED)
            prompt = VoicePrompt(str(path), str(values["transcript"]))
            about_it = str(values.get("about", "")), tuple(values.get("formerly", ()))
            found.append(Voice(str(values["name"]), prompt, sound.measure_seconds(path), find_speaker(path), *about_it))
        except (OSError, ValueError, KeyError, TypeError, RuntimeError):  # libsndfile's own is a RuntimeError
            continue
    return tuple(found)


def forget_voice(home: Home, voice: Voice) -> None:
    path = Path(voice.prompt.path)
    if path.parent == home.voices:
        path.with_suffix(".json").unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def say_gone(home: Home, prompt: VoicePrompt) -> Sentence:
    """Say that the voice of an earlier request cannot be chosen again."""
    if Path(prompt.path).parent == home.voices:
        return say_to_all("restore.voice-gone", "The saved voice that this used is no longer there. Choose another one.")
    return say_to_all("restore.voice", "This used a recording as its voice. Choose the recording again.")


def _measure_seconds(path: Path) -> float:
    try:
        return sound.measure_seconds(path)
    except RuntimeError:  # only a converter can read this format: its full length is unknown
        return 0.0
