"""Whose job is next: the owner's, then one of each guest in turn, whatever one of them queues and however often they log in."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.compat.planning.types import Choice
from app.engine.jobs.database import Database
from app.engine.jobs.journal import Journal
from app.engine.jobs.owners import household_of, is_guest, new_guest
from app.engine.jobs.request import PictureRequest
from tests.support.waiting import until


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    database = Database(tmp_path / "hearth.sqlite3")
    yield Journal(database)
    database.close()


def queue(journal: Journal, owner: str, *prompts: str) -> None:
    for prompt in prompts:
        journal.queue(PictureRequest(prompt), Choice(), owner)


def prompts(journal: Journal) -> str:
    return "".join(job.request.prompt for job in journal.list_waiting() if isinstance(job.request, PictureRequest))


def press_up(journal: Journal, prompt: str) -> None:
    journal.move_up(next(job.id for job in journal.list_waiting() if job.request == PictureRequest(prompt)))


def test_logins_of_one_address_are_one_household() -> None:
    first, again, other = new_guest("aa"), new_guest("aa"), new_guest("bb")
    assert first != again and household_of(first) == household_of(again) != household_of(other)
    assert all(map(is_guest, (first, household_of(first))))
    assert household_of("visitor-ada") == "visitor-ada", "a name from before households"


def test_one_of_each_guest_in_turn(journal: Journal) -> None:
    queue(journal, new_guest("aa"), *"ab")
    queue(journal, new_guest("aa"), *"cd")  # the same person, logged in again
    queue(journal, new_guest("bb"), *"xy")
    queue(journal, "owner", "O")
    assert prompts(journal) == "Oaxbycd"


def test_who_used_the_engine_least_is_first(journal: Journal) -> None:
    greedy, modest = new_guest("aa"), new_guest("bb")
    queue(journal, greedy, *"abc")
    taken = journal.take()
    assert taken is not None
    queue(journal, modest, *"xy")
    begun_s = time.time()
    until(lambda: time.time() > begun_s)
    journal.end(taken.id, "finished")
    assert prompts(journal) == "xbyc"
    assert journal.sum_guest_seconds(0)[household_of(greedy)] > 0 == journal.sum_guest_seconds(0)[household_of(modest)]


def test_up_moves_one_job_and_the_others_keep_their_turns(journal: Journal) -> None:
    queue(journal, new_guest("aa"), *"abcd")
    queue(journal, new_guest("bb"), *"xy")
    assert prompts(journal) == "axbycd"
    press_up(journal, "y")
    assert prompts(journal) == "axybcd"
    press_up(journal, "b")
    assert prompts(journal) == "axbycd", "back again"
    press_up(journal, "d")
    assert prompts(journal) == "axbydc"
    queue(journal, new_guest("cc"), *"nm")
    assert prompts(journal) == "axnbymdc", "a later guest has a turn like everybody's"
    queue(journal, "owner", "O")
    press_up(journal, "a")
    assert prompts(journal) == "Oaxnbymdc", "a guest's job does not pass the owner's"


def test_up_is_one_place_whatever_waits(journal: Journal) -> None:
    """And where nobody pressed it, no guest has two jobs ahead of another one's first."""
    drawn = random.Random(5)
    households = ["owner", *(new_guest(f"{n:02}") for n in range(4))]
    for turn in range(400):
        deed = drawn.choice(("queue", "queue", "up", "up", "up", "take", "put back"))
        if deed == "queue" and turn < 300:
            queue(journal, drawn.choice(households), f"{turn},")
        waiting = [job.id for job in journal.list_waiting()]
        if deed == "take" and (taken := journal.take()) is not None:
            journal.end(taken.id, "finished")
        elif deed == "put back" and (taken := journal.take()) is not None:
            journal.put_back(taken.id)
            assert journal.list_waiting()[0].id == waiting[0], "to its place"
        elif deed == "up" and len(waiting) > 1:
            place = drawn.randrange(1, len(waiting))
            moved, passed = journal.get(waiting[place]), journal.get(waiting[place - 1])
            journal.move_up(moved.id)
            if moved.owner == "owner" or passed.owner != "owner":
                waiting[place - 1 : place + 1] = [moved.id, passed.id]
            assert [job.id for job in journal.list_waiting()] == waiting, f"turn {turn}"
    late, queued = new_guest("99"), journal.list_waiting()
    assert len(queued) > 10 and any(job.position < 0 for job in queued)
    queue(journal, late, "late")
    owners = [job.owner for job in journal.list_waiting() if job.started_s is None and job.position > 0 and job.owner != "owner"]
    assert max(Counter(owners[: owners.index(late)]).values(), default=0) <= 1


def test_an_interrupted_job_goes_on_before_new_ones(journal: Journal) -> None:
    queue(journal, new_guest("aa"), *"ab")
    queue(journal, new_guest("bb"), "x")
    taken = journal.take()
    assert taken is not None
    journal.put_back(taken.id)  # its engine died
    assert prompts(journal) == "axb"


def test_nobody_is_passed_over(journal: Journal) -> None:
    """Whatever the guests queue: of two who both still wait, neither had two jobs more than the other."""
    drawn = random.Random(3)
    households = [new_guest(f"{n:02}") for n in range(5)]
    for n in range(60):
        queue(journal, drawn.choice(households[: 1 + n % 5]), f"{n},")
    order = [household_of(job.owner) for job in journal.list_waiting()]
    for place in range(len(order)):
        had, wait = Counter(order[:place]), set(order[place:])
        assert max(had[each] for each in wait) - min(had[each] for each in wait) <= 1
