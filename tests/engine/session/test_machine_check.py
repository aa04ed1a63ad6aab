"""The check of a machine in idle time: what is wrong in it is found and worked around, pieces are short, and what was cut off goes on."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from app.base.paths import home
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict, load
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice
from app.compat.selftest import padded_heads, run
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished
from app.engine.jobs.request import PictureRequest
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.session import few_lines_check, machine_check, packed_weights_check, starter_parts
from app.engine.session.session import Session
from tests.support.separate_memory import separate_memory

MAC = replace(MACHINES["m3-max-64gb"], pretended="")
PICTURE = PictureRequest("a red circle on a blue background", "starter-painter", width=128, height=128, steps=2, seed=3)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at a first start, where the questions are asked in this process: the pretended device is here."""
    monkeypatch.delenv(machine_check.SKIPPED)
    monkeypatch.setattr(run, "needs_child", lambda hardware: False)
    for its in (run, padded_heads, packed_weights_check, few_lines_check):  # they have their own tests
        monkeypatch.setattr(its, "questions", lambda hardware: ())


def start(folder: Path, hardware: Hardware) -> Session:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.engine.session.session.find_machine", lambda _: hardware)
        return Session(home(folder).create())


def paint(session: Session, job: Path) -> tuple[list[Event], str]:
    """Return the events and the device of the plan that ran."""
    devices: list[str] = []
    events = list(session.run(PICTURE, Choice(), Control(), job, lambda _, plan: devices.append(plan.device)))
    session.free()
    assert isinstance(events[-1], Finished), events[-1]
    return events, devices[-1]


def picture(job: Path) -> np.ndarray:
    return np.asarray(Image.open(next(job.glob("*.png"))), dtype=float)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """What the processor paints."""
    folder = tmp_path_factory.mktemp("right")
    paint(start(folder / "home", replace(MACHINES["cpu"], pretended="")), folder / "job")
    return picture(folder / "job")


LEFT = [pytest.param(each, marks=pytest.mark.slow) for each in ("layer_norm", "linear", "embedding")]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["conv2d", "group_norm", *LEFT])
def test_a_wrong_operation_is_worked_around_before_the_first_picture(wrong: str, right: np.ndarray, fresh: None, tmp_path: Path) -> None:
    with separate_memory("mps", wrong=(wrong,)) as mac:
        session = start(tmp_path / "home", MAC)
        list(session.use_idle_time())
        assert mac.spoiled[wrong] and session.checked[0] == session.checked[1] > 0
        asked = mac.spoiled.total()
        _, device = paint(session, tmp_path / "job")
        assert (device, mac.spoiled.total()) == ("cpu", asked)
    assert np.abs(picture(tmp_path / "job") - right).max() <= 1


@pytest.mark.slow
def test_a_machine_that_is_right_paints_on_its_device(right: np.ndarray, fresh: None, tmp_path: Path) -> None:
    with separate_memory("mps") as mac:
        session = start(tmp_path / "home", MAC)
        list(session.use_idle_time())
        assert all(each.passed for each in session.verdicts.values()) and len(session.verdicts) == session.checked[1]
        _, device = paint(session, tmp_path / "job")
        assert device == "mps" and not mac.bitten
    assert np.abs(picture(tmp_path / "job") - right).max() <= 1


def test_what_it_is_compared_with_is_right_on_a_simulated_machine() -> None:
    """Before its own torch a Mac ends at grouped heads: the voice's row is compared with a processor that does not."""
    hardware = MACHINES["m1-8gb"]
    row = next(each for each in starter_parts.questions(hardware) if str(each.subject) == "part:voice-row/float32")
    (answer,) = run.answer_all(hardware, (row,), starter_parts.questions)
    assert isinstance(answer, Verdict) and answer.passed, answer


@pytest.mark.slow
def test_what_is_wrong_in_one_dtype_costs_only_that(fresh: None, tmp_path: Path) -> None:
    with separate_memory("mps", wrong=("conv2d",), wrong_in=(torch.float16,)):
        session = start(tmp_path / "home", MAC)
        list(session.use_idle_time())
    drawn, spoken = (decide(MAC, describe_need(BY_ID[each]), verdicts=session.verdicts) for each in ("sd15", "dia-1.6b"))
    assert (drawn.device, drawn.dtype, spoken.device, spoken.dtype) == ("mps", "bfloat16", "mps", "float16")
    assert "In float16 this machine computes a step of the starter painter wrongly" in str(
        next(each.sentence for each in drawn.because if each.field == "dtype")
    )


@pytest.mark.slow
def test_a_check_that_was_cut_off_goes_on(fresh: None, tmp_path: Path) -> None:
    """What a job interrupted is asked again, what was answered is not; and after a restart neither."""
    asked: list[Subject] = []
    with separate_memory("mps") as mac:
        session = start(tmp_path / "home", MAC)
        idle = session.use_idle_time()
        for _ in range(4):
            next(idle)
        assert isinstance(idle, Generator)
        idle.close()
        kept = dict(session.verdicts)
        assert len(kept) == session.checked[0] == 3, "the first piece lists the questions"
        again = start(tmp_path / "home", MAC)
        assert again.verdicts == kept
        with pytest.MonkeyPatch.context() as patch:
            ask = run.answer_one
            patch.setattr(run, "answer_one", lambda probe, *rest: asked.append(probe.subject) or ask(probe, *rest))
            list(again.use_idle_time())
        assert not set(asked) & set(kept) and len(again.verdicts) == again.checked[1] == len(kept) + len(asked)
        assert not mac.bitten
    assert load(again.home.verdicts, MAC) == again.verdicts


def test_what_could_not_be_asked_leaves_no_verdict(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For want of memory: it is asked at the next start."""

    def lack(vae: object, device: str, dtype: torch.dtype) -> torch.Tensor:
        if dtype == torch.float16:
            raise RuntimeError("MPS backend out of memory (MPS allocated: 5.1 GiB)")
        return torch.ones(1)

    part = starter_parts.Part("vae", "starter-painter", "vae", "AutoencoderKL", lack)
    monkeypatch.setattr(starter_parts, "PARTS", (part,))
    with separate_memory("mps"):
        session = start(tmp_path / "home", MAC)
        list(session.use_idle_time())
    assert {str(each) for each in session.verdicts} == {"part:vae/bfloat16", "part:vae/float32"}


@pytest.mark.parametrize(("name", "most"), [("gtx-1060", 0.5), ("m1-8gb-browser", 0.4)])
def test_what_makes_a_machine_several_times_quicker_is_asked_early(name: str, most: float) -> None:
    asked = [str(each.subject) for each in machine_check.questions(replace(MACHINES[name], pretended=""))]
    parts = [place for place, each in enumerate(asked) if each.startswith("part:")]
    linear = [place for place, each in enumerate(asked) if each.startswith("path:linear/")]
    quicker = [place for place, each in enumerate(asked) if each.startswith(("path:product/", "quicker:"))]
    assert parts == list(range(len(parts)))
    assert linear == list(range(len(parts), len(parts) + len(linear)))
    assert max(quicker) < most * len(asked)
    assert asked[-1] == str(run.LAST) or str(run.LAST) not in asked
    assert len(set(asked)) == sum(1 for before, after in zip(["", *asked], asked, strict=False) if before != after), (
        "each subject's stand together"
    )
