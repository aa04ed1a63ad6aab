"""Change operators and numbers of app/compat and app/engine at random, one at a time, and name the changes that no test notices.

Run by hand, in an environment that also has cosmic-ray: `python tests/mutate.py --count 300 --seed 1`. It works on a copy in
--folder, takes up where it was stopped, and keeps every outcome in a session that `cr-report` reads. `--again` tests survivors anew.

First each test file is run alone, to see which test covers which line and how long it takes. Then a change meets the tests that
cover its line, quickest file first, and the other tests of its module; large libraries are imported once, before all tests.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import importlib
import itertools
import json
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
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import Queue, get_context
from pathlib import Path

import coverage
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
"""`X | None` in a type: no test can notice."""
LARGE = (
    "torch",
    "transformers",
    "diffusers",
    "accelerate",
    "peft",
    "numpy",
    "scipy",
    "hypothesis",
    "pytest_timeout",
    "xdist",
)
"""Libraries imported once, with whatever of their modules the first tests bring."""
FILE_S = 10
"""Processor time that a test file has to show what it covers; its later tests are left out."""
CHANGE_S = 8
"""Processor time for a file's tests of one change, by what they take without it."""
MOST_FILES = 3
PYTEST = ("-q", "-n0", "-p", "no:cacheprovider", "--timeout=120", "-W", "ignore::pytest.PytestAssertRewriteWarning")


class Recorder:
    """What each test covers, how long it takes and whether it fails."""

    def __init__(self, covered: coverage.Coverage) -> None:
        self.covered, self.took_s, self.failed = covered, dict[str, float](), set[str]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.covered.switch_context(item.nodeid)
        began = sum(os.times()[:4])
        done = yield
        self.took_s[item.nodeid] = sum(os.times()[:4]) - began
        if sum(os.times()[:4]) > FILE_S:
            pytest.exit("long enough")
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


class Chooser:
    """Run chosen tests in their order, or all as long as there is time, and remember the first that fails."""

    def __init__(self, chosen: list[str] | None) -> None:
        self.place = None if chosen is None else {name: number for number, name in enumerate(chosen)}
        self.noticed, self.ran = "", 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if (place := self.place) is not None:
            items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])

    def pytest_runtest_logfinish(self) -> None:
        self.ran += 1
        if self.place is None and sum(os.times()[:4]) > CHANGE_S:
            pytest.exit("long enough", 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.noticed = f"{report.nodeid} ({report.when}): {str(report.longrepr)[-500:]}"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.noticed = f"{report.nodeid} (collection): {str(report.longrepr)[-500:]}"


def in_child(work: Callable[[], str], limit_s: float) -> str | None:
    """Run in a process that ends with all that it started; None if it took too long or died."""
    answers: Queue[str] = get_context("fork").Queue()
    child = os.fork()
    if not child:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (3 * max(FILE_S, CHANGE_S),) * 2)
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
    end, answer = time.monotonic() + limit_s, None
    while time.monotonic() < end:
        if not answers.empty():
            answer = answers.get()
            break
        if os.waitpid(child, os.WNOHANG)[0]:
            answer = None if answers.empty() else answers.get()
            break
        time.sleep(0.02)
    try:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
    return answer


def cover(file: str) -> None:
    """Run one test file alone; its coverage by test lies beside its times in the folder `map`."""
    kept = map_of(file)

    def work() -> str:
        covered = coverage.Coverage(data_file=str(kept.with_suffix(".coverage")), source=list(ROOMS), config_file=False)
        covered.set_option("run:relative_files", True)
        recorder = Recorder(covered)
        covered.start()
        pytest.main([*PYTEST, file], plugins=[recorder])
        covered.stop()
        covered.save()
        large = [name for name in list(sys.modules) if name.partition(".")[0] in LARGE]
        return json.dumps({"took_s": recorder.took_s, "failed": sorted(recorder.failed), "large": large})

    began = time.monotonic()
    answer = in_child(work, 60 * FILE_S) or json.dumps({"took_s": {}, "failed": [], "large": []})
    for name in json.loads(answer)["large"]:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    kept.write_text(answer)
    print(f"{file}: {time.monotonic() - began:.0f} s", flush=True)


def map_of(file: str) -> Path:
    """Named after what the file says, so that a changed one is run again."""
    said = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:8]
    return Path(
        os.environ["MUTATIONS"], "map", f"{Path(file).with_suffix('').as_posix().replace('/', '.')}.{said}.json"
    )


def files_of(change: MutationSpec, widely: bool) -> list[str]:
    """Test files named after the changed module, then a few that import it, or its room; widely: all of them, and of its room."""
    name = ".".join(change.module_path.with_suffix("").parts)
    room, _, last = name.rpartition(".")
    imports = re.compile(rf"{re.escape(name)}\b|from {re.escape(room)} import [^\n]*\b{last}\b")
    mirrored = Path("tests", *change.module_path.parent.parts[1:])
    folder = next(each for each in (mirrored, *mirrored.parents) if any(each.glob("test_*.py")))
    files = [
        path
        for path in sorted(Path("tests").rglob("test_*.py"))
        if not {"card", "browser", "launcher"} & set(path.parts)
    ]
    direct = [path for path in files if path.stem == f"test_{last}" or imports.search(path.read_text("utf-8"))]
    direct.sort(
        key=lambda path: (
            path.stem != f"test_{last}",
            last not in path.stem,
            path.parent != folder,
            path.stat().st_size,
        )
    )
    others = [path for path in files if path.parent == folder and path not in direct]
    near = [path for path in direct if path.parts[1] in ("compat", "engine")][:MOST_FILES]
    return [str(path) for path in ([*direct, *others] if widely else near or others)]


def tests_of(change: MutationSpec, file: str) -> list[str]:
    """Tests of one file that cover the change, quickest first; all of them, if asked for or if an import or another process runs the change."""
    kept = map_of(file)
    if not kept.exists():
        cover(file)
    seen = json.loads(kept.read_text())
    covered = coverage.CoverageData(str(kept.with_suffix(".coverage")))
    covered.read()
    by_line = covered.contexts_by_lineno(str(change.module_path))
    contexts = {name for line in range(change.start_pos[0], change.end_pos[0] + 1) for name in by_line.get(line, ())}
    every = "" in contexts or (not contexts and change.module_path.stem in file)
    took_s = {
        test: seconds
        for test, seconds in seen["took_s"].items()
        if test not in seen["failed"] and (every or test in contexts)
    }
    chosen, left_s = list[str](), float(CHANGE_S)
    for test in sorted(took_s, key=lambda test: (test not in contexts, took_s[test])):
        if took_s[test] <= left_s:
            chosen.append(test)
            left_s -= took_s[test]
    return chosen


def meet(number: str, change: MutationSpec, widely: bool) -> tuple[str, WorkResult]:
    """Apply one change to this worker's copy and run tests, file by file, until one fails."""
    began, file, noticed = time.monotonic(), "", ""
    operator = get_operator(change.operator_name)(**change.operator_args)
    before = change.module_path.read_text("utf-8")
    after = mutate_code(before, operator, change.occurrence)
    for file in files_of(change, widely):
        chosen = tests_of(change, file) if widely else None
        if widely and not chosen:
            continue
        with use_mutation(change.module_path, operator, change.occurrence):
            os.utime(
                change.module_path, (int(number), int(number))
            )  # compiled code is known by this time and the size, which rarely changes
            noticed = in_child(functools.partial(run, file, chosen), 60 * FILE_S)
        if noticed != "":
            break
    changed = next((new for old, new in zip(before.split("\n"), after.split("\n"), strict=True) if old != new), "")
    output = f"{file}, {time.monotonic() - began:.0f} s. {'too slow, or died' if noticed is None else noticed}"
    return number, WorkResult(
        WorkerOutcome.NORMAL, output, TestOutcome.SURVIVED if noticed == "" else TestOutcome.KILLED, changed.strip()
    )


def run(file: str, chosen: list[str] | None) -> str:
    """What the first test that fails says; nothing if none does."""
    chooser = Chooser(chosen)
    code = pytest.main([*PYTEST, "-x", file], plugins=[chooser])
    return (
        ""
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        else chooser.noticed or f"pytest ended with {code!r}"
    )


def settle(folder: Path, taken: Queue[int]) -> None:
    """Give this worker a copy of its own."""
    os.chdir(folder / f"copy{taken.get()}")
    sys.path[0] = str(Path.cwd())


def copy_checkout(folder: Path, workers: int) -> None:
    """The app as it was when the session began, the tests as they are now."""
    names = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=True).stdout.splitlines()
    for worker in range(workers):
        for name in names:
            to = folder / f"copy{worker}" / name
            frozen = folder / "copy0" / name if worker else to
            if (TOP / name).is_file() and not (name.startswith("app/") and to.exists()):
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(frozen if frozen.exists() and name.startswith("app/") else TOP / name, to)


def compiles(change: MutationSpec) -> bool:
    """The star of `f(*, a)` and `{**a}` is taken for an operator."""
    changed = mutate_code(
        change.module_path.read_text("utf-8"),
        get_operator(change.operator_name)(**change.operator_args),
        change.occurrence,
    )
    with contextlib.suppress(SyntaxError):
        return bool(changed and compile(changed, str(change.module_path), "exec"))
    return False


def begin(database: WorkDB, count: int, seed: int) -> None:
    """Choose the changes of a new session; they keep their numbers, so it can be stopped and taken up."""
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
    parser.add_argument("--folder", type=Path, default=Path("mutations"), help="where the copy and the session lie")
    parser.add_argument("--again", action="store_true", help="test those that survived once more")
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), help="test the changes of these folders alone")
    args = parser.parse_args()
    folder = args.folder.absolute()
    (folder / "map").mkdir(parents=True, exist_ok=True)
    copy_checkout(folder, args.workers)
    os.environ.update(MUTATIONS=str(folder), OMP_NUM_THREADS="1", PYTHONPYCACHEPREFIX=str(folder / "bytecode"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.pycache_prefix, sys.dont_write_bytecode = os.environ["PYTHONPYCACHEPREFIX"], False
    os.chdir(folder / "copy0")
    for name in LARGE:
        importlib.import_module(name)
    print("imported", flush=True)
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
        done = {number: result for number, result in database.results if not (args.again and not result.is_killed)}
        asked = {
            number for number, change in items.items() if change.module_path.as_posix().startswith(tuple(args.rooms))
        }
        waiting = [pool.submit(meet, number, items[number], args.again) for number in sorted(asked - done.keys())]
        for ended in as_completed(waiting):
            number, result = ended.result()
            database.set_result(number, result)
            change = items[number]
            print(
                f"{number} {result.test_outcome} {change.module_path}:{change.start_pos[0]} {result.diff} [{result.output}]",
                flush=True,
            )
        survived = sum(not result.is_killed for _, result in database.results)
        print(f"{database.num_results - survived} of {database.num_results} killed")
    return survived > 0


if __name__ == "__main__":
    sys.exit(main())
