"""What all tests run with: an environment of their own, an order, and how many cores they compute on."""

import os
import re
import sys
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest
import xdist
from filelock import FileLock
from xdist.scheduler import LoadFileScheduling

from app.base import notices
from app.base.fast_import import pausing_collector, skipping_stubs
from app.engine.jobs import database

# Where PYTHONDONTWRITEBYTECODE is set, each of the hundred engines and windows that the tests start would compile torch and Gradio
# anew, which takes longer than most tests. Theirs is kept in a folder of its own.
CACHE = Path(__file__).parent.parent / ".pytest_cache"
if sys.dont_write_bytecode and sys.pycache_prefix is None:
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(CACHE / "bytecode")

# Tiny models' kernels end sooner than a second thread wakes up: beside other programs two took many times as long as one.
# It is read when torch comes, so nothing that imports torch may come before.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Hearth speaks the system's language; the tests read English.
os.environ["LC_ALL"] = "C.UTF-8"
# Each engine checks a machine that it does not know, for ten seconds, which only the tests of that check wait for.
os.environ["HEARTH_SKIP_CHECK"] = "1"
# No test writes to the keyring of whoever runs it.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"

pytest.register_assert_rewrite("tests.support.window", "tests.support.picture_fixtures")  # plugins of files that import them first

HEAVY = frozenset({"torch", "gradio", "playwright"})
"""`start.py test fast` does without these libraries."""
LONG_FILE = re.compile(r"^pytestmark = .*\blong\b|^    pytest\.mark\.long,$", re.MULTILINE)
"""`start.py test fast` leaves out a file with such a line, without importing it: one that waits for a browser, a server or another process,
or tries hundreds of cases."""


ONE_WINDOW = frozenset(
    {
        "test_window", "test_window_looks", "test_window_words", "test_choices_by_hand", "test_private_files", "test_window_settings",
        "test_window_machine", "test_window_seldom",
    }
)  # fmt: skip
"""These files look at the same open Hearth: one worker has all of them, so that it and its engine start once."""


def find_package(file: Path) -> Path | None:
    """Return the folder of a file whose neighbours share something that one worker starts once: such a folder is a package."""
    return file.parent if (file.parent / "__init__.py").is_file() else None


class ByFile(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        package = find_package(self.config.rootpath / file)
        return str(package) if package else "test_window" if Path(file).stem in ONE_WINDOW else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile | None:
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


SHARES = (
    ("transformers.modeling_utils", "transformers.models.dac.modeling_dac", "diffusers.pipelines.pipeline_utils"),
    ("gradio", "distributed", "hypothesis", "openai", "playwright.sync_api"),
    ("sympy", "safetensors.torch", "peft"),
)
"""These take longest to compile. In a fresh clone nothing is compiled, and three workers side by side would each compile all of them."""


def share_compiling(worker: int) -> None:
    """Each worker begins with another share, and waits where another one is at work."""
    CACHE.mkdir(exist_ok=True)
    for share in (*SHARES[worker:], *SHARES[:worker]):
        done = CACHE / f"{share[0]}-compiled"
        with FileLock(f"{done}.lock"):
            if not done.exists():
                for library in share:
                    with suppress(ImportError):  # whoever needs it says so
                        import_module(library)
                done.touch()


class SkipHeavy(MetaPathFinder):
    """Skip whatever imports torch, Gradio or a browser, at the moment it does."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name in HEAVY:
            pytest.skip(f"needs {name}", allow_module_level=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="leave out what needs torch, Gradio, a browser or another process")
    parser.addoption("--accept-trees", action="store_true", help="store what a screen reader finds on each tab as it is now")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    left_out = config.getoption("--fast") and collection_path.suffix == ".py" and LONG_FILE.search(collection_path.read_text("utf-8"))
    return True if left_out else None


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fast"):
        sys.meta_path.insert(0, SkipHeavy())
    config.option.loadscopereorder = False  # xdist would begin with the files that hold the most tests: the quickest


@pytest.fixture(autouse=True)
def no_notices_left() -> Iterator[None]:
    """What a test's damaged file gave to tell is not told by the session of another test."""
    yield
    notices.take_all()


@pytest.fixture(scope="session", autouse=True)
def no_power_cuts() -> Iterator[None]:
    """Databases of this process do not wait for the disk after each change, which takes ten times as long as all else that they do. What a killed
    process wrote is there all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "SYNCHRONOUS", "OFF")
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Every collection of garbage walked over all that the test files import, half a second, and many tests bring one about."""
    with pausing_collector(), skipping_stubs():
        if (worker := xdist.get_xdist_worker_id(session)) != "master" and not session.config.getoption("--fast"):
            share_compiling(int(worker.removeprefix("gw")) % len(SHARES))
        return (yield)


def rank(item: pytest.Item) -> int:
    """What takes longest is begun first, so that at the end of a run no worker is left alone with it."""
    return 0 if find_package(item.path) else 1 if item.get_closest_marker("long") else 2


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """hypothesis looks here for the constants of each file of Hearth's and keeps them: in a fresh clone one worker finds them, and the others read."""
    if config.getoption("--fast"):
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    items.sort(key=rank)
    CACHE.mkdir(exist_ok=True)
    with FileLock(CACHE / "constants.lock"):
        return (yield)


COSTLY = 0.01
"""A file that takes more than this share of all is named at the end of a run."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    costs = defaultdict[str, float](float)
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            costs[report.nodeid.partition("::")[0]] += report.duration
    whole = sum(costs.values())
    if len(costs) > 20:
        terminalreporter.section(f"{len(costs)} files took {whole:.0f} s, all processes together")
        named = [(file, took) for file, took in sorted(costs.items(), key=lambda cost: -cost[1]) if took > COSTLY * whole]
        for file, took in named:
            terminalreporter.write_line(f"{took:7.1f} s  {file}")
        terminalreporter.write_line(f"{whole - sum(took for _, took in named):7.1f} s  the other {len(costs) - len(named)}")


@pytest.fixture(scope="module")
def every_core() -> Iterator[None]:
    """For tests that measure how fast something large is."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def one_core(every_core: None) -> Iterator[None]:
    """Of a file that else has all: two threads that wait for each other are slow for as long as something else runs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
