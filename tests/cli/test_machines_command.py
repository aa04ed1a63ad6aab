"""hearth machines: a code without a window, who was let in, and who no longer is."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from filelock import FileLock

pytest.importorskip("cryptography", reason="the extra machines is not installed")

from app.__main__ import EXIT_TROUBLE, main
from app.base.extras import has_machines
from app.base.paths import home
from app.machines.hub import main_folder, read_port, reserve_port
from app.machines.joining.code import parse_code
from app.machines.joining.join import join
from app.machines.joining.register import Register
from app.ui.state.settings import Settings
from tests.support.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.skipif(not has_machines(), reason="the extra machines is not installed")]


@pytest.mark.parametrize("window_open", [False, True])
def test_a_machine_is_added_without_a_window(window_open: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, ended, said = home(tmp_path / "main").create(), list[int](), list[str]()

    def read() -> str:
        said.append(capsys.readouterr().out)
        return "".join(said)

    window = FileLock(place.open_lock, thread_local=False)
    if window_open:
        window.acquire()
    running = threading.Thread(target=lambda: ended.append(main(["machines", "add", "--home", str(place.root)])))
    running.start()
    until(lambda: "start.py lend" in read())
    code = next(line for line in "".join(said).splitlines() if "/" in line and " " not in line)
    member = join(parse_code(code), tmp_path / "helper" / "lending", "Box")
    running.join()
    window.release()
    assert ended == [0] and "Box can now help." in read()
    assert member.port == read_port(main_folder(place)) == reserve_port(main_folder(place)) > 0
    assert Settings(place.settings).get("machines") == (None if window_open else {"uses": True})
    assert ("Machine tab of the open window" in "".join(said)) is window_open


def test_who_was_let_in_and_who_no_longer_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = home(tmp_path).create()
    register = Register(main_folder(place))
    assert main(["machines", "--home", str(tmp_path)]) == 0 and "start.py machines add" in capsys.readouterr().out
    for id_, name in (("1" * 32, "Box"), ("2" * 32, "Mac"), ("3" * 32, "Mac")):
        register.add(id_, name)
    assert main(["machines", "list", "--home", str(tmp_path)]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["Box", "11111111"],
        ["Mac", "22222222"],
        ["Mac", "33333333"],
    ]
    for names in ([], ["Mac"], ["Nobody"], [""], ["Box", "Nobody"]):
        assert main(["machines", "remove", *names, "--home", str(tmp_path)]) == EXIT_TROUBLE
    assert len(register.list_machines()) == 3
    assert main(["machines", "remove", "Box", "3333", "--home", str(tmp_path)]) == 0
    assert [each.id for each in register.list_machines()] == ["2" * 32]
