"""What must not condemn a machine: want of memory, a device out of reach, a child that was ended; and what follows where one is condemned."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.base.paths import home
from app.compat.attention.seam import applied, read_split_sums
from app.compat.machine import verdicts as stored
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict, Verdicts, learn
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice
from app.compat.selftest import run
from app.compat.selftest.probes import Probe
from app.engine.jobs.control import Control
from app.engine.jobs.events import Adjusted, Finished, Note
from app.engine.jobs.request import PictureRequest
from app.engine.models.catalog import BY_ID
from app.engine.models.forecast import make_forecast
from app.engine.models.model import describe_need
from app.engine.models.planned import Setup
from app.engine.session import machine_check
from app.engine.session.session import Session
from tests.support.odd_questions import failing, hanging, hanging_before, losing_its_context, make_probe, right, slow, terminated
from tests.support.other_functions import set_in
from tests.support.separate_memory import separate_memory
from tests.support.waiting import LOADING_S, until

MAC = replace(MACHINES["m1-8gb"], pretended="")
TURING = replace(MACHINES["t4"], pretended="")
CPU = MACHINES["cpu"]


def ask(probe: Probe) -> Verdict | None:
    return next(
        (each for each in run.answer_all(CPU, (probe,), machine_check.questions, isolated=False) if isinstance(each, Verdict)), None
    )


@pytest.mark.parametrize(
    "words",
    [
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 67108864 bytes. Error code 12 (Cannot allocate memory)",
        "[enforce fail at alloc_cpu.cpp:117] data. DefaultCPUAllocator: not enough memory: you tried to allocate 67108864 bytes.",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    ],
)
def test_what_a_run_counts_as_want_of_memory_is_no_verdict(words: str) -> None:
    assert ask(make_probe("vae", failing(words))) is None


@pytest.mark.parametrize("fault", [RuntimeError("PytorchStreamReader failed"), ValueError("config.json is damaged")])
def test_a_processor_that_has_no_answer_says_nothing_of_the_card(fault: Exception) -> None:
    """`prepare` loads the starter and computes on the processor: a damaged starter is no wrong card."""

    def prepare() -> None:
        raise fault

    assert ask(replace(make_probe("vae"), prepare=prepare)) is None


@pytest.mark.slow
def test_one_illegal_access_does_not_spoil_the_questions_after_it() -> None:
    found = run.run(CPU, lambda *_: None, losing_its_context, isolated=True)
    assert [each.passed for each in found.values()] == [False, True, True]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_a_child_that_was_asked_to_end_says_nothing_of_the_machine() -> None:
    """Logging out, and Quit in the Activity Monitor, send SIGTERM, a closed terminal SIGHUP."""
    found = run.run(CPU, lambda *_: None, terminated, isolated=True)
    assert [each.name for each in found] == ["vae/float32"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="of a killed process")
def test_no_child_outlives_an_engine_that_was_killed(tmp_path: Path) -> None:
    said = tmp_path / "child"
    program = (
        "from pathlib import Path; import psutil\n"
        "from app.compat.machine.pretended import MACHINES; from app.compat.selftest import run\n"
        "from tests.support.odd_questions import hanging\n"
        "answers = run.answer_all(MACHINES['cpu'], hanging(None), hanging, isolated=True)\n"
        "[next(answers) for _ in range(30)]\n"
        f"Path({str(said)!r}).write_text(str(psutil.Process().children()[0].pid))\n"
        "[each for each in answers]\n"
    )
    engine = subprocess.Popen([sys.executable, "-c", program])
    until(lambda: engine.poll() is not None or (said.exists() and bool(said.read_text())), LOADING_S)
    child = psutil.Process(int(said.read_text()))
    engine.kill()
    engine.wait()
    psutil.wait_procs([child], timeout=20)
    alive = child.is_running() and child.status() != psutil.STATUS_ZOMBIE
    if alive:
        child.kill()
    assert not alive


def test_a_child_that_never_becomes_ready_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LONGEST_START_S", 0.5)
    answers = run.answer_all(CPU, hanging(CPU), hanging_before, isolated=True)
    began_s = time.monotonic()
    ended = False
    while not ended and time.monotonic() - began_s < 20:
        try:
            ended = next(answers) != "waiting"
        except (RuntimeError, StopIteration):
            ended = True
    answers.close()
    assert ended


@pytest.mark.slow
def test_a_computer_that_slept_is_no_hung_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows' performance counter goes on in sleep."""
    answers = run.answer_all(CPU, slow(CPU), slow, isolated=True)
    seen = next(answers)
    while seen == "waiting":
        seen = next(answers)
    assert next(answers) == "waiting"
    clock = time.perf_counter
    set_in(monkeypatch, run, "time", perf_counter=lambda: clock() + 8 * 3600)
    while (seen := next(answers)) == "waiting":
        pass
    assert isinstance(seen, Verdict) and seen.passed


def test_a_defect_half_asked_is_not_retired() -> None:
    """`doctor --selftest` and the button: float32 passed, float16 could not be asked."""

    def asked(hardware: Hardware) -> tuple[Probe, ...]:
        row = Subject.row("mps-gqa-abort")
        return Probe(row, "float32", right), Probe(row, "float16", failing("MPS backend out of memory"))

    assert run.run(CPU, lambda *_: None, asked, isolated=False) == {}


def wrong(*subjects: Subject) -> Verdicts:
    return {each: Verdict(each, False, error=0.8) for each in subjects}


def test_an_unsafe_decoder_is_not_widened_to_a_dtype_found_wrong() -> None:
    """PixArt's decoder is not safe in float16; the next dtype, bfloat16, was found wrong here."""
    mac = replace(MACHINES["m3-max-64gb"], pretended="")
    plan = decide(
        mac,
        describe_need(BY_ID["pixart-sigma"]),
        verdicts=wrong(Subject.part("vae", "bfloat16"), Subject.path("convolution/bfloat16", "bfloat16")),
    )
    assert {each.role: each.compute for each in plan.precision}["vae"] == "float32"


def test_no_card_rounds_parts_of_a_sum() -> None:
    """torch lets cuBLAS reduce parts of a sum in float16 by default: half of the linear question's 4096 terms exceed float16, and any
    healthy card that splits them would lose float16."""
    before = read_split_sums()
    with applied(decide(TURING)):
        assert read_split_sums() == (False, False)
    assert read_split_sums() == before == (True, True)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Session:
    monkeypatch.delenv(machine_check.SKIPPED, raising=False)
    monkeypatch.setattr(run, "needs_child", lambda hardware: False)
    monkeypatch.setattr("app.engine.session.session.find_machine", lambda _: MAC)
    monkeypatch.setattr(
        machine_check, "questions", lambda hardware: (make_probe("denoiser", failing("garbage")), make_probe("vae", failing("x")))
    )
    return Session(home(tmp_path / "home").create())


def test_what_was_found_holds_in_this_session_where_it_cannot_be_stored(fresh: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(stored, "store", fail)
    list(fresh.use_idle_time())
    assert len(fresh.verdicts) == 2
    fresh._reload_verdicts()
    assert len(fresh.verdicts) == 2


def test_a_job_does_not_forget_what_cannot_be_read_now(fresh: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An antivirus holds the file."""
    list(fresh.use_idle_time())
    found = dict(fresh.verdicts)
    assert len(found) == 2

    def fail(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(stored, "read_stored", fail)
    next(fresh.run(PictureRequest("x", "no such model"), Choice(), Control(), tmp_path / "job", lambda *_: None))
    assert fresh.verdicts == found


def test_what_could_not_be_asked_waits_for_the_next_start(fresh: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory never suffices, a child after each job would be asked the same."""
    asked: list[str] = []

    def lack(device: str) -> tuple[float, float]:
        asked.append(device)
        raise RuntimeError("MPS backend out of memory")

    monkeypatch.setattr(machine_check, "questions", lambda hardware: (make_probe("vae", lack),))
    for _ in range(5):
        list(fresh.use_idle_time())
    assert len(asked) == 1


def test_a_new_driver_is_asked_anew(tmp_path: Path) -> None:
    card = replace(MACHINES["gtx-1060"], pretended="", driver="535.1")
    subject = Subject.part("vae", "float32")
    learn(tmp_path, card, Verdict(subject, False))
    assert subject not in stored.load(tmp_path, replace(card, driver="580.2"))


CARD = replace(MACHINES["gtx-1060"], pretended="")
ALL_WRONG = wrong(
    *(Subject.path(f"{part}/{each}", each) for part in ("linear", "convolution") for each in ("float16", "bfloat16", "float32"))
)


def test_a_job_on_the_processor_does_not_ask_the_card_that_was_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = replace(TURING, name="A card")
    monkeypatch.setattr("app.engine.session.session.find_machine", lambda _: card)

    def fail(*_: object) -> None:
        raise RuntimeError("CUDA error: unknown error")

    with separate_memory("cuda"):
        monkeypatch.setattr("torch.cuda.get_device_properties", fail)
        session = Session(home(tmp_path / "home").create())
        learn(session.home.verdicts, card, *ALL_WRONG.values())
        devices: list[str] = []
        request = PictureRequest("a", "starter-painter", width=128, height=128, steps=1, seed=1)
        events = list(session.run(request, Choice(), Control(), tmp_path / "job", lambda _, plan: devices.append(plan.device)))
        session.free()
    assert devices == ["cpu"] and isinstance(events[-1], Finished), events[-1]


@pytest.mark.slow
def test_the_move_to_the_processor_is_told_once_though_the_job_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.session.session.find_machine", lambda _: CARD)
    session = Session(home(tmp_path / "home").create())
    learn(session.home.verdicts, CARD, *ALL_WRONG.values())
    monkeypatch.setattr(session, "_read_hardware", lambda: CARD)
    load, faults = session.holder.load, [MemoryError("out of memory")]

    def load_later(*given: Any) -> Any:
        if faults:
            raise faults.pop()
        return load(*given)

    monkeypatch.setattr(session.holder, "load", load_later)
    request = PictureRequest("a", "starter-painter", width=128, height=128, steps=1, seed=1)
    events = list(session.run(request, Choice(), Control(), tmp_path / "job", lambda _, plan: None))
    session.free()
    assert isinstance(events[-1], Finished) and any(isinstance(each, Adjusted) for each in events), events
    assert [each.sentence.key for each in events if isinstance(each, Note)].count("device.wrong") == 1


@pytest.mark.parametrize("model", ["sd15", "sdxl"])
def test_a_forecast_counts_the_memory_of_the_processor_that_computes(model: str, tmp_path: Path) -> None:
    given = make_forecast(Setup(home(tmp_path), CARD, verdicts=ALL_WRONG), PictureRequest(".", model), BY_ID[model])
    assert given.plan is not None and given.plan.device == "cpu" and given.fit != "no", given.sentence


@pytest.mark.parametrize("offload", ["group", "sequential"])
def test_a_choice_made_for_the_card_does_not_stop_every_job_without_it(offload: Any) -> None:
    assert decide(CARD, describe_need(BY_ID["sd15"]), Choice(offload=offload), ALL_WRONG).device == "cpu"


@pytest.mark.parametrize(
    "words",
    [
        "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES",
        "CUDA error: all CUDA-capable devices are busy or unavailable",
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "PyTorch is not linked with support for mps devices",
    ],
)
def test_a_device_that_cannot_be_reached_now_is_not_given_up_for_good(words: str) -> None:
    """After a laptop's sleep, beside another program, during a driver's update."""
    assert ask(make_probe("vae", failing(words))) is None


CASES = [
    *((machine, model, "bfloat16") for machine in ("m1-8gb", "m3-max-64gb", "rtx-3060") for model in ("z-image-turbo", "pixart-sigma")),
    *(("t4", model, "float32") for model in ("z-image-turbo", "pixart-sigma")),
]


@pytest.mark.parametrize(("machine", "model", "dtype"), CASES)
def test_no_part_of_a_plan_computes_in_a_dtype_found_wrong(machine: str, model: str, dtype: Any) -> None:
    """Nor what is widened because it overflows in float16."""
    hardware = replace(MACHINES[machine], pretended="")
    verdicts = wrong(*(Subject.path(f"{part}/{dtype}", dtype) for part in ("linear", "convolution")), Subject.part("denoiser", dtype))
    plan = decide(hardware, describe_need(BY_ID[model]), verdicts=verdicts)
    used = {each.role: each.compute for each in plan.precision if plan.device != "cpu"}
    assert dtype not in used.values(), used


def test_a_decoder_that_is_right_in_the_dtype_of_the_plan_stays_on_the_device() -> None:
    """Only float32 was found wrong, in which nothing of this plan computes."""
    mac = replace(MACHINES["m3-max-64gb"], pretended="")
    plan = decide(mac, describe_need(BY_ID["sd15"]), verdicts=wrong(Subject.part("vae", "float32")))
    assert plan.device == "mps"
