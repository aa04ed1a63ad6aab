"""Who failed at a job, and how long that is remembered."""

from __future__ import annotations

from dataclasses import replace

from app.machines.helping_machine import LOST_MOST, HelpingMachine, Judged

READY = HelpingMachine("a", "a", online=True)
GONE, SILENT, PAUSED = replace(READY, online=False), replace(READY, silent=True), replace(READY, paused=True)


def test_a_machine_that_is_lost_in_one_job_again_and_again_failed_at_it() -> None:
    judged = Judged()
    for number in range(LOST_MOST):
        assert not judged.failed_at("job")
        judged.note_lost("job", {"a", "b"}, [GONE if number % 2 else SILENT, replace(READY, id="b"), replace(GONE, id="c")])
        judged.note_lost("other", {"a"}, [PAUSED])
    assert judged.unable.get("job") == {"a"} and judged.failed_at("job"), "one that its owner paused was not lost"
    assert not judged.failed_at("other") and not judged.unable.get("other")


def test_what_has_ended_is_forgotten() -> None:
    judged = Judged()
    judged.unable["failed"].add("a")
    judged.keep_here("here")
    assert judged.failed_at("here") and judged.is_kept_here("here") and not judged.unable.get("here")
    judged.unable["live"].add("a")
    for _ in range(LOST_MOST - 1):
        judged.note_lost("failed", {"b"}, [replace(GONE, id="b")])
        judged.note_lost("lost", {"a"}, [GONE])
    judged.tidy(lambda job: job == "live")
    assert judged.unable.get("live") == {"a"} and not judged.is_kept_here("here")
    judged.note_lost("failed", {"b"}, [replace(GONE, id="b")])
    judged.note_lost("lost", {"a"}, [GONE])
    assert not judged.failed_at("failed") and not judged.failed_at("lost") and not judged.failed_at("here"), (
        "they may go to any machine again"
    )
