"""Named Gradio endpoints for gradio_client and, by Gradio's own switch, for MCP: /speak, /paint, /stop, /machine. The page does not use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import gradio as gr
from gradio.events import api

from app.engine.jobs.events import END, Failed, Part, Preview, Step
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest
from app.extras import adding
from app.sentence import Trouble, say
from app.ui.access.request_guard import loopback
from app.ui.api.openai import model_for, spoken, voice_for
from app.ui.state.desk import Desk
from app.ui.state.jobs_desk import kind_of
from app.ui.state.person import Person, who
from app.ui.state.visitor_limits import redact_for


def check_assistants(wanted: bool, host: str) -> None:
    """Raise a Trouble where assistants are to be served and cannot be."""
    if wanted and find_spec("mcp") is None:
        raise Trouble(say("mcp.library", "MCP was asked for, but its library is not installed. Install it, then start again: {command}", command=adding("mcp")))  # fmt: skip
    if wanted and not loopback(host):
        raise Trouble(say("mcp.listen", "MCP is served on this computer only: assistants cannot log in. Leave out --mcp or --listen."))  # fmt: skip


def build(desk: Desk) -> None:
    """Inside the owner's Blocks. Each yields what happens as it happens; the last one has the files."""

    def speak(
        text: str, voice: str = "", model: str = "", seed: int | None = None, speed: float = 1.0, format: str = "wav", request: gr.Request | None = None
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """
        Speak a script.
        Parameters:
            text: what is to be said; [S1] and [S2] change the speaker, (laughs) laughs. Example: [S1] Hello there. [S2] Hello!
            voice: the name of a kept voice; empty for a fresh one
            model: a model's id; empty for the best that is here
            seed: the same seed gives the same result; none draws one
            speed: 0.5 to 2.0; the pitch stays
            format: wav, flac, mp3, ogg or opus
        Returns:
            events: {"event": "step" | "part" | "finished" | "stopped", ...}; the last has "files" with the paths of the results
        """
        yield from events(
            desk,
            lambda: SpeechRequest(
                spoken(text), model_for(desk, model, "speech"), voice_for(desk, voice), seed, speed=speed, format=format
            ),
            who(request),
        )

    def paint(
        prompt: str, negative: str = "", model: str = "", width: int | None = None, height: int | None = None, steps: int | None = None,
        seed: int | None = None, batch: int = 1, request: gr.Request | None = None,
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """
        Paint a picture.
        Parameters:
            prompt: what it shows. Example: a small sea with a boat at sunset
            negative: what it does not show
            model: a model's id; empty for the best that is here
            width: in pixels, a multiple of 8; none for what the model's makers recommend
            height: like width
            steps: none for what the model's makers recommend
            seed: the same seed gives the same result; none draws one
            batch: how many
        Returns:
            events: {"event": "step" | "preview" | "part" | "finished" | "stopped", ...}; the last has "files" with the paths of the results
        """
        yield from events(
            desk,
            lambda: PictureRequest(
                prompt, model_for(desk, model, "picture"), negative, width, height, steps, seed=seed, batch=batch
            ),
            who(request),
        )

    def stop(kind: str = "speech", request: gr.Request | None = None) -> str:
        """
        Stop the last job, and keep what is there.
        Parameters:
            kind: speech or picture
        Returns:
            job: the job that was told to stop; empty where there was none
        """
        desk.jobs.stop(kind, who(request))
        return desk.jobs.find_current(kind, who(request))

    def machine(request: gr.Request | None = None) -> dict[str, Any]:
        """
        What this machine is, and what the engine does now.
        Returns:
            facts: its name, memory in bytes, the loaded model, the running job
        """
        state = desk.keeper.state
        hardware = state.hardware if who(request).owner else None
        return {
            "ready": state.ready, "name": hardware.name if hardware else "", "kind": hardware.kind if hardware else "",
            "memory_bytes": hardware.memory_bytes if hardware else None, "model": desk.models.find_title(state.model), "job": state.job,
        }  # fmt: skip

    # Long jobs wait in our own queue, in threads; Gradio's must not hold them back a second time.
    api(speak, api_name="speak", concurrency_limit=None)
    api(paint, api_name="paint", concurrency_limit=None)
    api(stop, api_name="stop", queue=False)
    api(machine, api_name="machine", queue=False)


def events(desk: Desk, asked: Callable[[], Request], person: Person) -> Iterator[dict[str, Any]]:
    """A client that goes away does not stop the job, as a closed tab does not: /stop does."""
    try:
        wanted = asked()
        job = desk.jobs.begin(wanted, person)
        for event in desk.keeper.follow(job):
            if isinstance(event, Step):
                yield {
                    "event": "step",
                    "done": event.done,
                    "total": event.total,
                    "rate": event.rate,
                    "unit": event.unit,
                    "eta_s": event.eta_s,
                }
            elif isinstance(event, Part):
                yield {
                    "event": "part",
                    "index": event.index,
                    "total": event.total,
                    "seconds": event.seconds,
                    "seed": event.seed,
                }
            elif isinstance(event, Preview):
                yield {"event": "preview", "step": event.step}
            elif isinstance(event, Failed):
                raise Trouble(event.sentence, *event.objections, cure=event.cure)
            elif isinstance(event, END):
                urls = [f"hearth/creation/{each.id}" for each in desk.keeper.shelf.of_job(job)]
                yield {
                    "event": type(event).__name__.lower(),
                    "job": job,
                    "kind": kind_of(wanted),
                    "files": list(event.files),
                    "urls": urls,
                }
    except Trouble as trouble:
        raise gr.Error(str(redact_for(person, trouble)), print_exception=False) from trouble
