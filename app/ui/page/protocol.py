"""What the page's scripts and the server call each other by, in one table; tests/ui/page/test_protocol.py holds both sides to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Tab = Literal["speak", "paint", "shelf", "models", "machine"]

ElementId = Literal[
    "h-head", "h-under-head", "h-rooms", "h-strip",
    "h-greeting", "h-scripts", "h-script", "h-says", "h-cast", "h-voices", "h-book", "h-parts", "h-sound",
    "h-samples", "h-prompts", "h-prompt", "h-loras", "h-sketch", "h-guide", "h-reference", "h-canvas", "h-tuning", "h-grid",
    "h-shelf", "h-models",
    "h-words", "h-plan", "h-curve", "h-chunk-now", "h-charts", "h-selftest", "h-machines", "h-notify", "h-upkeep", "h-disk",
]  # fmt: skip
"""The window lays out the elements with these ids; a script fills them."""

Made = Literal[
    "h-interrupted",
    "h-queue",
    "h-sharing-title",
    "h-sharing-why",
    "h-sure",
    "h-to-disk",
    "h-to-disk-why",
    "h-leave",
    "h-styles-title",
    "h-help",
    "h-pause",
    "h-pause-why",
    "h-more",
    "h-book-length",
]
"""A script makes these elements."""

Field = Literal[
    "speak-text", "speak-voice", "speak-cast", "speak-says", "speak-clip", "speak-new-voice", "speak-transcript", "speak-dictation",
    "paint-prompt", "paint-negative", "paint-fit", "paint-width", "paint-height", "paint-start",
    "paint-dropped", "paint-loras", "paint-chosen", "paint-guided", "paint-liked", "paint-started",
    "machine-chunk", "machine-exact", "machine-more",
]  # fmt: skip
"""Scripts or styles know these fields of Gradio's. Hidden are paint-dropped, which takes a picture that is dropped anywhere, paint-chosen,
the LoRAs in use, paint-guided and paint-liked, the names of the pictures that guide and that it is to be like, and paint-started, whether there is a
starting picture and what is drawn on it."""

Press = Literal["speak-go", "speak-stop", "paint-go", "paint-stop", "machine-test", "machine-tune"]
"""Scripts press, watch or disable these buttons of Gradio's; a person can press each as well."""

Call = Literal[
    "speak.restore", "speak.open", "speak.redo", "speak.changed", "speak.voices", "speak.use", "speak.book",
    "speak.back", "speak.kept", "speak.noclip", "speak.novoice", "speak.noseed",
    "paint.restore", "paint.alike", "paint.use", "paint.edit", "paint.forecast", "paint.lines", "paint.unfold", "paint.guided", "paint.liked",
    "paint.back", "paint.kept", "paint.noloras", "paint.noseed",
    "machine.stop", "machine.typed", "machine.knee", "machine.forget", "machine.loaded",
]  # fmt: skip
"""Scripts ask this of a tab's handlers (app/ui/tabs/script_calls.py): each names the tab, and what to do."""

CARRIED: Final[Mapping[Call, str]] = {
    "speak.restore": "creation",
    "speak.open": "creation",
    "speak.redo": "part",
    "paint.restore": "creation",
    "paint.alike": "creation",
    "speak.use": "model",
    "paint.use": "model",
}
"""These calls carry a whole number, a model's id, or a job and the number of its part, in the field named; the other calls carry nothing."""

DRAFTS: Final = (
    "speak-text", "paint-prompt", "paint-negative",
    "speak-text-earlier", "paint-prompt-earlier", "paint-negative-earlier", "paint-prompt-used",
)  # fmt: skip
"""Drafts keep what is typed, what a sample or an earlier creation took the place of, and the prompts that were painted."""


@dataclass(frozen=True, slots=True)
class Address:
    """A route of the page: its path, its method, and the fields of its query or its JSON."""

    path: str
    method: Literal["GET", "POST"] = "GET"
    fields: tuple[str, ...] = ()


ROUTES: Final = (
    Address("hearth/words"),
    Address("hearth/help"),
    Address("hearth/manifest"),
    Address("hearth/static/{name}"),
    Address("hearth/live", fields=("charts", "page")),
    Address("hearth/check", "POST", ("kind", "text", "model", "negative", "cast", "says", "speed")),
    Address("hearth/drafts"),
    Address("hearth/drafts", "POST", DRAFTS),
    Address("hearth/made/{job}/{name}"),
    Address("hearth/heard/{job}/{part}", fields=("after", "gains")),
    Address("hearth/creation/{id}", fields=("format", "download")),
    Address("hearth/along/{id}"),
    Address("hearth/sheet"),
    Address("hearth/smaller/{kind}", "POST"),
    Address("hearth/queue/{job}/{act}", "POST"),
    Address("hearth/pause/{act}", "POST", ("until", "when", "begin", "end")),
    Address("hearth/notify"),
    Address("hearth/notify/show", "POST", ("job",)),
    Address("hearth/notify/left", "POST", ("page",)),
    Address("hearth/notify/{act}", "POST", ("address", "kind", "titles")),
    Address("hearth/listen/{act}", "POST"),
    Address("hearth/edit/{act}", "POST", ("text", "cast", "says", "part", "words", "seconds", "take")),
    Address("hearth/pick", "POST", ("picture", "x", "y")),
    Address("hearth/describe", "POST", ("picture",)),
    Address("hearth/cast", fields=("model",)),
    Address("hearth/voices"),
    Address("hearth/voice", fields=("name", "download")),
    Address("hearth/voice", "POST"),
    Address("hearth/voices/{act}", "POST", ("name", "value")),
    Address("hearth/voices", "POST", ("id", "name")),
    Address("hearth/says", fields=("words", "download")),
    Address("hearth/says", "POST"),
    Address("hearth/says/{act}", "POST", ("word", "spoken", "before", "near", "text", "at", "cast")),
    Address("hearth/book"),
    Address("hearth/book", "POST"),
    Address("hearth/book/{act}", "POST", ("chapters", "names", "model", "voice", "cast")),
    Address("hearth/notices", "POST", ("id",)),
    Address("hearth/engine/{act}", "POST"),
    Address("hearth/chunk", "POST", ("size",)),
    Address("hearth/window"),
    Address("hearth/window/{act}", "POST"),
    Address("hearth/greeting"),
    Address("hearth/greeting", "POST"),
    Address("hearth/shelf", fields=("words", "kind", "model", "favourite", "binned", "skip", "album", "tag", "since", "until", "earlier")),
    Address("hearth/shelf/empty", "POST"),
    Address("hearth/shelf/all", fields=("words", "kind", "model", "favourite", "binned", "album", "tag", "since", "until")),
    Address("hearth/shelf/{id}/{act}", "POST"),
    Address("hearth/enlarge"),
    Address("hearth/enlarge/{act}", "POST", ("id", "times", "enlarger")),
    Address("hearth/export", fields=("ids", "album", "audiobook", "mp3", "each", "settings", "title")),
    Address("hearth/albums/{act}", "POST", ("ids", "album", "value")),
    Address("hearth/project", fields=("album",)),
    Address("hearth/project", "POST"),
    Address("hearth/models"),
    Address("hearth/models/{act}", "POST", ("value",)),
    Address("hearth/loras", fields=("words", "model", "chosen")),
    Address("hearth/loras/{act}", "POST", ("value",)),
    Address("hearth/styles"),
    Address("hearth/styles/{act}", "POST", ("name", "prompt", "negative")),
    Address("hearth/downloads"),
    Address("hearth/offer", fields=("model",)),
    Address("hearth/found", fields=("root", "words")),
    Address("hearth/machine", fields=("model", "as")),
    Address("hearth/report"),
    Address("hearth/machines/{act}", "POST", ("id", "code")),
    Address("hearth/upkeep"),
    Address("hearth/upkeep/{act}", "POST", ("extra",)),
    Address("hearth/disk"),
    Address("hearth/disk/{act}", "POST", ("name", "place")),
    Address("hearth/share"),
    Address(
        "hearth/share/{act}",
        "POST",
        ("hours", "at_home", "id", "for_good", "letters", "side", "steps", "batch", "waiting", "waiting_all", "share"),
    ),
)
"""The page uses all of these routes of Hearth's own. Logging in and what a second start asks are not the page's."""

DEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "hearth/queue/{job}/{act}": ("remove", "stop", "up", "go-on", "let-go"),
    "hearth/pause/{act}": ("hold", "resume", "plan", "wait", "go-on-battery"),
    "hearth/notify/{act}": ("keep", "forget", "try", "chime", "no-chime"),
    "hearth/listen/{act}": ("listen", "mend", "words", "stop"),
    "hearth/edit/{act}": ("line", "words", "up", "down", "pause", "speak", "take", "back", "script"),
    "hearth/engine/{act}": ("again", "repair"),
    "hearth/says/{act}": ("put", "remove", "back", "check", "hear"),
    "hearth/book/{act}": ("tick", "voices", "revoiced", "revoice", "script", "close"),
    "hearth/voices/{act}": ("rename", "describe", "remove", "restore", "speak", "audition", "keep", "discard"),
    "hearth/window/{act}": ("stay", "background", "quit"),
    "hearth/shelf/{id}/{act}": ("favourite", "plain", "delete", "restore", "reveal"),
    "hearth/enlarge/{act}": ("begin", "stop"),
    "hearth/albums/{act}": (
        "make",
        "rename",
        "remove",
        "put",
        "take",
        "tag",
        "untag",
        "name",
        "delete",
        "restore",
        "order",
        "shift",
        "place",
        "keep",
        "open",
        "back",
        "left",
    ),
    "hearth/models/{act}": (
        "get",
        "pause",
        "remove",
        "add",
        "forget",
        "look",
        "add-all",
        "where",
        "creations",
        "free",
        "token",
        "token-away",
    ),
    "hearth/loras/{act}": ("folder", "leave", "show"),
    "hearth/styles/{act}": ("keep", "remove"),
    "hearth/machines/{act}": (
        "use",
        "use-not",
        "show-code",
        "withdraw-code",
        "rest",
        "work",
        "remove",
        "lend",
        "pause",
        "help-on",
        "fetch",
        "fetch-not",
        "be-seen",
        "be-seen-not",
        "lend-not",
    ),
    "hearth/upkeep/{act}": (
        "may-look",
        "may-not-look",
        "look",
        "update",
        "add",
        "assistants",
        "no-assistants",
        "cancel",
        "restart",
        "back",
    ),
    "hearth/disk/{act}": ("look", "move", "back", "here", "cancel", "one", "delete", "where"),
    "hearth/share/{act}": ("begin", "end", "send-away", "limits"),
}
"""The routes that do something take these as their last word."""

SWITCHES: Final = ("help", "language", "chime", "light")
"""The switches in the head have these values of data-h-act."""

MEASURED: Final = ("SelfTest", "Tune")
"""The progress of each measurement stands where data-kind says this."""

CURES: Final = (
    "use",
    "get",
    "get-configs",
    "models",
    "extras",
    "token",
    "smaller",
    "automatic",
    "report",
    "repair",
    "go-on",
    "open-folder",
    "voices",
)
"""A button by this name cures a trouble; `use` and `get` are followed by a colon and a model."""
