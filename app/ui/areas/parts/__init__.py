"""The parts of a script as they are spoken: template, style, script and handlers of one area."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import gradio as gr

from app.ui.page.translate import language
from app.ui.page.views import View
from app.ui.state.desk import Desk
from app.ui.state.person import who
from app.ui.tabs.shared_controls import EACH, LATEST, run_or_explain
from app.ui.tabs.start_picture import _WithoutStub

HERE: Final = Path(__file__).parent
KIND: Final = "speech"


class Parts(gr.HTML, metaclass=_WithoutStub):
    """The list of parts; its value is the view of the job."""

    is_template = True

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        read = {name: (HERE / name).read_text("utf-8") for name in ("template.html", "style.css", "script.js")}
        super().__init__(
            None, html_template=read["template.html"], css_template=read["style.css"], js_on_load=read["script.js"], apply_default_css=False
        )

    def connect(self, message: gr.HTML) -> None:
        gr.Timer(0.4).tick(self.look, None, self, **LATEST)
        self.redo(self.redo_part, None, message, **EACH)

    def look(self, request: gr.Request) -> View | None:
        from app.ui import live_view

        person = who(request)
        job = self._desk.jobs.find_current(KIND, person)
        return live_view.JOB_VIEWS[KIND](self._desk, job, language(request)) if job else None

    def redo_part(self, request: gr.Request, event: gr.EventData) -> str:
        return run_or_explain(lambda: self._desk.jobs.redo_part(int(event.index), who(request)), request)
