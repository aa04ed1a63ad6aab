"""Watch what a process does with a stranger's model: an audit hook for what Python opens, asks and starts, and the access times of files that
nothing may read, which tell of libraries that open files without Python."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.support.places import TOP

_ASKS: Final = frozenset(
    {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
)
_STARTS: Final = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pickle.find_class"})
_OPENS: Final = frozenset({"open", "os.listdir", "os.scandir"})


def list_usual() -> tuple[str, ...]:
    """List where Python and its libraries look whatever a model says."""
    return (
        *(os.path.realpath(each) for each in sys.path if each),
        str(TOP),
        os.path.realpath(sys.prefix),
        sys.base_prefix,
        sysconfig.get_path("stdlib"),
        sys.pycache_prefix or str(TOP),
        "/proc",
        "/sys",
        "/dev/null",
        "/usr/share",
        "/usr/lib",
        "/etc/mime.types",
        "/etc/localtime",
        "/etc/fonts",
    )


class Watch:
    """Notes what is opened outside the folders allowed, every connection, every program and every pickle. Python removes no hook, so it can
    be off. `tell`: what also hears it."""

    def __init__(self, tell: Callable[[str], object] | None = None) -> None:
        self.allowed: tuple[str, ...] = ()
        self.seen: list[str] = []
        self.on = False
        self._tell = tell or (lambda said: None)
        sys.addaudithook(self._hear)

    def _note(self, said: str) -> None:
        self.seen.append(said)
        self._tell(said)

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in _ASKS and not (event == "socket.connect" and isinstance(given[1], str | bytes)):
            self._note(f"{event} {given[-1]!r}")
        elif event in _STARTS:
            self._note(f"{event} {given!r}"[:200])
        elif event in _OPENS and isinstance(given[0], str | bytes | os.PathLike):
            at = os.path.realpath(os.fsdecode(given[0]))
            if not at.startswith(self.allowed):
                self._note(f"{event} {at}")


class Unread:
    """Files that nothing may read: their access times are set to 0, so that reading one shows, whoever reads it."""

    def __init__(self, folder: Path) -> None:
        self._files = [each for each in sorted(folder.rglob("*")) if each.is_file()]
        self.reset()
        self._files[0].read_bytes()
        assert self.take_read(), f"the disk of {folder} keeps no access times, so what is read there by no Python would not be seen"

    def reset(self) -> None:
        for each in self._files:
            os.utime(each, ns=(0, each.stat().st_mtime_ns))

    def take_read(self) -> list[str]:
        """Return the files that were read since the last call."""
        read = [str(each) for each in self._files if each.stat().st_atime_ns]
        self.reset()
        return read
