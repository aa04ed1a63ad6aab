"""Named Gradio endpoints for gradio_client and, if switched on, MCP: /speak, /paint, /stop, /machine, /voices, /models. The page does not use them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final
from typing import cast as typed

import gradio as gr
from gradio.events import api
from gradio.route_utils import get_fn
from starlette.exceptions import HTTPException

from app.base.extras import install_command
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.events import END, Event, Failed, PartDone, Preview, Step
from app.engine.jobs.outward import public_name
from app.engine.jobs.progress import Progress
from app.engine.jobs.quicker import Quicker
from app.engine.jobs.request import REQUESTS, PictureRequest, Request, SpeechRequest
from app.engine.models.catalog import name_model
from app.ui.access.request_guard import is_loopback
from app.ui.api.following import follow, news, work
from app.ui.api.openai import add_speaker_tag, find_voice, read_cast
from app.ui.api.shared import RETRY, find_model, read_notes
from app.ui.page.translate import language, translate
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import redact_for
from app.ui.state.person import who

JOB_ENDPOINTS: Final = ("speak", "paint")
BEGUN: Final = "hearth.begun"
"""A request's scope has a Future there, which is set when its job is in the journal or refused."""
BEGUN_POLL_S: Final = 0.5


def check_assistants(wanted: bool, host: str) -> None:
    """Raise a Trouble if MCP is requested but cannot be served."""
    if wanted and find_spec("mcp") is None:
        raise Trouble(
            say(
                "mcp.library",
                "MCP needs a library that is not installed. Add it on the Machine tab (Assistants), or by: {command}. Then start again.",
                command=install_command("mcp"),
            )
        )
    if wanted and not is_loopback(host):
        raise Trouble(say("mcp.listen", "MCP works on this computer only, because assistants cannot log in. Leave out --mcp or --listen."))


def explain_broken() -> Sentence | None:
    """Say that MCP's library does not load, whatever it stumbles over: it must not keep Hearth from starting."""
    try:
        import_module("gradio.mcp")
    except Exception as fault:
        return say("mcp.broken", "They are not let in, because the library for it does not load: {fault}", fault=str(fault))
    return None


def explain_assistants(wanted: bool, host: str) -> Sentence | None:
    """Say why the owner's switch counts for nothing in this run; None where it does."""
    if wanted:
        return say("mcp.opened", "Hearth was opened with --mcp, so they are let in until it is closed.")
    if not is_loopback(host):
        return say("mcp.network", "Hearth was opened to the network, where assistants are not let in, as they cannot log in.")
    return None


def build(desk: Desk) -> None:
    """Add the endpoints to the owner's Blocks, within which this is called."""
    endpoints = Endpoints(desk)
    # Long jobs wait in Hearth's own queue, without a thread; Gradio's queue must not hold them back a second time.
    api(endpoints.speak, api_name="speak", concurrency_limit=None)
    api(endpoints.paint, api_name="paint", concurrency_limit=None)
    api(endpoints.stop, api_name="stop", queue=False)
    api(endpoints.machine, api_name="machine", queue=False)
    api(endpoints.voices, api_name="voices", queue=False)
    api(endpoints.models, api_name="models", queue=False)


@dataclass(frozen=True)
class Endpoints:
    """The endpoints of one desk. Gradio and MCP show their signatures and docstrings to clients."""

    desk: Desk

    async def speak(
        self,
        text: str,
        voice: str = "",
        model: str = "",
        seed: int | None = None,
        speed: float = 1.0,
        format: str = "wav",
        cast: dict[str, Any] | None = None,
        request: gr.Request | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """
        Speak a script.
        Parameters:
            text: what to say; [S1] and [S2] change the speaker, (laughs) laughs. Example: [S1] Hello there. [S2] Hello!
            voice: the name of a ready or saved voice; empty for a new one
            model: a model's id; empty for the best installed one
            seed: the same seed gives the same result; omit it for a random one
            speed: 0.5 to 2.0; the pitch stays
            format: wav, flac, mp3, ogg or opus
            cast: the voice of each name in the script, where it has several. Example: {"Anna": "Daisy", "Ben": {"voice": "Brian", "pace": 1.1}}
        Returns:
            events: {"event": "step" | "part" | "finished" | "stopped", ...}; the last has "files", their paths, and "notes"
        """

        def make_request() -> SpeechRequest:
            found = find_model(self.desk, model, "speech")
            actors = read_cast(self.desk, cast, found) if cast else ()
            words = text if actors else add_speaker_tag(text)
            return SpeechRequest(words, found, find_voice(self.desk, voice, found), seed, speed=speed, format=format, cast=actors)

        async for seen in run(self.desk, make_request, request):
            yield seen

    async def paint(
        self,
        prompt: str,
        negative: str = "",
        model: str = "",
        width: int | None = None,
        height: int | None = None,
        steps: int | None = None,
        seed: int | None = None,
        batch: int = 1,
        quicker: str = "off",
        request: gr.Request | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """
        Paint a picture.
        Parameters:
            prompt: what it shows. Example: a small sea with a boat at sunset
            negative: what it does not show
            model: a model's id; empty for the best installed one
            width: in pixels, a multiple of 8; omit it for the model's recommended size
            height: like width
            steps: omit it for the model's recommended number
            seed: the same seed gives the same result; omit it for a random one
            batch: how many pictures
            quicker: off, little or much: how much work of earlier steps is reused, at some loss
        Returns:
            events: {"event": "step" | "preview" | "part" | "finished" | "stopped", ...}; the last has "files", their paths, and "notes"
        """

        def make_request() -> PictureRequest:
            found = find_model(self.desk, model, "picture")
            return PictureRequest(prompt, found, negative, width, height, steps, seed=seed, batch=batch, quicker=typed(Quicker, quicker))

        async for seen in run(self.desk, make_request, request):
            yield seen

    def stop(self, kind: str = "speech", request: gr.Request | None = None) -> str:
        """
        Stop the last job and keep its finished parts.
        Parameters:
            kind: speech or picture
        Returns:
            job: the id of the stopped job; empty if there was none
        """
        self.desk.jobs.stop(kind, who(request))
        return self.desk.jobs.find_current(kind, who(request))

    def machine(self, request: gr.Request | None = None) -> dict[str, Any]:
        """
        Describe this machine and what the engine is doing.
        Returns:
            facts: its name, memory in bytes, the loaded model, the running job
        """
        state = self.desk.keeper.state
        hardware = state.hardware if who(request).owner else None
        return {
            "ready": state.ready,
            "name": hardware.name if hardware else "",
            "kind": hardware.kind if hardware else "",
            "memory_bytes": hardware.memory_bytes if hardware else None,
            "model": name_model(state.model),
            "job": state.job,
        }

    def voices(self, model: str = "", request: gr.Request | None = None) -> list[str]:
        """
        List the voices that can be named in speak.
        Parameters:
            model: a model's id; empty for the best installed one
        Returns:
            names: the names of its voices
        """
        person = who(request)
        try:
            found = find_model(self.desk, model, "speech")
        except Trouble as trouble:
            raise gr.Error(str(redact_for(person, trouble)), print_exception=False) from trouble
        return [each.name for each in self.desk.models.list_voices(found, person)]

    def models(self, request: gr.Request | None = None) -> list[dict[str, str]]:
        """
        List the installed models that can be named in speak and paint.
        Returns:
            models: of each, its id, its title, and its kind: speech or picture
        """
        if not who(request).owner:
            return []
        return [
            {"id": public_name(id_), "title": title, "kind": kind}
            for kind in REQUESTS
            for title, id_ in self.desk.models.list_choices(kind)
        ]


async def run(desk: Desk, make_request: Callable[[], Request], asked: gr.Request | None) -> AsyncIterator[dict[str, Any]]:
    """Run a job and yield its events. A client that disconnects does not stop it, like a closed tab: /stop does."""
    person, sent = who(asked), Progress()
    try:
        with report_begin(asked):
            request = await work(make_request)
            job = await work(desk.jobs.begin, request, person, by_program=True)
        async for progress in follow(desk.keeper, job):
            for event in news(sent, progress):
                if isinstance(event, Failed):
                    raise event.trouble
                if isinstance(event, END):
                    urls = [f"hearth/creation/{each.id}" for each in await work(desk.keeper.shelf.list_of_job, job)]
                    name, files = type(event).__name__.lower(), list(event.files)
                    notes = [*map(str, read_notes(desk, job, person))]
                    yield {"event": name, "job": job, "kind": request.kind, "files": files, "urls": urls, "notes": notes}
                elif (seen := describe_event(event)) is not None:
                    yield seen
            sent = progress
    except Trouble as trouble:
        raise gr.Error(str(redact_for(person, trouble)), print_exception=False) from trouble
    finally:
        forget_session(asked)


def forget_session(asked: gr.Request | None) -> None:
    """Drop what Gradio would keep for good of a call's session, mostly a new one each time: a copy of the page's configuration, 350 KB."""
    if asked is not None and asked.request is not None:
        holder = asked.request.app.state_holder
        for table in (holder.session_data, holder.time_last_used):
            table.pop(asked.session_hash, None)


@contextmanager
def report_begin(asked: gr.Request | None) -> Iterator[None]:
    """Tell `answer_when_begun`, where it waits, that the job is in the journal, or why it is not."""
    begun: asyncio.Future[Trouble | None] | None = getattr(getattr(asked, "request", None), "scope", {}).get(BEGUN)
    outcome: Trouble | None = None
    try:
        yield
    except Trouble as trouble:
        outcome = trouble
        raise
    finally:
        if begun is not None and not begun.done():
            begun.set_result(outcome)


def fill_in(endpoint: str, given: list[Any]) -> list[Any]:
    """Return what a call gives with the defaults of what it leaves out at its end: who calls by hand need not know of parameters that came later."""
    known = [each for name, each in inspect.signature(getattr(Endpoints, endpoint)).parameters.items() if name not in ("self", "request")]
    return [*given, *(each.default for each in known[max(len(given), 1) :])] if given else given


def answer_when_begun(window: gr.Blocks, desk: Desk) -> None:
    """Make Gradio's queue answer a call once its job is in the journal. Gradio by itself answers at once, and loses the
    calls that wait for one of its places when the process ends. Once Hearth's queue is full, Gradio's is not asked: it
    takes far longer to come to the same answer."""
    queue = window._queue
    push = queue.push

    async def push_and_wait(body: Any, request: Any, username: str | None) -> Any:
        endpoint = "" if body.fn_index is None else get_fn(window, None, body).api_name
        if endpoint not in JOB_ENDPOINTS:
            return await push(body, request, username)
        body.data = fill_in(endpoint, body.data)
        try:
            await work(desk.jobs.check_turn, who(request), by_program=True)
        except Trouble as trouble:
            raise refusal(trouble, request) from trouble
        begun: asyncio.Future[Trouble | None] = asyncio.get_running_loop().create_future()
        request.scope[BEGUN] = begun
        answer = await push(body, request, username)
        while answer[0] and not begun.done() and answer[1] in queue.event_ids_to_events:
            await asyncio.wait([begun], timeout=BEGUN_POLL_S)  # a call that Gradio cannot read never begins
        outcome = begun.result() if begun.done() else None
        if outcome is not None and outcome.status is not None:
            raise refusal(outcome, request)
        return answer  # any other trouble is told on the call's own stream

    def refusal(trouble: Trouble, request: Any) -> HTTPException:
        status = trouble.status or 400
        return HTTPException(status, translate(trouble.sentence, language(request)), RETRY if status == 503 else None)

    queue.push = push_and_wait  # type: ignore[method-assign]


SHOWN_FIELDS: Final[Mapping[type[Event], tuple[str, tuple[str, ...]]]] = {
    Step: ("step", ("done", "total", "rate", "unit", "eta_s")),
    PartDone: ("part", ("index", "total", "seconds", "seed")),
    Preview: ("preview", ("step",)),
}
"""Each event has a name for clients, and the fields that they get."""


def describe_event(event: Event) -> dict[str, Any] | None:
    if type(event) not in SHOWN_FIELDS:
        return None
    name, fields = SHOWN_FIELDS[type(event)]
    return {"event": name, **{each: getattr(event, each) for each in fields}}
