"""Change operators and numbers of app/compat and app/engine at random, one at a time, and name the changes that no test notices.

Run by hand, in an environment that also has cosmic-ray: `python tests/mutate.py --count 300 --seed 1`. It works on a copy in
--folder, takes up where it was stopped, and keeps every outcome in a session that `cr-report` reads. A change first meets the
test files nearest to it; `--again` has those that survived meet all that import its module, and its room, with the tests as
they are now. Large libraries are imported once, and each change is tested in a fork.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import itertools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import Queue, get_context
from pathlib import Path

import pytest
from cosmic_ray.commands.init import _all_work_items as all_changes
from cosmic_ray.mutating import mutate_code, use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult

TOP = Path(__file__).parents[1]
ROOMS = ("app/compat", "app/engine")
KINDS = re.compile(
    r"core/(ReplaceComparisonOperator|ReplaceBinaryOperator|ReplaceUnaryOperator|NumberReplacer|ReplaceAndWithOr|ReplaceOrWithAnd|AddNot)"
)
TYPES = re.compile(r"BinaryOperator_BitOr_")
"""It changes `X | None` in a type, which no test can notice."""
LARGE = ("torch", "transformers", "diffusers", "accelerate", "peft", "numpy", "scipy", "hypothesis")
"""These libraries are imported once, with whatever of their modules the tests bring."""
NEAREST, FILE_S, AGAIN_S = 3, 8, 120
"""A change meets so many files at first; one file may take so much processor time at first, and so much again."""
PYTEST = ("-q", "-x", "-n0", "-p", "no:cacheprovider", "--timeout=120", "-W", "ignore::pytest.PytestAssertRewriteWarning")


class Watch:
    """Remember the first test that fails, and end the run when its time is over."""

    def __init__(self, most_s: float) -> None:
        self.most_s, self.noticed = most_s, ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.noticed:
            self.noticed = f"{report.nodeid} ({report.when}): {str(report.longrepr)[-500:]}"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.noticed:
            self.noticed = f"{report.nodeid} (collection): {str(report.longrepr)[-500:]}"

    def pytest_runtest_logfinish(self) -> None:
        if sum(os.times()[:4]) > self.most_s:
            pytest.exit("long enough", 0)


def run(file: str, most_s: float) -> tuple[str, list[str]]:
    """Return what the first failing test says, or nothing; and the large modules that the tests brought."""
    watch = Watch(most_s)
    code = pytest.main([*PYTEST, file], plugins=[watch])
    right = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    brought = [name for name in list(sys.modules) if name.partition(".")[0] in LARGE]
    return "" if right else watch.noticed or f"pytest ended with {code!r}", brought


def in_child(work: Callable[[], tuple[str, list[str]]], most_s: float) -> tuple[str, list[str]]:
    """Run in a fork that ends with all that it started."""
    answers: Queue[tuple[str, list[str]]] = get_context("fork").Queue()
    child = os.fork()
    if not child:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(3 * most_s + 30),) * 2)
        said = os.open("output.txt", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for stream in (0, 1, 2):
            os.dup2(said, stream)
        try:
            answers.put(work())
            answers.close()
            answers.join_thread()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(0)
    answer: tuple[str, list[str]] = ("it took too long, or died", [])
    end_s = time.monotonic() + 30 * most_s
    while time.monotonic() < end_s:
        ended = os.waitpid(child, os.WNOHANG)[0]
        if not answers.empty():
            answer = answers.get()
            break
        if ended:
            break
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return answer


def files_of(change: MutationSpec, again: bool) -> list[str]:
    """Return test files by nearness: named after the changed module, importing it, in its room."""
    name = ".".join(change.module_path.with_suffix("").parts)
    room, _, last = name.rpartition(".")
    imports = re.compile(rf"{re.escape(name)}\b|from {re.escape(room)} import [^\n]*\b{last}\b")
    mirrored = Path("tests", *change.module_path.parent.parts[1:])
    folder = next(each for each in (mirrored, *mirrored.parents) if any(each.glob("test_*.py")))
    files = [path for path in sorted(Path("tests").rglob("test_*.py")) if not {"card", "browser", "launcher"} & set(path.parts)]
    direct = [path for path in files if path.stem == f"test_{last}" or imports.search(path.read_text("utf-8"))]
    direct.sort(key=lambda path: (path.stem != f"test_{last}", last not in path.stem, path.parent != folder, path.stat().st_size))
    others = [path for path in files if path.parent == folder and path not in direct]
    near = [path for path in direct if path.parts[1] in ("compat", "engine")][:NEAREST]
    return [str(path) for path in ([*direct, *others] if again else near or others)]


def meet(number: str, change: MutationSpec, again: bool) -> tuple[str, WorkResult]:
    """Apply one change to this worker's copy and run tests, file by file, until one fails."""
    began_s, noticed, most_s = time.monotonic(), "", AGAIN_S if again else FILE_S
    operator = get_operator(change.operator_name)(**change.operator_args)
    before = change.module_path.read_text("utf-8")
    files = files_of(change, again)
    with use_mutation(change.module_path, operator, change.occurrence) as (_, after):
        # Compiled code is told apart by this time and the size, which a change often keeps.
        os.utime(change.module_path, (int(number), int(number)))
        for file in files:
            noticed, brought = in_child(functools.partial(run, file, most_s), most_s)
            if noticed:
                break
            import_large(brought)
    changed = next((new for old, new in zip(before.split("\n"), after.split("\n"), strict=True) if old != new), "")
    outcome = TestOutcome.KILLED if noticed else TestOutcome.SURVIVED
    output = f"{time.monotonic() - began_s:.0f} s, {noticed or ' '.join(files)}"
    return number, WorkResult(WorkerOutcome.NORMAL, output, outcome, changed.strip())


def import_large(names: list[str]) -> None:
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def settle(folder: Path, taken: Queue[int]) -> None:
    """Give this worker a copy of its own."""
    os.chdir(folder / f"copy{taken.get()}")
    sys.path[0] = str(Path.cwd())


def copy_checkout(folder: Path, workers: int) -> None:
    """Copy the app as it was when the session began, and the tests as they are now."""
    names = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=True).stdout.splitlines()
    for worker, name in itertools.product(range(workers), names):
        to, frozen = folder / f"copy{worker}" / name, folder / "copy0" / name
        in_app = name.startswith("app/")
        if (TOP / name).is_file() and not (in_app and to.exists()):
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(frozen if in_app and frozen.exists() else TOP / name, to)


def compiles(change: MutationSpec) -> bool:
    """Leave out what Python refuses: the star of `f(*, a)` is taken for an operator."""
    operator = get_operator(change.operator_name)(**change.operator_args)
    changed = mutate_code(change.module_path.read_text("utf-8"), operator, change.occurrence)
    with contextlib.suppress(SyntaxError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of `is` with a number; the tests refuse it
        return bool(changed and compile(changed, str(change.module_path), "exec"))
    return False


def begin(database: WorkDB, count: int, seed: int) -> None:
    """Choose the changes of a new session."""
    modules = sorted(path for room in ROOMS for path in Path(room).rglob("*.py"))
    found = [change for item in all_changes(modules, {}) for change in item.mutations]
    found = [each for each in found if KINDS.match(each.operator_name) and not TYPES.search(each.operator_name)]
    random.Random(seed).shuffle(found)
    chosen = list(itertools.islice(filter(compiles, found), count))
    print(f"{len(chosen)} of {len(found)} changes", flush=True)
    database.add_work_items(WorkItem.single(f"{number:04}", change) for number, change in enumerate(chosen, 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True, help="where copies and session lie; an old session is taken up")
    parser.add_argument("--again", action="store_true", help="have those that survived meet all tests that may notice")
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), help="test the changes of these folders alone")
    args = parser.parse_args()
    folder = args.folder.absolute()
    copy_checkout(folder, args.workers)
    os.environ.update(OMP_NUM_THREADS="1", PYTHONPYCACHEPREFIX=str(folder / "bytecode"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.pycache_prefix, sys.dont_write_bytecode = os.environ["PYTHONPYCACHEPREFIX"], False
    os.chdir(folder / "copy0")
    import_large(list(LARGE))
    context = get_context("fork")
    taken: Queue[int] = context.Queue()
    for worker in range(args.workers):
        taken.put(worker)
    with (
        use_db(folder / "session.sqlite", WorkDB.Mode.create) as database,
        ProcessPoolExecutor(args.workers, context, settle, (folder, taken)) as pool,
    ):
        if not database.num_work_items:
            begin(database, args.count, args.seed)
        items = {item.job_id: item.mutations[0] for item in database.work_items}
        survived = {number for number, result in database.results if not result.is_killed}
        waiting = survived if args.again else items.keys() - {number for number, _ in database.results}
        rooms = tuple(args.rooms)
        asked = sorted(number for number in waiting if items[number].module_path.as_posix().startswith(rooms))
        for ended in as_completed([pool.submit(meet, number, items[number], args.again) for number in asked]):
            number, result = ended.result()
            database.set_result(number, result)
            place = f"{items[number].module_path}:{items[number].start_pos[0]}"
            print(f"{number} {result.test_outcome.value} {place} {result.diff} [{result.output}]", flush=True)
        survived = {number for number, result in database.results if not result.is_killed}
        print(f"{database.num_results - len(survived)} of {database.num_results} noticed; not: {' '.join(sorted(survived))}")
    return bool(survived)


if __name__ == "__main__":
    sys.exit(main())
