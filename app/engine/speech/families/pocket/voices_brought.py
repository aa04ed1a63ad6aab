"""List the voices that lie in a model's folder or beside it, by name: frames of sound that were heard once, a file each. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from app.base.bounded_json import Bounds, parse_json
from app.base.path_checks import is_file
from app.base.regular_file import is_inside, open_regular
from app.base.trouble import Trouble
from app.engine.models.safetensors import Entry, read_header
from app.engine.models.voice_limits import name_main

INDEX: Final = "voices.jsonl"
INDEX_BYTES: Final = 1 << 20
VOICES_MOST: Final = 500
NAME_MOST: Final = 60
LINE: Final = Bounds(most_bytes=1 << 14, depth=4, values=100)
FRAMES_MOST: Final = 1000
"""A voice has at most so many frames, which last 80 seconds."""
SIDEWAYS: Final = "speaker_wavs"
"""Such a tensor holds a number of each frame a row, the others a frame."""
DEFAULT: Final = ("Default", "default-voice.safetensors")


def list_brought(folder: Path, beside: Mapping[str, Path], languages: tuple[str, ...], width: int) -> dict[str, Path]:
    """Return the files of voices that speak one of the languages, by name; the model's own first. Of files that no index lists, those that hold
    frames of this width: some are made for other programs."""
    found = {DEFAULT[0]: folder / DEFAULT[1]} if _is_voice(folder / DEFAULT[1], folder) and _has_frames(folder / DEFAULT[1], width) else {}
    apart = beside.get("voices")
    places = [(apart, apart)] if apart is not None else []
    for place, root in (*places, (folder / "voices", folder), (folder / "embeddings", folder)):
        if is_file(place / INDEX):
            named = _read_index(place, root, languages)
        else:
            files = islice(place.glob("*.safetensors"), VOICES_MOST)
            named = ((each.stem, each) for each in sorted(files) if _is_voice(each, root) and _has_frames(each, width))
        for name, file in named:
            if len(found) < VOICES_MOST and name not in found and _is_voice(file, root):
                found[name] = file
    return found


def _is_voice(file: Path, folder: Path) -> bool:
    return file.suffix == ".safetensors" and is_inside(file, folder) and is_file(file)


def find_frames(entries: Mapping[str, Entry], width: int) -> tuple[str, int] | None:
    """Return the name of a voice's one tensor and how many frames of this width it holds; None for any other file."""
    name, entry = next(iter(entries.items()), ("", Entry("", ())))
    sizes = entry.shape[-2:] if entry.shape[:-2] in ((), (1,)) else ()
    count, wide = sizes[::-1] if name == SIDEWAYS and len(sizes) == 2 else sizes if len(sizes) == 2 else (0, 0)
    return (name, count) if len(entries) == 1 and wide == width and 0 < count <= FRAMES_MOST else None


def _has_frames(file: Path, width: int) -> bool:
    try:
        return find_frames(read_header(file), width) is not None
    except (Trouble, OSError):
        return False


def _read_index(folder: Path, root: Path, languages: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Yield the voices of an index, an object a line; what is none is passed over."""
    try:
        if not is_inside(folder / INDEX, root):
            return
        with open_regular(folder / INDEX) as file:
            lines = file.read(INDEX_BYTES).splitlines()
    except OSError:
        return
    for line in lines:
        try:
            voice: Any = parse_json(line, LINE)
            name, file_name = " ".join(voice["name"].split()), voice["filename"]
            if 0 < len(name) <= NAME_MOST and name.isprintable() and _speaks(voice, languages):
                yield name, folder / file_name
        except (ValueError, LookupError, TypeError, AttributeError):
            continue


def _speaks(voice: dict[str, Any], languages: tuple[str, ...]) -> bool:
    """Tell whether a voice speaks one of the languages; one that says nothing speaks any."""
    spoken = str(voice.get("locale") or voice.get("language") or "")
    return not spoken or name_main(spoken) in map(name_main, languages)
