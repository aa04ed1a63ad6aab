"""Guards against models of strangers, taken out one by one: whoever looks for holes has to find each. For tests of the fuzzer alone."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

Change = tuple[str, str, Any]
"""A name in a module (with a dot: in a class there) is replaced by what stands third."""


def _nothing(*_: object, **__: object) -> None: ...


def _yes(*_: object, **__: object) -> bool:
    return True


def _open_any(path: Any) -> Any:
    return path.open("rb")


_ANY_FILE: Final = [
    *((module, "open_regular", _open_any) for module in ("app.base.bounded_json", "app.engine.models.safetensors")),
    ("app.engine.models.judged_files", "_require_own_file", _nothing),
    ("app.engine.models.model_folder", "require_inside", _nothing),
]


def _read_any_index(index: Any) -> list[str]:
    import json

    return sorted({str(each) for each in json.loads(index.read_bytes())["weight_map"].values()})


def _find_any_kind(folder: Any, family: Any) -> Any:
    """Return the classes that model_index.json names, whichever they are."""
    import json

    import diffusers
    import transformers

    index = json.loads((folder / "model_index.json").read_bytes())
    libraries = {"diffusers": diffusers, "transformers": transformers}
    kinds = {part: getattr(libraries[index[part][0]], index[part][1]) if index[part][0] else None for part in (*family.parts, "scheduler")}
    return index, kinds


CHANGES: Final[dict[str, list[Change]]] = {
    "any file": _ANY_FILE,
    "ranges": [("app.engine.models.config_facts", "judge", _nothing)],
    "links": [
        ("app.engine.models.judged_files", "is_inside", _yes),
        ("app.engine.speech.families.dia.facts", "is_inside", _yes),
        ("app.engine.models.model_folder", "require_inside", _nothing),
    ],
    "indexes": [
        ("app.engine.models.judged_files", "_judge_index", _nothing),
        ("app.engine.models.model_folder", "read_index", _read_any_index),
        ("app.engine.models.model_folder", "require_inside", _nothing),
    ],
    "classes": [("app.engine.pictures.families.loader", "find_kinds", _find_any_kind)],
    "headers": [("app.engine.models.safetensors", "_judge_row", lambda _name, _entry, offsets: tuple(offsets))],
    "removing": [("app.ui.tabs.models", "ACTIONS", {"add": _nothing, "forget": _nothing})],
    "start": [("app.ui.state.models_desk", "ModelsDesk.look_at_start", _nothing)],
}
"""The page and the engine have these guards."""
EARLY: Final[dict[str, Callable[[], object]]] = {
    "network": lambda: put("app.engine.keeper.no_network", "_refuse_connection", _nothing),
    "pickles": lambda: put("app.engine.session.no_pickles", "refuse_pickles", _nothing),
}
"""An engine puts up these guards as it starts."""


def put(module: str, name: str, value: Any) -> Callable[[], None]:
    """Put something in the place of a guard; return what takes it back."""
    *outer, last = name.split(".")
    owner: Any = importlib.import_module(module)
    for each in outer:
        owner = getattr(owner, each)
    before = getattr(owner, last)
    setattr(owner, last, value)
    return lambda: setattr(owner, last, before)


def open_hole(name: str) -> list[Callable[[], None]]:
    """Open a hole; return what closes it."""
    return [put(*change) for change in CHANGES[name]]


HOLES: Final[dict[str, Callable[[], object]]] = {
    **{name: lambda name=name: open_hole(name) for name in CHANGES},  # type: ignore[misc]
    **dict.fromkeys(EARLY, _nothing),
}
