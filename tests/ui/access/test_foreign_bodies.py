"""Bodies and addresses made to stall or stumble: nobody's page waits for them, and each is answered with a sentence."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from app.base.bounded_json import Bounds
from app.base.trouble import BadRequest
from app.ui import share
from app.ui.access import guest_allowlist
from app.ui.state import asked
from tests.support.both_servers import served
from tests.support.guests import guest_client
from tests.support.waiting import WAIT_S

pytestmark = [
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
LARGE = 1_900_000
BODIES = {
    "nested": b"[" * LARGE,
    "nested and closed": b'{"data":' + b"[" * (LARGE // 2) + b"]" * (LARGE // 2) + b"}",
    "small objects": b'{"data":[' + b",".join([b'{"a":{}}'] * (LARGE // 9)) + b"]}",
    "many at a depth": b'{"data":' + b"[" * 900 + b",".join([b"{}"] * (LARGE // 3)) + b"]" * 900 + b"}",
    "texts": b'{"data":[' + b",".join([b'""'] * (LARGE // 3)) + b"]}",
}
PARSING_S = 0.5
"""Of a core. The longest takes 0.03 s; one whose brackets are taken off level by level before they are counted, half a minute."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """The owner's client and a guest's."""
    with served(tmp_path_factory.mktemp("home")) as (_, address, sharing):
        shown = share.Share.view(sharing)
        with httpx.Client(base_url=address, timeout=60) as owner, guest_client(shown["address"], shown["password"], "Eve") as guest:
            yield owner, guest


@pytest.fixture
def owner(both: tuple[httpx.Client, httpx.Client]) -> httpx.Client:
    return both[0]


@pytest.fixture
def guest(both: tuple[httpx.Client, httpx.Client]) -> httpx.Client:
    return both[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_a_large_body_stalls_nobody(owner: httpx.Client, guest: httpx.Client, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is parsed, the owner and the guest who sent it have their own live answers."""
    parse, parsing, may_end = asked.parse_object, threading.Event(), threading.Event()

    def parse_later(body: bytes, bounds: Bounds) -> dict[str, Any]:
        parsing.set()
        may_end.wait()
        return parse(body, bounds)

    monkeypatch.setattr(asked, "parse_object", parse_later)
    for path in ("/gradio_api/run/predict", "/gradio_api/queue/join", "/hearth/check"):
        parsing.clear()
        may_end.clear()
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(guest.post, path, content=BODIES[name], headers={"Content-Type": "application/json"})
            try:
                assert parsing.wait(WAIT_S)
                assert [client.get("/hearth/live").status_code for client in (owner, guest)] == [200, 200]
            finally:
                may_end.set()
            assert sent.result().status_code == 400, path


@pytest.mark.parametrize("name", BODIES)
def test_a_large_body_is_refused_before_much_is_done_for_it(name: str) -> None:
    """The parser's thread holds the interpreter, and the page waits for that."""
    began_s = time.thread_time()
    with pytest.raises(BadRequest):
        asked.parse_object(BODIES[name])
    assert time.thread_time() - began_s < PARSING_S


def test_paths_are_found_at_any_depth() -> None:
    value: object = {"path": "/etc/passwd"}
    for _ in range(5000):
        value = [value]
    assert list(guest_allowlist.named_files({"data": value, "path": 5})) == ["5", "/etc/passwd"]


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [("Origin", "http://[", 403), ("Origin", "http://[::1", 403), ("Content-Length", "9" * 5000, 400), ("Content-Length", "-1", 400)],
)
def test_headers_that_broke_the_guard(owner: httpx.Client, name: str, value: str, status: int) -> None:
    line = http.client.HTTPConnection(owner.base_url.host, owner.base_url.port or 0, timeout=30)
    line.request("GET", "/hearth/live", headers={name: value})
    assert line.getresponse().status == status
    line.close()


def test_unused_routes_of_gradio_are_not_there(owner: httpx.Client) -> None:
    for path in (
        "/gradio_api/vibe-code",
        "/gradio_api/proxy=http://127.0.0.1:1/",
        "/monitoring",
        "/gradio_api/dev/reload",
        "/gradio_api/deep_link",
    ):
        answer = owner.get(path)
        assert answer.status_code == 404 and answer.text.startswith("There is nothing at this address."), path
    assert owner.post("/gradio_api/component_server", json={}).status_code == 404


def test_gradio_stumbles_over_values_not_as_itself(owner: httpx.Client) -> None:
    """Gradio answers 500 to wrong values; here it is the request's fault, and what the page reads of the answer is kept."""
    functions = owner.get("/config").json()["dependencies"]
    wrong = [{"fn_index": each["id"], "data": ["x"] * len(each["inputs"]), "session_hash": "abc"} for each in functions]
    answers = [owner.post("/gradio_api/run/predict", json=each) for each in wrong]
    assert max(each.status_code for each in answers) == 422
    assert any("error" in each.json() for each in answers if each.status_code == 422)
    for answer in (
        owner.post("/gradio_api/queue/join", json={"data": [], "fn_index": 10**9, "session_hash": "abc"}),
        owner.post("/gradio_api/call/nothing", json={"data": []}),
        owner.get("/assets/" + "a" * 5000),
        owner.get("/hearth/static/" + "a" * 5000),
    ):
        assert 400 <= answer.status_code < 500 and answer.text


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/hearth/voices", {"id": 2**63, "name": "a"}), ("/hearth/voices", {"id": 1, "name": "a\x1b[2J"}), ("/hearth/drafts", {"speak-text": {}}),
        ("/hearth/check", {"text": 5.5, "model": []}), ("/hearth/check", {"kind": {}}), ("/hearth/share/limits", {"letters": "many"}),
        ("/hearth/models/get", {"value": []}), ("/v1/audio/speech", {"input": "a", "speed": "fast"}), ("/v1/images/generations", {"prompt": "a", "n": 2**70}),
        ("/v1/images/generations", {"prompt": []}), ("/sdapi/v1/txt2img", {"prompt": "a", "cfg_scale": "1e999"}),
        ("/sdapi/v1/txt2img", {"prompt": "a", "batch_size": 10**300, "n_iter": 10**300}), ("/sdapi/v1/img2img", {"init_images": "abc"}),
        ("/sdapi/v1/options", {"sd_model_checkpoint": {}}), ("/sdapi/v1/txt2img", {"override_settings": []}),
    ],
)  # fmt: skip
def test_wrong_kinds_get_a_sentence_in_both_languages(owner: httpx.Client, path: str, given: dict[str, object]) -> None:
    said = set()
    for spoken in ("en", "zh"):
        answer = owner.post(path, json=given, headers={"Accept-Language": spoken})
        assert answer.status_code == 400, answer.text
        found = answer.json()
        said.add(found.get("trouble") or found["detail"])
    assert len(said) == 2 and all(len(each) > 5 for each in said)


def test_nothing_that_queues_can_be_run_past_the_queue(owner: httpx.Client) -> None:
    queued = [each["id"] for each in owner.get("/config").json()["dependencies"] if each["queue"]]
    assert len(queued) == 2, "speak and paint, for Gradio's own client; guests have no such functions"
    for id_ in queued:
        assert owner.post("/gradio_api/run/predict", json={"fn_index": id_, "data": [], "session_hash": "x"}).status_code == 404


def test_the_apis_names_are_not_taken_by_the_page(owner: httpx.Client) -> None:
    events = owner.get("/config").json()["dependencies"]
    assert {each["api_name"] for each in events if each["api_visibility"] == "public"} == {
        "speak",
        "paint",
        "stop",
        "machine",
        "voices",
        "models",
    }
