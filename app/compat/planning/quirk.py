"""Quirk: one row of the defect table, and whether it applies to a machine and a need. Knows no rows and no torch."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from app.base.sentence import Sentence
from app.compat.machine.hardware import Hardware, Kind
from app.compat.planning.types import Dtype, Need, Path

Unit = Literal["keys", "elements", "bytes", "pairs", "free"]
"""A limit counts one of these: keys at a time, scores of one call, their bytes, queries x keys, bytes over free memory."""


@cache
def version(text: str) -> tuple[int, ...]:
    """Parse "2.13.0+cu126" to (2, 13, 0): by number, so that 2.10 comes after 2.9."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions that must all hold. An unknown version counts as affected: caution costs only speed."""

    kinds: tuple[Kind, ...] = ()
    systems: tuple[str, ...] = ()
    processor: str = ""
    torch_from: str = ""
    torch_before: str = ""
    system_from: str = ""
    system_before: str = ""
    capability_from: tuple[int, int] | None = None
    capability_before: tuple[int, int] | None = None
    names: str = ""
    """The device's name contains this pattern."""
    gfx: str = ""
    """An AMD card's architecture begins with this pattern."""
    cudnn_from: str = ""
    """It holds only if this cuDNN or a newer one is known to be loaded."""
    arch_missing: bool = False
    """True: it holds only if this torch has no code for the card."""
    dtypes: tuple[Dtype, ...] = ()
    """It holds only if the model computes in one of these."""
    masked: bool = False
    """True: it holds only for attention with a mask."""
    """It holds only for attention over more keys than this."""
    paths: tuple[Path, ...] = ()
    """These of Metal's kernels have the defect; empty: all, or none in particular."""

    def holds(self, hardware: Hardware) -> bool:
        return (
            (not self.kinds or hardware.kind in self.kinds)
            and (not self.systems or hardware.system in self.systems)
            and (not self.processor or hardware.processor == self.processor)
            and _between(hardware.torch, self.torch_from, self.torch_before)
            and _between(hardware.system_version, self.system_from, self.system_before)
            and _capable(hardware.capability, self.capability_from, self.capability_before)
            and (not self.names or re.search(self.names, hardware.name) is not None)
            and (not self.gfx or re.match(self.gfx, hardware.gfx) is not None)
            and (not self.cudnn_from or version(hardware.cudnn) >= version(self.cudnn_from))
            and (not self.arch_missing or not has_code(hardware))
        )

    def concerns(self, need: Need, dtype: Dtype | None) -> bool:
        """Return whether the need is affected. `dtype` None: undecided, so conditions that depend on it do not hold."""
        return (not self.dtypes or dtype in self.dtypes) and (not self.masked or need.masked)


@dataclass(frozen=True, slots=True)
class Quirk:
    """One defect. Its objections shape the plan; a row can be deleted without other changes."""

    id: str
    where: tuple[Where, ...]
    """Any one of these conditions suffices."""
    sentence: Sentence
    source: str
    symptom: str = ""
    """The machine's error message has this pattern; empty: it fails silently."""
    against: tuple[str, ...] = ()
    """It objects to these options, such as "gqa/native"."""
    limits: tuple[tuple[Unit, int], ...] = ()
    """The scores of one call may not pass these limits."""
    sets: tuple[tuple[str, str], ...] = ()
    """These environment variables are set before torch is imported."""
    fatal: bool = True
    """True: it is wrong or broken; False: it is only slow, so that the user may insist."""
    stops: bool = False
    """True: nothing runs on such a machine."""

    def applies(self, hardware: Hardware) -> bool:
        return any(where.holds(hardware) for where in self.where)

    def here(self, hardware: Hardware) -> Quirk | None:
        """Return this quirk with only the conditions that hold on this machine; None if none does."""
        return self._only(tuple(where for where in self.where if where.holds(hardware)))

    def on(self, *paths: Path) -> Quirk | None:
        """Return this quirk with only the conditions that concern calls of these kernels; None if none does."""
        return self._only(tuple(where for where in self.where if not where.paths or set(paths) & set(where.paths)))

    def _only(self, holding: tuple[Where, ...]) -> Quirk | None:
        if len(holding) == len(self.where):
            return self
        return replace(self, where=holding) if holding else None

    def concerns(self, need: Need, dtype: Dtype | None) -> bool:
        """Return whether a quirk, as returned by `here`, affects the need."""
        return any(where.concerns(need, dtype) for where in self.where)


def has_code(hardware: Hardware) -> bool:
    """Return whether torch has code for the card: code for 6.0 runs on 6.1, not on 7.0; "compute_90" is recompiled for
    newer cards. An empty list is unknown."""
    if hardware.capability is None or not hardware.arch_list:
        return True
    for arch in hardware.arch_list:
        found = re.match(r"(sm|compute)_(\d+)(\d)", arch)
        if found:
            compiled = int(found[2]), int(found[3])
            if compiled <= hardware.capability and (found[1] == "compute" or compiled[0] == hardware.capability[0]):
                return True
    return False


def _between(installed: str, first: str, before: str) -> bool:
    number = version(installed)
    return not number or ((not first or number >= version(first)) and (not before or number < version(before)))


def _capable(capability: tuple[int, int] | None, first: tuple[int, int] | None, before: tuple[int, int] | None) -> bool:
    if first is None and before is None:
        return True
    return capability is not None and (first is None or capability >= first) and (before is None or capability < before)
