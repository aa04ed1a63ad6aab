"""What the page asks for by itself: how things stand, its words, its face, and the files a person may have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from app.paths import assets
from app.ui import show
from app.ui.desk import Desk
from app.ui.words import catalog, language

FACE: Final = Path(__file__).parent / "face"
KINDS: Final = {".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".svg": "image/svg+xml"}
_SPOKEN: Final = re.compile(r"""\bt\(\s*"([^"]+)",\s*"((?:[^"\\]|\\.)*)\"""")


def routes(desk: Desk) -> list[Route]:
    def live(request: Request) -> Response:
        spoken, state = language(request), desk.keeper.state
        progress = desk.keeper.progress(state.job) if state.job else None
        return JSONResponse({"strip": show.strip(state, progress, desk.title(state.model), spoken)})

    return [Route("/hearth/live", live), Route("/hearth/words", words), Route("/hearth/face/{name}", face)]


def words(request: Request) -> Response:
    """What the scripts say, in Chinese where that is asked for; their English stands in the scripts."""
    chinese = language(request) == "zh"
    return JSONResponse({key: catalog()[key] for key in spoken_by_scripts() if key in catalog()} if chinese else {})


def spoken_by_scripts() -> dict[str, str]:
    """Every t("key", "English") of the scripts."""
    return {
        key: english for file in sorted(FACE.glob("*.js")) for key, english in _SPOKEN.findall(file.read_text("utf-8"))
    }


def face(request: Request) -> Response:
    name = request.path_params["name"]
    for folder in (FACE, assets() / "icons"):
        path = folder / name
        if path.parent == folder and path.is_file() and path.suffix in KINDS:
            return FileResponse(path, media_type=KINDS[path.suffix], headers={"Cache-Control": "no-cache"})
    return Response(status_code=404)
