"""What is freed goes back to the system, not only to the C library's store."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

PROGRAM = """
import psutil, torch
from app.engine.models.loading.release_memory import release
def held(): return psutil.Process().memory_info().rss >> 20
size = 24 << 20
for _ in range(3):  # glibc learns from the first free that such blocks come often, and keeps the next
    block = torch.ones(size, dtype=torch.uint8); full = held(); del block
kept = held(); release()
print(full, kept, held())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="glibc's ways are Linux' alone")
def test_freed_blocks_go_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120)
    full, kept, released = map(int, done.stdout.split())
    assert kept > full - 12, "nothing was kept back, so this shows nothing"
    assert released <= full - 20
