"""Requests and events on their way between machines: whole where they are honest, refused where they are not."""

from __future__ import annotations

import dataclasses
import json
import queue
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from app.base.paths import home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.machine.meter import Reading
from app.engine.jobs.events import Adjusted, Event, Failed, Finished, Loading, Note, PartDone, Preview, Step, Stopped, Unloaded
from app.engine.jobs.request import Actor, Lora, PictureRequest, SpeechRequest, VoicePrompt
from app.engine.models.on_disk import find_limits
from app.engine.models.voice_limits import clip_key
from app.engine.speech.sound import sound
from app.engine.speech.text import voices
from app.machines import lent_tasks
from app.machines.lent_tasks import LentTasks
from app.machines.tasks.event_json import SENT, from_json, to_json
from app.machines.tasks.portable import note_speaker, pack, unpack
from tests.support.waiting import WAIT_S

WORDS = say("test.words", "{name} waits for {inner}.", name="x", inner=say("test.inner", "{count} {count:other|others}", count=3))
EVENTS: list[Event] = [
    Loading("m", WORDS), Unloaded("m", WORDS, 5), Step(1, 2, 0.5, "steps", None, Reading(process_bytes=7)), Adjusted("f", WORDS, "l"), Note(WORDS),
    Finished((), 1.0, 2.0, "steps", 3), Stopped((), 1.0), Failed(WORDS, (WORDS,), "cure"),
]  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in ("a.PNG", "b", "c.safetensors", "d.wav")]
    for each in made:
        each.write_bytes(each.name.encode())
    return made


def test_a_request_comes_back_with_its_files(files: list[Path], tmp_path: Path) -> None:
    image, mask, lora, voice = map(str, files)
    for request in (
        PictureRequest("p", model="starter-painter", image=image, mask=mask, loras=(Lora(lora, 0.5), Lora(image)), seed=3),
        SpeechRequest("s", model="starter-voice", voice=VoicePrompt(voice, "words"), keep=(voice,)),
        SpeechRequest("s", model="m", cast=(Actor("Anna", VoicePrompt(voice, "words")), Actor("Ben", None, "m", pace=1.1))),
    ):
        packed = pack(request)
        assert not any(str(tmp_path) in text or "a.PNG" in text for text in (packed.body,)), "it names a path of this machine"
        places = {f"{sha256}{path.suffix.lower()}": path for sha256, path in packed.files.items()}
        assert unpack(packed.body, lambda sha256, suffix, places=places: places[sha256 + suffix], str) == request  # type: ignore[misc]
        assert {sha256: path.stat().st_size for sha256, path in packed.files.items()} == json.loads(packed.body)["files"]
    with pytest.raises(OSError):
        pack(PictureRequest("p", image=str(tmp_path / "gone.png")))


def test_the_voices_of_a_cast_are_known_elsewhere_too(tmp_path: Path) -> None:
    first, mine = voices.list_ready_voices()[0].prompt, tmp_path / "voices" / "mine.wav"
    sound.write(mine, np.zeros(44100, np.float32), 44100)
    voices.note_speaker(mine, "[S1] hello.", "starter-voice", ("voice/voices/daisy.ogg",))
    cast = (Actor("Anna", first), Actor("Ben"), Actor("Carl", VoicePrompt(str(mine), "[S1] hello."), "here"))
    request = SpeechRequest("[Anna] Hi. [Ben] Ho. [Carl] Ha.", model="here", cast=cast)
    assert not request.stays_here and SpeechRequest("s", model="other", cast=cast).stays_here, "several models"
    packed = pack(request.with_model("there"))
    files = tmp_path / "files"
    files.mkdir()
    found = unpack(
        packed.body,
        lambda sha256, suffix: Path(shutil.copy(packed.files[sha256], files / f"{sha256}{suffix}")),
        {"there": "mine"}.__getitem__,
    )
    note_speaker(packed.body, found, files)
    assert isinstance(found, SpeechRequest) and found.model == found.cast[2].model == "mine" and not found.cast[0].model
    assert [voices.find_known(Path(each.path)) for each in found.prompts] == [(clip_key(first.path),), ("voice/voices/daisy.ogg",)]


@pytest.mark.parametrize("path", ["/etc/passwd", "sha256:../x"])
def test_a_cast_names_no_file_of_the_helper(path: str) -> None:
    body = json.loads(pack(SpeechRequest("s", model="m", cast=(Actor("Anna"),))).body)
    body["request"]["cast"][0]["voice"] = {"path": path, "transcript": ""}
    with pytest.raises(Trouble, match="asked for a file of this one"):
        unpack(json.dumps(body), lambda sha256, suffix: Path(sha256), str)


@pytest.mark.parametrize("spoken_by", ["starter-voice", "", None])
def test_who_spoke_a_voice_travels_with_it(spoken_by: str | None, tmp_path: Path) -> None:
    """Its model follows only clips that it spoke itself, and the note of that lies beside the clip."""
    clip = tmp_path / "voices" / "mine.wav"
    sound.write(clip, np.zeros(44100, np.float32), 44100)
    known = ("voice/voices/daisy.ogg", "voice/voices/brian.ogg")
    note = {"name": "Mine", "transcript": "[S1] hello.", "spoken_by": spoken_by, "known": known}
    clip.with_suffix(".json").write_text(json.dumps(note))
    packed = pack(SpeechRequest("s", model="starter-voice", voice=VoicePrompt(str(clip), "[S1] hello.")))
    files = tmp_path / "files"
    files.mkdir()

    def place(sha256: str, suffix: str) -> Path:
        return Path(shutil.copy(packed.files[sha256], files / f"{sha256}{suffix}"))

    request = unpack(packed.body, place, str)
    note_speaker(packed.body, request, files)
    assert isinstance(request, SpeechRequest) and request.voice is not None
    assert voices.find_speaker(Path(request.voice.path)) == spoken_by == voices.find_speaker(clip)
    assert voices.find_known(Path(request.voice.path)) == known == voices.find_known(clip)
    wrong: tuple[dict[str, Any], ...] = ({"spoken_by": {}}, {"known": [1]}, {"known": None})
    for odd in wrong:
        with pytest.raises(TypeError):
            note_speaker(json.dumps({**json.loads(packed.body), **odd}), request, files)
    note_speaker(packed.body, replace(request, voice=VoicePrompt(str(clip), "other")), files)
    assert "Mine" in clip.with_suffix(".json").read_text(), "it wrote where no clip came"


@pytest.mark.parametrize("kind", ["ready", "saved"])
def test_a_helper_can_follow_a_voice_that_its_model_spoke(kind: str, tmp_path: Path) -> None:
    """The starter voice refuses all others (voice.not-own)."""
    prompt = voices.list_ready_voices()[0].prompt
    if kind == "saved":
        clip = tmp_path / "mine.ogg"
        clip.write_bytes(Path(prompt.path).read_bytes() + b" ")
        clip.with_suffix(".json").write_bytes(Path(prompt.path).with_suffix(".json").read_bytes())
        prompt = VoicePrompt(str(clip), prompt.transcript)
    packed = pack(SpeechRequest("s", model="starter-voice", voice=prompt))
    helper, given = home(tmp_path / "helper").create(), queue.SimpleQueue[Any]()
    keeper = SimpleNamespace(
        home=helper,
        folder=lambda job: tmp_path / job,
        run_lent=lambda task, request: given.put(request) or task,
        follow=lambda job: iter([Stopped((), 1.0)]),
    )
    tasks = LentTasks(keeper, str)  # type: ignore[arg-type]
    for sha256, file in packed.files.items():
        lent_tasks._fetched(helper).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, lent_tasks._fetched(helper) / sha256)
    tasks.begin("t", packed.body, lambda *_, **__: None)
    voice = given.get(timeout=WAIT_S).voice
    assert voices.parse_transcript(voice, find_limits(helper, "starter-voice"))
    assert (voice.path == voices.list_ready_voices()[0].prompt.path) == (kind == "ready"), "a ready voice is known by where it lies"


@pytest.mark.parametrize("change", [
    {"image": "/etc/passwd"}, {"image": "sha256:../x"}, {"image": f"sha256:{'0' * 64}/../x"}, {"loras": [{"path": "~/x", "weight": 1.0}]},
    {"kind": "speech"}, {"unknown": 1}, {"width": 10_000},
], ids=str)  # fmt: skip
def test_a_task_names_no_file_of_the_helper(change: dict[str, object]) -> None:
    body = json.loads(pack(PictureRequest("p", model="starter-painter")).body)
    body["request"].update(change)
    with pytest.raises(Trouble):
        unpack(json.dumps(body), lambda sha256, suffix: Path(sha256), str)


WORDS_ONLY = {
    ("speech", "text"), ("speech", "voice", "transcript"), ("speech", "cast", 0, "name"), ("speech", "cast", 0, "voice", "transcript"),
    ("speech", "pronunciations", 0, 0), ("speech", "pronunciations", 0, 1), ("picture", "prompt"), ("picture", "negative"),
    ("picture", "scheduler"), ("picture", "loras", 0, "word"),
}  # fmt: skip
"""These texts of a request are read or looked up in a table: the engine opens nothing by them."""


def list_texts(of: type, at: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Yield where a request can hold a text, by the types of its fields."""
    hints = get_type_hints(of)
    for each in dataclasses.fields(of):
        yield from _find_texts(hints[each.name], (*at, each.name))


def _find_texts(hint: Any, at: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if hint is str or get_origin(hint) is Literal:
        yield at
    elif dataclasses.is_dataclass(hint):
        yield from list_texts(hint, at)  # type: ignore[arg-type]
    elif get_origin(hint) is tuple:
        for index, each in enumerate(each for each in get_args(hint) if each is not ...):
            yield from _find_texts(each, (*at, index))
    else:
        for each in get_args(hint):
            yield from _find_texts(each, at)


def test_no_text_of_a_request_leads_to_a_file_of_the_helper(files: list[Path]) -> None:
    """A field that is added has to be given by hash, refused, or stand among the words."""
    clip = VoicePrompt(str(files[3]), "words")
    speech = SpeechRequest("s", "m", clip, keep=(clip.path,), cast=(Actor("Anna", clip, "m"),), pronunciations=(("a", "b"),))
    picture = PictureRequest("p", "m", loras=(Lora(str(files[2]), word="w"),))

    def find_model(name: str) -> str:
        if name != "m":
            raise Trouble(WORDS)
        return name

    def is_let_through(at: tuple[str | int, ...]) -> bool:
        body = json.loads(pack(speech if at[0] == "speech" else picture).body)
        inner: Any = body["request"]
        for key in at[1:-1]:
            inner = inner[key]
        inner[at[-1]] = "/home/victim/private.safetensors" if at[-1] != "name" else "/home/victim/private"
        try:
            unpack(json.dumps(body), lambda sha256, suffix: Path(sha256), find_model)
        except Trouble:
            return False
        return True

    places = {*list_texts(SpeechRequest, ("speech",)), *list_texts(PictureRequest, ("picture",))}
    assert len(places) > 25 and {("picture", "enlarger"), ("speech", "cast", 0, "voice", "path")} < places
    assert {at for at in places if is_let_through(at)} == WORDS_ONLY


def test_an_enlarger_that_every_hearth_has_travels_and_one_that_is_not_used_stays() -> None:
    for enlarger, expected in (("starter", "starter"), ("/home/me/mine.safetensors", "starter")):
        request = PictureRequest("p", "m", enlarger=enlarger, control="/home/me/c", adapter="/home/me/a")
        packed = pack(request)
        found = unpack(packed.body, lambda sha256, suffix: Path(sha256), str)
        assert not request.stays_here and "/home/me" not in packed.body
        assert isinstance(found, PictureRequest) and (found.enlarger, found.control, found.adapter) == (expected, "", "")


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    assert from_json(json.loads(json.dumps(to_json(event)))) == event


def test_every_event_is_sent_or_left_out_on_purpose() -> None:
    assert {type(each).__name__ for each in EVENTS} == set(SENT)
    assert to_json(Preview(1, "/p")) is None and to_json(PartDone(0, 1, "/p", "", 1)) is None
    told = to_json(Finished(("/secret/path.png",), 1.0, 2.0, "steps", 3))
    assert told is not None and "secret" not in json.dumps(told)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), -1, 1e300, 2**1100, 0])
def test_a_number_that_cannot_be_is_no_event(number: float) -> None:
    """A speed of NaN, or 0 parts, kept the owner's page from being drawn for as long as the machine that sent it had a task."""
    divisors = ("total", "parts", "at_once")
    for event in EVENTS:
        told = to_json(event) or {}
        assert from_json(told) == event
        numbers = [name for name, value in told.items() if isinstance(value, int | float)] + ["eta_s", "realtime"] * isinstance(event, Step)
        assert numbers or not isinstance(event, Step | Finished | Stopped | Unloaded)
        for name in numbers:
            assert (from_json({**told, name: number}) is None) is (bool(number) or name in divisors), name
        if isinstance(event, Step):
            assert from_json({**told, "memory": {**told["memory"], "free_bytes": number}}) is None or number == 0
            assert from_json({**told, "ran": {"path": "x", "rows": number, "queries": 1}}) is None or number == 0
    bad = dict(to_json(Note(say("test.words", "{name}", name=number))) or {})
    assert (from_json(bad) is None) is not (-(2**53) <= number <= 2**53)


@pytest.mark.parametrize("template", ["{name.__class__}", "{name:999999999}", "{name!r}", "{other}", "{0}", "{", "{name[0]}", "x" * 3000])
def test_a_template_that_does_more_than_name_its_values_is_refused(template: str) -> None:
    told = to_json(Note(WORDS))
    assert told is not None and from_json(told) is not None
    for place in (("sentence",), ("sentence", "values", 1, 1)):
        bad = json.loads(json.dumps(told))
        inner = bad
        for key in place:
            inner = inner[key]
        inner["english"] = template
        assert from_json(bad) is None, place


def test_a_sentence_cannot_break_another_language() -> None:
    told = from_json(to_json(Note(Sentence("lend.ready", "late {s}", (("s", "x"),)))))
    assert isinstance(told, Note)
    for template in ("{name}", "{s:.1f}", "{s:d}"):
        assert told.sentence.translate({"lend.ready": template}) == "late x"


def test_what_is_no_event_is_none() -> None:
    nested: object = "x"
    for _ in range(100):
        nested = [nested]
    step = to_json(EVENTS[2])
    finished = {**dataclasses.asdict(EVENTS[5]), "event": "Finished", "files": ["/etc"]}
    odd_ones: tuple[Any, ...] = (
        None, 3, [], {}, {"event": "Preview"}, {"event": "Step"}, {"event": "Note", "sentence": nested}, {**(step or {}), "done": "many"},
        {**(step or {}), "extra": [0] * 5000}, {"event": ["Step"]}, finished,
    )  # fmt: skip
    for odd in odd_ones:
        assert from_json(odd) is None, odd
