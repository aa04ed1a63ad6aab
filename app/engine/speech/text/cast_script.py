"""Split a script with a cast into parts: each names the model that speaks it. A script of a voice's own two speakers needs no cast, and is split
as ever. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from app.base.duration import word_duration
from app.base.sentence import say, say_to_all
from app.engine.jobs.request import Actor, SpeechRequest, VoicePrompt
from app.engine.models.model_names import word_name
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.text.cast_tags import list_names, number_tags
from app.engine.speech.text.pronunciations import Rows, respell
from app.engine.speech.text.script import ParsedScript, list_length, parse_script, read_parts, shorten_list
from app.engine.speech.text.script_marks import MARK, WORD
from app.engine.speech.text.script_problem import Problem
from app.engine.speech.text.turns import SENTENCE_S, ScriptPart, Turn

FindLimits = Callable[[str], VoiceLimits]
"""It finds what a model's voice can take, by the model's id."""
TOGETHER: Final = 2
"""A part may have so many voices where the model continues voices; elsewhere each has its own."""


def parse_request(request: SpeechRequest, find: FindLimits) -> ParsedScript:
    """Split a request's script, with its cast where it needs one."""
    return parse_words(request.text, request.model, request.cast, find, request.voice, request.pronunciations)


def parse_words(
    text: str, model: str, cast: tuple[Actor, ...], find: FindLimits, voice: VoicePrompt | None = None, pronunciations: Rows = ()
) -> ParsedScript:
    text = respell(text, pronunciations, [each.name for each in cast])
    actors = choose_cast(text, model, cast, find, voice)
    if not actors:
        return parse_script(text, find(model))
    models = tuple(dict.fromkeys(each.model for each in actors))
    return _parse_cast(text, actors, tuple((each, find(each)) for each in models))


def choose_cast(text: str, model: str, cast: tuple[Actor, ...], find: FindLimits, voice: VoicePrompt | None = None) -> tuple[Actor, ...]:
    """Return who speaks, in order, each with a model; none where the model's own speakers are all there are. `voice`: of the first who has none."""
    names = list_names(text, [each.name for each in cast])
    known = {each.name.casefold(): each for each in cast}
    if not names or (not known.keys() & {name.casefold() for name in names} and set(names) <= _name_own(find(model))):
        return ()
    return list_actors(names, model, cast, voice)


def list_actors(names: Sequence[str], model: str, cast: tuple[Actor, ...], voice: VoicePrompt | None = None) -> tuple[Actor, ...]:
    """Return an actor for each name, each with a model. `voice`: of the first who has none."""
    known = {each.name.casefold(): each for each in cast}
    found = [known.get(name.casefold()) or Actor(name) for name in names]
    actors = [replace(each, name=name, model=each.model or model) for name, each in zip(names, found, strict=True)]
    free = next((place for place, each in enumerate(actors) if each.voice is None and each.model == model), None)
    if voice is not None and free is not None:
        actors[free] = replace(actors[free], voice=voice)
    return tuple(actors)


def keep_used(request: SpeechRequest) -> SpeechRequest:
    """Return a request whose cast has only names of its script."""
    used = {name.casefold() for name in list_names(request.text, [each.name for each in request.cast])}
    return replace(request, cast=tuple(each for each in request.cast if each.name.casefold() in used))


def _name_own(limits: VoiceLimits) -> set[str]:
    return {tag.strip("[]") for tag in limits.tags}


@functools.lru_cache(maxsize=8)
def _parse_cast(text: str, actors: tuple[Actor, ...], models: tuple[tuple[str, VoiceLimits], ...]) -> ParsedScript:
    limits = {model: widen(each, len(actors)) for model, each in models}
    numbered, _ = number_tags(text, [each.name for each in actors])
    parts, problems, waits_s = list[ScriptPart](), list[Problem](), 0.0
    for speaker, run in _cut_runs(numbered, actors):
        actor, own = actors[speaker - 1], list[Problem]()
        read, after_s = read_parts(run, limits[actor.model], own)
        problems += own
        for place, part in enumerate(read):
            pause_s = part.pause_before_s if place else part.pause_before_s + waits_s
            turns = tuple(Turn(turn.speaker, turn.text, actors[turn.speaker - 1].name) for turn in part.turns)
            parts.append(ScriptPart(turns, part.seconds, pause_s, actor.model, actor.volume_db, actor.pace))
        waits_s = after_s or SENTENCE_S
    seconds = sum(part.seconds / part.pace + part.pause_before_s for part in parts)
    after_s = waits_s if parts and waits_s != SENTENCE_S else 0.0
    problems += [*_describe_cast(parts, actors, dict(models)), *list_length(parts, seconds)]
    return ParsedScript(tuple(parts), shorten_list([*dict.fromkeys(problems)]), seconds + after_s, after_s, actors)


def widen(limits: VoiceLimits, count: int) -> VoiceLimits:
    """Return a model's limits for a cast of so many."""
    together = TOGETHER if limits.carries and limits.speakers_a_part >= TOGETHER else 1
    return replace(limits, speakers=max(count, together + 1), speakers_a_part=together)


def _cut_runs(numbered: str, actors: Sequence[Actor]) -> Iterator[tuple[int, str]]:
    """Yield what one model says without another between, all with one volume and pace; what has no words goes with the next."""
    ways = [(each.model, each.volume_db, each.pace) for each in actors]
    begin, now = 0, 1
    for mark in MARK.finditer(numbered):
        speaker = int(mark[1]) if mark[1] else now
        if ways[speaker - 1] != ways[now - 1] and _has_words(numbered[begin : mark.start()]):
            yield now, numbered[begin : mark.start()]
            begin = mark.start()
        now = speaker
    if begin == 0 or _has_words(numbered[begin:]):
        yield now, numbered[begin:]


def _has_words(run: str) -> bool:
    return WORD.search(MARK.sub("", run)) is not None


def _describe_cast(parts: Sequence[ScriptPart], actors: Sequence[Actor], limits: dict[str, VoiceLimits]) -> Iterator[Problem]:
    """Say what a cast costs."""
    if len(used := tuple(dict.fromkeys(part.model for part in parts))) > 1:
        yield Problem(
            "note",
            say_to_all(
                "cast.turns",
                "Each voice model is loaded once and speaks all of its parts; so they are not made in the script's order: {models}.",
                models=tuple(word_name(limits[model].name) for model in used),
            ),
        )
    for model in used:
        own, name = limits[model], word_name(limits[model].name)
        own_names = [each.name for each in actors if each.model == model]
        if widen(own, 1).speakers_a_part == TOGETHER and len(own_names) > TOGETHER:
            yield Problem(
                "note", say_to_all("cast.two", "{name} keeps two voices at a time: where a third one speaks, a new part begins.", name=name)
            )
        short = [part for part in parts if part.model == model and part.seconds < own.part_least_s]
        if len(parts) > 1 and short:
            yield Problem(
                "warning",
                say_to_all(
                    "cast.short",
                    "{count} {count:part|parts} of {name} {count:is|are} shorter than {least}, and may come out as noise. Write those lines longer. "
                    "{advice}",
                    count=len(short),
                    name=name,
                    least=word_duration(own.part_least_s),
                    advice=say("owner.cast-short", "Or choose another model for them."),
                ),
            )
        if not (own.carries or own.ready or own.imitates) and len(own_names) > 1:
            yield Problem(
                "warning", say_to_all("cast.alike", "{name} has one voice: {names} sound alike.", name=name, names=tuple(own_names))
            )
