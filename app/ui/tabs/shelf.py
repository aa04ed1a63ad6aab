"""Shelf: every creation, found as one types; favourites, the bin, settings taken up again, many exported as one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from app.engine.jobs.shelf import Creation
from app.sentence import Trouble, say
from app.ui.page import views
from app.ui.page.translate import Language, language, text, translate
from app.ui.state.desk import Desk
from app.ui.state.person import who

PAGE = 60
ZIP_MOST = 500


def build(desk: Desk) -> None:
    gr.HTML('<section id="h-shelf"></section>', apply_default_css=False)


def routes(desk: Desk) -> list[Route]:
    """The owner's alone; the guard keeps others out, and each asks once more."""

    def found(request: Request) -> Response:
        person, asked, spoken = who(request), request.query_params, language(request)
        if not person.owner:
            return Response(status_code=404)
        kept = desk.keeper.shelf.find(
            asked.get("words", ""), asked.get("kind", ""), asked.get("model", ""), "favourite" in asked, "binned" in asked,
            most=PAGE + 1, skip=max(0, int(asked.get("skip", "0") or 0)),
        )  # fmt: skip
        models = [{"id": each, "title": desk.models.find_title(each)} for each in desk.keeper.shelf.models()]
        return JSONResponse(
            {
                "creations": [creation_view(desk, each, spoken) for each in kept[:PAGE]],
                "more": len(kept) > PAGE,
                "models": models,
            }
        )

    def act(request: Request) -> Response:
        if not who(request).owner:
            return Response(status_code=404)
        shelf, id_ = desk.keeper.shelf, int(request.path_params["id"])
        acts = {
            "favourite": lambda: shelf.favour(id_, True), "plain": lambda: shelf.favour(id_, False),
            "delete": lambda: shelf.delete(id_), "restore": lambda: shelf.restore(id_), "reveal": lambda: reveal(shelf.get(id_).path),
        }  # fmt: skip
        wanted = acts.get(request.path_params["act"])
        if wanted is None:
            return Response(status_code=404)
        try:
            wanted()
        except (Trouble, OSError) as fault:
            spoken = language(request)
            words = translate(fault.sentence, spoken) if isinstance(fault, Trouble) else str(fault)
            return JSONResponse({"trouble": words}, status_code=409)
        return JSONResponse({})

    def empty(request: Request) -> Response:
        return (
            JSONResponse({"gone": desk.keeper.shelf.empty_bin()}) if who(request).owner else Response(status_code=404)
        )

    async def export(request: Request) -> Response:
        if not who(request).owner:
            return Response(status_code=404)
        ids = [int(each) for each in request.query_params.get("ids", "").split(",") if each.isdigit()][:ZIP_MOST]
        target = desk.make_upload_folder() / "hearth.zip"
        try:
            await run_in_threadpool(desk.keeper.shelf.export, ids, target)
        except Trouble as trouble:
            return JSONResponse({"trouble": translate(trouble.sentence, language(request))}, status_code=409)
        away = BackgroundTask(shutil.rmtree, target.parent, ignore_errors=True)
        return FileResponse(target, filename="hearth.zip", background=away)

    return [
        Route("/hearth/shelf", found), Route("/hearth/shelf/empty", empty, methods=["POST"]),
        Route("/hearth/shelf/{id:int}/{act}", act, methods=["POST"]), Route("/hearth/export", export),
    ]  # fmt: skip


def creation_view(desk: Desk, kept: Creation, spoken: Language) -> dict[str, Any]:
    conditions = {
        "missing": text("shelf.missing", "file missing", spoken), "foreign": text("shelf.foreign", "changed by another program", spoken),
    }  # fmt: skip
    speed = views.rate_text(kept.rate, kept.unit, spoken) if kept.rate else ""
    return {
        "id": kept.id, "kind": kept.kind, "title": desk.models.find_title(kept.model), "text": kept.text, "name": kept.path.name,
        "url": f"hearth/creation/{kept.id}", "favourite": kept.favourite, "binned": kept.binned, "seconds": kept.seconds, "speed": speed,
        "highest": kept.highest_bytes, "created_s": kept.created_s, "whole": kept.whole, "condition": conditions.get(kept.condition, ""),
        "peaks": views.peaks(str(kept.path)) if kept.kind == "speech" and not kept.condition else (),
    }  # fmt: skip


def reveal(path: Path) -> None:
    """The folder in the system's own file manager, with the file marked where that can be asked for."""
    command: str | list[str]
    if sys.platform == "darwin":
        command = ["open", "-R", str(path)]
    elif os.name == "nt":
        command = f'explorer /select,"{path}"'  # which takes quotes around the path alone
    else:
        command = ["xdg-open", str(path.parent)]
    try:
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError as fault:
        raise Trouble(
            say("shelf.no-manager", "Could not open a file manager. The file is at {path}.", path=str(path))
        ) from fault
