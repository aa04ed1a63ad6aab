"""
Errors that a person is told: a class for each that is caught by itself or answered with a status of its own.

Trouble                   what was asked cannot be done now
├── Impossible            nothing of what was asked can be done, on this machine or with these files
├── BadUsage              the words of a command cannot be read
├── BadRequest       400  the request itself cannot be read or used
├── NeedsKey         401  an API without its key
├── WrongPassword    401
├── NoSuchModel      404
├── NotThere         404  an address or a name that an API does not have
├── ShareEnded       410
├── TooMany          429  one who sends too much at once
├── QueueFull        503  to be sent again later
├── Closing          503  Hearth ends meanwhile
├── NotStored        507  the disk or the database does not take it
│   └── DiskFull     507  a job that goes on once there is room
│       └── QuotaMet 507  a job that goes on once the system takes more
├── NoRoom                a model that would leave this computer too little of its disk
└── NoMemory              a job that even the most economical settings leave too large
"""

from __future__ import annotations

from typing import ClassVar, Final

from app.base.sentence import Sentence


class Trouble(Exception):
    """What was asked, what stands in the way, what to do. `cure` names the button that does it, where there is one; `field` what of
    the request or the plan it is about."""

    status: ClassVar[int | None] = None
    """HTTP answers with this status; None: each way in has its own."""
    code: ClassVar[str] = "refused"
    """Programs tell it by this. It stays, however the sentence is reworded."""

    def __init__(self, sentence: Sentence, *objections: Sentence, cure: str = "", field: str = "") -> None:
        super().__init__(sentence, *objections)
        self.sentence = sentence
        self.objections = objections
        self.cure = cure
        self.field = field

    def __str__(self) -> str:
        return " ".join(str(part) for part in (self.sentence, *self.objections))

    def __reduce__(self) -> tuple[object, ...]:
        """A copy holds on to no frames, and may be raised in another thread or process."""
        return _rebuild, (type(self), self.sentence, self.objections, self.cure, self.field)


def _rebuild(kind: type[Trouble], sentence: Sentence, objections: tuple[Sentence, ...], cure: str, field: str) -> Trouble:
    return kind(sentence, *objections, cure=cure, field=field)


class Impossible(Trouble):
    code = "impossible"


class BadUsage(Trouble):
    code = "usage"


class BadRequest(Trouble):
    status, code = 400, "bad_request"


class NeedsKey(Trouble):
    status, code = 401, "invalid_api_key"


class WrongPassword(Trouble):
    status, code = 401, "wrong_password"


class NoSuchModel(Trouble):
    status, code = 404, "model_not_found"


class NotThere(Trouble):
    status, code = 404, "not_found"


class ShareEnded(Trouble):
    status, code = 410, "share_ended"


class TooMany(Trouble):
    status, code = 429, "too_many"


class QueueFull(Trouble):
    status, code = 503, "queue_full"


class Closing(Trouble):
    status, code = 503, "closing"


class NotStored(Trouble):
    status, code = 507, "not_stored"


class DiskFull(NotStored):
    code = "disk_full"


class QuotaMet(DiskFull):
    code = "quota_met"


class NoRoom(Trouble):
    code = "no_room"


class NoMemory(Trouble):
    code = "no_memory"


ENDS: Final = {kind.code: kind for kind in (Impossible, NotStored, DiskFull, QuotaMet, NoMemory)}
"""A job may end with these, by code, beside a plain Trouble."""
