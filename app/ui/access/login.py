"""Require a password: server-side logins, and what the login page is answered."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.base.clean_words import clean_words
from app.base.duration import word_duration
from app.base.languages import COOKIE, languages
from app.base.paths import assets
from app.base.sentence import Sentence, say
from app.base.trouble import NeedsKey, ShareEnded, TooMany, WrongPassword
from app.engine.jobs.owners import household_of, new_guest
from app.ui.access.guesses import Guesses
from app.ui.access.login_form import AGAIN, LOGIN_PATH, NAME_LETTERS, OTHER, WHO, Asks, render_page
from app.ui.access.program_answers import API_PREFIXES
from app.ui.access.request_guard import is_loopback, parse_host, refusal
from app.ui.state.kept_guests import KeptGuests
from app.ui.state.person import KEY, OWNER, Person

COOKIES: Final = {True: "hearth_owner", False: "hearth_guest"}
"""All ports of a host share their cookies, so the owner's, under True, has another name than the guests'."""
VISITOR: Final = "hearth_visitor"
"""A guest's browser keeps under this name which guest it is, over the end of a share. It lets nobody in."""
PUBLIC_PATHS: Final = frozenset({"/gradio_api/startup-events", "/hearth/ping", "/favicon.ico"})
"""Nobody needs a login for these: Gradio's start-up request, a second start's ping, the login page's icon. They hold no secrets."""
GRADIO_LOGIN: Final = "/login"
"""Gradio's client sends `auth=` there."""
WITH_KEY: Final = ("/config", "/gradio_api/", "/hearth/creation/")
"""The API key works here too, besides below the APIs: Gradio's client asks for these, and OpenAI's answers link to such files. Browsers never send
a key by themselves."""
TICKET: Final = "t"
GUESTS_KEPT: Final = 4
"""A browser keeps the guest who came in by it last, and of those before the last who gave a name, so that nobody loses their shelf to another one."""
BETWEEN: Final = "|"
TICKET_S: Final = 60.0
"""So long a QR code shows the same ticket, which lets in for twice as long: a photo of the screen is soon worth nothing."""
LOGINS_MOST: Final = 40
FORM_BYTES: Final = 4096
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Unicode counts these among letters and symbols, and nothing is seen of them."""
_MARKS: Final = dict.fromkeys(map(ord, "\u061c\u200e\u200f"))
"""Unseen marks turn the direction of what stands around them."""
YEAR_S: Final = 365 * 86400
WORDS_IN_PASSWORD: Final = 6


@cache
def password_words() -> tuple[str, ...]:
    return tuple((assets() / "password_words.txt").read_text("ascii").split())


def make_password() -> str:
    """Draw six words, easy to read out: nearly 48 bits, plenty behind a throttle."""
    return " ".join(secrets.choice(password_words()) for _ in range(WORDS_IN_PASSWORD))


def digest_password(words: str) -> bytes:
    """Hash a password so that hyphens, capitals, extra spaces and how accents are encoded make no difference."""
    return hashlib.sha256(" ".join(compose(words).casefold().replace("-", " ").split()).encode()).digest()


def digest_key(key: str) -> bytes:
    """Hash an API key; spaces around it and how accents are encoded make no difference."""
    return digest_token(compose(key).strip())


def compose(words: str) -> str:
    """Compose letters and accents (NFC): keyboards and systems differ in it."""
    return unicodedata.normalize("NFC", words)


def read_header(value: str) -> str:
    """Decode a header, which starlette reads as Latin-1 and most programs send as UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def read_basic(value: str) -> str:
    """Decode the password of a Basic login; empty if it cannot be read. The name in front of it is anybody's."""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


@dataclass(frozen=True, slots=True)
class Login:
    person: Person
    nickname: str | None
    """It is "" for one who would not say, None for one who was not asked."""
    since_s: float
    seen_s: float


@dataclass(slots=True)
class Logins:
    """Everyone who is logged in. Passwords, keys and tokens are stored as digests only."""

    password_digest: bytes
    owner: bool
    until_s: float | None = None
    """All logins end then, by `clock`."""
    api_key_digest: bytes | None = None
    """`digest_key` makes it."""
    secure: bool = False
    """True: it is served to the outside over https, and the cookie is marked Secure."""
    clock: Callable[[], float] = time.monotonic
    by_token: dict[bytes, Login] = field(default_factory=dict)
    tickets: tuple[tuple[str, float], ...] = ()
    """The last two let in without the password; each is kept with when it was drawn."""
    guesses: Guesses = field(default_factory=Guesses)
    behind_tunnel: bool = False
    """True: guests come through a tunnel, which tells their addresses."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    """It turns addresses into households, so that none is stored."""
    list_busy: Callable[[], Collection[str]] = tuple
    """It names those who have a job that waits or runs."""
    guests: KeptGuests | None = None
    """It knows who comes again."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def closed(self) -> bool:
        return self.until_s is not None and self.clock() >= self.until_s

    def close(self) -> None:
        with self.lock:
            self.until_s = self.clock()
            self.by_token.clear()
            self.tickets = ()

    def find_household(self, address: str) -> str:
        return hmac.digest(self.secret, address.encode(), "sha256").hex()[:12]

    def log_in(self, given_password: str, nickname: str | None, address: str = "", kept: str = "") -> str:
        """Return a new token, or raise Trouble with the reason for refusing. The right password is let in, whatever was guessed before.
        `nickname`: None where nobody was asked for it. `kept`: which guest the browser says it is."""
        household = self.find_household(address)
        with self.lock:
            now_s = self.clock()
            if self.closed:
                raise ShareEnded(say("login.closed", "This share has ended. Ask for a new link."))
            if not hmac.compare_digest(digest_password(given_password), self.password_digest):
                raise WrongPassword(say("login.wrong", "Wrong password. Check it and try again."))
            self.guesses.forget(household)
            return self._enter(household, nickname, now_s, kept)

    def show_ticket(self) -> str:
        """Return what the QR code carries now."""
        with self.lock:
            now_s = self.clock()
            if not self.tickets or now_s - self.tickets[-1][1] >= TICKET_S:
                self.tickets = (*self.tickets[-1:], (secrets.token_urlsafe(16), now_s))
            return self.tickets[-1][0]

    def use_ticket(self, given: str, address: str = "", kept: str = "") -> str | None:
        """Return a new token for a ticket that is shown or was a moment ago; several may come in by one."""
        with self.lock:
            now_s = self.clock()
            right = [
                hmac.compare_digest(given.encode(), ticket.encode()) for ticket, drawn_s in self.tickets if now_s - drawn_s < 2 * TICKET_S
            ]
            return self._enter(self.find_household(address), None, now_s, kept) if any(right) and not self.closed else None

    def _enter(self, household: str, nickname: str | None, now_s: float, kept: str) -> str:
        """`nickname`: None where nobody was asked for it."""
        known = self.guests.read(kept) if self.guests is not None else None
        person = OWNER if self.owner else Person(known or new_guest(household), False)
        before = next((login for login in self.by_token.values() if login.person == person), None) if known else None
        if known:  # this browser's login before
            self.by_token = {key: login for key, login in self.by_token.items() if login.person != person}
        if len(self.by_token) >= LOGINS_MOST:
            self._make_room(household_of(person.name))
        token = secrets.token_urlsafe(32)
        if nickname is not None:
            name: str | None = shorten_name(nickname)
        else:
            name = before.nickname if before else (self.guests and self.guests.find_name(person.name)) or None
        self.by_token[digest_token(token)] = Login(person, name, now_s, now_s)
        return token

    def enter_as(self, token: str, address: str, kept: str) -> str:
        """Return another guest's token for that of the guest who came last in a browser: an earlier one's, or with "" a new one's."""
        with self.lock:
            self.by_token.pop(digest_token(token), None)
            return self._enter(self.find_household(address), None, self.clock(), kept)

    def give_name(self, token: str, nickname: str) -> None:
        """Call a guest so; "" for one who would not say."""
        key = digest_token(token)
        with self.lock:
            if (login := self.by_token.get(key)) is not None and self.guests is not None:
                self.by_token[key] = replace(login, nickname=shorten_name(nickname))

    def find_login(self, token: str) -> Login | None:
        with self.lock:
            return self.by_token.get(digest_token(token))

    def change_password(self, words: str) -> None:
        """Let in by other words from now on; who is in stays, and a QR code of before is worth nothing."""
        with self.lock:
            self.password_digest, self.tickets = digest_password(words), ()

    def _make_room(self, entering: str) -> None:
        """Log out one of the household with most logins, counting the one that enters: of those without a job, who was idle
        longest."""
        homes = {key: household_of(login.person.name) for key, login in self.by_token.items()}
        logins = Counter([*homes.values(), entering])
        most = max(logins[home] for home in homes.values())
        busy = self.list_busy()
        candidates = [key for key, home in homes.items() if logins[home] == most]
        del self.by_token[min(candidates, key=lambda key: (self.by_token[key].person.name in busy, self.by_token[key].seen_s))]

    def find_person(self, token: str) -> Person | None:
        key = digest_token(token)
        with self.lock:
            login = None if self.closed else self.by_token.get(key)
            if login is None:
                return None
            self.by_token[key] = replace(login, seen_s=self.clock())
            return login.person

    def check_key(self, given: str) -> bool:
        """Return whether the API key is right; after the share's end none is."""
        known = self.api_key_digest
        return known is not None and not self.closed and hmac.compare_digest(digest_key(given), known)

    def check_owner(self, password: str) -> bool:
        """Return whether this is the password of the owner's window; a share's is none."""
        return self.owner and not self.closed and hmac.compare_digest(digest_password(password), self.password_digest)

    async def hold_wrong(self, address: str) -> TooMany | None:
        """Hold back the answer to a wrong guess; return what to answer instead if too many are held already."""
        household = self.find_household(address)
        delay_s = self.guesses.add_wrong(household, self.clock())
        return None if await self.guesses.hold(household, delay_s) else too_many_tries(delay_s)

    def log_out(self, name: str) -> None:
        with self.lock:
            self.by_token = {key: login for key, login in self.by_token.items() if login.person.name != name}


def shorten_name(nickname: str) -> str:
    """Return a name in one line, without signs that steer what stands around it; "" for one of which nothing is seen."""
    name = " ".join(nickname.translate(_MARKS).split())[:NAME_LETTERS].strip()
    return clean_words(name) if any(unicodedata.category(each)[0] in "LNPS" and each not in _BLANK for each in name) else ""


def digest_token(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def too_many_tries(wait_s: float) -> TooMany:
    return TooMany(say("login.wait", "Too many tries. Wait {time}, then try again.", time=word_duration(wait_s, exact=True)))


class LoginRequired:
    """Middleware: answer the login form, refuse everyone without a login, and write the person into the request's scope."""

    def __init__(self, app: ASGIApp, logins: Logins) -> None:
        self._app, self._logins = app, logins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        path, cookie = scope["path"], request.cookies.get(COOKIES[self._logins.owner])
        if path in PUBLIC_PATHS:
            await self._app(scope, receive, send)
        elif path.rstrip("/") == LOGIN_PATH:
            await (await self._answer_form(request))(scope, receive, send)
        elif path.rstrip("/") == GRADIO_LOGIN and scope["method"] == "POST" and self._logins.owner:
            await (await self._answer_login(request))(scope, receive, send)
        elif path.startswith(API_PREFIXES):
            await self._serve_program(scope, receive, send)
        elif cookie and (person := self._logins.find_person(cookie)):
            scope[KEY] = person
            await self._app(scope, receive, send)
        elif path.startswith(WITH_KEY) and self._logins.owner and "authorization" in request.headers:
            await self._serve_program(scope, receive, send)
        elif path == "/" and scope["method"] in ("GET", "HEAD"):
            await RedirectResponse(LOGIN_PATH, 303)(scope, receive, send)
        else:
            await refusal(scope, 401, say("login.first", "Log in with the password first."))(scope, receive, send)

    async def _serve_program(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let in who sends the API key, as a Bearer or, as A1111's clients do, by Basic, where the password does too."""
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        basic = scheme.lower() == "basic"
        given = read_basic(given) if basic else read_header(given) if scheme.lower() == "bearer" else ""
        if given:
            if self._logins.check_key(given) or (basic and self._logins.check_owner(given)):
                scope[KEY] = OWNER
                await self._app(scope, receive, send)
                return
            if trouble := await self._logins.hold_wrong(self._find_address(scope)):
                await refusal(scope, trouble.status, trouble.sentence, trouble.code)(scope, receive, send)
                return
        wanted = say(
            "login.key",
            "Send Hearth's API key, as: Authorization: Bearer KEY. Or log in as A1111's clients do (Basic), with any name and the password.",
        )
        await refusal(scope, 401, wanted, NeedsKey.code)(scope, receive, send)

    def _find_address(self, scope: Scope) -> str:
        return find_address(scope, self._logins.behind_tunnel)

    async def _answer_form(self, request: Request) -> Response:
        if request.method == "POST":
            return await self._answer_login(request)
        ticket = request.query_params.get(TICKET, "")
        kept = self._find_kept(request, None)[1]
        if ticket and (token := self._logins.use_ticket(ticket, self._find_address(request.scope), kept)):
            again = f"={AGAIN}" if kept else ""
            return self._remember(
                request, token, RedirectResponse(f"{LOGIN_PATH}?{WHO}{again}" if kept or self._is_unasked(token) else "/", 303)
            )
        if WHO in request.query_params and self._is_guest(request):
            return self._ask_again(request) if request.query_params[WHO] == AGAIN else render_page(request, None, 200, False, asks="name")
        chosen, other = request.query_params.get("language", ""), request.query_params.get(OTHER)
        if chosen not in languages():
            status = ShareEnded.status if self._logins.closed else 200
            return self._ask(request, None, status, self._recall_name(self._find_kept(request, other)[0]), other)
        answer = RedirectResponse(LOGIN_PATH if other is None else f"{LOGIN_PATH}?{urlencode({OTHER: other})}", 303)
        answer.set_cookie(COOKIE, chosen, max_age=YEAR_S, samesite="lax")  # read by the page's own script
        return answer

    async def _answer_login(self, request: Request) -> Response:
        body = b""
        with contextlib.suppress(ClientDisconnect):  # nobody waits for the answer
            async for piece in request.stream():
                body += piece
                if len(body) > FORM_BYTES:
                    return Response(status_code=413)
        given = {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True).items()}
        if WHO in given and self._is_guest(request):
            own = request.cookies[COOKIES[False]]
            if given[WHO] in ("name", "skip"):
                self._logins.give_name(own, given.get("name", "") if given[WHO] == "name" else "")
                await self._keep_name(own)
                return RedirectResponse("/", 303)
            if given[WHO] != AGAIN:
                own = self._logins.enter_as(own, self._find_address(request.scope), self._find_kept(request, given[WHO])[1])
            return self._remember(request, own, RedirectResponse(f"{LOGIN_PATH}?{WHO}" if self._is_unasked(own) else "/", 303))
        address, by_program = self._find_address(request.scope), request.url.path.rstrip("/") == GRADIO_LOGIN
        if WHO in given and "password" not in given:  # a second press: the first took its login, and gave the browser another
            return RedirectResponse("/", 303)
        _, kept = self._find_kept(request, given.get(OTHER))
        try:
            token = self._logins.log_in(given.get("password", ""), given.get("name"), address, kept)
        except WrongPassword as wrong:
            refused = await self._logins.hold_wrong(address) or wrong
            return self._ask(request, refused.sentence, refused.status, given.get("name", ""), given.get(OTHER))
        except ShareEnded as ended:
            return render_page(request, ended.sentence, ended.status, self._logins.owner)
        await self._keep_name(token)
        return self._remember(request, token, JSONResponse({"success": True}) if by_program else RedirectResponse("/", 303))

    def _remember(self, request: Request, token: str, answer: Response) -> Response:
        answer.headers["Cache-Control"] = "no-store"
        secure = self._logins.secure and not is_loopback(parse_host(request.headers.get("host", "")))
        left_s = None if self._logins.until_s is None else int(self._logins.until_s - self._logins.clock())
        answer.set_cookie(COOKIES[self._logins.owner], token, max_age=left_s, httponly=True, samesite="lax", secure=secure)
        person = self._logins.find_person(token)
        if self._logins.guests is not None and person is not None and not person.owner:
            others = [each for guest, each in self._list_known(request).items() if guest != person.name and self._recall_name(guest)]
            kept = [self._logins.guests.sign(person.name), *others][:GUESTS_KEPT]
            answer.set_cookie(VISITOR, BETWEEN.join(kept), max_age=YEAR_S, path=LOGIN_PATH, httponly=True, samesite="lax", secure=secure)
        return answer

    def _is_guest(self, request: Request) -> bool:
        cookie = request.cookies.get(COOKIES[False], "")
        return not self._logins.owner and bool(cookie) and self._logins.find_person(cookie) is not None

    def _ask(self, request: Request, trouble: Sentence | None, status: int, nickname: str, other: str | None) -> Response:
        """Draw the form. `other`: who they say they are in place of the guest who came last; None: they did not say so."""
        known = self._list_known(request)
        told = None if other is None else other if other in known else ""
        asks: Asks = "all" if not known else "other" if told == "" else "known"
        return render_page(request, trouble, status, self._logins.owner, nickname, asks, told, self._name_known(request))

    def _ask_again(self, request: Request) -> Response:
        """Ask one who came by the QR code whether they are the guest who came last in this browser."""
        login = self._logins.find_login(request.cookies[COOKIES[False]])
        earlier = {guest: name for guest, name in self._name_known(request).items() if login is None or guest != login.person.name}
        return render_page(request, None, 200, False, (login and login.nickname) or "", "again", None, earlier)

    def _name_known(self, request: Request) -> dict[str, str]:
        """Return the guests whom the browser keeps by their names, of those who gave one."""
        return {guest: name for guest in self._list_known(request) if (name := self._recall_name(guest))}

    def _list_known(self, request: Request) -> dict[str, str]:
        """Return the guests whom the browser keeps, the last one first, each with what it keeps."""
        guests, kept = self._logins.guests, request.cookies.get(VISITOR, "").split(BETWEEN)[:GUESTS_KEPT]
        return {guest: each for each in kept if guests is not None and (guest := guests.read(each))}

    def _find_kept(self, request: Request, other: str | None) -> tuple[str, str]:
        """Return which guest the browser says it is, and what it keeps of it; nothing for a new one."""
        known = self._list_known(request)
        guest = next(iter(known), "") if other is None else other
        return (guest, known[guest]) if guest in known else ("", "")

    def _recall_name(self, guest: str) -> str:
        return self._logins.guests.find_name(guest) if self._logins.guests and guest else ""

    async def _keep_name(self, token: str) -> None:
        """Keep what a guest is called over the end of the share, in a thread: it writes a file, and nobody else is to wait for that."""
        login, guests = self._logins.find_login(token), self._logins.guests
        if login is not None and login.nickname is not None and guests is not None:
            await run_in_threadpool(guests.keep_name, login.person.name, login.nickname)

    def _is_unasked(self, token: str) -> bool:
        """Tell whether a guest is to be asked for a name still."""
        login = self._logins.find_login(token)
        return login is not None and login.nickname is None and self._logins.guests is not None


def find_address(scope: Any, behind_tunnel: bool) -> str:
    """Return the address that limits are counted by; "" if none is told, so that all such guests count as one.

    Behind the tunnel every connection comes from frpc on this machine. Gradio's server, frps, appends the address that
    connected to it to X-Forwarded-For (Go's ReverseProxy does), so the last one cannot be forged; all before it is what
    the guest sent. Where another proxy stands before frps, the last one is that proxy's, and all guests behind it
    share one allowance. Without a tunnel the header proves nothing, and whoever connected counts.
    """
    told = Headers(scope=scope).getlist("x-forwarded-for") if behind_tunnel else []
    connected = (scope.get("client") or ("",))[0]
    return simplify(told[-1].rpartition(",")[2] if told else connected)


def simplify(address: str) -> str:
    """Reduce an IPv6 address to the network of its site, all of which one person may have; return "" for anything but an
    address."""
    try:
        found = ipaddress.ip_address(address.strip().strip("[]").partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 48), strict=False).network_address)
