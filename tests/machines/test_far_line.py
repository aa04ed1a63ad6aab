"""A helper at the end of a far line: a fifth of a second there and back, lost pieces, and a cut in the middle of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.base.paths import home
from app.engine.jobs.events import END, Finished
from app.engine.jobs.request import PictureRequest
from app.machines.joining.join import move
from app.machines.lending import lending_folder
from tests.support.far_line import far_line
from tests.support.lent import Main, open_main, start
from tests.support.light_painter import pace
from tests.support.waiting import LOADING_S, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def count_by_the_helper(main: Main, job: str, batch: int) -> int:
    end = next(event for event in main.keeper.follow(job) if isinstance(event, END))
    kept = main.keeper.shelf.list_of_job(job)
    assert isinstance(end, Finished) and len(kept) == batch == len({each.path.read_bytes() for each in kept}), "each once"
    return sum("machine" in each.plan for each in kept)


def test_a_far_line_that_is_cut(tmp_path: Path) -> None:
    with open_main(tmp_path / "main") as main:
        helper = main.start_helper(tmp_path / "far", step_s=0.05)
        helper.end()
        with far_line(main.hub.port) as line:
            move(lending_folder(home(helper.home)), "127.0.0.1", line.port)
            main.helpers[0] = helper = start(helper.home)
            until(lambda: main.find(helper).online and bool(main.find(helper).models) and not main.find(helper).paused, LOADING_S)
            pace(main.keeper.home.root, step_s=0.4)

            def paint(seed: int) -> str:
                return main.keeper.submit(PictureRequest("a ball", model="starter-painter", batch=12, seed=seed)).id

            assert count_by_the_helper(main, paint(100), 12) >= 4, (
                "it is eight times as quick as the engine here, and its line costs it half"
            )
            job = paint(200)
            until(lambda: bool(main.find(helper).tasks))
            line.cut()
            count_by_the_helper(main, job, 12)
            until(lambda: not main.find(helper).online, LOADING_S)
            until(lambda: helper.said("cannot be reached now"), LOADING_S)
            line.mend()
            until(lambda: main.find(helper).online, LOADING_S)
            assert count_by_the_helper(main, paint(300), 12) >= 1
