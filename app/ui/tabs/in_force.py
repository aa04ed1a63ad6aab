"""What is in force beside the button that starts: Gradio's events tell the page's script of it (force.js), which asks to remove it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

import gradio as gr
from gradio.components import Component

from app.ui.tabs.shared_controls import EACH

CHANGES = ("input", "upload", "delete", "clear")
"""Only a person causes these events of fields."""


def tell_value(tab: str, what: str, field: Any) -> None:
    """Tell the script what a field holds, whoever changes it."""
    field.change(None, field, None, js=f"value => {{ Hearth.inForce('{tab}', '{what}', value); }}", **EACH)


def tell_reusing(tab: str, fields: Sequence[Component], *begins: Callable[..., Any]) -> None:
    """Tell the script what these fields hold before an earlier creation's settings come.

    `begins`: each event that brings them; to be called before that event is connected, for Gradio goes by that order."""
    for event in begins:
        event(None, [*fields], None, js=f"(...values) => {{ Hearth.reusing('{tab}', values); }}", **EACH)


def tell_reused(tab: str, fields: Sequence[Component], *ends: Any) -> None:
    """Tell the script what these fields hold once the settings have come; `ends`: what brought them."""
    for event in ends:
        event.then(None, [*fields], None, js=f"(...values) => {{ Hearth.reused('{tab}', values); }}", **EACH)


def give_back(tab: str) -> str:
    """Return the script that gives the fields of `tell_reused` what they held before."""
    return f"() => Hearth.before('{tab}')"


def empty(*fields: Component) -> str:
    """Return the script that empties fields."""
    values = ["" if isinstance(each, gr.Textbox) else None for each in fields]
    return f"() => ({json.dumps(values if len(values) > 1 else values[0])})"


def clear_when_changed(fields: Collection[Any], message: gr.HTML) -> None:
    """Let a trouble go once the person changes anything that it may be about; notes stay until the next start."""

    def events_of(field: Any) -> list[Any]:
        if isinstance(field, gr.Textbox):
            return [field.change]  # its input is Gradio's word for a key: neither a paste by mouse, nor Backspace, nor a script
        return [getattr(field, name) for name in CHANGES if hasattr(field, name)]

    events = [event for each in sorted(fields, key=lambda each: each._id) for event in events_of(each)]
    gr.on(events, None, message, message, js="said => said?.includes('h-trouble') ? '' : said", **EACH)
