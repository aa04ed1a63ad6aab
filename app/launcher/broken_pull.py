"""Bring a clone back whose pull was killed while git wrote the newer files, so that the code was neither the older nor the newer one.

`start.py` asks for it before it imports anything else of Hearth's, which may be half of each. Standard library only.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Final

from app.launcher import slots

PULLING: Final = "pulling"
"""A lock in the environment's folder while git pulls; the file stays only where that was killed."""


def pull(folder: Path) -> subprocess.CompletedProcess[str]:
    with slots.lock(folder, name=PULLING):
        done = git("pull", "--ff-only", "--quiet")
    _forget(folder)
    return done


def mend() -> bool:
    """Write anew what git was writing, as the commit has it that is checked out; return whether anything was."""
    folder = slots.find_made()
    if folder is None or not (folder / PULLING).is_file():
        return False
    with slots.lock(folder, name=PULLING):  # one that is under way holds it
        changed = git("diff", "-z", "--name-only", "--no-renames", "HEAD", "@{upstream}").stdout.split("\0")[:-1]
        broken = [name for name in changed if _is_gits(name)]
        locked = slots.TOP / git("rev-parse", "--git-path", "index.lock").stdout.strip()
        with contextlib.suppress(OSError):  # git itself took it away where a signal could still be heard
            if (
                broken or not locked.stat().st_size
            ):  # else a commit of the owner's is under way: a pull's is empty until the last file is there
                locked.unlink()
        for name in broken:
            git("reset", "--quiet", "HEAD", "--", name)
            if _show(f"HEAD:{name}").returncode == 0:
                git("checkout", "HEAD", "--", name)
            else:
                (slots.TOP / name).unlink(missing_ok=True)
    _forget(folder)
    return bool(broken)


def _is_gits(name: str) -> bool:
    """Tell whether git wrote this file or was about to: it is gone, or holds the newer one from its beginning; what the owner changed stays."""
    file = slots.TOP / name
    found = _unify(file.read_bytes()) if file.is_file() else None
    older, newer = (_unify(done.stdout) if (done := _show(f"{at}:{name}")).returncode == 0 else None for at in ("HEAD", "@{upstream}"))
    return found != older and (found is None or (newer is not None and newer.startswith(found)))


def _show(blob: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(slots.TOP), "cat-file", "blob", blob], capture_output=True)


def _unify(content: bytes) -> bytes:
    """Windows' git writes another end of each line than it keeps."""
    return content.replace(b"\r\n", b"\n").removesuffix(b"\r")


def _forget(folder: Path) -> None:
    """Another start that waited may have done it, or on Windows has the file open and does it."""
    with contextlib.suppress(OSError):
        (folder / PULLING).unlink()


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(slots.TOP), *words], capture_output=True, text=True)
