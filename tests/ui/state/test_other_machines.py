"""Other machines as the window switches them: what was on goes on after a restart, on both sides; without the extra there is only its command."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest

from app.base import extras
from app.base.extras import has_machines
from app.base.paths import home
from app.base.trouble import Trouble
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.events import END, Finished
from app.engine.jobs.request import PictureRequest
from app.engine.keeper import disk_room, worker
from app.engine.keeper.keeper import Keeper
from app.machines.spreader import Spreader
from app.ui.state.desk import Desk
from app.ui.state.other_machines import OtherMachines
from app.ui.state.settings import Settings
from app.ui.tabs import shelf
from app.ui.tabs.other_machines import machine_view, machines_view
from tests.support import light_painter
from tests.support.guests import desk_at
from tests.support.left_behind import leave_something
from tests.support.places import TOP
from tests.support.waiting import LOADING_S, pass_turns, until

pytestmark = pytest.mark.long

needs_extra = pytest.mark.skipif(not has_machines(), reason="the extra machines is not installed")


@pytest.fixture
def light_engine() -> Iterator[None]:
    with patch.object(worker, "main", light_painter.main):
        yield


def open_desk(folder: Path) -> Desk:
    place = home(folder)
    return Desk(Keeper(place), Settings(place.create().settings))


def close(desk: Desk) -> None:
    desk.others.close()
    desk.keeper.close()


def is_ready(others: OtherMachines) -> bool:
    return others.hub is not None and any(each.online and not each.paused and each.models for each in others.hub.list_machines())


@pytest.mark.slow
@needs_extra
def test_both_sides_go_on_after_a_restart(tmp_path: Path, light_engine: None) -> None:
    main, helper = open_desk(tmp_path / "main"), open_desk(tmp_path / "helper")
    try:
        main.others.use()
        main.others.show_code()
        assert main.others.hub is not None and main.others.hub.pairing is not None
        helper.others.lend(str(main.others.hub.pairing.state.code))
        until(lambda: is_ready(main.others), LOADING_S)
        for name in ("helper", "main"):
            close({"main": main, "helper": helper}[name])
            again = open_desk(tmp_path / name)
            again.others.resume()
            main, helper = (again, helper) if name == "main" else (main, again)
            until(lambda: is_ready(main.others), LOADING_S)  # noqa: B023 (asked at once)
            assert main.others.said is None and helper.others.said is None
        with patch.object(disk_room, "read_free_bytes", return_value=0):
            until(lambda: not is_ready(main.others))
        until(lambda: is_ready(main.others))
        job = main.keeper.submit(PictureRequest("a ball", model="starter-painter", batch=6, seed=1)).id
        assert isinstance(next(event for event in main.keeper.follow(job) if isinstance(event, END)), Finished)

        helper.others.pause(True)
        close(helper)
        helper = open_desk(tmp_path / "helper")
        helper.others.resume()
        until(lambda: helper.others.lending is not None and helper.others.lending.state.online, LOADING_S)
        assert helper.others.lending is not None and helper.others.lending.state.paused, "a pause outlasts a restart"
        helper.others.lend_no_more()
        close(helper)
        helper = open_desk(tmp_path / "helper")
        helper.others.resume()
        assert helper.others.lending is None and not helper.others.starting
    finally:
        close(main)
        close(helper)


@pytest.mark.slow
@needs_extra
def test_a_machine_is_lent_by_one_window_or_command_only(tmp_path: Path, light_engine: None) -> None:
    from app.machines.lending import Lending

    main, helper = open_desk(tmp_path / "main"), open_desk(tmp_path / "helper")
    try:
        main.others.use()
        main.others.show_code()
        assert main.others.hub is not None and main.others.hub.pairing is not None
        helper.others.lend(str(main.others.hub.pairing.state.code))
        with pytest.raises(Trouble, match="already helps"):
            Lending(helper.keeper)
    finally:
        close(main)
        close(helper)


@pytest.mark.slow
@needs_extra
def test_the_owner_of_a_helper_has_it_back_within_two_seconds(tmp_path: Path, light_engine: None) -> None:
    """In the middle of a picture for the other machine, by a pause as by ending it."""
    for name, step_s in (("main", 0.5), ("helper", 0.5)):
        (tmp_path / name).mkdir()
        light_painter.pace(tmp_path / name, step_s=step_s)
    main, helper = open_desk(tmp_path / "main"), open_desk(tmp_path / "helper")
    try:
        main.others.use()
        main.others.show_code()
        assert main.others.hub is not None and main.others.hub.pairing is not None
        helper.others.lend(str(main.others.hub.pairing.state.code))
        until(lambda: is_ready(main.others), LOADING_S)
        job = main.keeper.submit(PictureRequest("a ball", model="starter-painter", batch=12, seed=1)).id
        left = leave_something(helper.keeper.home)
        for end in (lambda: helper.others.pause(True), helper.others.lend_no_more):
            began = len(light_painter.read_made(tmp_path / "helper"))
            until(lambda: any(word == "began" for word, *_ in light_painter.read_made(tmp_path / "helper")[began:]), LOADING_S)  # noqa: B023
            asked_s = time.time()
            end()
            until(lambda: light_painter.read_made(tmp_path / "helper")[-1][0] == "stopped")
            _, _, when_s = light_painter.read_made(tmp_path / "helper")[-1]
            assert when_s - asked_s < 0.5 + 2.0, "a step, and two seconds"
            pass_turns(of=Spreader, turn="_look")
            assert light_painter.read_made(tmp_path / "helper")[-1][0] == "stopped", "it takes no other one"
            assert all(file.exists() for file in left) or end == helper.others.lend_no_more
            helper.others.pause(False)
        until(lambda: [file.exists() for file in left] == [False, False, True])
        until(lambda: main.others.hub is not None and main.others.hub.list_machines()[0].left)
        main.keeper.stop(job)
    finally:
        close(main)
        close(helper)


@needs_extra
def test_why_a_machine_gets_no_work_stands_beside_it(tmp_path: Path) -> None:
    from app.machines.helping_machine import HelpingMachine
    from app.machines.joining.versions import explain_refusal, read_versions

    refused = HelpingMachine("a", "Box", refused=explain_refusal(read_versions(), {**read_versions(), "Python": "2.7"}))
    with desk_at(tmp_path) as desk:
        said = desk.others.explain_unused(refused)
        assert said is not None and desk.others.explain_unused(HelpingMachine("b", "Cot")) is None
        assert machine_view(refused, "", said, "en")["why"].startswith("gets no work: Python is 2.7 there")
        assert machine_view(refused, "", said, "zh")["why"].startswith("不分配任务：那边的 Python 是 2.7")


@pytest.mark.parametrize(
    ("plan", "english", "chinese"),
    [
        ({"device": "cpu"}, "", ""),
        ({"machine": "Böx"}, "made on Böx", "由 Böx 生成"),
        ({"machine": "Attic, Böx", "partly": True}, "made partly on Attic, Böx", "部分由 Attic, Böx 生成"),
    ],
)
def test_the_shelf_says_which_machine_made_it(plan: dict[str, object], english: str, chinese: str, tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        job, file = desk.keeper.submit(PictureRequest("a red circle")), tmp_path / "picture.png"
        file.write_bytes(b"x")
        (kept,) = desk.keeper.shelf.keep(job, [str(file)], RunSummary("starter-painter", plan=json.dumps(plan)))
        assert [shelf.creation_view(desk, kept, each)["machine"] for each in ("en", "zh")] == [english, chinese]


@needs_extra
def test_what_a_machine_has_stands_beside_it() -> None:
    from app.compat.machine.meter import Reading
    from app.engine.jobs.events import Step
    from app.machines.helping_machine import HelpingMachine

    step = Step(3, 10, 2.0, "steps", None, Reading())
    busy = HelpingMachine("a", "Box", True, card="GTX 1060", free_bytes=3 << 30, tasks=("1", "2"), doing="a ball", step=step)
    shown = machine_view(busy, "", None, "en")
    assert shown["facts"] == ["GTX 1060", "3.0 GB", "2.0 steps/s", "1 task waiting there"] and shown["doing"] == "working on: a ball"
    assert machine_view(busy, "", None, "zh")["facts"][-1] == "那边还有 1 项任务等待"
    assert len(machine_view(HelpingMachine("b", "Cot", True, card="T4", tasks=("1",)), "", None, "en")["facts"]) == 1


def test_without_the_extra_there_is_only_its_command(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk, patch.object(extras, "MACHINES", ("no_such_module",)):
        assert machines_view(desk.others, "en") == {"command": extras.install_command("machines"), "adds": extras.can_add()}
        with pytest.raises(Trouble, match="need an extra"):
            desk.others.use()
        with pytest.raises(Trouble, match="need an extra"):
            desk.others.lend("192.0.2.1:1/AAAA-AAAA-AAAA-AAAA")
        desk.settings.put({"machines": {"uses": True}})  # it was there before
        desk.others.resume()
        until(lambda: not desk.others.starting)
        assert desk.others.said is not None and desk.others.said.key == "machines.extra"


def test_a_window_that_is_closing_switches_nothing_on(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk, patch.object(extras, "MACHINES", ()):
        desk.settings.put({"machines": {"uses": True, "lends": True}})
        desk.others.close()
        desk.others.resume()
        until(lambda: not desk.others.starting)
        desk.others.use()
        assert (desk.others.hub, desk.others.lending, desk.others.said) == (None, None, None)


@pytest.mark.slow
def test_a_window_imports_nothing_of_it_until_it_is_switched_on(tmp_path: Path) -> None:
    asked = """
import sys
from tests.support.guests import desk_at
from app.ui.live_view import owner_view
from app.ui.state.person import OWNER
from app.ui import launch
from pathlib import Path
with desk_at(Path(sys.argv[1])) as desk:
    desk.others.resume()
    owner_view(desk, OWNER, "en", with_charts=True)
    print([each for each in sys.modules if each.startswith(("app.machines", "dask", "distributed", "cryptography"))])
"""
    done = subprocess.run([sys.executable, "-c", asked, str(tmp_path)], cwd=TOP, capture_output=True, text=True, check=False)
    assert done.stdout.strip().splitlines()[-1] == "[]", done.stderr


def finished_at(folder: Path) -> list[int]:
    return [seed for word, seed, _ in light_painter.read_made(folder) if word == "finished"]


def killed_at_once(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for each in family:
            each.kill()
        psutil.wait_procs(family, timeout=20)
        process.wait()


@pytest.mark.slow
@needs_extra
def test_what_another_machine_was_at_goes_on_after_a_crash_here(tmp_path: Path, light_engine: None) -> None:
    for name, step_s in (("main", 9.0), ("helper", 0.05)):
        (tmp_path / name).mkdir()
        light_painter.pace(tmp_path / name, step_s=step_s)
    command = [sys.executable, "-m", "tests.support.light_main", str(tmp_path / "main")]
    helper = open_desk(tmp_path / "helper")
    killed = subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    try:
        helper.others.lend(killed.stdout.readline().strip())
        job = killed.stdout.readline().strip()
        until(lambda: len(finished_at(tmp_path / "helper")) >= 3, LOADING_S)
        killed_at_once(killed)
        main = open_desk(tmp_path / "main")
        light_painter.pace(tmp_path / "main", step_s=0.01)
        try:
            both = main.keeper.interrupted
            assert len(both) == 2
            other = next(each.id for each in both if each.id != job)
            main.others.resume()
            until(lambda: all(each.id != job for each in main.keeper.interrupted), LOADING_S)
            end = next(event for event in main.keeper.follow(job) if isinstance(event, END))
            assert isinstance(end, Finished) and len(main.keeper.shelf.list_of_job(job)) == 8
            assert [each.id for each in main.keeper.interrupted] == [other], "what ran here waits for the person"
        finally:
            close(main)
    finally:
        killed_at_once(killed)
        killed.stdout.close()
        close(helper)
