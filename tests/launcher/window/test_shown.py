"""Hearth's own window with a real engine, on a virtual screen: the page stands in light and dark, one instance, its place, its end."""

from __future__ import annotations

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

from app.palette import PALETTE
from tests.support.places import TOP
from tests.support.waiting import LOADING_S, until

FIND = "import sys; from app.launcher.window import engines; engines.prepare_system(); sys.exit(engines.find_engine() is None)"
OPEN = [sys.executable, "-m", "app", "open", "--home"]
THEMES = (
    [("Adwaita", PALETTE["ground"][:1]), ("Adwaita:dark", PALETTE["ground"][1:])] if sys.platform == "linux" else [("", PALETTE["ground"])]
)
"""GTK's theme, and the colours that the page may have in it; elsewhere the system's own decides."""
QUITS_S = 15.0
"""From the answer "Quit" to the end, with a job running on a busy machine; each wait in it is bounded, at 10 s in all."""
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


@pytest.mark.parametrize(("theme", "grounds"), THEMES, ids=[each or "system" for each, _ in THEMES])
def test_the_page_stands_in_the_systems_light(tmp_path: Path, screen: dict[str, str], theme: str, grounds: tuple[str, ...]) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"window": {"x": 70, "y": 40, "width": 1000, "height": 700}}))

    def kept() -> dict[str, object]:
        return json.loads((folder / "settings.json").read_text()).get("window", {})  # type: ignore[no-any-return]

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
        until(lambda: list((folder / "scratch" / "jobs").glob("*/part-*.json")), LOADING_S)
        question = httpx.get(f"{address}hearth/window", trust_env=False).json()["text"]
        assert "1 job is not finished." in question
        httpx.post(f"{address}hearth/window/quit", json={}, trust_env=False)
        assert child.wait(timeout=QUITS_S) == 0
    finally:
        child.kill()
        child.wait()
