"""Bring a clone back whose pull was killed while git wrote the newer files, so that the code was neither the older nor the newer one.

`start.py` asks for it before it imports anything else of Hearth's, which may be half of each. Standard library only.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from app.launcher import slots

PULLING: Final = "pulling"
"""A lock in the environment's folder while git pulls; the file stays only where that was killed."""


def pull(folder: Path) -> subprocess.CompletedProcess[str]:
    with slots.lock(folder, name=PULLING):
        done = git("pull", "--ff-only", "--quiet")
    (folder / PULLING).unlink()
    return done


def mend() -> bool:
    """Write anew what git was writing, as the commit has it that is checked out; return whether anything was."""
    folder = slots.find_made()
    if folder is None or not (folder / PULLING).is_file():
        return False
    with slots.lock(folder, name=PULLING):  # one that is under way holds it
        locked = slots.TOP / git("rev-parse", "--git-path", "index.lock").stdout.strip()
        broken = locked.is_file()  # git has it from before the first file it writes to after the last
        if broken:
            locked.unlink()
            files = git("diff", "-z", "--name-only", "HEAD", "@{upstream}").stdout.split("\0")[:-1]
            if files:  # none had changes of the owner's: with one git would not have begun
                git("restore", "--source=HEAD", "--staged", "--worktree", "--", *files)
    (folder / PULLING).unlink(missing_ok=True)
    return broken


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(slots.TOP), *words], capture_output=True, text=True)
