"""Take from a request what must not leave this machine inside a file: where things lie. What is left of a path is a name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Any, Final

PATHS: Final = ("model", "image", "mask")
CACHED: Final = "models--"


def public_name(path: str) -> str:
    """The last of a path of any system; of a folder in the hub's cache the repository. An id of the catalog stays as it is."""
    parts = PureWindowsPath(path).parts  # takes slashes of both kinds
    if len(parts) > 2 and parts[-2] == "snapshots" and parts[-3].startswith(CACHED):
        return parts[-3].removeprefix(CACHED).replace("--", "/")
    return PureWindowsPath(path).name


def strip_paths(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What `to_json` wrote, as it may be read by anybody."""
    told = dict(settings)
    for key in PATHS:
        if told.get(key):
            told[key] = public_name(told[key])
    if told.get("voice"):
        told["voice"] = _strip_path(told["voice"])
    if told.get("keep"):
        told["keep"] = [public_name(each) for each in told["keep"]]
    if told.get("loras"):
        told["loras"] = [_strip_path(each) for each in told["loras"]]
    return told


def _strip_path(file: Mapping[str, Any]) -> dict[str, Any]:
    return {**file, "path": public_name(file["path"])}
