"""Calls of the page's scripts to a tab's handlers: Gradio's events of an invisible element, as app/ui/page/protocol.py names them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, cast

import gradio as gr

from app.ui.page.protocol import CARRIED, Call


def build_calls(*calls: Call) -> gr.HTML:
    """Place the element that these calls go through; its script tells the page's once the tab is on the page.

    What a call carries travels as the element's value, not with the event: an event that waits for the last answer is sent with the data of the one before it.
    """
    script = f"Hearth.answer({json.dumps(calls)}, (call, carried) => {{ props.value = carried; trigger(call); }});"
    return gr.HTML("", html_template="", js_on_load=script, elem_classes="h-hidden", apply_default_css=False)


def script_event(through: gr.HTML, call: Call) -> Callable[..., Any]:
    """Return the event of a call, to which handlers are connected."""
    return getattr(through, call)  # type: ignore[no-any-return]


def join_event(through: gr.HTML, call: Call) -> Callable[..., Any]:
    """Return the event of a call that `gr.on` connects together with others. It says of itself what `gr.on` asks of each."""
    event: Any = script_event(through, call)
    functools.update_wrapper(event, event.func)
    event.__self__ = through
    return cast(Callable[..., Any], event)


def hear(through: gr.HTML, call: Call, handler: Callable[..., Any] | None, inputs: Any, outputs: Any, **how: Any) -> Any:
    """Connect a call with its handler, as `click` does with a button's. A handler of a call that carries something gets that."""
    return script_event(through, call)(handler, through if call in CARRIED else inputs, outputs, **how)


def read_number(carried: Any, call: Call) -> int:
    """Return the number that a call carries; 0, which nothing has, where it is none."""
    try:
        return int(carried[CARRIED[call]])
    except (TypeError, LookupError, ValueError, OverflowError):
        return 0


def read_id(carried: Any, call: Call) -> str:
    """Return the model's id that a call carries; empty, which nothing has, where it is none."""
    try:
        return str(carried[CARRIED[call]])
    except (TypeError, LookupError):
        return ""
