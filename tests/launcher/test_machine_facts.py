"""What this machine is asked before torch is there, and which builds torch's index has, with stand-ins for its tools."""

from __future__ import annotations

import http.server
import platform
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.base import graphics_cards
from app.launcher import console, machine_facts, slots, torch_build

GARBLED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."


@pytest.mark.parametrize(
    "told", ["", GARBLED, "No devices were found", 'Field "compute_cap" is not a valid field to query.', "a, b, c", "a,,"]
)
def test_broken_output_is_no_card(told: str) -> None:
    assert machine_facts.parse_cards(told) == ()


def test_a_python_of_the_microsoft_store_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it writes into a person's AppData lands in a copy of its own, which neither Hearth.bat nor Explorer sees."""
    store = r"C:\Program Files\WindowsApps\PythonSoftwareFoundation.Python.3.12_3.12.2800.0_x64__qbz5n2kfra8p0"
    monkeypatch.setattr(machine_facts, "WINDOWS", True)
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.setattr(sys, "base_prefix", store)
    with pytest.raises(console.Refused, match=r"Microsoft Store.*Hearth\.bat"):
        machine_facts.detect_facts()
    assert "'WindowsApps' not in sys.base_prefix" in (slots.TOP / "Hearth.bat").read_text()


def fake_smi(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is a shell script on Linux")
@pytest.mark.parametrize(
    ("script", "expected", "silence"),
    [
        ("echo 'Tesla T4, 550.54.15, 7.5'", (torch_build.Card("Tesla T4", 550, 7.5),), ""),
        # before 2021 nvidia-smi did not know the third field
        (
            'case "$1" in *compute_cap*) echo not valid; exit 2;; *) echo "GTX 1060, 418.39";; esac',
            (torch_build.Card("GTX 1060", 418, None),),
            "",
        ),
        (f'echo "{GARBLED}"; exit 9', (), GARBLED),
        ("exit 6", (), "no message"),
        ("printf '\\377\\376garbage'", (), "\ufffd\ufffdgarbage"),
    ],
)
def test_the_tool_is_asked(
    script: str, expected: tuple[torch_build.Card, ...], silence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_smi(tmp_path, script, monkeypatch)
    found = machine_facts.detect_facts()
    assert (found.cards, found.nvidia_smi_error) == (expected, silence)


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is a shell script on Linux")
def test_a_tool_that_hangs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_smi(tmp_path, "exec sleep 60", monkeypatch)
    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *args, **more: real(*args, **{**more, "timeout": 0.2}))
    assert machine_facts.detect_facts().nvidia_smi_error == "TimeoutExpired"


@pytest.fixture
def index() -> Iterator[str]:
    """An index of wheels as PyTorch's own is, on loopback."""
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = {
                "/cu126/torch/": f"torch-2.13.0%2Bcu126-{python}-{python}-manylinux_2_28_{platform.machine()}.whl",
                "/cu130/torch/": f"torch-2.12.0%2Bcu130-{python}-{python}-manylinux_2_28_{platform.machine()}.whl",
                "/rocm7.2/torch/": f"torch-2.13.0%2Brocm7.2-{python}-{python}-manylinux_2_28_{platform.machine()}.whl",
                "/cpu/torch/": f"torch-2.13.0%2Bcpu-cp27-cp27-manylinux_2_28_{platform.machine()}.whl",
            }.get(self.path)
            self.send_response(200 if name else 404)
            self.end_headers()
            self.wfile.write(f'<a href="{name}">'.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_only_a_build_that_is_there_counts(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_facts, "WHEELS", index)
    there = {build: machine_facts.is_offered(build, "2.13.0") for build in ("cu126", "cu130", "rocm7.2", "cpu", "cu128")}
    assert there == {"cu126": True, "cu130": False, "rocm7.2": True, "cpu": False, "cu128": False}  # other torch; other Python; no page


def test_a_silent_index_is_left_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(machine_facts, "WHEELS", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(machine_facts, "REACH_S", 0.3)
        began = time.monotonic()
        assert not machine_facts.is_offered("cpu", "2.13.0")
        assert time.monotonic() - began < 30, "without a limit it would wait for ever"
    assert not machine_facts.is_offered("cpu", "2.13.0"), "a closed port"


@pytest.mark.parametrize(("version", "major"), [("13.6.4", 13), ("14.5", 14), ("26.0", 26), ("", 14), ("16.0", 14)])
def test_a_mac_tells_its_version(version: str, major: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    answers = {"hw.optional.arm64": "1\n", "kern.osproductversion": version}
    monkeypatch.setattr(subprocess, "run", lambda command, **more: SimpleNamespace(stdout=answers[command[-1]]))
    monkeypatch.setattr(platform, "mac_ver", lambda: ("16.0", ("", "", ""), "arm64"))
    assert machine_facts.detect_facts() == torch_build.ComputerFacts("Darwin", "arm64", macos=major)


def test_a_radeon_is_found_with_its_target_and_whether_it_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_facts, "ask_nvidia", lambda facts: facts)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(graphics_cards, "find_names", lambda: ("AMD Radeon RX 7900 XT/7900 XTX",))
    monkeypatch.setattr(graphics_cards, "KFD", tmp_path)
    monkeypatch.setattr(machine_facts, "KFD", tmp_path / "kfd")
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "properties").write_text("simd_count 192\ngfx_target_version 110000\n")
    found = machine_facts.detect_facts()
    assert (found.seen, found.gfx_targets, found.kfd_opens) == (("AMD Radeon RX 7900 XT/7900 XTX",), ("gfx1100",), False)
    (tmp_path / "kfd").touch()
    assert machine_facts.detect_facts().kfd_opens
