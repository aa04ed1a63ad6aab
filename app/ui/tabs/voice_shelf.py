"""The shelf of voices: those of each model and those that are kept, heard by a click; kept ones renamed, described, removed, sent and fetched as a file;
new ones that a model makes of seeds, named by how they sound, to be kept or not."""

from __future__ import annotations

import contextlib
import functools
import random
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import BadRequest
from app.engine.jobs.creation import Creation
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.jobs.shelf import Search
from app.engine.models.catalog import name_model
from app.engine.models.model_names import word_name
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.kind import as_script
from app.engine.speech.sound import sound
from app.engine.speech.sound.measured_voice import measure_pace, measure_pitch, word_voice
from app.engine.speech.text import voices
from app.engine.speech.text.voice_files import FILE_BYTES, SUFFIX, export_voice, import_voice
from app.engine.speech.text.voices import ABOUT_MOST, Voice
from app.ui.page.translate import Language, language, translate
from app.ui.page.view_types.making import (
    AuditionView,
    NamedModelView,
    ShelfGroupView,
    ShelfVoicesView,
    ShelfVoiceView,
    VoiceGroupView,
    VoicesView,
    VoiceView,
)
from app.ui.state.asked import Asked, Name, Word
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER, Person, who

HEARD: Final = frozenset({".wav", ".ogg"})
"""A clip's name ends so; a voice that lies with a model is no sound."""


class CastAsked(Asked):
    model: str = ""
    """This model speaks what names no other."""


class VoiceAsked(Asked):
    name: Name
    download: str | None = None


class VoiceActAsked(Asked):
    act: Word
    name: Name
    value: str = ""


def send_cast(desk: Desk, request: Request, asked: CastAsked) -> Response:
    """Send what may be chosen for a speaker."""
    return JSONResponse(VoicesView(models=list_groups(desk, asked.model, who(request), language(request))))


def send_voices(desk: Desk, request: Request) -> Response:
    spoken = language(request)
    groups = list_shelf(desk, None, who(request), spoken)
    able = [each["id"] for each in groups if can_audition(desk.jobs.find_limits(each["id"]))]
    return JSONResponse(ShelfVoicesView(models=groups, able=able, seeds=AUDITIONED, auditions=auditions_view(desk, spoken)))


def list_shelf(desk: Desk, model: str | None, person: Person, spoken: Language) -> list[ShelfGroupView]:
    """List the installed voice models as `list_groups` does, with how each voice sounds."""
    return [
        {**group, "voices": [shelf_view(desk.keeper.home, each, spoken) for each in desk.models.list_voices(group["id"], person)]}
        for group in _list_models(desk, model, person, spoken)
    ]


def list_groups(desk: Desk, model: str | None, person: Person, spoken: Language) -> list[VoiceGroupView]:
    """List the installed voice models with their voices, the one that is chosen first; a guest's has no other."""
    return [
        {**group, "voices": [voice_view(each) for each in desk.models.list_voices(group["id"], person)]}
        for group in _list_models(desk, model, person, spoken)
    ]


def _list_models(desk: Desk, model: str | None, person: Person, spoken: Language) -> list[NamedModelView]:
    own = desk.models.resolve("speech", model, person)
    chosen = found.id if (found := desk.models.read_limits(own)[0]) is not None else own
    ids = dict.fromkeys([chosen, *(id_ for _, id_ in desk.models.list_choices("speech"))] if person.owner else [chosen])
    return [{"id": id_, "title": str(translate(word_name(name_model(id_)), spoken)) if person.owner else ""} for id_ in ids if id_]


def voice_view(voice: Voice) -> VoiceView:
    return {"name": voice.name, "formerly": voice.formerly} if voice.formerly else {"name": voice.name}


def shelf_view(home: Home, voice: Voice, spoken: Language) -> ShelfVoiceView:
    clip, words = Path(voice.prompt.path), [translate(each, spoken) for each in describe(voice)]
    return {"name": voice.name, "kept": clip.parent == home.voices, "words": words, "about": voice.about, "heard": clip.suffix in HEARD}


def describe(voice: Voice) -> tuple[Sentence, ...]:
    """Say how a voice sounds; nothing where its file cannot be heard."""
    clip = Path(voice.prompt.path)
    try:
        return _measure(clip, clip.stat().st_mtime_ns, voice.prompt.transcript) if clip.suffix in HEARD else ()
    except (OSError, RuntimeError, ValueError):
        return ()


@functools.lru_cache(maxsize=256)
def _measure(clip: Path, _written_ns: int, transcript: str) -> tuple[Sentence, ...]:
    samples, rate = sound.read(clip, most_s=20.0)
    first, last = sound.find_spoken_span(samples, rate)
    return word_voice(measure_pitch(samples[first:last], rate), measure_pace(transcript, (last - first) / rate))


def send_voice(desk: Desk, request: Request, asked: VoiceAsked) -> Response:
    """Send a kept or ready voice's clip to be heard; a kept one as a file of its own."""
    if asked.download is None:
        offered = (*voices.list_voices(desk.keeper.home), *voices.list_ready_voices())
        found = next((each for each in offered if each.name == asked.name), None)
        return Response(status_code=404) if found is None else FileResponse(found.prompt.path, headers={"Cache-Control": "no-store"})
    folder = tempfile.TemporaryDirectory(prefix="hearth-")
    file = Path(folder.name, "voice.wav")
    export_voice(voices.find_kept(desk.keeper.home, asked.name), file)
    return FileResponse(file, filename=f"{asked.name}{SUFFIX}", media_type="audio/wav", background=BackgroundTask(folder.cleanup))


async def take_voice(desk: Desk, request: Request) -> Response:
    """Keep the voice of a file that a form brings."""
    async with request.form(max_files=1, max_fields=1) as form:
        given = form.get("file")
        if not isinstance(given, UploadFile):
            raise BadRequest(say("voice.none-came", "No file came with the request. Choose the voice again."))
        content = await given.read(FILE_BYTES + 1)
        return JSONResponse({"name": await run_in_threadpool(_import, desk, content, Path(given.filename or "").name)})


def _import(desk: Desk, content: bytes, name: str) -> str:
    with tempfile.TemporaryDirectory(prefix="hearth-") as folder:
        file = Path(folder, "voice.wav")
        file.write_bytes(content)
        return import_voice(desk.keeper.home, file, name).name


SAMPLES: Final = {
    "en": "Hello. This is how I sound when I read a story to you.", "de": "Hallo. So klinge ich, wenn ich dir eine Geschichte vorlese.",
    "es": "Hola. As\u00ed sueno cuando te leo una historia.", "fr": "Bonjour. Voil\u00e0 ma voix quand je vous lis une histoire.",
    "it": "Ciao. Questa \u00e8 la mia voce quando ti leggo una storia.", "pt": "Ol\u00e1. \u00c9 assim que soo quando te leio uma hist\u00f3ria.",
}  # fmt: skip


def speak_sample(desk: Desk, name: str, model: str) -> None:
    """Have a voice speak that lies with its model, and is no sound that could be heard."""
    voice = next((each for each in desk.models.list_voices(model, OWNER) if each.name == name), None)
    if voice is None:
        raise BadRequest(say("voice.unknown", "There is no saved voice named {name}.", name=name))
    spoken = desk.jobs.find_limits(model).languages
    desk.jobs.begin(SpeechRequest(SAMPLES.get(spoken[0] if spoken else "en", SAMPLES["en"]), model, voice.prompt, seed=1), OWNER)


AUDITION: Final = "[S1] Hello, and welcome. I tell of long winters and of warm kitchens, and I take my time with both. Now listen, for this is how I sound."
"""A new voice says this: it is long enough to be followed as a clip, and in Hearth's own words, so that it may be kept and sent."""
AUDITIONED: Final = 4
"""So many seeds are tried at once."""


def can_audition(limits: VoiceLimits) -> bool:
    """Tell whether each seed gives a model another voice, and it follows the clip of one that is kept."""
    return limits.imitates and not limits.ready and "en" in limits.languages


def audition(desk: Desk, model: str) -> None:
    """Have a model speak the same words with a few seeds, each of which is another voice."""
    chosen, limits = desk.models.read_limits(model)
    if chosen is None or not can_audition(limits):
        raise BadRequest(
            say("voice.no-audition", "{model} makes no new voices of seeds. Choose another model.", model=word_name(name_model(model)))
        )
    first = random.randrange(SEED_LIMIT - AUDITIONED)
    for seed in range(first, first + AUDITIONED):
        desk.jobs.begin(SpeechRequest(AUDITION, chosen.id, seed=seed), OWNER)


def list_auditions(desk: Desk) -> list[Creation]:
    """List the creations that are a new voice's words, oldest first; what is kept or not wanted lies in the bin."""
    found = desk.keeper.shelf.find(Search(words=" ".join(AUDITION.split()[-4:]), kind="speech"))
    scripts = [(each, as_script(each.request)) for each in found if each.whole]
    return [each for each, script in scripts if script is not None and script.text == AUDITION and script.voice is None][::-1]


def auditions_view(desk: Desk, spoken: Language) -> list[AuditionView]:
    """Return the new voices, each named by its pitch and pace, and by a number where that is taken."""
    taken = {each.name.casefold() for each in (*voices.list_voices(desk.keeper.home), *voices.list_ready_voices())}
    views = list[AuditionView]()
    for each in list_auditions(desk):
        bare = translate(say("voice.auditioned", "New voice"), spoken)
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            words = [translate(word, spoken) for word in _measure(each.path, each.path.stat().st_mtime_ns, AUDITION)]
            bare = f"{', '.join(words)[:1].upper()}{', '.join(words)[1:]}" or bare
        name = next(name for number in count(1) if (name := f"{bare} {number}" if number > 1 else bare).casefold() not in taken)
        taken.add(name.casefold())
        views.append({"id": each.id, "name": name, "of": translate(word_name(name_model(each.model)), spoken)})
    return views


def end_audition(desk: Desk, id_: str, name: str, keeps: bool) -> None:
    """Keep a new voice under a name, or not; its creation goes to the bin either way."""
    found = next((each for each in list_auditions(desk) if str(each.id) == id_), None)
    if found is None:
        raise BadRequest(say("voice.unknown", "There is no saved voice named {name}.", name=name))
    if keeps:
        desk.keep_voice(found.id, name)
    desk.keeper.shelf.delete(found.id)


ACTIONS: Final[dict[str, Callable[[Desk, str, str], None]]] = {
    "rename": lambda desk, name, value: voices.rename_voice(desk.keeper.home, name, value),
    "describe": lambda desk, name, value: voices.describe_voice(desk.keeper.home, name, value),
    "remove": lambda desk, name, _: voices.remove_voice(desk.keeper.home, name),
    "restore": lambda desk, name, _: voices.bring_back_voice(desk.keeper.home, name),
    "speak": lambda desk, name, model: speak_sample(desk, name, model),
    "audition": lambda desk, _, model: audition(desk, model),
    "keep": lambda desk, name, id_: end_audition(desk, id_, name, keeps=True),
    "discard": lambda desk, name, id_: end_audition(desk, id_, name, keeps=False),
}


def act_on_voice(desk: Desk, request: Request, asked: VoiceActAsked) -> Response:
    if asked.act not in ACTIONS:
        return Response(status_code=404)
    ACTIONS[asked.act](desk, asked.name, asked.value[: 2 * ABOUT_MOST])
    return JSONResponse({})
