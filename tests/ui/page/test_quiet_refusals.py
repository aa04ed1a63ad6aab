"""A refusal's status goes to the page's scripts in a header; programs get it as it is, and a fault stays a fault for both."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app.ui.page.bundle import FOLDERS
from app.ui.page.protocol import PAGE_HEADER, REFUSALS, REFUSED_HEADER
from app.ui.page.quiet_refusals import QuietRefusals


def answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse("because", status_code=request.path_params["status"])


CLIENT = TestClient(Starlette(routes=[Route("/{status:int}", answer)], middleware=[Middleware(QuietRefusals)]))


@pytest.mark.parametrize("status", sorted(REFUSALS))
def test_a_refusal_is_quiet_for_the_page_alone(status: int) -> None:
    quiet = CLIENT.get(f"/{status}", headers={PAGE_HEADER: "1"})
    assert (quiet.status_code, quiet.headers[REFUSED_HEADER], quiet.text) == (200, str(status), "because")
    plain = CLIENT.get(f"/{status}")
    assert plain.status_code == status and REFUSED_HEADER not in plain.headers


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500, 507])
def test_anything_else_stays_as_it_is(status: int) -> None:
    told = CLIENT.get(f"/{status}", headers={PAGE_HEADER: "1"})
    assert told.status_code == status and REFUSED_HEADER not in told.headers


def test_the_script_knows_the_same_headers() -> None:
    script = (FOLDERS[".js"] / "refusals.js").read_text("utf-8")
    assert f'set("{PAGE_HEADER}"' in script and f'get("{REFUSED_HEADER}")' in script
