"""Which versions of two machines go together, and what is said where they do not. Pure, but for reading its own."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

from app import __version__
from app.base.sentence import Sentence, say

COMPARED: Final = ("Hearth", "Python", "dask", "distributed")
"""dask needs the same Python but for its last number, and exactly its own version."""
_VERSION: Final = re.compile(r"[\w.+-]{1,40}")


def read_versions() -> dict[str, str]:
    """Read this machine's own."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Hearth": __version__, "Python": python, "dask": version("dask"), "distributed": version("distributed")}


def parse_versions(given: object) -> dict[str, str]:
    """Return what another machine said of itself, as short texts; what is missing or odd is "unknown"."""
    values = given if isinstance(given, Mapping) else {}
    return {name: found if _VERSION.fullmatch(found := str(values.get(name, ""))) else "unknown" for name in COMPARED}


def find_difference(main: Mapping[str, str], helper: Mapping[str, str]) -> Sentence | None:
    """Say on both sides alike what differs and what to do; None if the two can work together."""
    name = _find_other(main, helper)
    if name is None:
        return None
    return say(
        "machines.versions",
        "The two computers have different versions of {name}: {main} on the main one, {helper} on the helper. "
        "Update the older one, then make a new code.",
        name=name,
        main=main.get(name, "unknown"),
        helper=helper.get(name, "unknown"),
    )


def explain_refusal(main: Mapping[str, str], helper: Mapping[str, str]) -> Sentence | None:
    """Say why a helper that is paired gets no work; None if its versions are the main machine's."""
    name = _find_other(main, helper)
    if name is None:
        return None
    return say(
        "unused.versions",
        "gets no work: {name} is {helper} there and {main} here; update the older one",
        name=name,
        main=main.get(name, "unknown"),
        helper=helper.get(name, "unknown"),
    )


def _find_other(main: Mapping[str, str], helper: Mapping[str, str]) -> str | None:
    return next((each for each in COMPARED if main.get(each) != helper.get(each)), None)
