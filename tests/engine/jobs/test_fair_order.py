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
    time.sleep(0.01)
    journal.end(taken.id, "finished")
    assert prompts(journal) == "xbyc"
    assert journal.sum_guest_seconds(0)[household_of(greedy)] > 0 == journal.sum_guest_seconds(0)[household_of(modest)]


def test_an_order_that_the_owner_made_holds(journal: Journal) -> None:
    queue(journal, new_guest("aa"), *"ab")
    queue(journal, new_guest("bb"), *"x")
    order = journal.list_waiting()
    journal.move(order[2].id, before=order[0].id)
    assert prompts(journal) == "bax"
    queue(journal, new_guest("cc"), "n")
    assert prompts(journal) == "baxn", "who comes later does not change it"


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
