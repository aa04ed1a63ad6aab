"""Files written whole or not at all: what breaks on the way leaves the old one, and threads and readers never meet half of one."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.base import atomic_write
from tests.support.other_functions import set_in

HALF = """
import sys, time
from pathlib import Path
from app.base import atomic_write
with atomic_write.replacing(Path(sys.argv[1])) as unfinished:
    unfinished.write_text("ha")
    print("half", flush=True)
    time.sleep(600)
"""


def test_what_breaks_on_the_way_leaves_the_old_one_and_nothing_beside_it(tmp_path: Path) -> None:
    kept = tmp_path / "new folder" / "settings.json"
    atomic_write.write_text(kept, "old ü")
    with pytest.raises(OSError, match="full"), atomic_write.replacing(kept) as unfinished:
        unfinished.write_text("ha")
        raise OSError("the disk is full")
    assert kept.read_text("utf-8") == "old ü" and [*kept.parent.iterdir()] == [kept]


def test_what_a_killed_process_left_goes_with_the_next_who_writes(tmp_path: Path) -> None:
    kept, others = tmp_path / "set[t]ings.json", tmp_path / ".set[t]ings.json.bak-1"
    others.write_text("somebody's own")
    half = subprocess.Popen([sys.executable, "-c", HALF, str(kept)], stdout=subprocess.PIPE, text=True)
    assert half.stdout is not None and half.stdout.readline() == "half\n"
    atomic_write.write_text(kept, "new")
    (left,) = tmp_path.glob(f"*.{half.pid}-*")
    half.kill()
    half.wait()
    half.stdout.close()
    assert left.read_text() == "ha", "of a process that lives it is left alone"
    atomic_write.write_text(kept, "newer")
    assert kept.read_text() == "newer" and {*tmp_path.iterdir()} == {kept, others}


def test_threads_that_write_at_once_never_show_half(tmp_path: Path) -> None:
    kept, seen = tmp_path / "state", set()
    words = [letter * 200_000 for letter in "abcd"]
    atomic_write.write_text(kept, words[0])

    def write(word: str) -> None:
        for _ in range(20):
            atomic_write.write_text(kept, word)

    threads = [threading.Thread(target=write, args=(word,)) for word in words]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        seen.add(kept.read_text("utf-8"))
    for each in threads:
        each.join()
    assert seen | {kept.read_text("utf-8")} <= {*words} and [*tmp_path.iterdir()] == [kept]


def test_a_file_that_is_being_read_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Windows has it: whoever reads keeps others from taking the file's place."""
    kept, real, refused = tmp_path / "preview.jpg", Path.replace, list[Path]()

    def replace(path: Path, target: Path) -> Path:
        if len(refused) < reads:
            refused.append(path)
            raise PermissionError(13, "Access is denied")
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    set_in(monkeypatch, atomic_write, "time", sleep=lambda _: None)
    reads = 3
    atomic_write.write_text(kept, "new")
    assert kept.read_text("utf-8") == "new" and len(refused) == 3
    reads = 100
    with pytest.raises(PermissionError):
        atomic_write.write_text(kept, "newer")
    assert kept.read_text("utf-8") == "new" and [*tmp_path.iterdir()] == [kept]
