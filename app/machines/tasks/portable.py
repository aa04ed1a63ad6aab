"""Turn a request into one that another machine can carry out: files by hash in place of paths, and back again there."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.request import Request, VoicePrompt, from_json, to_json
from app.engine.jobs.settings import ADAPTERS, CONTROLS, ENLARGERS
from app.engine.speech.text import voices

PREFIX: Final = "sha256:"
_NAMED: Final = re.compile(r"sha256:(?P<sha256>[0-9a-f]{64})(?P<suffix>\.[a-z0-9]{1,12})?")
_SUFFIX: Final = re.compile(r"\.[a-z0-9]{1,12}")
_PATHS: Final = frozenset({"image", "mask", "guide", "reference", "path", "keep"})
"""These of a request name files, of it, its voice, its cast's voices or its LoRAs."""
_OWN: Final = {"enlarger": ENLARGERS, "control": CONTROLS, "adapter": ADAPTERS}
"""These name files that their owner has alone, but for what every Hearth has. A request that uses such a file stays where it is."""


@dataclass(frozen=True, slots=True)
class Portable:
    """A request for elsewhere."""

    body: str
    """It is JSON: `request` with files as "sha256:HASH.suffix", `files`, each hash with its size, `spoken_by`, the model that spoke its
    voice's clip, `known`, the ready voices heard in that, `cast`, both of each voice of its cast, and `begun`, the hash of what is made of
    it so far, by name. Its model has a name of portable_models.py. How to compute it is no part of it: each machine has its own plan and
    its owner's choices."""
    files: Mapping[str, Path]
    """Those files are at these paths here, by hash."""
    words: str
    """The list of machines shows this prompt or script."""


def pack(request: Request, begun: Mapping[str, Path] | None = None) -> Portable:
    """Pack a request, with what is made of it so far as `begun.set_aside` laid it; raise OSError if a file that it needs is gone."""
    files: dict[str, Path] = {}

    def by_hash(path: str) -> str:
        sha256 = hash_file(Path(path))
        files[sha256] = Path(path)
        suffix = Path(path).suffix.lower()
        return f"{PREFIX}{sha256}{suffix if _SUFFIX.fullmatch(suffix) else ''}"

    values = {name: value for name, value in _map_paths(to_json(request), by_hash).items() if _is_everywhere(name, value)}
    hashes = {name: path.name for name, path in (begun or {}).items()}
    files |= {path.name: path for path in (begun or {}).values()}
    sizes = {sha256: path.stat().st_size for sha256, path in files.items()}
    body: dict[str, Any] = {"request": values, "files": sizes, "begun": hashes}
    if request.voice is not None:
        body |= _tell_speaker(request.voice)
    if request.cast:
        body["cast"] = [_tell_speaker(each.voice) if each.voice is not None else {} for each in request.cast]
    return Portable(json.dumps(body), files, request.words)


def _tell_speaker(voice: VoicePrompt) -> dict[str, Any]:
    clip = Path(voice.path)
    return {"spoken_by": voices.find_speaker(clip), "known": voices.find_known(clip)}


def unpack(body: str, locate: Callable[[str, str], Path], find_model: Callable[[str], str]) -> Request:
    """Unpack a request on the machine that carries it out. `locate` says where the file with a hash and a suffix is, `find_model` what a
    model is called here. Raise Trouble for a path that is no hash: a main machine names no file of this one."""

    def to_path(named: str) -> str:
        found = _NAMED.fullmatch(named)
        if found is None:
            raise _names_file(named)
        return str(locate(found["sha256"], found["suffix"] or ""))

    values = json.loads(body)["request"]
    for name in _OWN:
        if name in values and not _is_everywhere(name, values[name]):
            raise _names_file(str(values[name]))
    named: dict[str, Any] = {"model": find_model(str(values["model"]))}
    if values.get("cast"):
        named["cast"] = [{**each, "model": each["model"] and find_model(str(each["model"]))} for each in values["cast"]]
    return from_json(_map_paths({**values, **named}, to_path))


def _names_file(named: str) -> Trouble:
    return Trouble(
        say("machines.names-a-file", "The other computer asked for a file of this one, {name}, which no task may do.", name=named[:80])
    )


def _is_everywhere(name: str, value: Any) -> bool:
    return name not in _OWN or value in _OWN[name]


def note_speaker(body: str, request: Request, folder: Path) -> None:
    """Note beside each voice's clip that came into this folder which model spoke it, and in which voices, as the machine that has the voice
    knows; raise ValueError or TypeError if that is odd."""
    told = json.loads(body)
    for voice, of_it in [(request.voice, told), *zip((each.voice for each in request.cast), told.get("cast", ()), strict=False)]:
        if voice is not None and Path(voice.path).parent == folder:
            voices.note_speaker(Path(voice.path), voice.transcript, of_it.get("spoken_by", ""), of_it.get("known", ()))


def _map_paths(value: Any, how: Callable[[str], str], is_path: bool = False) -> Any:
    """Replace every path in the output of `to_json`, however deep."""
    if isinstance(value, dict):
        return {name: _map_paths(each, how, name in _PATHS) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_map_paths(each, how, is_path) for each in value]
    return how(value) if is_path and value else value


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
