"""Move a folder and kill the process at each of its steps in turn: a program of its own, as it forks. Prints how many steps there were."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from app.base import other_disk
from app.base.other_disk import MARK, NOTE

STEPS = ("open", "os.rename", "os.link", "os.symlink", "os.mkdir", "os.remove", "os.rmdir", "shutil.copystat")
FOLDER, TARGET = "home/creations", "disk/Hearth/creations"


def kill_at(step: int, run: Callable[[], None]) -> bool:
    """Run in a process that ends before this step; return whether it ended so."""
    if not (child := os.fork()):
        left = step

        def count(event: str, args: tuple[object, ...]) -> None:
            nonlocal left
            if event in STEPS and (event != "open" or (isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR))):
                left -= 1
                if left < 0:
                    os._exit(9)

        sys.addaudithook(count)
        run()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def read(folder: Path) -> dict[str, bytes]:
    return {
        each.relative_to(folder).as_posix(): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file() and each.name != MARK
    }


def fill(top: Path) -> dict[str, bytes]:
    shutil.rmtree(top, ignore_errors=True)
    folder = top / FOLDER
    (folder / "blobs").mkdir(parents=True)
    (folder / "blobs/one").write_bytes(b"1" * 3000)
    (folder / "blobs/two").write_bytes(b"2" * 5000)
    (folder / "snapshots").mkdir()
    (folder / "snapshots/model.safetensors").symlink_to("../blobs/one")
    (top / "disk").mkdir()
    return read(folder)


def main(top: Path, way: str) -> None:
    step, (folder, target) = 0, (top / FOLDER, top / TARGET)
    while True:
        held = fill(top)
        if way == "back":
            other_disk.move(folder, target)
        killed = kill_at(step, lambda: other_disk.bring_back(folder) if way == "back" else other_disk.move(folder, target))
        other_disk.mend_all(top / "home")
        assert read(folder) == held, (step, read(folder).keys())
        there = other_disk.find_target(folder)
        assert there is not None or not (target.exists() and read(target)), (
            "nothing is left there under a name that keeps the next move away"
        )
        note = other_disk.hidden(folder, NOTE)
        assert note.exists() == (there is not None), step
        hidden = [each.name for each in (top / "home").iterdir() if each.name.startswith(".") and each != note]
        assert not hidden, (step, hidden)
        if not killed:
            assert (there is None) == (way == "back")
            break
        step += 1
    print(step)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
