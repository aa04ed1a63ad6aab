"""Hearth's own window with a real engine, on a virtual screen: the page stands in light and dark, one instance, its place, its end."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from app.base.palette import PALETTE
from app.ui.own_window import RUN
from tests.support.places import TOP
from tests.support.waiting import LOADING_S, until

FIND = "import sys; from app.window import engines; engines.prepare_system(); sys.exit(engines.find_engine() is None)"
OPEN = [sys.executable, "-m", "app", "open", "--home"]
THEMES = (
    [("Adwaita", PALETTE["ground"][:1]), ("Adwaita:dark", PALETTE["ground"][1:])] if sys.platform == "linux" else [("", PALETTE["ground"])]
)
"""In GTK's theme the page may have these colours; elsewhere the system's own decides."""
ASKS = """<body style="background: #faf6f0"><script>
  const wanted = [Notification.requestPermission(), navigator.mediaDevices.getUserMedia({ audio: true }).catch((fault) => fault.name)];
  Promise.all(wanted).then(([notes, sound]) => { localStorage.tried = notes; fetch(`/said?${notes},${sound}`); });
</script></body>"""
"""The page asks for notifications and the microphone; where there is none, it is not found once it is allowed."""
QUITS_S = 15.0
"""It may take so long from the answer "Quit" to the end, with a job running on a busy machine; each wait in it is bounded, at 10 s in all."""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def screen() -> Iterator[dict[str, str]]:
    """The environment of a program on a virtual screen; on a Mac and on Windows there is a real one."""
    if sys.platform != "linux":
        yield dict(os.environ)
        return
    if shutil.which("Xvfb") is None:
        pytest.skip("there is no Xvfb for a virtual screen")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1400x900x24", "-nolisten", "tcp"], pass_fds=[write], stderr=subprocess.DEVNULL
    )
    os.close(write)
    with os.fdopen(read) as said:
        number = said.readline().strip()
    environment = {**os.environ, "DISPLAY": f":{number}", "WAYLAND_DISPLAY": "", "BROWSER": "false", "OMP_NUM_THREADS": "1"}
    try:
        found = subprocess.run([sys.executable, "-c", FIND], cwd=TOP, env=environment, capture_output=True, text=True)
        if found.returncode:
            pytest.skip(f"pywebview finds no engine here: {found.stderr.strip().splitlines()[-1:]}")
        yield environment
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="module")
def engine(screen: dict[str, str]) -> str:
    """What pywebview calls the engine that it finds."""
    finds = "import sys; from app.window import engines; engines.prepare_system(); print(engines.find_engine().kind)"
    return subprocess.run([sys.executable, "-c", finds], cwd=TOP, env=screen, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(("theme", "grounds"), THEMES, ids=[each or "system" for each, _ in THEMES])
def test_the_page_stands_in_the_systems_light(
    tmp_path: Path, screen: dict[str, str], engine: str, theme: str, grounds: tuple[str, ...]
) -> None:
    if engine == "qtwebengine" and theme.endswith("dark"):
        pytest.skip("Qt takes its light from the desktop, and a virtual screen has none")
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"window": {"x": 70, "y": 40, "width": 1000, "height": 700}}))

    def kept() -> dict[str, object]:
        return json.loads((folder / "settings.json").read_text()).get("window", {})

    child = subprocess.Popen([*OPEN, str(folder)], cwd=TOP, env={**screen, "GTK_THEME": theme}, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        address = child.stdout.readline().split()[-1]
        until(lambda: kept().get("ground") in grounds, LOADING_S)
        assert {name: kept()[name] for name in ("x", "y", "width", "height")} == {"x": 70, "y": 40, "width": 1000, "height": 700}
        again = subprocess.run([*OPEN, str(folder)], cwd=TOP, env=screen, capture_output=True, text=True, timeout=LOADING_S)
        assert again.returncode == 0 and "already open" in again.stdout
        assert "the browser serves" not in (folder / "logs" / "hearth.log").read_text()
        httpx.post(f"{address}hearth/window/quit", json={}, trust_env=False)
        assert child.wait(timeout=LOADING_S) == 0
    finally:
        child.kill()
        child.wait()


def test_it_quits_in_the_middle_of_a_job(tmp_path: Path, screen: dict[str, str]) -> None:
    folder = tmp_path / "home"
    child = subprocess.Popen([*OPEN, str(folder)], cwd=TOP, env=screen, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        address = child.stdout.readline().split()[-1]
        asked = {"model": "starter", "input": "[S1] It is warm today. [S2] The sea is calm. " * 60, "voice": "alloy"}

        def speak() -> None:
            with suppress(httpx.HTTPError):
                httpx.post(f"{address}v1/audio/speech", json=asked, timeout=600, trust_env=False)

        threading.Thread(target=speak, daemon=True).start()
        until(lambda: any((folder / "scratch" / "jobs").glob("*/part-*.json")), LOADING_S)
        question = httpx.get(f"{address}hearth/window", trust_env=False).json()["text"]
        assert "1 job is not finished." in question
        httpx.post(f"{address}hearth/window/quit", json={}, trust_env=False)
        assert child.wait(timeout=QUITS_S) == 0
    finally:
        child.kill()
        child.wait()


def test_what_the_page_asks_is_answered_and_it_keeps_its_things_at_home(tmp_path: Path, screen: dict[str, str], engine: str) -> None:
    """With Qt 6 pywebview answered in the way of Qt 5, which ended the window; and its storage lay in the person's folder."""
    if engine != "qtwebengine":
        pytest.skip(f"the engine here is {engine}, which asks for a person's press first")
    heard: list[str] = []

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(ASKS.encode() if self.path == "/" else b"")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    order = {
        "address": f"http://127.0.0.1:{server.server_port}/", "geometry": {}, "ground": "#faf6f0", "storage": str(tmp_path / "kept"),
        "icon": "", "words": {},
    }  # fmt: skip
    (tmp_path / "person").mkdir()
    environment = {**screen, "HOME": str(tmp_path / "person")}
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", RUN, str(TOP)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"open": order}) + "\n")
        process.stdin.flush()
        until(lambda: any(each.startswith("/said") for each in heard) or process.poll() is not None, LOADING_S)
        assert process.poll() is None, "the window has ended"
        assert next(each for each in heard if each.startswith("/said")).startswith("/said?granted,")
        assert (tmp_path / "kept").is_dir() and not (tmp_path / "person" / ".pywebview").exists()
    finally:
        process.kill()
        process.wait()
        server.shutdown()
