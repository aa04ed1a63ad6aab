"""Which cards a system names, from what its own tools and files say; the tools are stand-ins."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.base import graphics_cards
from app.base.graphics_cards import find_names, is_separate, parse_lspci, parse_profiler, read_gfx_targets

LSPCI = """\
00:02.0 "VGA compatible controller" "Intel Corporation" "AlderLake-S GT1 [UHD Graphics 770]" -r0c -p00 "ASUSTeK Computer Inc." "Device 8694"
00:1f.3 "Audio device" "Intel Corporation" "Alder Lake-S HD Audio Controller" -r11 -p00 "ASUSTeK Computer Inc." "Device 87fb"
03:00.0 "VGA compatible controller" "Advanced Micro Devices, Inc. [AMD/ATI]" "Navi 23 [Radeon RX 6600/6600 XT/6600M]" -rc7 -p00 "XFX" "6505"
04:00.0 "3D controller" "NVIDIA Corporation" "GP106 [GeForce GTX 1060 6GB]" "PNY" "Device 11bf"
05:00.0 "Display controller" "Intel Corporation" "DG2 [Arc A770]" -r08 "Intel Corporation" "Device 1020"
06:00.0 "VGA compatible controller" "ASPEED Technology, Inc." "ASPEED Graphics Family" -r41 "ASPEED" "ASPEED Graphics Family"
07:00.0 "VGA compatible controller" "Advanced Micro Devices, Inc. [AMD/ATI]" "Raphael" -rc1
an unclosed "quotation
"""
SEEN = ("Intel UHD Graphics 770", "AMD Radeon RX 6600/6600 XT/6600M", "NVIDIA GeForce GTX 1060 6GB", "Intel Arc A770", "AMD Raphael")


def test_lspci_names_cards_and_nothing_else() -> None:
    assert parse_lspci(LSPCI) == SEEN
    assert parse_lspci("") == ()


@pytest.mark.parametrize(
    ("name", "separate"),
    [
        ("NVIDIA GeForce GTX 1060 6GB", True), ("AMD Radeon RX 6600/6600 XT/6600M", True), ("AMD Radeon Pro W6600", True),
        ("AMD Radeon(TM) RX 580", True), ("Intel Arc A770", True), ("Intel(R) Arc(TM) A770 Graphics", True),
        ("AMD Radeon(TM) Graphics", False), ("AMD Radeon 780M", False), ("AMD Raphael", False), ("Intel(R) UHD Graphics 770", False),
        ("AMD Radeon Vega Series / Radeon Vega Mobile Series", False), ("Intel Iris Xe Graphics", False),
    ],
)  # fmt: skip
def test_names_tell_a_card_of_its_own(name: str, separate: bool) -> None:
    assert is_separate(name) is separate


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is a shell script on Linux")
def test_linux_asks_lspci_and_puts_separate_cards_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "said").write_text(LSPCI)
    tool = tmp_path / "lspci"
    tool.write_text(f"#!/bin/sh\ncat '{tmp_path}/said'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert find_names() == (*SEEN[1:4], SEEN[0], SEEN[4])
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(graphics_cards, "WAIT_S", 0.2)
    monkeypatch.setattr(graphics_cards, "DRM", tmp_path)
    for number, vendor in enumerate(("0x1002", "0x1af4")):  # a Radeon, and the card of a virtual machine
        (tmp_path / f"card{number}" / "device").mkdir(parents=True)
        (tmp_path / f"card{number}" / "device" / "vendor").write_text(f"{vendor}\n")
    assert find_names() == ("AMD graphics card",), "where lspci hangs, at least the vendor"


def test_windows_follows_its_list_of_adapters_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Windows 10 and 11 keep it: several heads of one card, a basic adapter, a key that went away."""
    path = r"\Registry\Machine\System\CurrentControlSet\Control\Video\{%s}\0000"
    adapters = {"intel": "Intel(R) UHD Graphics 770", "amd": "AMD Radeon RX 6600", "basic": "Microsoft Basic Display Adapter"}
    heads = [path % each for each in ("intel", "amd", "amd", "basic", "gone")] + [5]
    keys = {(path % each).removeprefix("\\Registry\\Machine\\"): name for each, name in adapters.items()}

    class Key:
        def __init__(self, path: str) -> None:
            if path != r"HARDWARE\DEVICEMAP\VIDEO" and path not in keys:
                raise FileNotFoundError(2, "The system cannot find the file specified")
            self.path = path

        def __enter__(self) -> Key:
            return self

        def __exit__(self, *fault: object) -> None: ...

    registry = SimpleNamespace(
        HKEY_LOCAL_MACHINE=1,
        OpenKey=lambda machine, path: Key(path),
        QueryInfoKey=lambda key: (0, len(heads), 0),
        EnumValue=lambda key, index: (rf"\Device\Video{index}", heads[index], 1),
        QueryValueEx=lambda key, name: (keys[key.path], 1) if name == "DriverDesc" else None,
    )
    monkeypatch.setitem(sys.modules, "winreg", registry)
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    assert find_names() == ("AMD Radeon RX 6600", "Intel(R) UHD Graphics 770")


def test_a_mac_names_its_cards() -> None:
    said = {"SPDisplaysDataType": [{"sppci_model": "Intel UHD Graphics 630"}, {"sppci_model": "AMD Radeon Pro 5500M"}]}
    assert parse_profiler(json.dumps(said)) == ("Intel UHD Graphics 630", "AMD Radeon Pro 5500M")
    for broken in ("", "{}", "[]", '{"SPDisplaysDataType": [{}]}'):
        assert parse_profiler(broken) == ()


def test_targets_are_read_in_the_drivers_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphics_cards, "KFD", tmp_path)
    for node, version in {0: 0, 1: 110000, 2: 100302, 3: 90010, 10: 110501}.items():
        (tmp_path / str(node)).mkdir()
        (tmp_path / str(node) / "properties").write_text(f"cpu_cores_count 0\ngfx_target_version {version}\nvendor_id 4098\n")
    (tmp_path / "4" / "properties").mkdir(parents=True)  # unreadable
    assert read_gfx_targets() == ("gfx1100", "gfx1032", "gfx90a", "gfx1151")


def test_an_unknown_system_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Plan9")
    assert find_names() == ()
