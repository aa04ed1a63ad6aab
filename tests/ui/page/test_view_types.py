"""The page's scripts know what the server sends by types that are written from app/ui/page/view_types; `python -m tests.ui.page.test_view_types`
writes them anew."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from typing_extensions import TypedDict, is_typeddict

from app.compat.machine.pretended import MACHINES
from app.ui import routes
from app.ui.page import protocol, view_types
from app.ui.page.view_types import live, machine, making
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, OWNER
from app.ui.state.settings import Settings
from app.ui.tabs import disk, loras, models, notify, pause, shelf, styles, welcome
from tests.support.saved_home import open_fixture
from tests.support.waiting import Idle

WRITTEN = Path(protocol.__file__).with_name("views.d.ts")
MODULES = (live, making, machine, view_types)
HEAD = "// What the server sends, as app/ui/page/view_types has it. Written by `python -m tests.ui.page.test_view_types`.\n"
PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def name_type(of: Any) -> str:
    """Word a type of Python as TypeScript has it."""
    if of in PLAIN:
        return PLAIN[of]
    if is_typeddict(of):
        return str(of.__name__)
    origin, inner = get_origin(of), get_args(of)
    if origin is Literal:
        return " | ".join(f'"{each}"' for each in inner)
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(name_type, inner)))
    if origin is tuple:
        return f"[{', '.join(map(name_type, inner))}]"
    if origin in (list, Sequence):
        each = name_type(inner[0])
        return f"({each})[]" if "|" in each else f"{each}[]"
    if origin in (dict, Mapping):
        return f"Record<string, {name_type(inner[1])}>"
    raise TypeError(f"The page has no type for {of}.")


def write_types(*modules: types.ModuleType) -> str:
    """Write all that modules say of what is sent; what one takes from another is written once."""
    shapes = dict.fromkeys(each for module in modules for each in vars(module).values() if is_typeddict(each))
    words = [HEAD]
    for each in shapes:
        fields = []
        for name, of in get_type_hints(each, include_extras=True).items():
            marked = get_origin(of)
            optional = marked is NotRequired or (name in each.__optional_keys__ and marked is not Required)
            key = name if name.isidentifier() else f'"{name}"'
            fields.append(f"  {key}{'?' if optional else ''}: {name_type(get_args(of)[0] if marked in (NotRequired, Required) else of)};")
        words.append("\n".join([f"interface {each.__name__} {{", *fields, "}\n"]))
    return "\n".join(words)


def test_scripts_know_what_the_server_sends() -> None:
    assert WRITTEN.read_text("utf-8") == write_types(*MODULES), "run python -m tests.ui.page.test_view_types"


def test_answers_are_of_routes_that_send_something() -> None:
    sends = {each.path for each in protocol.ROUTES if each.method == "GET"}
    assert set(view_types.Answers.__annotations__) <= sends


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A home with creations, jobs, voices and settings, and an engine that never starts."""
    place = open_fixture(tmp_path_factory.mktemp("saved") / "home")
    idle = Idle(place)
    yield Desk(idle, Settings(place.settings))
    idle.close()


ASKED = sorted({*view_types.Answers.__annotations__} - {"hearth/along/{id}", "hearth/window", "hearth/share", "hearth/upkeep"})
"""The other routes belong to what only a window that is served has."""


@pytest.mark.parametrize("path", ASKED)
def test_what_is_sent_has_its_type(desk: Desk, path: str) -> None:
    desk.keeper.status.set(hardware=MACHINES["m2-16gb"])
    makers = (routes, shelf, loras, styles, models, welcome, pause, notify, disk)
    page = Starlette(routes=[each for maker in makers for each in maker.routes(desk)])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY] = OWNER
        await page(scope, receive, send)

    answer = TestClient(app).get(f"/{path}", params={"model": "sd15"})
    assert answer.status_code == 200
    TypeAdapter(get_type_hints(view_types.Answers)[path]).validate_json(answer.content, strict=True)


class Inner(TypedDict):
    word: str


class Outer(Inner):
    size: NotRequired[int | None]
    kind: Literal["a", "b"]
    rows: list[Inner]
    marks: Sequence[str | None]
    pair: tuple[str, float]
    facts: Mapping[str, bool]


def test_a_type_is_worded_as_scripts_have_it() -> None:
    module = types.ModuleType("shapes")
    vars(module).update(Outer=Outer)
    assert write_types(module).partition("interface ")[2] == (
        'Outer {\n  word: string;\n  size?: number | null;\n  kind: "a" | "b";\n  rows: Inner[];\n  marks: (string | null)[];\n'
        "  pair: [string, number];\n  facts: Record<string, boolean>;\n}\n"
    )
    with pytest.raises(TypeError, match="no type"):
        name_type(Path)


if __name__ == "__main__":
    WRITTEN.write_text(write_types(*MODULES), "utf-8")
