"""Reads memory and speed; resets nothing. Asks torch only where torch is already there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes at one moment; None where this machine has no such thing."""

    process_bytes: int = 0
    device_bytes: int | None = None
    """What this process holds of the device: CUDA reserved, Metal driver memory."""
    allocated_bytes: int | None = None
    """Of it, in live tensors."""
    highest_bytes: int = 0
    """The most seen of what counts on this machine (device if it has its own memory, else the process)."""
    limit_bytes: int = 0
    """Past this it swaps or fails."""
    swap_bytes: int = 0
