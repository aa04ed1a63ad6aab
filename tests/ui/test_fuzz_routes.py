"""Every route of both servers answers nonsense with 4xx and a sentence, never with 500. The fuzzer itself is tests/fuzz_routes.py."""

from __future__ import annotations

import ast
import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app.base.bounded_json import Bounds, parse_json
from app.base.languages import templates
from app.base.trouble import Trouble
from app.ui.access.gradio_fence import OURS, GradioFence
from app.ui.access.guest_allowlist import GuestAllowlist
from app.ui.state import asked
from tests.fuzz_routes import fuzzer
from tests.support.places import TOP
from tests.support.source_trees import tree_of, walk

pytestmark = [
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
OUTSIDE = {
    "app/ui/access/login.py",
    "app/ui/access/tunnel.py",
    "app/ui/single_instance.py",
    "app/ui/state/asked.py",
    "app/ui/state/notifying.py",
}
"""These files read a request, or another server's answer, by themselves: the login's form, Gradio's share server, a second start, the
owner's phone."""

OF_OTHERS = {
    "/gradio_api/run/{api_name}",
    "/gradio_api/queue/join",
    "/gradio_api/call/{api_name}",
    "/gradio_api/upload",
    "/hearth/login",
    "/config",
}
"""These routes are not in the app's own list: Gradio's router is included there, and the login is a middleware's."""


def fuzz(folder: Path, requests: int, seed: int) -> None:
    with fuzzer(folder, seed) as fuzz:
        outcome = fuzz.run(requests)
        assert not outcome.bad, outcome.examples
        paths = {each.path for each in fuzz.targets}
        assert len([each for each in paths if OURS.fullmatch(each)]) > 25 and paths >= OF_OTHERS, "the tables of routes were not found"
        if requests > 50 * len(fuzz.targets):
            seen = {name.partition(" ")[0] + name.rpartition(" ")[2] for name in outcome.by_route}
            assert {each.server + each.path for each in fuzz.targets} <= seen
    assert sum(outcome.statuses.values()) > requests * 0.9
    assert outcome.statuses[200] > requests * 0.1 and outcome.statuses[400] > requests * 0.02, outcome.statuses


@pytest.mark.slow
def test_a_hundred_requests(tmp_path: Path) -> None:
    fuzz(tmp_path, 100, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_twenty_thousand_requests(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    fuzz(tmp_path, 20_000, seed)


def test_requests_are_read_in_one_place() -> None:
    """A route that reads its JSON, query, path or form beside the schemas is found here."""
    read = {"json", "form", "body", "stream", "query_params", "path_params"}
    for path in sorted((TOP / "app" / "ui").rglob("*.py")):
        name = path.relative_to(TOP).as_posix()
        found = [node for node in walk(tree_of(path)) if isinstance(node, ast.Attribute) and node.attr in read]
        forms = ("app/ui/tabs/albums.py", "app/ui/tabs/book.py", "app/ui/tabs/pronunciation_list.py", "app/ui/tabs/voice_shelf.py")
        if name in ("app/ui/api/openai_pictures.py", "app/ui/api/transcriptions.py", *forms):
            found = [each for each in found if each.attr != "form"]  # a form's fields go through the schema, too
        assert name in OUTSIDE or not found, f"{name}:{found[0].lineno} reads {found[0].attr}"


class Everything(asked.Asked):
    whole: asked.Whole = 0
    number: float = 0
    text: asked.Word = ""
    name: asked.Name = ""
    flag: bool = False
    many: list[str] | None = None
    inner: asked.Asked | None = None
    id: asked.Id


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"whole": "a"}, "whole must be a whole number."), ({"whole": 1.5}, "whole must be a whole number."), ({"whole": 2**63}, "whole must be at most"),
        ({"number": "x"}, "number must be a number."), ({"number": float("inf")}, "number must be a number."), ({"text": []}, "text must be text."),
        ({"text": "a" * 201}, "text is longer than 200"), ({"name": "a\x00"}, "name contains control characters."), ({"flag": "perhaps"}, "flag must be true"),
        ({"many": 5}, "many must be a list."), ({"many": [{}]}, "many.0 must be text."), ({"inner": []}, "inner must be an object."),
        ({"id": -1}, "id must be at least 0."), ({"id": None}, "id must be a whole number."),
    ],
)  # fmt: skip
def test_what_no_schema_allows_gets_a_sentence(given: dict[str, object], said: str) -> None:
    with pytest.raises(Trouble) as trouble:
        asked.fit(Everything, {"id": 1, **given})
    assert str(trouble.value).startswith(said)
    assert "{" not in trouble.value.sentence.translate(templates("zh"))


def test_a_missing_field_is_named() -> None:
    with pytest.raises(Trouble, match=r"id is missing\."):
        asked.fit(Everything, {})


def test_every_fault_of_pydantic_has_words() -> None:
    """Faults that no table names fall back to a sentence of their own."""
    try:
        Everything.model_validate(5)
    except ValidationError as fault:
        assert asked.explain(fault).sentence.key == "asked.kind"


@pytest.mark.parametrize(
    "body",
    [b"[", b"[]", b"null", b"5", b"\xff\xfe{\x00}\x00", b'{"a":NaN}', b'{"a":1e999}', b'{"a":"\\ud800"}', b'{"a":' + b"9" * 5000 + b"}", b"[" * 100_000,
     b'{"a":' * 70 + b"1" + b"}" * 70, b'{"a":[' + b"1," * 20_000 + b"1]}"],
)  # fmt: skip
def test_bodies_that_are_refused(body: bytes) -> None:
    with pytest.raises(Trouble) as trouble:
        asked.parse_object(body)
    assert trouble.value.sentence.key in ("programs.json", "programs.object")
    str(trouble.value).encode()


@pytest.mark.parametrize(("path", "said"), [("/hearth/check", "larger than 4 MB"), ("/sdapi/v1/img2img", "not valid JSON")])
def test_the_pages_own_routes_take_less_than_those_for_pictures(path: str, said: str) -> None:
    with pytest.raises(Trouble, match=said):
        asyncio.run(read("POST", b"", bytes(5 << 20), path))


async def read(method: str, query: bytes, body: bytes, path: str = "/") -> Everything:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"type": "http", "method": method, "query_string": query, "headers": [], "path": path, "path_params": {"id": "7"}}
    return await asked.read_asked(Request(scope, receive), Everything)


def test_path_body_and_query_come_together() -> None:
    found = asyncio.run(read("POST", b"text=query&name=query", b'{"id": 1, "name": "body", "whole": "3"}'))
    assert (found.id, found.name, found.text, found.whole) == (7, "body", "query", 3)
    assert asyncio.run(read("GET", b"name=a", b"not read")).name == "a"


@pytest.mark.parametrize("path", ["/hearth/check", "/gradio_api/run/predict"])
def test_a_body_is_parsed_once_whoever_asks(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guests' guard, Gradio's fence and the route all need it; Gradio gets its bytes."""
    parsed: list[bytes] = []

    def parse(body: bytes, bounds: Bounds) -> Any:
        parsed.append(body)
        return parse_json(body, bounds)

    async def answer(request: Request) -> JSONResponse:
        if path.startswith("/hearth"):
            return JSONResponse((await asked.read_asked(request, Everything)).text)
        return JSONResponse(json.loads(await request.body())["text"])

    monkeypatch.setattr(asked, "parse_json", parse)
    guards = [Middleware(GuestAllowlist, files_by_person={}), Middleware(GradioFence)]
    app = Starlette(routes=[Route(path, answer, methods=["POST"])], middleware=guards)
    for more in ("short", "l" + "o" * asked.AT_ONCE_BYTES + "ng"):
        parsed.clear()
        answered = TestClient(app).post(path, json={"text": "a", "name": "n", "id": 1, "more": more})
        assert (answered.status_code, answered.json()) == (200, "a") and len(parsed) == 1
    assert TestClient(app).post(path, content=bytes(3 << 20)).text.endswith("larger than 2 MB. Send something smaller.")
