"""What is announced in the network, and what of others' announcements is listened to: anybody can forge them."""

from __future__ import annotations

from unittest import mock

import pytest

from app.machines import nearby
from app.machines.nearby import Announcement, Nearby, is_near, read_announcement
from tests.support.waiting import until

pytestmark = pytest.mark.long

ID = "0123456789abcdef" * 2
MAIN = {b"kind": b"main", b"name": b"Desk", b"id": ID.encode(), b"pairing": b"4100"}


def test_a_main_machine_says_where_it_is_and_who_it_claims_to_be() -> None:
    seen = read_announcement(MAIN, 4000, ["192.168.1.20", "8.8.8.8", "not an address"])
    assert seen is not None and seen.announced == Announcement("main", "Desk", ID, 4000, 4100) and seen.hosts == ("192.168.1.20",)
    lends = read_announcement({b"kind": b"lends", b"name": b"Box"}, 0, [])
    assert lends is not None and lends.announced == Announcement("lends", "Box") and lends.hosts == ()


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "127.0.0.1", "0.0.0.0", "224.0.0.251", "255.255.255.255", "::1", "fe80::1", "", "localhost", "10.0.0.1:80"]
)
def test_an_announcement_sends_nobody_into_the_world_or_to_himself(address: str) -> None:
    assert not is_near(address) and read_announcement(MAIN, 4000, [address]) is None


@pytest.mark.parametrize("change", [
    {b"kind": b"other"}, {b"kind": None}, {b"id": b""}, {b"id": b"../../x"}, {b"id": ID.upper().encode()}, {b"id": b"\xff" * 32}, {b"pairing": b"70000"},
], ids=str)  # fmt: skip
def test_an_odd_announcement_is_not_listened_to(change: dict[bytes, bytes | None]) -> None:
    assert read_announcement({**MAIN, **change}, 4000, ["192.168.1.20"]) is None


def test_what_is_shown_of_it_is_short_and_plain() -> None:
    seen = read_announcement({**MAIN, b"name": b"a\x1b[31m\n" + b"b" * 500, b"pairing": b"-1"}, 4000, [f"10.0.0.{n}" for n in range(50)])
    assert seen is not None and len(seen.hosts) == nearby.HOSTS_MOST and seen.announced.pairing_port == 0
    assert len(seen.announced.name) <= 40 and seen.announced.name.isprintable()
    for port in (0, -1, 70_000, None, "80"):
        assert read_announcement(MAIN, port, ["192.168.1.20"]) is None


@pytest.mark.slow
def test_two_hearths_see_each_other_for_real() -> None:
    pytest.importorskip("zeroconf", reason="the extra machines is not installed")
    told = Announcement("main", "Desk", ID, 4000)
    address = "192.168.7.7"
    with mock.patch.object(nearby, "find_home_address", lambda: address):
        desk = Nearby(lambda: told, ["127.0.0.1"])
        box = Nearby(lambda: Announcement("lends", "Box"), ["127.0.0.1"])
        try:
            until(lambda: box.find(ID) == [("192.168.7.7", 4000)])
            until(lambda: [each.announced.name for each in desk.list_seen("lends")] == ["Box"])
            assert desk.find(ID) == [] and box.find("0" * 32) == [], "it sees itself"
            told = Announcement("main", "Desk", ID, 4001, 4100)
            until(lambda: box.find(ID) == [("192.168.7.7", 4001)])
            assert box.list_seen("main")[0].announced.pairing_port == 4100
            address = "192.168.7.8"
            until(lambda: box.find(ID) == [("192.168.7.8", 4001)])
        finally:
            desk.close()
        until(lambda: box.find(ID) == [])
        box.close()
