"""Newer code and its environment, taken together: made beside the old ones, proven, then swapped; one step back is kept.

Runs from start.py under any Python, so it imports nothing but the standard library, `start` and sentences.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from app.sentence import Trouble, say

TOP = Path(__file__).parent.parent


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--back", action="store_true", help="go back to what was there before the last update")


def main(args: argparse.Namespace) -> int:
    if not (TOP / "start.py").is_file():
        command = "pip install --upgrade hearth"
        raise Trouble(
            say("update.pip", "Hearth was installed with pip, and pip updates it: {command}", command=command)
        )
    return subprocess.call([sys.executable, str(TOP / "start.py"), "back" if args.back else "update"])


def step(verb: str, folder: Path) -> int:
    """What start.py was asked; `renew` is how an update hands over to the newer code."""
    return {"update": update, "back": back, "renew": renew}[verb](folder)


def update(folder: Path) -> int:
    import start

    before = start.commit()
    old = start.current(folder)
    if not before:
        start.tell(
            "This folder is not a git clone, so newer code does not come by itself; looking after the environment only."
        )
    elif not git("remote").stdout.strip():
        start.tell("This clone has no remote to take newer code from; looking after the environment only.")
    else:
        pulled = git("pull", "--ff-only", "--quiet")
        if pulled.returncode:
            why = (pulled.stderr.strip().splitlines() or ["git said nothing"])[-1]
            raise start.Refused(f"Newer code was asked for, but git could not take it: {why} Nothing was changed.")
    after = start.commit()
    start.tell(
        "The code is as new as it gets." if after == before else f"The code went from {before[:9]} to {after[:9]}."
    )
    if subprocess.call([sys.executable, str(TOP / "start.py"), "renew"]):
        if after != before:
            git("reset", "--keep", before)
        start.tell("The update did not prove itself; everything is as it was before.")
        return 1
    if (after, start.current(folder)) != (before, old):
        start.put(folder / "back", json.dumps({"slot": old.name, "commit": before}))
    start.tell("Up to date, and proven. One step back: start.py back")
    return 0


def renew(folder: Path) -> int:
    import start

    want = start.wanted()
    with start.locked(folder):
        said = start.stamp(start.current(folder))
        if said.get("digest") == want.digest:
            selftest(start.current(folder))
        else:
            start.renew(folder, want, selftest)
    return 0


def selftest(slot: Path) -> None:
    import start

    command: list[str | Path] = [start.python_of(slot), "-I", "-X", "utf8", "-m", "app", "doctor", "--selftest"]
    start.run(command, slot.parent / "install.log", "the self-test")


def back(folder: Path) -> int:
    import start

    try:
        said = json.loads((folder / "back").read_text("utf-8"))
    except (OSError, ValueError):
        raise start.Refused(
            "There is no step back: nothing was updated, or the old environment was taken away."
        ) from None
    now, then = start.current(folder), folder / said["slot"]
    made = start.stamp(then)
    if not made:
        raise start.Refused(
            "The environment from before the last update is not whole any more. start.py repair makes a new one."
        )
    here = start.commit()
    if said["commit"] and here != said["commit"]:
        moved = git("reset", "--keep", said["commit"])
        if moved.returncode:
            raise start.Refused(f"The code could not go back: {moved.stderr.strip()} Nothing was changed.")
    with start.locked(folder):
        start.write_stamp(then, **{**made, "held": start.wanted().digest})
        start.put(folder / "current", then.name)
        start.put(folder / "back", json.dumps({"slot": now.name, "commit": here}))
    start.tell("Gone back one step. The same again goes forward.")
    return 0


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(TOP), *words], capture_output=True, text=True)
