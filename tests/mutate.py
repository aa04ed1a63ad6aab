"""Change operators and numbers of app/compat and app/engine at random, one at a time, and name the changes that no test notices.

Run by hand, in an environment that also has cosmic-ray: `python tests/mutate.py --count 300 --seed 1`. It works on a copy.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray.commands import init as plan_changes
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome

TOP = Path(__file__).parents[1]
KINDS = re.compile(
    r"core/(ReplaceComparisonOperator|ReplaceBinaryOperator|ReplaceUnaryOperator|NumberReplacer|ReplaceAndWithOr|ReplaceOrWithAnd|AddNot)"
)
TYPES = re.compile(r"BinaryOperator_BitOr_")
"""`X | None` in a type: no test can notice."""
TIMEOUT_S = 600


def tests_of(module: Path) -> list[str]:
    """The test files that import this module, then all others of its room."""
    name = ".".join(module.with_suffix("").parts)
    room, _, last = name.rpartition(".")
    direct = re.compile(rf"{re.escape(name)}\b|from {re.escape(room)} import [^\n]*\b{last}\b")
    mirrored = Path("tests", *module.parent.parts[1:])
    folder = next(each for each in (mirrored, *mirrored.parents) if any(each.glob("test_*.py")))
    files = [
        path
        for path in sorted(Path("tests").rglob("test_*.py"))
        if "card" not in path.parts and "browser" not in path.parts
    ]
    first = [path for path in files if direct.search(path.read_text("utf-8"))]
    return [str(path) for path in (*first, *(path for path in files if path.parent == folder and path not in first))]


def changes(rooms: list[str]) -> Iterator[MutationSpec]:
    modules = sorted(
        path for room in rooms for path in ([Path(room)] if room.endswith(".py") else Path(room).rglob("*.py"))
    )
    with use_db("mutations.sqlite", WorkDB.Mode.create) as database:
        plan_changes(modules, database, {})
        for item in database.work_items:
            yield from (
                each
                for each in item.mutations
                if KINDS.match(each.operator_name) and not TYPES.search(each.operator_name)
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("rooms", nargs="*", default=["app/compat", "app/engine"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tracked = subprocess.run(
            ["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for name in tracked:
            if (TOP / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(TOP / name, Path(folder) / name)
        os.chdir(folder)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        found = list(changes(args.rooms))
        chosen = random.Random(args.seed).sample(found, min(args.count, len(found)))
        survived = 0
        for number, change in enumerate(chosen, 1):
            command = " ".join(
                (sys.executable, "-m pytest -q -x -n0 -p no:cacheprovider", *tests_of(change.module_path))
            )
            result = mutate_and_test([change], command, TIMEOUT_S)
            if result.worker_outcome == WorkerOutcome.NORMAL and result.test_outcome == TestOutcome.SURVIVED:
                survived += 1
                print(
                    f"SURVIVED {change.module_path}:{change.start_pos[0]} {change.operator_name}\n{result.diff}",
                    flush=True,
                )
            print(f"{number} of {len(chosen)}, {survived} survived", flush=True)
    return survived


if __name__ == "__main__":
    sys.exit(main())
