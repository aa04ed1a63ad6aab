"""hearth open as a person meets it: one instance, busy ports, a dead proxy, a start that fails, a login on the network. Real processes."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from app.base.paths import home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.launcher import failure
from app.ui import launch as ui_launch
from app.ui import share, start_failure
from app.ui.api import gradio_endpoints
from app.ui.launch import LaunchOptions, announce, choose_port, launch
from app.ui.single_instance import Instance
from tests.support.denied import denied
from tests.support.places import TOP

pytestmark = pytest.mark.long


@contextmanager
def opened(folder: Path, *options: str, **environment: str) -> Iterator[tuple[str, str]]:
    """Its address, and all that it said until then and one line more where it logs in."""
    child = subprocess.Popen(
        [sys.executable, "-m", "app", "open", "--no-browser", "--home", str(folder), *options],
        cwd=TOP,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert child.stdout is not None
    try:
        said = ""
        while not (found := re.search(r"open at (\S+)", said)):
            line = child.stdout.readline()
            assert line, said
            said += line
        if "--listen" in options:
            said += child.stdout.readline()
        yield found[1], said
    finally:
        child.terminate()
        child.wait(timeout=60)
        child.stdout.close()


def again(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app", "open", "--no-browser", "--home", str(folder), *options]
    return subprocess.run(command, cwd=TOP, text=True, capture_output=True, timeout=120, check=False)


@pytest.mark.slow
def test_one_instance_a_busy_port_a_dead_proxy(tmp_path: Path) -> None:
    """One start for all of it: each takes seconds."""
    folder = tmp_path / "Ünser Heim"
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port, dead = busy.getsockname()[1], "http://127.0.0.1:9"
        # The first port tried is this one in place of 7860, which any other Hearth of these tests may hold, and leave.
        with opened(folder, GRADIO_SERVER_PORT=str(port), HTTP_PROXY=dead, http_proxy=dead, ALL_PROXY=dead) as (address, _):
            assert port < int(address.strip("/").rpartition(":")[2]) < port + 100
            assert httpx.get(f"{address}hearth/live", trust_env=False).status_code == 200
            assert httpx.get(f"{address}openapi.json", trust_env=False).status_code == 404
            assert httpx.get(f"{address}config", headers={"Host": "evil.example"}, trust_env=False).status_code == 421
            second = again(folder)
            assert second.returncode == 0 and f"already open at {address}" in second.stdout, second
            assert "without" not in second.stdout
            third = again(folder, "--pretend", "gtx-1060", "--port", "7999")
            assert third.returncode == 0 and "without --pretend, --port." in third.stdout, third
            facts = json.loads((folder / "open.json").read_text())
            assert facts["address"] == address
    after = Instance(folder)
    assert after.acquire(), "a lock dies with its holder"
    after.release()


STUCK = """
import sys, time
from app.ui import process_limits
from app.engine.keeper.keeper import Keeper
process_limits.ENDS_S = 1.0
Keeper.close = lambda self: time.sleep(600)
from app.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_the_end_does_not_wait_for_what_never_ends(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", STUCK, "open", "--no-browser", "--home", str(tmp_path)],
        cwd=TOP,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert child.stdout is not None
    try:
        assert "open at" in child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=120) == 0
        assert "keeper.close()" in (tmp_path / "logs" / "hearth.log").read_text(), "where it waited"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def lets_assistants_in(address: str) -> bool:
    """Ask as an assistant begins to."""
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    }  # fmt: skip
    heads = {"Accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{address}gradio_api/mcp/", json=hello, headers=heads, trust_env=False, timeout=60)
    return answer.status_code == 200 and "serverInfo" in answer.text


@pytest.mark.skipif(find_spec("mcp") is None, reason="the extra mcp is not there")
def test_assistants_are_let_in_by_the_switch_or_the_option(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"assistants": true}')
    with opened(tmp_path) as (address, _):
        assert lets_assistants_in(address)
        view = httpx.post(f"{address}hearth/upkeep/no-assistants", json={}, trust_env=False).json()
        assert view["assistants"] == {"wanted": False, "address": f"{address}gradio_api/mcp/", "fixed": ""}
    (tmp_path / "open-port").unlink()  # by now another program may have it
    with opened(tmp_path, "--mcp") as (address, _):
        assert lets_assistants_in(address)
        view = httpx.get(f"{address}hearth/upkeep", trust_env=False).json()
        assert "--mcp" in view["assistants"]["fixed"] and not view["assistants"]["wanted"]


def test_assistants_are_not_let_in_from_a_network() -> None:
    assert gradio_endpoints.explain_assistants(False, "127.0.0.1") is None
    assert "cannot log in" in str(gradio_endpoints.explain_assistants(False, "0.0.0.0"))


def test_a_library_that_does_not_load_keeps_hearth_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise AttributeError("no such attribute")

    monkeypatch.setattr(gradio_endpoints, "import_module", fail)
    assert str(gradio_endpoints.explain_broken()).endswith("does not load: no such attribute")


def test_on_a_network_it_tells_the_address_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A phone has no use for "localhost", and who was told the password was not told that it makes them the owner."""
    monkeypatch.setattr(share, "find_home_address", lambda: "192.168.1.7")
    announce(LaunchOptions(home(tmp_path), host="0.0.0.0"), "https://localhost:7123/", "a b c")
    told = capsys.readouterr().out
    assert "https://192.168.1.7:7123/" in told and "all that you may" in told
    announce(LaunchOptions(home(tmp_path), host="192.168.1.8"), "http://192.168.1.8:7123/", "a b c")
    assert "192.168.1.7" not in (told := capsys.readouterr().out) and "all that you may" in told
    announce(LaunchOptions(home(tmp_path)), "http://127.0.0.1:7123/", "")
    assert capsys.readouterr().out.splitlines() == ["Hearth is open at http://127.0.0.1:7123/"]


def test_a_stale_lock_is_noticed(tmp_path: Path) -> None:
    """What a killed one leaves: its file says where it was, but nobody holds the lock."""
    (tmp_path / "open.json").write_text(json.dumps({"address": "http://127.0.0.1:9/", "id": "x", "process": 1}))
    (tmp_path / "open.lock").write_text("")
    first, second = Instance(tmp_path), Instance(tmp_path)
    assert first.acquire() and not (tmp_path / "open.json").exists()
    assert not second.acquire()
    with pytest.raises(Trouble) as caught:
        second.find_running(wait_s=0.3)
    assert caught.value.sentence.key == "open.silent"
    first.release()
    assert second.acquire()
    second.release()


@pytest.mark.parametrize("taken", [False, True])
def test_the_next_start_takes_the_same_port_where_it_is_free(tmp_path: Path, taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is still open looks for it there."""
    asked = set[int]()

    def look(host: str, port: int) -> None:
        asked.add(port)
        if taken:
            raise Trouble(say("open.test", "taken"))

    monkeypatch.setattr(ui_launch, "require_port", look)
    first, second = Instance(tmp_path), Instance(tmp_path)
    assert first.acquire() and choose_port(LaunchOptions(home(tmp_path)), first) is None
    first.publish("http://127.0.0.1:7123/")
    first.release()
    assert second.acquire()
    assert choose_port(LaunchOptions(home(tmp_path)), second) == (None if taken else 7123)
    assert choose_port(LaunchOptions(home(tmp_path), port=7999), second) == 7999
    assert asked == {7123}
    second.release()


def test_a_port_that_another_program_listens_on_is_not_taken_again(tmp_path: Path) -> None:
    instance = Instance(tmp_path)
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        line.listen()
        port = line.getsockname()[1]
        assert instance.acquire()
        instance.publish(f"http://127.0.0.1:{port}/")
        assert instance.find_last_port() == port and choose_port(LaunchOptions(home(tmp_path)), instance) is None
        instance.release()


@pytest.mark.parametrize("content", [b"", b"x", b"0", b"70000", b"\xff"])
def test_a_damaged_port_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "open-port").write_bytes(content)
    assert Instance(tmp_path).find_last_port() is None


def test_another_program_on_the_port_is_not_taken_for_hearth(tmp_path: Path) -> None:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        line.listen()
        first, second = Instance(tmp_path), Instance(tmp_path)
        assert first.acquire()
        first.publish(f"http://127.0.0.1:{line.getsockname()[1]}/")
        with pytest.raises(Trouble):
            second.find_running(wait_s=0.1)
        first.release()


@pytest.mark.slow
def test_a_start_that_fails_leaves_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    command = [sys.executable, "-m", "app", "open", "--no-browser", "--home", str(folder), "--certificate", "none.pem"]
    done = subprocess.run(command, cwd=TOP, text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 2 and "--certificate and --key" in done.stderr
    page = (folder / "logs" / "hearth-did-not-start.html").read_text("utf-8")
    assert "--certificate and --key" in page and "repair" in page and "Hearth did not start" in page
    assert "the start failed" in (folder / "logs" / "hearth.log").read_text()


@pytest.mark.parametrize("name", ["logs", "scratch", "models"])
def test_a_file_in_the_place_of_a_folder_is_told_with_what_to_do(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(Trouble, match="move that away"):
        launch(LaunchOptions(home(tmp_path), browser=False))
    assert (tmp_path / name).read_text() == "mine"


def test_a_folder_that_may_not_be_written_is_told_with_what_to_do(tmp_path: Path) -> None:
    place = home(tmp_path / "h").create()
    with denied(place.logs, 0o500), pytest.raises(OSError) as fault:
        start_failure.start_log(place)
    said = start_failure.describe(place, fault.value).words
    assert "hearth.log" in said["en"] and "Permission denied" in said["en"] and "--home" in said["en"] and "--home" in said["zh"]


def test_the_page_tells_the_fault_and_hides_who_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    place = home(tmp_path / "h").create()
    try:
        raise ValueError("<script> in /home/ada/secret")
    except ValueError as fault:
        page = start_failure.write_page(place, fault, "en").read_text("utf-8")
    assert "ValueError" in page and "<script>" not in page and "/home/ada" not in page
    told = tmp_path / "told.json"
    monkeypatch.setenv(failure.FILE_VARIABLE, str(told))
    chinese = start_failure.write_page(place, Trouble(say("x", "plain words")), "zh").read_text("utf-8")
    assert "plain words" in chinese and 'lang="zh-CN"' in chinese and start_failure.is_supervised()
    kept = failure.read(told)
    assert kept and kept.words["en"] == "plain words" and "/home/ada" not in kept.report, "start.py is told too"


def test_logs_rotate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_failure, "LOG_BYTES", 2000)
    place = home(tmp_path).create()
    handler = start_failure.start_log(place)
    for n in range(200):
        logging.getLogger("hearth.test").warning("line %d of many", n)
    logging.getLogger().removeHandler(handler)
    handler.close()
    logs = sorted(place.logs.glob("hearth.log*"))
    assert len(logs) == start_failure.LOGS_KEPT + 1 and all(each.stat().st_size <= 2000 for each in logs)


@pytest.mark.slow
def test_on_the_network_everybody_logs_in(tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    made = subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("no openssl here")
    options = ("--listen", "0.0.0.0", "--certificate", str(certificate), "--key", str(key))
    with (
        opened(tmp_path / "home", *options, HEARTH_API_KEY="a kiln of nine") as (address, said),
        httpx.Client(base_url=address, verify=False, trust_env=False) as client,
    ):
        words = re.search(r"Log in with: (.+)", said)
        assert words and address.startswith("https://")
        assert client.get("/config").status_code == 401
        assert client.get("/v1/models").status_code == 401
        assert client.get("/v1/models", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/v1/models", headers={"Authorization": "Bearer a kiln of nine"}).status_code == 200
        assert client.get("/hearth/shelf", headers={"Authorization": "Bearer a kiln of nine"}).status_code == 401, "a key is for programs"
        assert client.post("/hearth/login", data={"password": words[1]}).status_code == 303
        assert client.get("/config").status_code == 200 and client.get("/hearth/shelf").status_code == 200
        log = (tmp_path / "home" / "logs" / "hearth.log").read_text()
        assert words[1] not in log and "a kiln of nine" not in log
        assert again(tmp_path / "home").returncode == 0
