"""What the server sends to the page, as types. views.d.ts says the same to scripts: tests/ui/page/test_view_types.py keeps both alike."""

from __future__ import annotations

from typing_extensions import TypedDict

from app.ui.page.view_types.live import Live
from app.ui.page.view_types.machine import (
    DiskView,
    DownloadsView,
    FoundView,
    GreetingView,
    MachineView,
    ModelsView,
    OfferView,
    PhoneView,
    ShareView,
    UpkeepView,
    WindowView,
)
from app.ui.page.view_types.making import (
    AlongView,
    BookView,
    EnlargersView,
    LorasView,
    PronunciationsView,
    ShelfView,
    ShelfVoicesView,
    StylesView,
    TopicsView,
    VoicesView,
)

Answers = TypedDict(
    "Answers",
    {
        "hearth/words": dict[str, str],
        "hearth/help": TopicsView,
        "hearth/live": Live,
        "hearth/drafts": dict[str, str | list[str]],
        "hearth/along/{id}": AlongView,
        "hearth/notify": PhoneView,
        "hearth/cast": VoicesView,
        "hearth/voices": ShelfVoicesView,
        "hearth/says": PronunciationsView,
        "hearth/book": BookView,
        "hearth/window": WindowView,
        "hearth/greeting": GreetingView,
        "hearth/shelf": ShelfView,
        "hearth/enlarge": EnlargersView,
        "hearth/models": ModelsView,
        "hearth/loras": LorasView,
        "hearth/styles": StylesView,
        "hearth/downloads": DownloadsView,
        "hearth/offer": OfferView,
        "hearth/found": FoundView,
        "hearth/machine": MachineView | None,
        "hearth/upkeep": UpkeepView,
        "hearth/disk": DiskView,
        "hearth/share": ShareView,
    },
)
"""The routes that send something to be shown answer so."""
