"""Strip local paths from a request before it is stored in a file; only names remain. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Any, Final

PATHS: Final = ("model", "image", "mask", "enlarger", "guide", "control", "reference", "adapter")
CACHED: Final = "models--"


def public_name(path: str) -> str:
    """Return the last component of a path of any system, or the repository of a hub cache folder; catalog ids are
    unchanged."""
    parts = PureWindowsPath(path).parts  # accepts both kinds of slashes
    if len(parts) > 2 and parts[-2] == "snapshots" and parts[-3].startswith(CACHED):
        return parts[-3].removeprefix(CACHED).replace("--", "/")
    return PureWindowsPath(path).name


def strip_paths(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Remove local paths from the output of `to_json`, so that it may be published."""
    public = dict(settings)
    for key in PATHS:
        if public.get(key):
            public[key] = public_name(public[key])
    if public.get("voice"):
        public["voice"] = _strip_path(public["voice"])
    if public.get("cast"):
        public["cast"] = [
            {**each, "model": public_name(each.get("model") or ""), "voice": each.get("voice") and _strip_path(each["voice"])}
            for each in public["cast"]
        ]
    if public.get("keep"):
        public["keep"] = [public_name(each) for each in public["keep"]]
    if public.get("loras"):
        public["loras"] = [_strip_path(each) for each in public["loras"]]
    return public


def _strip_path(file: Mapping[str, Any]) -> dict[str, Any]:
    return {**file, "path": public_name(file["path"])}
