"""Views of the Speak tab: the script as it is typed, its parts as they are spoken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from app.base.duration import word_duration
from app.base.sentence import Sentence, say_to_all
from app.base.trouble import Trouble
from app.base.unknown_words import Unknown
from app.compat.planning.types import Plan
from app.engine.hearing.compare import Mark
from app.engine.hearing.heard import join_words
from app.engine.hearing.word_places import list_said
from app.engine.jobs.events import PartDone
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import Actor, Request, SpeechRequest
from app.engine.jobs.shelf import Search
from app.engine.keeper.delivery import format_ranges
from app.engine.kinds import KINDS
from app.engine.models.forecast import list_alike
from app.engine.models.model import Model
from app.engine.models.voice_limits import VoiceLimits, clip_key
from app.engine.speech.kind import as_script
from app.engine.speech.text import voices, written_out
from app.engine.speech.text.cast_script import parse_words
from app.engine.speech.text.cast_tags import NARRATOR, find_tags, list_names
from app.engine.speech.text.named_speakers import find_named, word_named
from app.engine.speech.text.pronunciations import Rows, find_said
from app.engine.speech.text.said_by import guess_speakers
from app.engine.speech.text.script import ParsedScript
from app.engine.speech.text.turns import ScriptPart
from app.engine.speech.text.unknown import find_in_script
from app.ui.page.translate import Language, join, translate
from app.ui.page.view_types.live import Level, ListeningView, PartsView, PartView, PlaceView, SoundView, SpeechView, TakeView
from app.ui.page.view_types.making import ActorView, DraftView, LineView, ProblemView, ScriptView, TagView, TurnView
from app.ui.page.views import count_units, end_view, has_cues, job_file_url, loading_text, read_peaks, remarks_view, unknown_view
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import redact_sentences
from app.ui.state.jobs_desk import Compared
from app.ui.state.listening import find_marks
from app.ui.state.person import Person

NUMBERED: Final = re.compile(r"S\d+")


def parts_view(job: str, progress: Progress, split: tuple[ScriptPart, ...], spoken: Language) -> PartsView:
    """Return the parts of a script, finished, running and waiting. `split`: the script as this voice splits it."""
    done = {part.index: part for part in progress.parts}
    step = progress.step
    total = max([len(split), *(part.total for part in progress.parts)])
    parts = []
    for index in range(total):
        known = split[index] if index < len(split) else None
        view: PartView = {
            "index": index,
            "text": known.text if known else "",
            "pause": known.pause_before_s if known else 0.0,
            "pace": known.pace if known else 1.0,
            "state": "waits",
        }
        if index in done:
            part = done[index]
            view |= {
                "state": "done",
                "text": part.text,
                "seconds": part.seconds,
                "whole": part.whole,
                "doubt": part.doubt,
                "url": job_file_url(job, part.path),
                "peaks": read_peaks(part.path),
                "marks": marks_view(part, spoken) if progress.end is not None else None,
            }
        elif step is not None and progress.end is None and step.part == index:
            sounds = [sound for sound in progress.sounds if sound.part == index]
            view |= {
                "state": "now",
                "pieces": [job_file_url(job, sound.path) for sound in sounds],
                "seconds": sum(sound.seconds for sound in sounds),
            }
        parts.append(view)
    return {
        "job": job,
        "parts": parts,
        "share": progress.share,
        "said": remarks_view(progress, spoken),
        "end": end_view(progress, spoken),
        "doing": loading_text(progress, spoken),
    }


def marks_view(part: PartDone, spoken: Language) -> list[PlaceView] | None:
    """Return what a recogniser found wrong in a part; None if it was not heard yet."""
    marks = find_marks(Path(part.path))
    if marks is None:
        return None
    words = list_said(part.text)
    return [{"place": each.first, "text": translate(word_mark(each, join_words(words[each.first : each.last])), spoken)} for each in marks]


def word_mark(mark: Mark, words: str) -> Sentence:
    match mark.kind:
        case "lost":
            return say_to_all("mark.lost", "Not heard: {words}", words=words)
        case "doubled":
            return say_to_all("mark.doubled", "Heard twice: {words}", words=words or mark.heard)
        case "added":
            return say_to_all("mark.added", "Heard besides: {heard}", heard=mark.heard)
        case "wrong":
            return say_to_all("mark.wrong", "In place of {words}, heard: {heard}", words=words, heard=mark.heard or "?")


def listening_view(desk: Desk, job: str, spoken: Language) -> ListeningView:
    """Return whether a script's parts are heard, or spoken again, how far that is, and what ended it."""
    task = desk.listening.tasks.get(job, "")
    progress = desk.keeper.get_progress(task) if task else None
    hears = progress is not None and progress.end is None
    state: Literal["mending", "hearing", ""] = "mending" if desk.listening.mending else "hearing" if hears else ""
    trouble = desk.listening.find_trouble(job) if not state else None
    return {
        "state": state,
        "share": progress.share if progress is not None and hears else 0.0,
        "trouble": join(spoken, trouble.sentence, *trouble.objections) if trouble is not None else "",
    }


def list_tags(found: ParsedScript, limits: VoiceLimits) -> list[str]:
    """List the tags to insert: those of the cast, else the model's own, and one more where all of them speak."""
    if not all(NUMBERED.fullmatch(each.name) for each in found.actors):
        return [f"[{each.name}]" for each in found.actors]
    spoken = {turn.speaker for part in found.parts for turn in part.turns}
    most = max(limits.speakers, len(found.actors))
    more = len(spoken) == most > 1
    return [f"[S{number}]" for number in range(1, most + 1 + more)]


def job_view(desk: Desk, job: str, spoken: Language) -> SpeechView:
    """Return a speech job with its place in the queue and its results, and the speed at which its parts are to sound."""
    request, progress = desk.keeper.journal.get(job).request, desk.keeper.get_progress(job)
    script_asked = as_script(request)
    results: list[SoundView] = [
        {
            "url": f"hearth/creation/{each.id}",
            "peaks": read_peaks(str(each.path)),
            "name": each.path.name,
            "id": each.id,
            "seconds": each.seconds,
            "subtitles": has_cues(str(each.path)),
            "words": desk.hearing.name_words(each).is_file(),
        }
        for each in (desk.keeper.shelf.list_of_job(job) if progress.end else ())
    ]
    parts = parts_view(job, progress, desk.jobs.split_script(job, request), spoken)
    if progress.end is not None:
        takes = takes_view(desk, job)
        for each in parts["parts"]:
            each["takes"] = takes.get(each["index"], [])
    return {
        **parts,
        "before": bool(desk.editing.find_before(job)),
        "pace": script_asked.speed if script_asked is not None else 1.0,
        "cast": desk.jobs.list_speakers(job, request),
        "place": desk.jobs.queue_position(job),
        "results": results,
        "listening": listening_view(desk, job, spoken),
        "book": {"chapter": left[0], "chapters": left[1], "left_s": left[2]} if (left := desk.jobs.estimate_left(job)) else {},
        "taken": translate(taken, spoken) if (taken := word_taken(request)) else "",
    }


def word_taken(request: Request) -> Sentence | None:
    """Say which parts of a script were taken over from an earlier one, if any were."""
    fresh = set(request.only_parts)
    kept = format_ranges(place + 1 for place, path in enumerate(request.keep) if path and place not in fresh)
    if not kept:
        return None
    if not fresh:
        return say_to_all("parts.all-taken", "All parts were taken over as they were: {kept}.", kept=kept)
    spoken = format_ranges(place + 1 for place in fresh)
    return say_to_all("parts.taken", "Spoken for this result: {spoken}. Taken over as they were: {kept}.", spoken=spoken, kept=kept)


def script_view(
    desk: Desk,
    text: str,
    model: str,
    person: Person,
    spoken: Language,
    *,
    speed: float = 1.0,
    cast: tuple[Actor, ...] = (),
    says: Rows = (),
) -> ScriptView:
    """Check a script as it is typed, for the model and the cast that will speak it, at this speed."""
    chosen, limits = desk.models.read_limits(model)
    rows = desk.jobs.choose_rows(text, says, person, cast)
    found_out = parse_words(text, chosen.id if chosen else model, cast, desk.jobs.find_limits, pronunciations=rows)
    said = find_said(text, rows, [each.name for each in cast])
    tags = [each[:2] for each in find_tags(text, [each.name for each in found_out.actors])] if found_out.actors else []
    unknown = [each for each in find_in_script(text, limits, tags) if not any(one.begin <= each.begin < one.end for one in said)]
    compared = desk.jobs.compare_script(text, person, cast, says)
    own = problems_view(found_out, person, spoken)
    about = say_to_all(
        "script.about",
        "{parts} {parts:part|parts}, about {time} of speech",
        parts=len(found_out.parts),
        time=word_duration(found_out.estimate_seconds(speed)),
    )
    return {
        "turns": turns_view(desk, found_out, limits),
        "problems": own + named_view(text, found_out.actors, limits, spoken),
        "level": "wrong" if found_out.fatal else ("careful" if any(each["kind"] == "careful" for each in own) else "right"),
        "about": translate(about, spoken) if found_out.parts else "",
        "eta_s": forecast_parts(desk, found_out.parts, chosen, limits, person),
        "nonverbals": sorted(limits.nonverbals),
        "tags": list_tags(found_out, limits),
        "transcript": limits.needs_transcript,
        "imitates": limits.imitates and (person.owner or limits.own_voices is None),  # a guest has no voice of its own to bring
        "settings": list_settings(desk, chosen.id if chosen else model, found_out.actors),
        "model": chosen.id if chosen else "",
        "cast": with_book(desk, cast_view(desk, text, found_out, limits, cast), chosen.id if chosen else model, cast, person),
        "changed": changed_text(desk, compared.wanted, person, spoken) if compared is not None and compared.wanted is not None else "",
        "draft": draft_view(compared) if compared is not None else None,
        "marks": unknown_view(text, unknown),
        "said": len(said),
    }


def list_settings(desk: Desk, model: str, actors: Sequence[Actor]) -> list[str]:
    """List what can be set of how this model speaks, or another one in the cast."""
    return sorted({name for id_ in {model, *(each.model or model for each in actors)} for name in desk.jobs.find_limits(id_).settings})


def problems_view(found: ParsedScript, person: Person, spoken: Language) -> list[ProblemView]:
    """Return what is wrong with a script, or doubtful."""
    worst: dict[str, Level] = {"fatal": "wrong", "warning": "careful"}
    return [
        {"kind": worst.get(each.severity, ""), "text": join(spoken, *redact_sentences(person, each.sentence)), "cure": each.cure}
        for each in found.problems
    ]


def turns_view(desk: Desk, found: ParsedScript, limits: VoiceLimits) -> list[TurnView]:
    """Return who says what, each with what its voice says in its place."""
    languages = {id_: (desk.jobs.find_limits(id_) if id_ else limits).figures for id_ in {part.model for part in found.parts}}
    return [
        {
            "speaker": turn.speaker,
            "name": turn.name or f"S{turn.speaker}",
            "text": turn.text,
            "said": written_out.find_said(turn.text, languages[part.model]),
        }
        for part in found.parts
        for turn in part.turns
    ]


def draft_view(compared: Compared) -> DraftView:
    """Return how the script as it stands in the field goes with the parts of the last one: the same; changed, with its lines in order, each with the
    part that says it or its words, which are still to be spoken; or another one."""
    if compared.wanted is None:
        return {"job": compared.spoken.job, "state": "same" if compared.same else "other", "lines": [], "fresh": 0}
    places = {part.path: part.index for part in compared.spoken.parts}
    lines: list[LineView] = [
        {"part": places[path], "pause": part.pause_before_s} if path else {"part": -1, "pause": part.pause_before_s, "text": part.text}
        for path, part in zip(compared.wanted.keep, compared.parsed.parts, strict=True)
    ]
    return {"job": compared.spoken.job, "state": "changed", "lines": lines, "fresh": len(compared.wanted.only_parts)}


def takes_view(desk: Desk, job: str) -> dict[int, list[TakeView]]:
    """Return the earlier takes of each part, the newest first."""
    return {
        place: [
            {"text": each.text, "seconds": each.seconds, "url": job_file_url(job, str(each.path)), "peaks": read_peaks(str(each.path))}
            for each in takes
        ]
        for place, takes in desk.editing.read_takes(job).parts.items()
    }


def cast_view(desk: Desk, text: str, parsed: ParsedScript, limits: VoiceLimits, cast: tuple[Actor, ...]) -> list[ActorView]:
    """Return who speaks, where more than one does or somebody has a name: each with the voice that comes by itself."""
    if not parsed.actors:
        names = list_names(text, [each.name for each in cast])
        signs = limits.usual or [""] * limits.speakers
        return [
            {"name": name, "speaker": int(name[1:]), "voice": name_sign(signs[int(name[1:]) - 1], limits)}
            for name in names
            if len(names) > 1
        ]
    signs = voices.name_cast(parsed.actors, desk.jobs.find_limits)
    return [
        {"name": each.name, "speaker": number, "voice": name_sign(sign, desk.jobs.find_limits(each.model))}
        for number, (each, sign) in enumerate(zip(parsed.actors, signs, strict=True), 1)
    ]


def with_book(desk: Desk, rows: list[ActorView], model: str, cast: tuple[Actor, ...], person: Person) -> list[ActorView]:
    """Add those to whom the owner's open book gives voices, and whom the script has not."""
    known, actors = {each["name"] for each in rows}, desk.book.list_cast(model, cast) if person.owner else ()
    signs = voices.name_cast(actors, desk.jobs.find_limits)
    more: list[ActorView] = [
        {"name": each.name, "speaker": number, "voice": name_sign(sign, desk.jobs.find_limits(each.model))}
        for number, (each, sign) in enumerate(zip(actors, signs, strict=True), len(rows) + 1)
        if each.name not in known
    ]
    return [*rows, *more]


def name_sign(sign: str, limits: VoiceLimits) -> str:
    """Return the name of a voice that a model knows by this sign."""
    if sign in limits.brought:
        return sign
    keys = {known: key for key, known in limits.ready.items()}
    return next((each.name for each in voices.list_ready_voices() if clip_key(each.prompt.path) == keys.get(sign)), "")


def forecast_parts(desk: Desk, parts: Sequence[ScriptPart], model: Model | None, limits: VoiceLimits, person: Person) -> float | None:
    """Forecast how long this machine speaks at these parts, each by its own model; None where one was never measured."""
    if not (parts and model and desk.keeper.state.hardware):
        return None
    total_s = 0.0
    for id_ in dict.fromkeys(part.model for part in parts):
        own, its = (model, limits) if id_ in ("", model.id) else desk.models.read_limits(id_)
        seconds = _forecast_own(desk, [part for part in parts if part.model == id_], own, its, person) if own is not None else None
        if seconds is None:
            return None
        total_s += seconds
    return total_s


def _forecast_own(desk: Desk, parts: Sequence[ScriptPart], model: Model, limits: VoiceLimits, person: Person) -> float | None:
    frames = round(sum(part.seconds * limits.frame_rate + limits.delay for part in parts))
    past = desk.keeper.shelf.find(Search(kind="speech", model=model.id, most=8))
    plan = _plan_next(desk, model, person)
    alike = list_alike(past, plan) if plan is not None else ()
    return KINDS["speech"].estimate_seconds(SpeechRequest(parts[0].text), model, alike, plan, frames)


def changed_text(desk: Desk, wanted: SpeechRequest, person: Person, spoken: Language) -> str:
    """Say what is left to speak if what the last script's parts say already is taken over."""
    if not wanted.only_parts:
        return translate(
            say_to_all("script.moved", "The script has changed, but all its parts are spoken already: they can be joined anew."), spoken
        )
    model, limits = desk.models.read_limits(wanted.model)
    parts = desk.jobs.parse(wanted).parts
    sentence = say_to_all(
        "script.changed",
        "Only {fresh} of {total} {total:part|parts} {fresh:needs|need} to be spoken; the others can stay as they are, with their voice and settings.",
        fresh=len(wanted.only_parts),
        total=len(wanted.keep),
    )
    seconds = forecast_parts(desk, [parts[place] for place in wanted.only_parts], model, limits, person)
    takes = [] if seconds is None else [say_to_all("script.changed-time", "That takes about {time}.", time=word_duration(seconds))]
    return join(spoken, sentence, *takes)


def _plan_next(desk: Desk, model: Model, person: Person) -> Plan | None:
    """Plan the next speech; None where there is no plan, which the job itself reports."""
    with suppress(Trouble):
        return desk.machine.plan_next(model.id, desk.machine.read_choice(person))
    return None


def named_view(text: str, actors: tuple[Actor, ...], limits: VoiceLimits, spoken: Language) -> list[ProblemView]:
    """Offer tags for speakers that a script names otherwise: as a play does, or as a story, which is a guess."""
    known = {each.name.casefold() for each in actors}
    if (found := find_named(text)) and not {each.name.casefold() for each in found} <= known:
        words = word_named(list(dict.fromkeys(each.name for each in found)), limits)
    elif not found and (found := guess_speakers(text)):
        names = tuple(dict.fromkeys(each.name for each in found if each.name != NARRATOR))
        words = [
            say_to_all(
                "script.said",
                "{names} {n:seems|seem} to speak here, by words such as: said {first}.",
                names=names,
                n=len(names),
                first=names[0],
            )
        ]
    else:
        return []
    places = unknown_view(text, [Unknown(each.begin, each.end) for each in found])
    length = count_units(text)
    tags: list[TagView] = [{**place, "name": each.name, "length": length} for place, each in zip(places, found, strict=True)]
    return [{"kind": "note", "text": join(spoken, *words), "cure": "voices", "tags": tags}]
