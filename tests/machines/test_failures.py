"""Who failed at a job, and how long that is remembered."""

from __future__ import annotations

from dataclasses import replace

from app.machines.failures import LOST_MOST, Failures
from app.machines.helping_machine import HelpingMachine

READY = HelpingMachine("a", "a", online=True)
GONE, SILENT, PAUSED = replace(READY, online=False), replace(READY, silent=True), replace(READY, paused=True)


def test_a_machine_that_is_lost_in_one_job_again_and_again_failed_at_it() -> None:
    failures = Failures()
    for number in range(LOST_MOST):
        assert not failures.has_any("job")
        failures.note_lost("job", {"a", "b"}, [GONE if number % 2 else SILENT, replace(READY, id="b"), replace(GONE, id="c")])
        failures.note_lost("other", {"a"}, [PAUSED])
    assert failures.find("job") == {"a"} and failures.has_any("job"), "one that its owner paused was not lost"
    assert not failures.has_any("other") and not failures.find("other")


def test_what_has_ended_is_forgotten() -> None:
    failures = Failures()
    failures.open("failed").add("a")
    failures.keep_here("here")
    assert failures.has_any("here") and failures.is_kept_here("here") and not failures.find("here")
    failures.open("live").add("a")
    for _ in range(LOST_MOST - 1):
        failures.note_lost("failed", {"b"}, [replace(GONE, id="b")])
        failures.note_lost("lost", {"a"}, [GONE])
    failures.tidy(lambda job: job == "live")
    assert failures.find("live") == {"a"} and not failures.is_kept_here("here")
    failures.note_lost("failed", {"b"}, [replace(GONE, id="b")])
    failures.note_lost("lost", {"a"}, [GONE])
    assert not failures.has_any("failed") and not failures.has_any("lost") and not failures.has_any("here"), (
        "they may go to any machine again"
    )
