"""Fixtures that several files of tests have one of between them: the window and its browser, started once. And what all tests run with."""

import os

from tests.window import browser, contexts, opened, visit

__all__ = ["browser", "contexts", "opened", "visit"]

# Tiny models' kernels end sooner than a second thread wakes up: beside other programs two took many times as long as one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No test writes to the keyring of whoever runs it.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
