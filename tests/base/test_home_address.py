"""Which of this machine's addresses its guests at home are given."""

from __future__ import annotations

import pytest

from app.base.home_address import choose_home_address, find_home_address, is_at_home

WIFI, CABLE, PUBLIC = "192.168.1.7", "10.0.0.9", "8.8.4.4"


@pytest.mark.parametrize(
    ("known", "way_out", "chosen"),
    [
        ({"en0": [WIFI], "lo0": ["127.0.0.1"]}, WIFI, WIFI),
        ({"Wi-Fi": [WIFI], "Ethernet": [CABLE]}, WIFI, WIFI),
        ({"Wi-Fi": [WIFI], "Ethernet": [CABLE]}, "", CABLE),
        ({"wlan0": [WIFI], "utun3": ["10.8.0.2"]}, "10.8.0.2", WIFI),
        ({"wlan0": [WIFI], "docker0": ["172.17.0.1"], "br-12ab": ["172.18.0.1"]}, "", WIFI),
        ({"vEthernet (WSL)": ["172.20.0.1"], "Wi-Fi": [WIFI]}, PUBLIC, WIFI),
        ({"eth0": [PUBLIC]}, PUBLIC, ""),
        ({"eth0": ["169.254.3.4"], "lo": ["127.0.0.1"], "en1": []}, "", ""),
        ({}, "", ""),
    ],
)
def test_the_address_at_home_is_chosen(known: dict[str, list[str]], way_out: str, chosen: str) -> None:
    assert choose_home_address(known, way_out) == chosen


def test_this_machines_own_is_one_at_home_or_none() -> None:
    found = find_home_address()
    assert not found or is_at_home(found)
