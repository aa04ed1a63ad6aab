"""Helpers of different pretended hardware at once: each one's own plan and forecast decide what it gets, and the window says why."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.compat.machine.pretended import MACHINES
from app.engine.jobs.events import Finished
from app.engine.jobs.request import PictureRequest
from tests.support.lent import Main, open_main, put_models
from tests.support.light_painter import pace, read_made
from tests.support.waiting import LOADING_S, until

pytestmark = pytest.mark.slow

HARDWARE = ("m1-8gb", "gtx-1060", "cpu")
FITS = {"starter-painter": {*HARDWARE}, "sdxl": {"cpu", "gtx-1060"}, "pixart-sigma": {"gtx-1060"}}
"""A picture fits on these: a Mac of 8 GB has too little for both, the card gets the layers in groups and takes either, and PixArt's text
encoder is 11 GB in the full precision that a processor keeps it in."""


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Main]:
    folder = tmp_path_factory.mktemp("machines")
    put_models(folder / "main", FITS)
    with open_main(folder / "main") as main:
        for name in HARDWARE:
            put_models(folder / name, FITS)
            main.start_helper(folder / name, step_s=0.05, words=("--pretend", name))
        yield main


@pytest.mark.parametrize("model", FITS)
def test_a_batch_goes_where_it_fits(model: str, main: Main) -> None:
    assert [main.find(helper).card for helper in main.helpers] == [MACHINES[name].name for name in HARDWARE]
    before = [len(read_made(helper.home)) for helper in main.helpers]
    pace(main.keeper.home.root, step_s=0.3)
    job = main.keeper.submit(PictureRequest("a ball", model=model, batch=8, seed=100)).id

    def list_reasons() -> dict[str, str]:
        assert main.spreader is not None
        said = {name: main.spreader.explain_unused(main.find(helper)) for name, helper in zip(HARDWARE, main.helpers, strict=True)}
        return {name: each.english for name, each in said.items() if each is not None}

    unfit = {*HARDWARE} - FITS[model]
    until(lambda: {*list_reasons()} == unfit, LOADING_S)
    assert {*list_reasons().values()} <= {"gets no work for {model}: the model does not fit its memory"}
    *_, end = main.keeper.follow(job)
    assert isinstance(end, Finished) and len(end.files) == 8
    made = zip(HARDWARE, main.helpers, before, strict=True)
    began = {name: [seed for word, seed, _ in read_made(helper.home)[since:] if word == "began"] for name, helper, since in made}
    assert {name for name, seeds in began.items() if seeds} == FITS[model], began
