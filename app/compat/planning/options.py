"""Decide one field of a plan: options in order of preference, objections, and the choice. Knows no field by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.base.sentence import Sentence, Value, say
from app.base.trouble import Impossible
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject, Verdict, Verdicts
from app.compat.planning.fallbacks import Learned
from app.compat.planning.plan_words import FIELDS, word_option
from app.compat.planning.quirk import Quirk
from app.compat.planning.types import Choice, Chunk, Dtype, Need, Reason, Rejected

MEASURED_HERE = "measured here"
LEARNED_HERE = "an earlier run on this machine"


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that a decision may use."""

    hardware: Hardware
    need: Need
    choice: Choice
    chunk: Chunk
    """The user asked for this chunk size."""
    verdicts: Verdicts
    quirks: tuple[Quirk, ...]
    """These apply on this machine, each with only the conditions that hold here."""
    retired: tuple[Quirk, ...]
    learned: tuple[Learned, ...] = ()
    """Hearth learned this from this model's failed runs here."""


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    why: Sentence
    """This is the reason to give if the option is taken because nothing better was possible."""
    source: str = "Hearth's rule"


Objections = Mapping[str, Sequence[Reason]]


@dataclass(frozen=True, slots=True)
class FieldDecision:
    option: str
    because: Reason
    rejected: tuple[Rejected, ...] = ()
    warnings: tuple[Reason, ...] = ()
    taken: tuple[str, ...] = ()
    """These options were taken: one, or as many as are right where they are taken together."""


def find_objections(situation: Situation, field: str, option: str, dtype: Dtype | None, more: Sequence[Reason] = ()) -> list[Reason]:
    """Collect all objections, not just the first: from quirks, measurements and rules."""
    name = f"{field}/{option}"
    found = [
        Reason(field, quirk.sentence, quirk.source, fatal=quirk.fatal)
        for quirk in situation.quirks
        if name in quirk.against and quirk.concerns(situation.need, dtype)
    ]
    verdict = situation.verdicts.get(Subject.path(name, dtype or option))
    if verdict is not None and not verdict.passed:
        found.append(Reason(field, failed_sentence(word_option(field, option), verdict), MEASURED_HERE, fatal=True))
    broke = [Reason(field, each.sentence, LEARNED_HERE, overrules=True) for each in situation.learned if name in each.fallback.against]
    return [*broke, *found, *more]


def failed_sentence(option: Value, verdict: Verdict) -> Sentence:
    words = verdict.words or f"{verdict.error:.2g}"
    return say("plan.failed", "{option} failed the self-test on this machine: {words}", option=option, words=words)


def percent_of_time(pace: Verdict | None) -> int:
    """Return how much of the plain way's time a way takes; as much as that where it was never timed, or could not be."""
    return round(100 * pace.error) if pace is not None and math.isfinite(pace.error) else 100


def object_to_pace(field: str, pace: Verdict, slower: Sentence) -> Reason:
    """Say that a way is not quick enough, or that it raised, hung or died while it was timed."""
    untimed = say("plan.untimed", "Its speed could not be measured on this machine: {words}", words=pace.words)
    return Reason(field, slower if math.isfinite(pace.error) else untimed, MEASURED_HERE)


def decide_field(
    situation: Situation,
    field: str,
    options: Sequence[Option],
    dtype: Dtype | None,
    more: Objections | None = None,
    *,
    forced: str | tuple[str, ...] | None = None,
    frugal: bool = False,
    falls_back: bool = False,
    together: Option | None = None,
) -> FieldDecision:
    """Choose the first option without objections. Otherwise warn, and choose one that is correct and failed no run: the
    first, or the last if the order is one of memory (`frugal`). The reason is the objection to the first option, or
    with `falls_back` the objection to the option just before. `together`: take all options without objections; its reason
    is given if there are none, and its name if none is taken."""
    against = {each.name: find_objections(situation, field, each.name, dtype, (more or {}).get(each.name, ())) for each in options}

    def name(chosen: tuple[str, ...]) -> str:
        return ", ".join(chosen) or (together.name if together else "")

    def word(chosen: tuple[str, ...]) -> Value:
        return chosen if together and chosen else word_option(field, name(chosen))

    asked = (forced,) if isinstance(forced, str) else forced
    broke = next((each for option in asked or () for each in against.get(option, ()) if each.overrules), None)
    if asked is not None and broke is None:
        for option in asked:
            refuse(situation, field, option, against.get(option, ()))
        taken, because = asked, Reason(field, say("plan.yours", "You asked for {option}.", option=word(asked)), "your choice", name(asked))
    elif together is not None:
        taken = tuple(option for option in against if not against[option])
        because = next((each for found in against.values() for each in found), Reason(field, together.why, together.source))
    else:
        best = _choose(options, against, frugal)
        taken, because = (
            (best.name,),
            _because(situation, field, best, options=options, against=against, dtype=dtype, falls_back=falls_back),
        )
    if asked is not None and broke is not None and taken != asked:
        because = Reason(field, overruled_sentence(word(asked), broke.sentence), broke.source, name(asked))
    rejected = [
        Rejected(field, option, tuple(found) or (second_choice(field, word(taken)),))
        for option, found in against.items()
        if option not in taken
    ]
    warnings = (each for option in taken for each in against.get(option, ()))
    return FieldDecision(name(taken), because, tuple(rejected), tuple(warnings), taken)


def _choose(options: Sequence[Option], against: Objections, frugal: bool) -> Option:
    free = [each for each in options if not against[each.name]]
    right = [each for each in options if not any(objection.fatal for objection in against[each.name])]
    whole = [each for each in right if not any(objection.overrules for objection in against[each.name])]
    return free[0] if free else (whole or right or options)[-1 if frugal or not right else 0]


def refuse(situation: Situation, field: str, forced: str, against: Iterable[Reason]) -> None:
    """Raise Trouble for a forced choice that cannot work, with every objection and the way out."""
    if any(each.fatal for each in against):
        sentence = say(
            "plan.refused",
            'The setting "{field}: {option}" cannot work on {machine}. Set it to automatic.',
            field=FIELDS[field],
            option=word_option(field, forced),
            machine=situation.hardware.name,
        )
        raise Impossible(sentence, *(each.sentence for each in against), cure="automatic", field=field)


def overruled_sentence(chosen: Value, why: Sentence) -> Sentence:
    return say("plan.overruled", "You asked for {option}, but it is not used here. {why}", option=chosen, why=why)


def second_choice(field: str, taken: Value) -> Reason:
    sentence = say("plan.second", '"{taken}" is preferred and works here.', taken=taken)
    return Reason(field, sentence)


def _because(
    situation: Situation,
    field: str,
    taken: Option,
    *,
    options: Sequence[Option],
    against: Objections,
    dtype: Dtype | None,
    falls_back: bool,
) -> Reason:
    for quirk in situation.retired:
        if f"{field}/{taken.name}" in quirk.against and quirk.concerns(situation.need, dtype):
            return Reason(field, retired_sentence(quirk), MEASURED_HERE)
    better = options[: options.index(taken)]
    others = [each for each in options if each is not taken] if against[taken.name] else better
    broke = next((each for option in reversed(others) for each in against[option.name] if each.source == LEARNED_HERE), None)
    if broke is not None:
        return broke
    if against[taken.name]:
        least = say("plan.least", 'Every option has a drawback here; "{option}" has the smallest.', option=word_option(field, taken.name))
        return Reason(field, least)
    if better:
        passed = better[-1 if falls_back and against[better[-1].name] else 0]
        return min(against[passed.name], key=lambda each: not each.fatal)
    return Reason(field, taken.why, taken.source)


def retired_sentence(quirk: Quirk) -> Sentence:
    return say("plan.retired", "{row} is known to fail on machines like this one, but passed this machine's self-test.", row=quirk.id)
