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
