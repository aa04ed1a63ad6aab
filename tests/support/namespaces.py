"""A second machine's network on this computer: a network namespace, and a cable to it that is late, loses frames, and can be cut. Linux, as root."""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

import pytest

TUNSETIFF: Final = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
FRAME_BYTES: Final = 1 << 16


class Cable:
    """Carries Ethernet frames between two devices of the kernel's, which sends again what TCP lost. The kernel's own way, tc netem, is missing from
    many: this needs no module but tun."""

    def __init__(self, ends: tuple[int, int], delay_s: float, lost: float) -> None:
        """`delay_s`: of each way. `lost`: the share of frames."""
        self._other, self._delay_s, self._lost = dict(zip(ends, reversed(ends), strict=True)), delay_s, lost
        self._draw, self._whole, self._closing = random.Random(1), True, False
        self.lost = 0
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Let nothing through; nobody is told, as by a switch that lost its power."""
        self._whole = False

    def mend(self) -> None:
        self._whole = True

    def close(self) -> None:
        self._closing = True
        self._thread.join()

    def _carry(self) -> None:
        on_way = list[tuple[float, int, int, bytes]]()
        number = 0
        while not self._closing:
            wait_s = min(0.1, max(0.0, on_way[0][0] - time.monotonic())) if on_way else 0.1
            for end in select.select([*self._other], [], [], wait_s)[0]:
                frame, number = os.read(end, FRAME_BYTES), number + 1
                dropped = self._draw.random() < self._lost
                self.lost += dropped
                if self._whole and not dropped:
                    heapq.heappush(on_way, (time.monotonic() + self._delay_s, number, self._other[end], frame))
            while on_way and on_way[0][0] <= time.monotonic():
                _, _, end, frame = heapq.heappop(on_way)
                if self._whole:
                    with suppress(OSError):  # a device that is going
                        os.write(end, frame)


class Far:
    """The namespace at the other end of a cable."""

    def __init__(self, name: str, address: str, cable: Cable) -> None:
        self.within, self.address, self.cable = ("ip", "netns", "exec", name), address, cable
        """The first runs a command there; the second is where this machine is for it."""


def open_device(name: str) -> int:
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return end


@contextmanager
def far_machine(delay_s: float, lost: float) -> Iterator[Far]:
    """Skip the test, with the reason, where this computer makes no such network."""
    number = os.getpid()
    name, here, there, network = f"hearth-{number}", f"hm{number}a", f"hm{number}b", f"10.{number >> 8 & 255}.{number & 255}"
    with ExitStack() as ends:
        try:
            devices = []
            for each in (here, there):
                devices.append(open_device(each))
                ends.callback(os.close, devices[-1])
            ip("netns", "add", name)
            ends.callback(ip, "netns", "del", name)
            ip("link", "set", there, "netns", name)
            for device, address, within in ((here, f"{network}.1/24", ()), (there, f"{network}.2/24", ("-n", name))):
                ip(*within, "addr", "add", address, "dev", device)
                ip(*within, "link", "set", device, "up")
            ip("-n", name, "link", "set", "lo", "up")
        except (OSError, subprocess.CalledProcessError) as fault:
            pytest.skip(f"no network namespaces here: {getattr(fault, 'stderr', '') or fault}")
        cable = Cable((devices[0], devices[1]), delay_s, lost)
        ends.callback(cable.close)
        yield Far(name, f"{network}.1", cable)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
