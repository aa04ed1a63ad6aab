"""The door: a password of words, a session for who knows it, patience that runs out, and the page that asks."""

from __future__ import annotations

import hashlib
import hmac
import html
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.palette import by_system
from app.sentence import Sentence, say
from app.ui.access.request_guard import answered, host_of, loopback
from app.ui.page.translate import COOKIE, LANGUAGES, language, text, translate
from app.ui.state.person import KEY, OWNER, Person, new_visitor

COOKIES: Final = {True: "hearth_owner", False: "hearth_guest"}
"""By whether the owner is meant: cookies of one host are shared by all its ports."""
PAGE: Final = "/hearth/door"
UNASKED: Final = frozenset({"/gradio_api/startup-events", "/hearth/ping", "/favicon.ico"})
"""What Gradio asks itself while it starts, what a second start asks, and the icon of the page that asks; none tells anything of anybody."""
PROGRAMS: Final = ("/v1/", "/sdapi/")
"""Where a key opens, and nothing else: a browser never sends one by itself."""
TRIES: Final = 10
REFILL_S: Final = 3.0
REFILL_MOST_S: Final = 60.0
GUESTS_MOST: Final = 40
GONE_S: Final = 600.0
"""A guest who was not seen for so long may have to log in again, if the room is needed."""
FORM_BYTES: Final = 4096
NAME_LETTERS: Final = 24
YEAR_S: Final = 365 * 86400
WORDS: Final = ["acorn", "amber", "anchor", "apple", "apron", "arrow", "atlas", "autumn", "badge", "baker", "balcony", "bamboo", "barley", "basil", "basket", "beacon", "bell", "berry", "birch", "biscuit", "blanket", "blossom", "bonnet", "border", "bottle", "bramble", "branch", "bread", "breeze", "brick", "bridge", "bronze", "brook", "bucket", "butter", "button", "cabin", "cable", "candle", "canoe", "canvas", "caramel", "carpet", "carrot", "castle", "cedar", "cellar", "chalk", "cherry", "chestnut", "chimney", "cinder", "circle", "clay", "cliff", "clock", "clover", "cobalt", "cocoa", "comet", "compass", "copper", "coral", "corner", "cotton", "cradle", "crayon", "cricket", "crystal", "curtain", "daisy", "dolphin", "donkey", "dragon", "drawer", "drum", "dune", "eagle", "easel", "echo", "elbow", "ember", "engine", "fable", "falcon", "feather", "fern", "fiddle", "field", "finch", "fjord", "flannel", "flint", "flute", "forest", "fossil", "fountain", "fox", "garden", "garlic", "ginger", "glacier", "globe", "goblet", "granite", "grape", "gravel", "hammer", "hammock", "harbor", "harvest", "hazel", "heather", "hedge", "heron", "hickory", "hollow", "honey", "hornet", "island", "ivory", "ivy", "jacket", "jasmine", "jigsaw", "juniper", "kettle", "kite", "ladder", "lagoon", "lantern", "lark", "lemon", "lentil", "lilac", "linen", "lizard", "lobster", "locket", "lumber", "magnet", "mango", "maple", "marble", "meadow", "melon", "mint", "mirror", "mitten", "moss", "muffin", "nectar", "needle", "nest", "nettle", "nutmeg", "oak", "oasis", "ocean", "olive", "onion", "orange", "orbit", "orchard", "otter", "oyster", "paddle", "pancake", "panther", "parcel", "pebble", "pencil", "pepper", "petal", "piano", "pigeon", "pillow", "pine", "planet", "plum", "pocket", "pond", "poppy", "prism", "pumpkin", "quartz", "quilt", "rabbit", "radish", "raven", "reed", "ribbon", "ripple", "river", "robin", "rocket", "rowan", "saddle", "saffron", "salmon", "sandal", "satin", "scarf", "shell", "silver", "sparrow", "spruce", "squash", "stable", "starling", "stone", "stove", "summit", "sunset", "swallow", "tailor", "teapot", "temple", "thimble", "thistle", "thunder", "timber", "tulip", "tunnel", "turnip", "turtle", "valley", "vanilla", "velvet", "violet", "violin", "waffle", "wagon", "walnut", "weaver", "whistle", "willow", "window", "winter", "wren", "yarrow", "zebra"]  # fmt: skip
WORDS_IN_PASSWORD: Final = 6


def password() -> str:
    """Words, so that it can be read out; nearly 48 bits, which a throttle makes plenty."""
    return " ".join(secrets.choice(WORDS) for _ in range(WORDS_IN_PASSWORD))


def digest(words: str) -> bytes:
    """However it was typed: with hyphens, capitals or wide gaps."""
    return hashlib.sha256(" ".join(words.casefold().replace("-", " ").split()).encode()).digest()


@dataclass(frozen=True, slots=True)
class Guest:
    person: Person
    nickname: str
    since_s: float
    seen_s: float


@dataclass(slots=True)
class Throttle:
    """One for everybody: behind a tunnel all have one address. Wrong words make the refill slower, right ones make it quick again."""

    left: float = TRIES
    refill_s: float = REFILL_S
    at_s: float = 0.0

    def wait_s(self, now_s: float) -> float:
        """How long until the next try; 0.0 takes one."""
        self.left = min(TRIES, self.left + (now_s - self.at_s) / self.refill_s)
        self.at_s = now_s
        if self.left < 1:
            return (1 - self.left) * self.refill_s
        self.left -= 1
        return 0.0

    def out(self, now_s: float) -> bool:
        """Whether there is no try left; takes none."""
        return self.left + (now_s - self.at_s) / self.refill_s < 1

    def wrong(self) -> None:
        self.refill_s = min(REFILL_MOST_S, self.refill_s * 1.2)

    def right(self) -> None:
        self.left, self.refill_s = TRIES, REFILL_S


@dataclass(slots=True)
class Keys:
    """Who was let in. Only digests are kept of what opens."""

    opens: bytes
    owner: bool
    until_s: float | None = None
    """By `clock`; afterwards nobody is in."""
    program: bytes | None = None
    """Of the key for programs."""
    secure: bool = False
    """Reached by https from outside: the cookie goes no other way."""
    clock: Callable[[], float] = time.monotonic
    guests: dict[bytes, Guest] = field(default_factory=dict)
    throttle: Throttle = field(default_factory=Throttle)
    patience: Throttle = field(default_factory=Throttle)
    """With programs: who guesses at a key keeps nobody from logging in."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def closed(self) -> bool:
        return self.until_s is not None and self.clock() >= self.until_s

    def close(self) -> None:
        with self.lock:
            self.until_s = self.clock()
            self.guests.clear()

    def enter(self, tried: str, nickname: str) -> str | Sentence:
        """A fresh token, or why not. Within the throttle the right words are refused, too: else it would limit nothing."""
        with self.lock:
            now_s = self.clock()
            if self.closed:
                return say("door.closed", "This share has ended. Ask for a new link.")
            if wait_s := self.throttle.wait_s(now_s):
                return say("door.wait", "Too many tries. Wait {seconds} seconds, then try again.", seconds=max(1, round(wait_s)))  # fmt: skip
            if not hmac.compare_digest(digest(tried), self.opens):
                self.throttle.wrong()
                return say("door.wrong", "That is not the password.")
            self.throttle.right()
            if len(self.guests) >= GUESTS_MOST and not self._room(now_s):
                return say("door.full", "There are {most} guests already, and that is all there is room for.", most=GUESTS_MOST)  # fmt: skip
            token = secrets.token_urlsafe(32)
            person = OWNER if self.owner else new_visitor()
            self.guests[hashlib.sha256(token.encode()).digest()] = Guest(
                person, nickname[:NAME_LETTERS].strip(), now_s, now_s
            )
            return token

    def _room(self, now_s: float) -> bool:
        """Made by the one who was not seen for longest: a guest's page asks every few seconds, an owner has as many entries as logins."""
        longest = min(self.guests, key=lambda each: self.guests[each].seen_s)
        gone = self.owner or now_s - self.guests[longest].seen_s > GONE_S
        if gone:
            del self.guests[longest]
        return gone

    def person(self, token: str) -> Person | None:
        key = hashlib.sha256(token.encode()).digest()
        with self.lock:
            guest = None if self.closed else self.guests.get(key)
            if guest is None:
                return None
            self.guests[key] = replace(guest, seen_s=self.clock())
            return guest.person

    def bearer(self, given: str) -> bool | Sentence:
        """Whether a program's key opens; a wrong one costs a try. With no try left the right one is refused too: else guessing would have no limit."""
        with self.lock:
            if self.program is None or self.closed:
                return False
            patience = self.patience
            if patience.out(self.clock()):
                return say("door.wait", "Too many tries. Wait {seconds} seconds, then try again.", seconds=max(1, round(patience.refill_s)))  # fmt: skip
            if hmac.compare_digest(hashlib.sha256(given.encode()).digest(), self.program):
                return True
            patience.wait_s(self.clock())
            patience.wrong()
            return False

    def leave(self, name: str) -> None:
        with self.lock:
            self.guests = {key: guest for key, guest in self.guests.items() if guest.person.name != name}


class Door:
    """Nobody comes further without the password; who has it is written into the request."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app, self._keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        path, cookie = scope["path"], request.cookies.get(COOKIES[self._keys.owner])
        if path in UNASKED:
            await self._app(scope, receive, send)
        elif path.rstrip("/") == PAGE:
            await (await self._asked(request))(scope, receive, send)
        elif path.startswith(PROGRAMS):
            await self._program(scope, receive, send)
        elif cookie and (person := self._keys.person(cookie)):
            scope[KEY] = person
            await self._app(scope, receive, send)
        elif path == "/" and scope["method"] in ("GET", "HEAD"):
            await RedirectResponse(PAGE, 303)(scope, receive, send)
        else:
            await answered(scope, 401, say("door.first", "Give the password first."))(scope, receive, send)

    async def _program(self, scope: Scope, receive: Receive, send: Send) -> None:
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        opened = self._keys.bearer(given) if scheme.lower() == "bearer" and given else False
        if opened is True:
            scope[KEY] = OWNER
            await self._app(scope, receive, send)
        elif opened is False:
            await answered(scope, 401, say("door.key", "Programs need the key that Hearth was started with, as: Authorization: Bearer KEY"))(scope, receive, send)  # fmt: skip
        else:
            await answered(scope, 429, opened)(scope, receive, send)

    async def _asked(self, request: Request) -> Response:
        if request.method != "POST":
            chosen = request.query_params.get("language", "")
            if chosen in LANGUAGES:
                answer = RedirectResponse(PAGE, 303)
                answer.set_cookie(COOKIE, chosen, max_age=YEAR_S, samesite="lax")  # read by the page's own script
                return answer
            return page(request, None, 410 if self._keys.closed else 200)
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > FORM_BYTES:
                return Response(status_code=413)
        given = {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
        outcome = self._keys.enter(given.get("password", ""), given.get("name", ""))
        if isinstance(outcome, Sentence):
            return page(
                request, outcome, {"door.wait": 429, "door.closed": 410, "door.full": 503}.get(outcome.key, 401)
            )
        answer = RedirectResponse("/", 303)
        secure = self._keys.secure and not loopback(host_of(request.headers.get("host", "")))
        left_s = None if self._keys.until_s is None else int(self._keys.until_s - self._keys.clock())
        answer.set_cookie(
            COOKIES[self._keys.owner], outcome, max_age=left_s, httponly=True, samesite="lax", secure=secure
        )
        return answer


def page(request: Request, trouble: Sentence | None, status: int) -> HTMLResponse:
    spoken = language(request)
    said = f'<p role="alert">{html.escape(translate(trouble, spoken))}</p>' if trouble else ""

    def word(key: str, english: str) -> str:
        return html.escape(text(key, english, spoken))

    other = " ".join(
        f'<a href="{PAGE}?language={each}" lang="{each}">{name}</a>'
        for each, name in LANGUAGES.items()
        if each != spoken
    )
    body = f"""<!doctype html><html lang="{"zh-CN" if spoken == "zh" else "en"}"><head><meta charset="utf-8"><title>Hearth</title>
<meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><style>{by_system()}{STYLE}</style>
</head><body><main><h1>Hearth</h1><p>{word("door.greeting", "You were invited to speak and paint here.")}</p>{said}
<form method="post" action="{PAGE}"><label>{word("door.password", "Password")}<input name="password" type="password" required autofocus autocomplete="current-password"></label>
<label>{word("door.name", "Your name, if you like")}<input name="name" maxlength="{NAME_LETTERS}" autocomplete="nickname"></label>
<button>{word("door.enter", "Come in")}</button></form><p class="other">{other}</p></main></body></html>"""
    return HTMLResponse(body, status, {"Cache-Control": "no-store"})


STYLE: Final = """
body { margin: 0; background: var(--h-ground); color: var(--h-ink); font: 16px/1.5 system-ui, sans-serif; display: grid; min-height: 100vh; place-items: center; }
main { background: var(--h-card); border: 1px solid var(--h-line); border-radius: 14px; padding: 28px; box-sizing: border-box; width: min(400px, 92vw); }
h1 { margin: 0; font-size: 22px; } p { color: var(--h-soft); } [role=alert] { color: var(--h-wrong); }
label { display: block; margin: 14px 0; } input { display: block; box-sizing: border-box; width: 100%; font: inherit; padding: 9px 12px; margin-top: 4px;
border: 1px solid var(--h-edge); border-radius: 10px; background: var(--h-ground); color: inherit; }
button { font: inherit; font-weight: 600; border: 0; border-radius: 10px; padding: 10px 18px; background: var(--h-ember); color: var(--h-on-ember); cursor: pointer; }
.other { margin: 18px 0 0; } a { color: var(--h-ember); } :focus-visible { outline: 3px solid var(--h-ember); outline-offset: 2px; }
"""
