"""The shelf tab."""

from __future__ import annotations

import gradio as gr

from app.ui.desk import Desk


def build(desk: Desk) -> None:
    gr.Markdown("shelf")
