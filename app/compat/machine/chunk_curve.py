"""The curve of chunk sizes that Tune measures, and its file. Imports no torch."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from app.base import atomic_write
from app.base.paths import Home
from app.base.stored_json import read_stored

SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
ROUNDS = 3
KNEE = 1.05
"""The smallest size within this factor of the fastest is the knee: least memory for nearly full speed."""


@dataclass(frozen=True, slots=True)
class Point:
    chunk: int
    seconds: float
    """One attention call takes so long."""


@dataclass(frozen=True, slots=True)
class Curve:
    model: str
    points: tuple[Point, ...]
    knee: int


class StoredPoint(TypedDict):
    chunk: Annotated[int, Field(ge=1)]
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class StoredCurve(TypedDict, total=False):
    model: str
    points: list[StoredPoint]
    knee: Annotated[int, Field(ge=1)]


STORED: Final = TypeAdapter(StoredCurve)


def curve_file(home: Home, model: str, pretended: str = "") -> Path:
    """Return the curve's file: a local model is named by its path, so the name holds its letters and a digest. A pretended machine
    has its own, in which this computer's times stand."""
    digest = hashlib.sha256(f"{model}{pretended}".encode()).hexdigest()[:8]
    return home.verdicts / f"chunks {re.sub(r'[^A-Za-z0-9.]+', '-', model)[-40:]} {digest}.json"


def keep_curve(home: Home, curve: Curve, pretended: str = "") -> None:
    atomic_write.write_text(curve_file(home, curve.model, pretended), json.dumps(asdict(curve)))


def read_curve(home: Home, model: str, pretended: str = "") -> Curve | None:
    """Return the curve, or None if it was never measured, or the file is damaged or cannot be read now."""
    try:
        kept = read_stored(curve_file(home, model, pretended), STORED)
        points = tuple(Point(point["chunk"], point["seconds"]) for point in kept["points"])
        return Curve(kept["model"], points, kept["knee"]) if points else None
    except (KeyError, OSError):
        return None
