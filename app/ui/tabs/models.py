"""Models: what fits this machine and why, downloads, deletion, the access token, the owner's own models, and those that other programs keep here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.duration import word_duration
from app.base.other_disk import word_away
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.request import PictureRequest
from app.engine.keeper.disk_room import read_free_bytes
from app.engine.models import catalog, hub_child, hub_token, on_disk
from app.engine.models.downloads import Status
from app.engine.models.fit import FITS, explain_size
from app.engine.models.forecast import Forecast
from app.engine.models.found import Found, Kept
from app.engine.models.model import Model, list_sources
from app.ui.page.translate import Language, language, text, translate
from app.ui.page.view_types.live import Level
from app.ui.page.view_types.machine import (
    DownloadsView,
    DownloadView,
    FoundFileView,
    FoundView,
    MissingView,
    ModelsView,
    ModelView,
    OfferView,
)
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route
from app.ui.state.models_desk import explain_missing
from app.ui.tabs import paint_view
from app.ui.tabs.file_manager import reveal

LINE_BYTES_PER_S: Final = 50_000_000 // 8
"""A line is taken for 50 Mbit/s, as the page says, until a download has shown how fast it is."""
LEVELS: Final[Mapping[str, Level]] = {"fits": "right", "tight": "careful", "no": "wrong"}
SHOWN_MOST: Final = 60
"""So many of other programs' files are listed at once; the words of a search find the others."""
ALL_MOST: Final = 100
"""One press lists so many models of a program: each is a card, and is looked at whenever they are shown."""


def build(desk: Desk) -> None:
    gr.HTML('<section id="h-models"></section>', apply_default_css=False)


class OfferAsked(Asked):
    model: str = ""


class ActAsked(Asked):
    act: Word
    value: str = ""


class FoundAsked(Asked):
    root: str = ""
    words: Word = ""


def routes(desk: Desk) -> list[Route]:
    return [
        owner_route(desk, "/hearth/models", show_models),
        owner_route(desk, "/hearth/downloads", show_downloads),
        owner_route(desk, "/hearth/offer", show_offer, schema=OfferAsked),
        owner_route(desk, "/hearth/models/{act}", act, ["POST"], ActAsked),
        owner_route(desk, "/hearth/found", show_found, schema=FoundAsked),
    ]


def show_models(desk: Desk, request: Request) -> Response:
    return JSONResponse(models_view(desk, language(request)))


def show_downloads(desk: Desk, request: Request) -> Response:
    return JSONResponse(downloads_view(desk, language(request)))


def show_offer(desk: Desk, request: Request, asked: OfferAsked) -> Response:
    return JSONResponse(offer_view(desk, find_listed(desk, asked.model), language(request)))


def show_found(desk: Desk, request: Request, asked: FoundAsked) -> Response:
    return JSONResponse(found_view(desk, asked, language(request)))


def act(desk: Desk, request: Request, asked: ActAsked) -> Response:
    """Run an action on a model; only as JSON, which a form of another site cannot send without asking first."""
    action = ACTIONS.get(asked.act)
    if action is None:
        return Response(status_code=404)
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return Response(status_code=415)
    action(desk, asked.value)
    return JSONResponse({})


def find_listed(desk: Desk, id_: str) -> Model:
    """Find a model of the list; a path that was not added is never opened."""
    found = next((each for each in desk.models.list_all() if each.id == id_), None)
    return found if found is not None else catalog.find(id_ if id_ in catalog.BY_ID else "")


def start_download(desk: Desk, id_: str) -> None:
    model = find_listed(desk, id_)
    desk.downloads.start(model, desk.machine.offer(model).quantised)


def remove(desk: Desk, id_: str) -> None:
    desk.downloads.remove(find_listed(desk, id_), desk.models.list_all())


def add(desk: Desk, path: str) -> None:
    """Detect a model on disk and list it; nothing is copied."""
    wanted = path.strip().strip("\"'")
    seen = catalog.look(wanted)
    if seen.answers and not seen.there:
        raise Trouble(
            say("models.no-path", "There is no file or folder at {path}. Enter its full path on this machine.", path=path or '""')
        )
    model = seen.require_model()
    if model.id not in catalog.BY_ID:
        desk.settings.change("models", [], lambda saved: [*dict.fromkeys([*saved, model.id])])


def forget(desk: Desk, path: str) -> None:
    desk.settings.change("models", [], lambda saved: [each for each in saved if each != path])


def reveal_model(desk: Desk, id_: str) -> None:
    found = on_disk.locate(desk.keeper.home, find_listed(desk, id_)) if id_ else None
    reveal(found.folder / "." if found else desk.keeper.home.models / ".")


def reveal_creations(desk: Desk, _: str) -> None:
    reveal(desk.keeper.home.creations / ".")


def look_for_others(desk: Desk, _: str) -> None:
    """Look for other programs' models, now and at each start from now on."""
    desk.settings.put({"finds": True})
    desk.models.finder.look()


def add_all(desk: Desk, root: str) -> None:
    """List all models of a program that Hearth can use."""
    paths = [path for kept in desk.models.finder.kept if str(kept.root) == root for path in _list_usable(desk, kept)]
    desk.settings.change("models", [], lambda saved: [*dict.fromkeys([*saved, *paths])])


ACTIONS: dict[str, Callable[[Desk, str], None]] = {
    "get": start_download, "pause": lambda desk, id_: desk.downloads.pause(id_), "remove": remove, "add": add, "forget": forget,
    "look": look_for_others, "add-all": add_all, "where": reveal_model,
    "creations": reveal_creations, "free": lambda desk, _: desk.keeper.free(), "token": lambda _, token: hub_child.store_token(token),
    "token-away": lambda *_: hub_token.forget(),
}  # fmt: skip


def models_view(desk: Desk, spoken: Language) -> ModelsView:
    home, own = desk.keeper.home, desk.models.look_at_own()
    missing: list[MissingView] = [
        {"path": path, "trouble": translate(explain_missing(path, seen), spoken)}
        for path, seen in own.items()
        if seen.model is None or not seen.answers
    ]
    return {
        "models": [model_view(desk, model, spoken) for model in desk.models.list_all()],
        "missing": missing,
        "token": hub_token.has_token(),
        "folder": str(home.models),
        "free": read_free_bytes(home.models),
    }


def model_view(desk: Desk, model: Model, spoken: Language) -> ModelView:
    found = desk.machine.offer(model)
    fit, local = found.forecast, bool(model.path) and not model.starter
    facts = [translate(each, spoken) for each in (model.note, model.credit, explain_size(found)) if each]
    if found.here and (seconds := _estimate_picture(desk, model, fit)) is not None:
        words = say("models.picture-time", "A picture takes about {time} here, based on earlier runs.", time=word_duration(seconds))
        facts.append(translate(words, spoken))
    away = on_disk.find_away(desk.keeper.home, model)
    return {
        "id": model.id,
        "title": translate(model.words, spoken),
        "away": translate(word_away(away), spoken) if away is not None else "",
        "kind": model.kind,
        "facts": facts,
        "licence": model.licence,
        "starter": model.starter,
        "local": local,
        "path": model.path if local else "",
        "lacks": local and any(on_disk.find_snapshot(desk.keeper.home, each.source) is None for each in model.companions),
        "here": found.here,
        "bytes": found.here_bytes,
        "download": found.download_bytes if list_sources(model, found.quantised) else 0,
        "gate": hub_token.terms_page(model.source.repo) if model.gated and model.source else "",
        "fit": None
        if fit is None
        else {
            "level": LEVELS[fit.fit],
            "word": translate(FITS[fit.fit], spoken),
            "sentence": translate(fit.sentence, spoken),
            "cures": [translate(each.sentence, spoken) for each in fit.cures],
        },
    }


def _estimate_picture(desk: Desk, model: Model, fit: Forecast | None) -> float | None:
    """Estimate how long a picture takes on this machine; None for what paints none, and for a machine that is only simulated."""
    hardware = desk.keeper.state.hardware
    if model.kind != "picture" or fit is None or hardware is None or hardware.pretended:
        return None
    return paint_view.estimate_picture(desk, PictureRequest("?", model.id), model, fit.plan)


def offer_view(desk: Desk, model: Model, spoken: Language) -> OfferView:
    """Return what a person asks before a download: how much, under which licence, how long, and what keeps it from coming now."""
    offer, rate, trouble = desk.machine.offer(model), desk.downloads.line_rate, desk.downloads.check_line()
    beside = (each.licence for each in model.companions if each.when in (None, offer.quantised))
    size = explain_size(offer)
    return {
        "title": translate(model.words, spoken),
        "bytes": offer.download_bytes,
        "because": translate(size, spoken) if size is not None else "",
        "licence": translate(tuple(each for each in dict.fromkeys((model.licence, *beside)) if each), spoken),
        "seconds": offer.download_bytes / (rate or LINE_BYTES_PER_S),
        "measured": rate is not None,
        "trouble": translate(trouble, spoken) if trouble is not None else "",
    }


def downloads_view(desk: Desk, spoken: Language) -> DownloadsView:
    return {"downloads": [download_view(each, spoken) for each in desk.downloads.list_status()]}


def download_view(status: Status, spoken: Language) -> DownloadView:
    words = {
        "queued": text("download.queued", "queued", spoken), "running": text("download.running", "downloading", spoken),
        "paused": text("download.paused", "paused", spoken), "failed": text("download.failed", "stopped", spoken), "done": "",
    }  # fmt: skip
    waits = status.state == "running" and status.sentence is not None
    return {
        "model": status.model,
        "state": status.state,
        "word": text("download.waiting", "waiting", spoken) if waits else words[status.state],
        "done_bytes": status.done_bytes,
        "total_bytes": status.total_bytes,
        "rate": status.rate,
        "eta_s": status.eta_s,
        "sentence": translate(status.sentence, spoken) if status.sentence is not None else "",
        "cure": status.cure,
    }


def _list_usable(desk: Desk, kept: Kept) -> list[str]:
    """List what Hearth can use, once where the same file lies there twice."""
    finder = desk.models.finder
    usable = (file for file in kept.search() if file in finder.told and finder.word(file)[1] is None)
    return [str(file.path) for file in usable if file.path not in finder.doubles][:ALL_MOST]


def found_view(desk: Desk, asked: FoundAsked, spoken: Language) -> FoundView:
    finder, allowed = desk.models.finder, desk.settings.get("finds", False)
    if allowed and not finder.looked:
        finder.look()
    kept = next((each for each in finder.kept if str(each.root) == asked.root), None)
    wanted = [] if kept is None else kept.search(asked.words)
    own = set(desk.settings.get("models", []))
    return {
        "allowed": allowed,
        "looked": finder.looked,
        "reading": finder.reading,
        "tools": [{"root": str(each.root), "words": translate(each.words, spoken), "models": each.count("model")} for each in finder.kept],
        "files": [_file_view(desk, each, own, spoken) for each in wanted[:SHOWN_MOST]],
        "left": 0 if kept is None else len([path for path in _list_usable(desk, kept) if path not in own]),
        "more": max(0, len(wanted) - SHOWN_MOST),
    }


def _file_view(desk: Desk, file: Found, own: set[str], spoken: Language) -> FoundFileView:
    finder = desk.models.finder
    facts, trouble = finder.word(file)
    return {
        "path": str(file.path),
        "title": file.title,
        "bytes": file.bytes,
        "facts": translate(facts, spoken),
        "trouble": translate(trouble, spoken) if trouble is not None else "",
        "usable": trouble is None and file in finder.told,
        "here": str(file.path) in own,
    }
