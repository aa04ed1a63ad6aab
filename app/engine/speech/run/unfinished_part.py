"""Store the state of an unfinished part in the job's folder, so that the next run resumes with exactly the same rows."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import torch

from app.engine.jobs.parts import SPOKEN
from app.engine.speech.dia.decoder import DecodingState
from app.engine.speech.sound import sound, spoken_parts


def save(job: Path, index: int, key: str, attempt: int, state: DecodingState) -> None:
    values = {
        "key": key, "attempt": attempt, "rows": state.rows.tolist(), "generator": base64.b64encode(state.generator.numpy().tobytes()).decode(),
        "ended": state.ended, "given": state.frames_sent,
    }  # fmt: skip
    with sound.replacing(_path(job, index)) as unfinished:
        unfinished.write_text(json.dumps(values), "utf-8")


def find(job: Path, index: int, key: str) -> tuple[int, DecodingState | None]:
    """Return which attempt was saved under this key, and its state: the first one's beginning if there is none; it may come from another
    machine."""
    try:
        values = json.loads(_path(job, index).read_text("utf-8"))
        if values["key"] != key or not values["rows"] or values.get("attempt", 0) not in range(spoken_parts.ATTEMPTS):
            return 0, None
        generator = torch.frombuffer(bytearray(base64.b64decode(values["generator"])), dtype=torch.uint8)
        return int(values.get("attempt", 0)), DecodingState(torch.tensor(values["rows"]), generator, values["ended"], values["given"])
    except (OSError, ValueError, LookupError, TypeError, RuntimeError, RecursionError):
        return 0, None


def _path(job: Path, index: int) -> Path:
    return job / SPOKEN.name_begun(index)


def drop(job: Path, index: int) -> None:
    _path(job, index).unlink(missing_ok=True)
