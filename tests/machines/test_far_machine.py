"""Two machines with a network each, whose cable is slow, loses frames and is cut in the middle of a batch: nothing is lost, and both say what is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")
if sys.platform != "linux":
    pytest.skip("network namespaces are Linux's", allow_module_level=True)

from app.engine.jobs.events import END, Finished
from app.engine.jobs.request import PictureRequest
from app.ui.tabs.other_machines import describe_work
from tests.support.lent import Main, open_main
from tests.support.light_painter import pace
from tests.support.namespaces import far_machine
from tests.support.waiting import LOADING_S, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def paint(main: Main, seed: int) -> str:
    return main.keeper.submit(PictureRequest("a ball", model="starter-painter", batch=12, seed=seed)).id


def count_by_the_helper(main: Main, job: str) -> int:
    end = next(event for event in main.keeper.follow(job) if isinstance(event, END))
    kept = main.keeper.shelf.list_of_job(job)
    assert isinstance(end, Finished) and len(kept) == 12 == len({each.path.read_bytes() for each in kept}), "each once"
    return sum("machine" in each.plan for each in kept)


def test_a_machine_at_the_end_of_a_bad_cable(tmp_path: Path) -> None:
    """It is paired over it; 100 ms each way, and one frame of fifty is lost."""
    with far_machine(delay_s=0.1, lost=0.02) as far, open_main(tmp_path / "main", host=far.address) as main:
        helper = main.start_helper(tmp_path / "far", step_s=0.05, within=far.within)
        pace(main.keeper.home.root, step_s=0.4)
        assert count_by_the_helper(main, paint(main, 100)) >= 2 and far.cable.lost > 0
        job = paint(main, 200)
        until(lambda: bool(main.find(helper).tasks), LOADING_S)
        far.cable.cut()
        count_by_the_helper(main, job)
        until(lambda: not main.find(helper).online, LOADING_S)
        assert describe_work(main.find(helper), "").key == "helper.offline"
        until(lambda: helper.said("cannot be reached now"), LOADING_S)
        far.cable.mend()
        until(lambda: main.find(helper).online, LOADING_S)
        assert count_by_the_helper(main, paint(main, 300)) >= 1
