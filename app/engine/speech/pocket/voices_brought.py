"""List the voices that lie in a model's folder or beside it, by name: frames of sound that were heard once, a file each. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from app.base.bounded_json import Bounds, parse_json
from app.base.path_checks import is_file
from app.base.regular_file import is_inside, open_regular

INDEX: Final = "voices.jsonl"
INDEX_BYTES: Final = 1 << 20
VOICES_MOST: Final = 500
NAME_MOST: Final = 60
LINE: Final = Bounds(most_bytes=1 << 14, depth=4, values=100)
DEFAULT: Final = ("Default", "default-voice.safetensors")


def list_brought(folder: Path, beside: Mapping[str, Path], languages: tuple[str, ...]) -> dict[str, Path]:
    """Return the files of voices that speak one of the languages, by name; the model's own first."""
    found = {DEFAULT[0]: folder / DEFAULT[1]} if _is_voice(folder / DEFAULT[1], folder) else {}
    apart = beside.get("voices")
    places = [(apart, apart)] if apart is not None else []
    for place, root in (*places, (folder / "voices", folder), (folder / "embeddings", folder)):
        if is_file(place / INDEX):
            named = _read_index(place, root, languages)
        else:
            named = ((each.stem, each) for each in sorted(place.glob("*.safetensors")))
        for name, file in named:
            if len(found) < VOICES_MOST and name not in found and _is_voice(file, root):
                found[name] = file
    return found


def _is_voice(file: Path, folder: Path) -> bool:
    return file.suffix == ".safetensors" and is_inside(file, folder) and is_file(file)


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
    spoken = str(voice.get("locale") or voice.get("language") or "").lower()
    return not spoken or spoken.startswith(languages)
