"""What a failure says to whom, by every way in: the owner all of it, a guest what they can change, nothing of the owner's machine."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from starlette.requests import Request
from starlette.types import Message

from app.base.sentence import say, say_to_all
from app.base.trouble import Trouble
from app.compat.planning.plan_words import FIELDS
from app.compat.planning.types import Choice
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.events import Failed
from app.engine.jobs.owners import Allowance, household_of, new_guest
from app.engine.jobs.request import Lora, PictureRequest, SpeechRequest, VoicePrompt
from app.engine.models.catalog import BY_ID
from app.engine.speech.text import voices
from app.ui.api import gradio_endpoints, openai, shared
from app.ui.live_view import guest_view
from app.ui.page.translate import translate
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import NOT_MADE, QUEUE_MOST, grant_request, redact_sentences
from app.ui.state.jobs_desk import JobsDesk
from app.ui.state.person import KEY, OWNER, Person
from app.ui.tabs import paint_form, shared_controls
from tests.support.combinations import combine
from tests.support.guests import desk_at, page_of
from tests.support.sentences import find_english, heard_by_guests
from tests.support.speech_fixtures import write_clip
from tests.support.waiting import until
from training.pictures.captions import grammar

ADA = Person("visitor-ada", owner=False)
REQUEST = SpeechRequest("[S1] Hello.")
MACHINES = say(
    "plan.refused",
    'The setting "{field}: {option}" cannot work on {machine}. Set it to automatic.',
    field=FIELDS["chunk_q"],
    option="65536",
    machine="Apple M1",
)
FOLDER = say(
    "job.not-delivered", "The finished parts could not be joined ({fault}). You can find them in {folder}.", fault="x", folder="/home/owner"
)
WORDS = say_to_all("script.speakers", "There are only two speakers, and the script uses {tags}.", tags="[S3]")
MISSING = say_to_all("job.missing", "Finished: {done} of {total}. Missing: {missing}.", done=1, total=2, missing="2")


def by_gradios_client(desk: Desk, person: Person) -> None:
    asyncio.run(collect(desk, lambda: REQUEST, person))


async def collect(desk: Desk, make_request: Callable[[], SpeechRequest], person: Person) -> list[dict[str, Any]]:
    gradio = SimpleNamespace(state_holder=SimpleNamespace(session_data={}, time_last_used={}))
    asked: Any = SimpleNamespace(request=SimpleNamespace(scope={KEY: person}, app=gradio), session_hash="")
    return [event async for event in gradio_endpoints.run(desk, make_request, asked)]


def by_a_program(desk: Desk, person: Person) -> None:
    asyncio.run(shared.run_job(desk, patient(), REQUEST, person))


def streamed(desk: Desk, person: Person) -> None:
    asyncio.run(openai.stream_speech(desk, patient(), REQUEST, person, "wav", events=False))


def patient() -> Request:
    """A client that listens for as long as it takes."""

    async def receive() -> Message:
        return await asyncio.Future[Message]()

    return Request({"type": "http"}, receive)


TOLD = {
    "the machine": ((MACHINES, FOLDER), (NOT_MADE,)),
    "the machine, and some of it made": ((MACHINES, MISSING), (NOT_MADE, MISSING)),
    "the script": ((WORDS,), (WORDS,)),
    "the script, and a folder": ((WORDS, FOLDER), (WORDS,)),
}
"""What a job ends with, and what a guest hears of it."""


@pytest.mark.parametrize(("way", "told_of"), combine((by_gradios_client, by_a_program, streamed), TOLD))
def test_every_way_in(way: Callable[[Desk, Person], None], told_of: str, tmp_path: Path) -> None:
    sentences, heard = TOLD[told_of]
    with desk_at(tmp_path) as desk:
        for person, said in ((OWNER, sentences), (ADA, heard)):
            told = threading.Thread(target=fails, args=(desk, person, Failed(sentences[0], sentences[1:], "machine")))
            told.start()
            with pytest.raises((Trouble, gr.Error)) as caught:
                way(desk, person)
            told.join()
            words = caught.value.message if isinstance(caught.value, gr.Error) else str(caught.value)
            assert words == " ".join(map(str, said))
        page = guest_view(desk, ADA, "en")["speech"]["end"]
        assert page is not None and page["kind"] == "failed" and (page["text"], page["cure"]) == (" ".join(map(str, heard)), "")


def fails(desk: Desk, person: Person, end: Failed) -> None:
    """The next job of this person, once somebody listens."""
    until(lambda: any(job.owner == person.name for job in desk.keeper.journal.list_waiting()))
    (job,) = [job for job in desk.keeper.journal.list_waiting() if job.owner == person.name]
    until(lambda: job.id in desk.keeper.board.watchers)
    desk.keeper.journal.take()
    desk.keeper.journal.end(job.id, "failed")
    desk.keeper.board.post(job.id, end)


def test_what_cannot_even_begin_is_told_in_the_same_way(tmp_path: Path) -> None:
    def refused() -> SpeechRequest:
        raise Trouble(FOLDER)

    with desk_at(tmp_path) as desk:
        for person, said in ((OWNER, FOLDER), (ADA, NOT_MADE)):
            with pytest.raises(gr.Error) as caught:
                asyncio.run(collect(desk, refused, person))
            assert caught.value.message == str(said)


ADVICE = re.compile(
    r"(another|choose the) model|close other programs|free memory|update Hearth|(Models|Machine) tab|Stable Diffusion|\bSD 1\.5|\bDia (can|knows)"
    r"|use Dia|LoRAs? .*yourself|install|settings of this machine",
    re.IGNORECASE,
)
"""Only the owner can do these."""


def test_advice_for_the_owner_stands_in_sentences_of_its_own() -> None:
    """So that it can be left out. Whatever else a guest may hear gives none."""
    heard = {key: find_english()[key] for key in (*heard_by_guests(), "prompt.no-words")}
    assert len(heard) > 80
    own = "help.phone.install"  # a guest's phone is the guest's
    assert not {key: english for key, english in heard.items() if ADVICE.search(english) and key != own}


def test_guests_are_spared_the_advice_however_deep_it_stands() -> None:
    advice = say("owner.more-room", "Choose another model or close other programs.")
    inner = say_to_all("smaller.shortest", "The parts of this script cannot get any shorter. {advice}", advice=advice)
    outer = say_to_all("script.about", "{what} It ends here.", what=inner)
    assert [str(each) for each in redact_sentences(OWNER, inner, advice)] == [str(inner), str(advice)]
    (short, long) = redact_sentences(ADA, inner, advice, outer)
    assert str(short) == "The parts of this script cannot get any shorter."
    assert str(long) == "The parts of this script cannot get any shorter. It ends here."
    assert translate(short, "zh") == "台词的各段不能再短了。"
    assert translate(inner, "zh") == "台词的各段不能再短了。请换一个模型，或关闭其他程序。"


@pytest.mark.parametrize(
    ("kind", "typed", "left_out"),
    [
        ("picture", "a zeppelin of quartz", "Stable Diffusion 1.5"),
        ("speech", "[S1] Hello there, all of you. (laughs) Well, well.", "Dia can"),
    ],
)
def test_a_check_gives_a_guest_no_advice_for_the_owner(kind: str, typed: str, left_out: str, tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        for person in (OWNER, ADA):
            with page_of(desk, person) as client:
                answer = client.post("/hearth/check", json={"kind": kind, "text": typed}).json()
            said = " ".join(each["text"] for each in answer["problems"])
            assert said and (left_out in said) == person.owner and not said.endswith(" ")


def test_a_check_reads_what_is_unwanted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a card that reads scenes; any other model leaves both prompts alone."""
    (tmp_path / "starter.json").write_text(json.dumps({"grammar": grammar(), "examples": ["a cat"]}), "utf-8")
    starter = dataclasses.replace(BY_ID["starter-painter"], path=str(tmp_path))
    chosen = [starter, BY_ID["sd15"]]
    monkeypatch.setattr(paint_form, "find_model", lambda *_: chosen.pop(0))
    with desk_at(tmp_path) as desk, page_of(desk, OWNER) as client:
        asked = {"kind": "picture", "text": "a puppy and a zeppelin, a kitten", "negative": "cats"}
        answer = client.post("/hearth/check", json=asked).json()
        (said,) = answer["problems"]
        assert said["text"].startswith("Painting: a dog and a balloon. Changed or left out: zeppelin.") and said["captions"] == [
            "a dog and a balloon"
        ]
        assert answer["marks"] == [{"begin": 14, "end": 22, "near": ["balloon"]}]
        assert client.post("/hearth/check", json=asked).json() == {"problems": [], "marks": []}


def refused(*_: object, **__: object) -> None:
    raise Trouble(FOLDER, cure="machine")


@pytest.mark.parametrize("way", [by_a_program, streamed])
def test_what_the_queue_refuses_is_told_in_the_same_way(
    way: Callable[[Desk, Person], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with desk_at(tmp_path) as desk:
        monkeypatch.setattr(JobsDesk, "begin", refused)
        for person, said in ((OWNER, FOLDER), (ADA, NOT_MADE)):
            with pytest.raises(Trouble) as caught:
                way(desk, person)
            assert str(caught.value) == str(said)


def test_who_has_no_job_may_queue_one_when_the_common_places_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def queue(household: str) -> str:
        try:
            desk.jobs.begin(REQUEST, Person(new_guest(household), owner=False))
        except Trouble as trouble:
            return trouble.sentence.key
        return ""

    with desk_at(tmp_path) as desk:
        monkeypatch.setattr(JobsDesk, "_grant", lambda self, request, person: self.check_turn(person) or request)
        assert {queue(household) for household in "abcd" for _ in range(2)} == {""}
        assert [queue("e"), queue("e"), queue("a")] == ["", "guest.full", "guest.waiting"]
        order = [household_of(job.owner).removeprefix("visitor-") for job in desk.keeper.journal.list_waiting()]
        assert order == [*"abcde", *"abcd"], "the late one has a turn before any second job"
        told = [queue(f"other{n}") for n in range(QUEUE_MOST)]
        assert told == [""] * (QUEUE_MOST - 9) + ["guest.full"] * 9, "but not without end"


def test_the_pages_own_buttons_tell_in_the_same_way() -> None:
    for person, said, cure in ((OWNER, FOLDER, "machine"), (ADA, NOT_MADE, "")):
        asked: Any = SimpleNamespace(request=SimpleNamespace(scope={KEY: person}), cookies={}, headers={})
        shown = shared_controls.run_or_explain(refused, asked)
        assert str(said) in shown and f'data-cure="{cure}"' in shown


def test_asked_for_with_less_nothing_of_the_owners_is_sent(tmp_path: Path) -> None:
    """The page shows what is less. It had the whole request, with the folder of the owner's model."""
    gone = str(tmp_path / "olivia" / "mine")
    with desk_at(tmp_path / "home") as desk:
        for person in (OWNER, ADA):
            page = page_of(desk, person)
            for model, size in (("sd15", 512), (gone, 512)):
                asked = PictureRequest("a boat", model, width=size, height=size)
                desk.jobs.latest[person.name, "picture"] = desk.keeper.journal.queue(asked, Choice(), person.name).id
                answer = page.post("/hearth/smaller/picture")
                for job in desk.keeper.journal.list_waiting():
                    desk.keeper.stop(job.id)
                if model == "sd15":
                    assert answer.json()["request"] == {"width": 320, "height": 320}
                else:
                    assert answer.status_code == 409 and (gone in answer.text) == person.owner
                    assert (answer.json()["trouble"] == str(NOT_MADE)) != person.owner
        nothing = page_of(desk, Person("visitor-bob", owner=False)).post("/hearth/smaller/picture")
        assert "There is no job to retry" in nothing.json()["trouble"]


def test_a_sound_that_cannot_be_recoded_is_told_in_the_same_way(tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        job = desk.keeper.journal.queue(REQUEST, Choice(), ADA.name)
        (made,) = desk.keeper.shelf.keep(job, [write_clip(tmp_path / "speech.wav", 1)], RunSummary("starter-voice"))
        made.path.unlink()
        for person in (OWNER, ADA):
            answer = page_of(desk, person).get(f"/hearth/creation/{made.id}?format=flac")
            assert answer.status_code == 409 and (str(made.path) in answer.text) == person.owner
            assert (answer.json()["trouble"] == str(NOT_MADE)) != person.owner
        assert not [*(desk.keeper.home.scratch / "uploads").glob("*")], "no folder is left"


def test_a_refused_request_takes_no_file_from_a_job_of_somebody_else(tmp_path: Path) -> None:
    """Gradio names files by their content: the owner's job and the guest's request may name the same."""
    with desk_at(tmp_path) as desk:
        files = [desk.keeper.home.scratch / "uploads" / name / "start.png" for name in ("of-both", "of-the-guest")]
        for file in files:
            file.parent.mkdir(parents=True)
            file.write_bytes(b"a picture")
        desk.keeper.journal.queue(PictureRequest("a boat", image=str(files[0])), Choice())
        for file in files:
            with pytest.raises(Trouble):
                desk.jobs.begin(PictureRequest("a boat", image=str(file), loras=(Lora("/nowhere"),)), ADA)
        assert [file.exists() for file in files] == [True, False]


def test_a_guest_may_choose_a_voice_that_comes_with_hearth_and_no_other_file(tmp_path: Path) -> None:
    ready = voices.list_ready_voices()[0].prompt
    with desk_at(tmp_path) as desk:
        granted = grant_request(SpeechRequest("[S1] Hello.", voice=ready), ADA, desk.keeper, Allowance(), {})
        assert isinstance(granted, SpeechRequest) and granted.voice == ready
        for other in (VoicePrompt(str(tmp_path / "voices" / "own.wav"), "Hello."), VoicePrompt(ready.path, "Other words.")):
            with pytest.raises(Trouble) as refused:
                grant_request(SpeechRequest("[S1] Hello.", voice=other), ADA, desk.keeper, Allowance(), {})
            assert refused.value.sentence.key == "guest.files"
