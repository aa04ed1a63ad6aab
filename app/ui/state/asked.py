"""Read what a request asks for: JSON, query and path of every route go through a schema, and what does not fit gets a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from app.base.bounded_json import Bounds, parse_json
from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import BadRequest

JSON: Final = Bounds(most_bytes=48 << 20)
"""48 MB carry a picture's file of 36 MB as base64; parsing more keeps the page waiting. Guests may send less: GuestAllowlist."""
PAGE: Final = Bounds(most_bytes=4 << 20)
"""The page's own routes take no more; no picture is sent to them."""
AT_ONCE_BYTES: Final = 64 << 10
"""A longer body is parsed in a thread, away from everybody's page."""
GIVEN: Final = "hearth.given"
"""A request's scope has its JSON object there once `parse_body` has read it."""
PARSER: Final = ThreadPoolExecutor(1, "parser")
"""All long bodies share it: each thread that computes makes the page's own wait longer for the interpreter, at every step."""
TEXT_MOST: Final = 200_000
"""A longer text is neither checked nor saved while typing."""
Id = Annotated[int, Field(ge=0, lt=2**63)]
"""SQLite cannot store a larger number."""
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Name = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Word = Annotated[str, Field(max_length=200)]


class Asked(BaseModel):
    """The base of all schemas. A number may be written as text, as many programs do; infinity is none, unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, coerce_numbers_to_str=True)


class Programs(Asked):
    """The base of what other programs ask for: it keeps the fields that Hearth has none for, so that `refuse_rest` can tell of them."""

    model_config = ConfigDict(extra="allow")


Harmless = Mapping[str, Sequence[Any] | None]
"""Each field that Hearth does not have maps to the values that ask for nothing; None: whatever it is, the result is the same."""
A = TypeVar("A", bound=Asked)


async def read_asked(request: Request, schema: type[A]) -> A:
    """Return what the request asks for; raise a Trouble for what no schema allows. The path goes before the body, the body before the query."""
    given: dict[str, Any] = dict(request.query_params)
    if request.method not in ("GET", "HEAD"):
        await parse_body(request.scope, request.receive)
        given |= request.scope[GIVEN]
    return fit(schema, {**given, **request.path_params})


async def parse_body(scope: Scope, receive: Receive, bounds: Bounds | None = None) -> Receive:
    """Parse a request's body into its scope; return a channel that yields the body again. The guards and the route all call this, the first one
    parses."""
    if GIVEN in scope:
        return receive
    bounds = bounds or (PAGE if scope["path"].startswith("/hearth/") else JSON)
    body = await read_body(Request(scope, receive), bounds.most_bytes)
    scope[GIVEN] = await parse_apart(body, bounds)
    return replay([{"type": "http.request", "body": body, "more_body": False}], receive)


async def read_body(request: Request, most_bytes: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most_bytes:
            raise BadRequest(
                say_to_all("asked.large", "The request is larger than {most} MB. Send something smaller.", most=most_bytes >> 20)
            )
    return bytes(body)


def replay(messages: list[Message], receive: Receive) -> Receive:
    """Return a channel that yields the messages already read, then the rest."""
    left = messages[::-1]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def parse_object(body: bytes, bounds: Bounds = JSON) -> dict[str, Any]:
    """Parse a JSON object; an empty body is an empty one."""
    if not body:
        return {}
    try:
        given = parse_json(body, bounds)
    except ValueError as fault:
        said = str(fault).encode(errors="replace").decode()
        raise BadRequest(
            say_to_all("programs.json", "The request is not valid JSON: {fault}. Check its quotes, commas and brackets.", fault=said)
        ) from fault
    if not isinstance(given, dict):
        raise BadRequest(say_to_all("programs.object", "The request is not a JSON object. Send one."))
    return given


async def parse_apart(body: bytes, bounds: Bounds = JSON) -> dict[str, Any]:
    """Parse a long body in the parser's thread, a short one here."""
    if len(body) < AT_ONCE_BYTES:
        return parse_object(body, bounds)
    return await asyncio.get_running_loop().run_in_executor(PARSER, parse_object, body, bounds)


def fit(schema: type[A], given: dict[str, Any]) -> A:
    try:
        return schema.model_validate(given)
    except ValidationError as fault:
        raise explain(fault) from fault


def refuse_rest(given: Programs, harmless: Harmless, knows_all: bool = True) -> None:
    """Raise a Trouble for what was asked beside the schema's fields: nothing is passed over in silence that would have changed the result.
    `knows_all`: fields that are not in the table are refused too, as OpenAI does."""
    for name, value in (given.model_extra or {}).items():
        if value is None or (name not in harmless and not knows_all):
            continue
        if name not in harmless:
            raise BadRequest(say("asked.unknown", "Hearth does not know {name} in this request. Leave it out.", name=name[:60]), field=name)
        usual = harmless[name]
        if usual is not None and value not in usual:
            raise BadRequest(
                say("asked.unsupported", "Hearth cannot do what {name} {value} asks for. Leave it out.", name=name, value=str(value)[:60]),
                field=name,
            )


KINDS: Final = {
    "int": say_to_all("asked.kind-int", "a whole number"),
    "float": say_to_all("asked.kind-float", "a number"), "finite": say_to_all("asked.kind-float", "a number"),
    "string": say_to_all("asked.kind-text", "text"), "bool": say_to_all("asked.kind-bool", "true or false"),
    "list": say_to_all("asked.kind-list", "a list"),
    "dict": say_to_all("asked.kind-object", "an object"), "model": say_to_all("asked.kind-object", "an object"),
}  # fmt: skip
"""A field has to be one of these, by the first word of pydantic's own name for the fault."""


def explain(fault: ValidationError) -> BadRequest:
    """Word the first fault."""
    first = fault.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"]))
    return BadRequest(_word_fault(field, first["type"], first.get("ctx", {})), field=field)


def _word_fault(field: str, kind: str, limits: dict[str, Any]) -> Sentence:
    if kind == "missing":
        return say_to_all("asked.missing", "{field} is missing. Add it to the request.", field=field)
    if kind == "greater_than_equal":
        return say_to_all("asked.least", "{field} must be at least {least}.", field=field, least=limits["ge"])
    if kind in ("less_than", "less_than_equal"):
        return say_to_all(
            "asked.most", "{field} must be at most {most}.", field=field, most=limits["le"] if "le" in limits else limits["lt"]
        )
    if kind == "string_too_long":
        return say_to_all(
            "asked.long", "{field} is longer than {most} {most:character|characters}. Shorten it.", field=field, most=limits["max_length"]
        )
    if kind == "string_pattern_mismatch":
        return say_to_all("asked.control", "{field} contains control characters. Type it again.", field=field)
    wanted = KINDS.get(kind.partition("_")[0])
    if wanted is None:
        return say_to_all("asked.unfit", "{field} has a value that cannot be used here. Correct it.", field=field)
    return say_to_all("asked.kind", "{field} must be {wanted}.", field=field, wanted=wanted)
