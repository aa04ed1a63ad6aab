"""Fixtures that several files of tests have one of between them: the window and its browser, started once. And what all tests run with."""

import os
from collections.abc import Iterator

import pytest

# Tiny models' kernels end sooner than a second thread wakes up: beside other programs two took many times as long as one.
# It is read when torch comes, so nothing that imports torch may come before.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No test writes to the keyring of whoever runs it.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"

import torch

from tests.window import browser, contexts, opened, visit

__all__ = ["browser", "contexts", "opened", "visit"]

BY_THE_CLOCK = frozenset({
    "test_api", "test_break_in", "test_fetch", "test_fetch_refusals", "test_guard", "test_mend", "test_models_tab", "test_opening",
    "test_process", "test_real_tunnel", "test_share", "test_share_looks", "test_start", "test_window", "test_window_looks",
    "test_window_machine", "test_window_seldom", "test_window_settings", "test_worker",
})  # fmt: skip
"""Files whose tests wait for a browser, a server or another process. On a busy machine such a wait can be too short, so each
has a second try, which the end of the run tells. All others have one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in BY_THE_CLOCK:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.write_sep("_", f"{report.nodeid} needed a second try")
        terminalreporter.write_line(report.longreprtext)


@pytest.fixture(scope="module")
def every_core() -> Iterator[None]:
    """For tests that measure how fast something large is."""
    before = torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def one_core(every_core: None) -> Iterator[None]:
    """Of a file that else has all: two threads that wait for each other are slow for as long as something else runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
