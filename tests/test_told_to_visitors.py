"""What a failure says to whom, by every way in: the owner all of it, a visitor what they can change, nothing of the owner's machine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import gradio as gr
import pytest

from app.engine.event import Failed
from app.engine.request import SpeechRequest
from app.sentence import Sentence, Trouble, say
from app.ui import api, endpoints, live, programs
from app.ui.desk import Desk
from app.ui.guard import OWNER, Person
from app.ui.visitor import NOT_MADE
from tests.guests import desk_at, until

ADA = Person("visitor-ada", owner=False)
REQUEST = SpeechRequest("[S1] Hello.")
MACHINES = say("plan.refused", "{field} = {option} was asked for, and it cannot work on {machine}. Leave it automatic.", field="chunk_q", option="65536", machine="Apple M1")  # fmt: skip
FOLDER = say("job.not-delivered", "What was finished could not be put together ({fault}); its parts lie in {folder}.", fault="x", folder="/home/owner")  # fmt: skip
WORDS = say("script.words", "This voice does not know: {words}.", words="elephants")
MISSING = say("job.missing", "Finished: {done} of {total}. Missing: {missing}.", done=1, total=2, missing="2")


def by_gradios_client(desk: Desk, person: Person) -> None:
    list(endpoints.events(desk, lambda: REQUEST, person))


def by_a_program(desk: Desk, person: Person) -> None:
    asyncio.run(programs.carried_out(desk, REQUEST, person))


def streamed(desk: Desk, person: Person) -> None:
    asyncio.run(api.streamed(desk, REQUEST, person, "wav", events=False))


@pytest.mark.parametrize("way", [by_gradios_client, by_a_program, streamed])
@pytest.mark.parametrize(
    ("sentences", "heard"),
    [
        ((MACHINES, FOLDER), (NOT_MADE,)),
        ((MACHINES, MISSING), (NOT_MADE, MISSING)),
        ((WORDS,), (WORDS,)),
        ((WORDS, FOLDER), (WORDS,)),
    ],
    ids=["the machine", "the machine, and some of it made", "the script", "the script, and a folder"],
)
def test_every_way_in(
    way: Callable[[Desk, Person], None], sentences: tuple[Sentence, ...], heard: tuple[Sentence, ...], tmp_path: Path
) -> None:
    with desk_at(tmp_path) as desk:
        for person, said in ((OWNER, sentences), (ADA, heard)):
            told = threading.Thread(target=fails, args=(desk, person, Failed(sentences[0], sentences[1:], "machine")))
            told.start()
            with pytest.raises((Trouble, gr.Error)) as caught:
                way(desk, person)
            told.join()
            words = caught.value.message if isinstance(caught.value, gr.Error) else str(caught.value)
            assert words == " ".join(map(str, said))
        page = live.visiting(desk, ADA, "en")["speech"]["end"]
        assert (page["text"], page["cure"]) == (" ".join(map(str, heard)), "")


def fails(desk: Desk, person: Person, end: Failed) -> None:
    """The next job of this person, once somebody listens."""
    until(lambda: any(job.owner == person.name for job in desk.keeper.journal.waiting()))
    (job,) = [job for job in desk.keeper.journal.waiting() if job.owner == person.name]
    until(lambda: job.id in desk.keeper._board._followers)
    desk.keeper.journal.take()
    desk.keeper.journal.end(job.id, "failed")
    desk.keeper._board.post(job.id, end)


def test_what_cannot_even_begin_is_told_in_the_same_way(tmp_path: Path) -> None:
    def refused() -> SpeechRequest:
        raise Trouble(FOLDER)

    with desk_at(tmp_path) as desk:
        for person, said in ((OWNER, FOLDER), (ADA, NOT_MADE)):
            with pytest.raises(gr.Error) as caught:
                list(endpoints.events(desk, refused, person))
            assert caught.value.message == str(said)
