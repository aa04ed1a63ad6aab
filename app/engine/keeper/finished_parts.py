"""The finished parts in a job's folder: listed as the engine tells of them, and matched with a script that has changed since."""

from __future__ import annotations

import contextlib
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.base.paths import Home
from app.engine.jobs.events import PartDone
from app.engine.jobs.request import SEED_LIMIT, PictureRequest, Request, SpeechRequest
from app.engine.jobs.seed import draw_seed
from app.engine.models.on_disk import find_limits
from app.engine.speech.sound import spoken_parts
from app.engine.speech.text import script
from app.engine.speech.text.turns import ScriptPart


def list_finished(home: Home, request: Request, folder: Path) -> list[PartDone]:
    """Return them in order; none that cannot be read now, which the run finds out."""
    with contextlib.suppress(OSError, ValueError):
        return [*(_list_spoken(home, request, folder) if isinstance(request, SpeechRequest) else _list_painted(request, folder))]
    return []


def list_kept(home: Home, request: SpeechRequest, folder: Path) -> tuple[PartDone, ...]:
    """Return what was spoken of a script that ended, each part with the words and the take it was left with; none that cannot be read now."""
    with contextlib.suppress(OSError, ValueError):
        files = {int(path.stem.removeprefix("part-")): path for path in folder.glob("part-*.wav")}
        found = [(index, saved) for index, path in sorted(files.items()) if (saved := spoken_parts.find(path)) is not None]
        split = script.parse_script(request.text, find_limits(home, request.model)).parts
        total = max([len(split), *(index + 1 for index, _ in found)])
        return tuple(PartDone(index, total, str(each.path), each.text, each.seed, each.seconds, each.whole) for index, each in found)
    return ()


def match_takes(parts: Sequence[PartDone], split: Sequence[ScriptPart]) -> tuple[str, ...]:
    """Return for each part of a script the earlier take of the same words, empty where there is none: the same ones at the script's
    beginning and end first, then what was moved, in order."""
    takes = [(part.text, part.path) for part in parts if part.whole and Path(part.path).is_file()]
    texts = [part.text for part in split]
    keep = [""] * len(texts)
    most = min(len(takes), len(texts))
    begin = next((at for at in range(most) if takes[at][0] != texts[at]), most)
    end = next((at for at in range(most - begin) if takes[-1 - at][0] != texts[-1 - at]), most - begin)
    left = defaultdict[str, deque[str]](deque)
    for text, path in takes[begin : len(takes) - end]:
        left[text].append(path)
    for index, text in enumerate(texts):
        if index < begin:
            keep[index] = takes[index][1]
        elif index >= len(texts) - end:
            keep[index] = takes[index - len(texts)][1]
        elif left[text]:
            keep[index] = left[text].popleft()
    return tuple(keep)


def _list_spoken(home: Home, request: SpeechRequest, folder: Path) -> Iterator[PartDone]:
    parts = script.parse_script(request.text, find_limits(home, request.model)).parts
    for index, part in enumerate(parts):
        saved = spoken_parts.find(spoken_parts.sound_path(folder, index))
        if saved is not None and saved.whole and saved.text == part.text:
            yield PartDone(index, len(parts), str(saved.path), part.text, saved.seed, saved.seconds, doubt=saved.doubt)


def _list_painted(request: PictureRequest, folder: Path) -> Iterator[PartDone]:
    for index in range(request.batch):
        path = folder / f"picture-{index}.png"
        if path.is_file():
            yield PartDone(index, request.batch, str(path), request.prompt, (draw_seed(request, folder) + index) % SEED_LIMIT)
