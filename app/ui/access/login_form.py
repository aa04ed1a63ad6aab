"""The login page: the form, and what its fields are called."""

from __future__ import annotations

import html
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.base.languages import languages
from app.base.palette import by_system
from app.base.sentence import Sentence
from app.ui.access.request_guard import NONCE
from app.ui.page.translate import language, text, translate

LOGIN_PATH: Final = "/hearth/login"
OTHER: Final = "other"
"""The form has it from one who says that they are not the guest who came last in this browser, with the earlier one whom they are, if any."""
WHO: Final = "who"
"""The form asks a guest who is in already for their name alone, as one who came by the QR code was asked nothing."""
AGAIN: Final = "again"
"""So the form asks one who came by the QR code whether they are the guest whom this browser keeps."""
NAME_LETTERS: Final = 24
Asks = Literal["all", "known", "other", "name", "again"]
"""What the form asks: of a guest whom the browser keeps, of one who is a new guest there, and of one who is in already their name alone, or whether
they are whom the browser keeps."""


def render_page(
    request: Request,
    trouble: Sentence | None,
    status: int,
    owner: bool,
    nickname: str = "",
    asks: Asks = "all",
    told: str | None = None,
    earlier: Mapping[str, str] = MappingProxyType({}),
) -> HTMLResponse:
    """Draw the form. Guests alone are asked for a name, and keep the one they gave. `told`: which guest of before they are; "": none of them.
    `earlier`: those guests who gave a name."""
    spoken = language(request)
    alert = f'<p role="alert">{html.escape(translate(trouble, spoken))}</p>' if trouble else ""

    def word(key: str, english: str) -> str:
        return html.escape(text(key, english, spoken))

    def known(name: str) -> str:
        return word("login.known", "I am {name}").replace("{name}", f"<bdi>{html.escape(name)}</bdi>")

    still = "" if told is None else f"&amp;{OTHER}={html.escape(told)}"
    other = " ".join(
        f'<a href="{LOGIN_PATH}?language={each}{still}" lang="{named.tags[0]}">{named.name}</a>'
        for each, named in languages().items()
        if each != spoken
    )
    greeting = (
        word("login.owner", "Log in as this machine's owner.")
        if owner
        else word("login.greeting", "You are invited to make speech and pictures here.")
    )
    name = f"""<label>{word("login.name", "Your name (optional)")}
<input name="name" maxlength="{NAME_LETTERS}" autocomplete="nickname" value="{html.escape(nickname[:NAME_LETTERS])}"></label>"""
    secret = f"""<label>{word("login.password", "Password")}
<input name="password" type="password" required autofocus autocomplete="current-password"></label>
<label class="seen" hidden><input type="checkbox">{word("login.show", "Show the password")}</label>
{"" if owner else name}{"" if told is None else f'<input type="hidden" name="{OTHER}" value="{html.escape(told)}">'}
<button>{word("login.enter", "Log in")}</button>"""
    if asks == "other":
        back = [f'<a href="{LOGIN_PATH}?{OTHER}={html.escape(guest)}">{known(name)}</a><br>' for guest, name in earlier.items()]
        other = f"{''.join(back)}{other}"
    if asks == "known":
        other = f'<a href="{LOGIN_PATH}?{OTHER}">{word("login.other", "I am someone else")}</a><br>{other}'
    if asks == "name":
        greeting = word("login.who", "What are you called? Then it is seen whose work is whose.")
        secret = f"""{name}<button name="{WHO}" value="name">{word("login.go-on", "Continue")}</button>
<button name="{WHO}" value="skip" class="skip">{word("login.skip", "Skip")}</button>"""
        other = ""
    if asks == "again":
        kept = word("login.again", "In this browser you are {name}.") if nickname else word("login.again-nameless", "You were here before.")
        greeting = kept.replace("{name}", f"<bdi>{html.escape(nickname)}</bdi>")
        others = [
            f'<button name="{WHO}" value="{html.escape(guest)}" class="skip">{known(name)}</button>' for guest, name in earlier.items()
        ]
        secret = f"""<button name="{WHO}" value="{AGAIN}">{word("login.go-on", "Continue")}</button>{"".join(others)}
<button name="{WHO}" value="{OTHER}" class="skip">{word("login.other", "I am someone else")}</button>"""
        other = ""
    script = f"""<script nonce="{request.scope.get(NONCE, "")}">{SHOW}</script>""" if asks not in ("name", "again") else ""
    body = f"""<!doctype html><html lang="{languages()[spoken].tags[0]}"><head><meta charset="utf-8"><title>Hearth</title>
<meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><style>{by_system()}{STYLE}</style>
</head><body><main><h1>Hearth</h1><p>{greeting}</p>{alert}
<form method="post" action="{LOGIN_PATH}">{secret}</form><p class="other">{other}</p></main>{script}</body></html>"""
    return HTMLResponse(body, status, {"Cache-Control": "no-store"})


STYLE: Final = """
body { margin: 0; background: var(--h-ground); color: var(--h-ink); font: 16px/1.5 system-ui, sans-serif;
display: grid; min-height: 100vh; place-items: center; }
main { background: var(--h-card); border: 1px solid var(--h-line); border-radius: 14px; padding: 28px; box-sizing: border-box; width: min(400px, 92vw); }
h1 { margin: 0; font-size: 22px; } p { color: var(--h-soft); } [role=alert] { color: var(--h-wrong); }
label { display: block; margin: 14px 0; } input { display: block; box-sizing: border-box; width: 100%; font: inherit; padding: 9px 12px; margin-top: 4px;
border: 1px solid var(--h-edge); border-radius: 10px; background: var(--h-ground); color: inherit; }
button { font: inherit; font-weight: 600; border: 0; border-radius: 10px; padding: 10px 18px;
background: var(--h-ember); color: var(--h-on-ember); cursor: pointer; }
.skip { background: none; color: var(--h-ember); }
.seen { display: flex; gap: 8px; align-items: center; margin-top: -6px; } .seen[hidden] { display: none; } .seen input { width: auto; margin: 0; }
.other { margin: 18px 0 0; } a { color: var(--h-ember); } :focus-visible { outline: 3px solid var(--h-ember); outline-offset: 2px; }
"""


SHOW: Final = """
const [field, seen] = document.querySelectorAll("[name=password], .seen input");
seen.closest("label").hidden = false;
seen.addEventListener("change", () => (field.type = seen.checked ? "text" : "password"));
"""
