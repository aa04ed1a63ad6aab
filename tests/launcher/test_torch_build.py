"""Which torch for which machine: what nvidia-smi said on it -> the builds tried, and why."""

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

import pytest

from app.launcher import console, slots, torch_build

GARBLED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
NVIDIA = [
    ("GTX 1060", "NVIDIA GeForce GTX 1060 6GB, 535.183.01, 6.1", "cu126", "before 7.5"),
    ("GTX 1060, newest driver", "NVIDIA GeForce GTX 1060 6GB, 580.95.05, 6.1", "cu126", "before 7.5"),
    ("GTX 1060, old driver", "GeForce GTX 1060 6GB, 470.223.02, 6.1", "", "driver 470 is older than 525"),
    ("GTX 1060, too old to tell", "GeForce GTX 1060 6GB, 418.39", "", "driver 418 is older than 525"),
    ("capability not told", "NVIDIA Graphics Device, 535.10, [N/A]", "cu126", "unknown"),
    ("GTX 680", "GeForce GTX 680, 525.60, 3.0", "", "no CUDA build supports less than 5.0"),
    ("V100", "Tesla V100-SXM2-16GB, 550.54.15, 7.0", "cu126", "before 7.5"),
    ("Tesla T4", "Tesla T4, 550.54.15, 7.5", "cu126", "13 needs driver 580"),
    ("Tesla T4, new driver", "Tesla T4, 580.65.06, 7.5", "cu130 cu126", "CUDA 13.0"),
    ("RTX 3060", "NVIDIA GeForce RTX 3060, 551.86, 8.6", "cu126", "13 needs driver 580"),
    ("RTX 4090", "NVIDIA GeForce RTX 4090, 581.15, 8.9", "cu130 cu126", "CUDA 13.0"),
    ("RTX 5090", "NVIDIA GeForce RTX 5090, 580.65.06, 12.0", "cu130 cu126", "CUDA 13.0"),
    ("RTX 5090, driver 572", "NVIDIA GeForce RTX 5090, 572.16, 12.0", "cu129 cu128", "13 needs driver 580"),
    ("RTX 5090, driver 566", "NVIDIA GeForce RTX 5090, 566.36, 12.0", "", "needs driver 570 and has 566"),
    ("1060 beside 3090", "GTX 1060, 580.1, 6.1\nRTX 3090, 580.1, 8.6", "cu126", "capability 6.1"),
    ("1060 beside 5090", "GTX 1060, 580.1, 6.1\nRTX 5090, 580.1, 12.0", "cu130 cu126", "RTX 5090"),
    ("a warning before the card", "WARNING: infoROM is corrupted\nTesla T4, 580.65.06, 7.5", "cu130 cu126", "Tesla T4"),
]


@pytest.mark.parametrize(("told", "builds", "why"), [row[1:] for row in NVIDIA], ids=[row[0] for row in NVIDIA])
@pytest.mark.parametrize(
    ("system", "machine", "plain"), [("Linux", "x86_64", ["cpu", ""]), ("Linux", "aarch64", ["cpu", ""]), ("Windows", "AMD64", [""])]
)
def test_nvidia(told: str, builds: str, why: str, system: str, machine: str, plain: list[str]) -> None:
    picked = torch_build.choose_build(torch_build.ComputerFacts(system, machine, torch_build.parse_cards(told)))
    assert [*picked.builds] == builds.split() + plain
    assert why in str(picked.because)


@pytest.mark.parametrize(
    "told", ["", GARBLED, "No devices were found", 'Field "compute_cap" is not a valid field to query.', "a, b, c", "a,,"]
)
def test_broken_output_is_no_card(told: str) -> None:
    assert torch_build.parse_cards(told) == ()


@pytest.mark.parametrize(
    ("facts", "builds", "why"),
    [
        (torch_build.ComputerFacts("Darwin", "arm64"), [""], "Metal"),
        (torch_build.ComputerFacts("Linux", "x86_64"), ["cpu", ""], "no NVIDIA card"),
        (torch_build.ComputerFacts("Linux", "aarch64"), ["cpu", ""], "no NVIDIA card"),
        (torch_build.ComputerFacts("Windows", "AMD64"), [""], "no NVIDIA card"),
        (torch_build.ComputerFacts("Linux", "x86_64", (), GARBLED), ["cpu", ""], GARBLED),
    ],
)
def test_without_nvidia(facts: torch_build.ComputerFacts, builds: list[str], why: str) -> None:
    picked = torch_build.choose_build(facts)
    assert [*picked.builds] == builds and why in str(picked.because)


@pytest.mark.parametrize(
    ("facts", "why", "cure"),
    [
        (torch_build.ComputerFacts("Darwin", "x86_64"), "Intel Mac", "Apple silicon"),
        (torch_build.ComputerFacts("Linux", "armv7l"), "armv7l", "64-bit"),
        (torch_build.ComputerFacts("Windows", "x86"), "x86", "64-bit"),
        (torch_build.ComputerFacts("Windows", "ARM64"), "Python for ARM", "Intel and AMD"),
    ],
)
def test_refused_with_a_cure(facts: torch_build.ComputerFacts, why: str, cure: str) -> None:
    with pytest.raises(console.Refused, match=why) as refused:
        torch_build.choose_build(facts)
    assert cure in str(refused.value)


def test_a_python_of_the_microsoft_store_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it writes into a person's AppData lands in a copy of its own, which neither Hearth.bat nor Explorer sees."""
    store = r"C:\Program Files\WindowsApps\PythonSoftwareFoundation.Python.3.12_3.12.2800.0_x64__qbz5n2kfra8p0"
    monkeypatch.setattr(torch_build, "WINDOWS", True)
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.setattr(sys, "base_prefix", store)
    with pytest.raises(console.Refused, match=r"Microsoft Store.*Hearth\.bat"):
        torch_build.detect_facts()
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
    found = torch_build.detect_facts()
    assert (found.cards, found.nvidia_smi_error) == (expected, silence)


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is a shell script on Linux")
def test_a_tool_that_hangs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_smi(tmp_path, "exec sleep 60", monkeypatch)
    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *args, **more: real(*args, **{**more, "timeout": 0.2}))
    assert torch_build.detect_facts().nvidia_smi_error == "TimeoutExpired"


@pytest.fixture
def index() -> Iterator[str]:
    """An index of wheels as PyTorch's own is, on loopback."""
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = {
                "/cu126/torch/": f"torch-2.13.0%2Bcu126-{python}-{python}-manylinux_2_28_{platform.machine()}.whl",
                "/cu130/torch/": f"torch-2.12.0%2Bcu130-{python}-{python}-manylinux_2_28_{platform.machine()}.whl",
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
    monkeypatch.setattr(torch_build, "WHEELS", index)
    there = {build: torch_build.is_offered(build, "2.13.0") for build in ("cu126", "cu130", "cpu", "cu128")}
    assert there == {"cu126": True, "cu130": False, "cpu": False, "cu128": False}  # other torch; other Python; no page


def test_a_silent_index_is_left_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(torch_build, "WHEELS", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(torch_build, "REACH_S", 0.3)
        began = time.monotonic()
        assert not torch_build.is_offered("cpu", "2.13.0")
        assert time.monotonic() - began < 2
    assert not torch_build.is_offered("cpu", "2.13.0"), "a closed port"
