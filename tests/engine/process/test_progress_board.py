"""What is posted about a job, in whatever order its threads come."""

from __future__ import annotations

from app.engine.jobs.events import Stopped
from app.engine.jobs.progress import Progress
from app.engine.process.progress_board import ProgressBoard


def test_an_end_that_comes_before_the_job_is_opened_stays() -> None:
    """Stop may be faster than the thread that queued the job; who follows it must not wait for ever."""
    board = ProgressBoard()
    board.post("job", end := Stopped((), 0.0))
    board.open("job")
    assert list(board.follow("job", Progress)) == [end]
    board.reopen("job")
    assert board.get("job").end is None, "one that runs again has not ended"
