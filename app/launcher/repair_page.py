"""Show a failed start as a page with the reason, a report to copy, Repair and the way back from an update; served on loopback, or written as a file.

Runs under any Python: the standard library, sentences and colours.
"""

from __future__ import annotations

import html
import json
import os
import secrets
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from app.base.duration import word_duration
from app.base.languages import choose, languages, templates
from app.base.palette import by_system
from app.base.sentence import Sentence, say
from app.launcher import slots
from app.launcher.console import tell
from app.launcher.failure import StartFailure, describe_untranslated, find_sentence, read_tail, write_text_file
from app.launcher.pip_command import describe_progress

FIRST_S: Final = 180.0
AWAY_S: Final = 150.0
"""The page is served so long after its last request; a hidden tab asks once a minute."""
BODY_BYTES: Final = 4096
BYE_S: Final = 4.0

TITLE: Final = say("repair.title", "Hearth did not start")
AGAIN: Final = say(
    "repair.again", "The environment was rebuilt, but Hearth still does not start. Please open an issue and attach the report below."
)
OFFER: Final = say(
    "repair.offer",
    "Repair rebuilds Hearth's environment; your creations and models stay. Missing packages are downloaded, which may take minutes.",
)
COPY: Final = say("repair.line", "To rebuild Hearth's environment, copy this line into a terminal. Your creations and models stay.")
BUTTON: Final = say("repair.button", "Repair")
DOING: Final = say("repair.doing", "Rebuilding the environment")
STARTS: Final = say("repair.starts", "Repaired. Hearth now opens in its own window; you can close this page.")
GONE: Final = say("repair.gone", "The program behind this page has ended. Start Hearth again.")
REPORT: Final = say("repair.report", "For a bug report")
TAKE: Final = say("repair.take", "Copy")
BACK: Final = say("repair.back", "Back to the version before the update")
BACK_STARTS: Final = say("repair.back-starts", "The version before the update now opens in its own window; you can close this page.")
DEEDS: Final = {"repair": STARTS, "back": BACK_STARTS}
"""What start.py is told, with what is said once it is done."""


def language_of(headers: Message[str, str]) -> str:
    return choose(headers.get("Cookie") or "", headers.get("Accept-Language") or "")


def render_page(failed: StartFailure, spoken: str, middle: str, head: str = "") -> str:
    """Render the page; `middle` is HTML that offers a way out."""

    def text(sentence: Sentence) -> str:
        return html.escape(translator(spoken)(sentence))

    return f"""<!doctype html><html lang="{languages()[spoken].tags[0]}"><head><meta charset="utf-8"><title>{text(TITLE)}</title>
<meta name="viewport" content="width=device-width"><style>{by_system()}{STYLE}</style>{head}</head>
<body><main><h1>{text(TITLE)}</h1><p>{html.escape(failed.in_language(spoken))}</p>{middle}
<details><summary>{text(REPORT)}</summary><pre tabindex="0">{html.escape(failed.report)}</pre></details></main></body></html>"""


def translator(spoken: str) -> Callable[[Sentence], str]:
    return lambda sentence: sentence.translate(templates(spoken))


def render_file(failed: StartFailure, spoken: str, line: str) -> str:
    """Render the page for a file, with a line to copy instead of a button."""
    return render_page(failed, spoken, f'<p>{html.escape(translator(spoken)(COPY))}</p><pre tabindex="0">{html.escape(line)}</pre>')


STYLE: Final = """
body { margin: 0; background: var(--h-ground); color: var(--h-ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 760px; margin: 8vh auto; padding: 0 24px; }
pre { background: var(--h-card); border: 1px solid var(--h-line); border-radius: 12px; padding: 14px; overflow: auto; font-size: 13px; }
button { font: inherit; font-weight: 600; border: 0; border-radius: 12px; padding: 12px 22px;
background: var(--h-ember); color: var(--h-on-ember); cursor: pointer; }
button.quiet { padding: 6px 14px; background: none; color: var(--h-ember); border: 1px solid var(--h-edge); margin: 14px 0 0; }
:focus-visible { outline: 3px solid var(--h-ember); outline-offset: 2px; } summary { cursor: pointer; } [role=status] { font-variant-numeric: tabular-nums; }
"""
SCRIPT: Final = """
const doing = document.querySelector("[role=status]"), report = document.querySelector("details");
const copy = document.createElement("button");
copy.className = "quiet"; copy.textContent = WORDS.take;
copy.onclick = () => navigator.clipboard.writeText(report.querySelector("pre").textContent);
report.append(copy);
const look = setInterval(async () => {
  try {
    const now = await (await fetch("/state")).json();
    if (now.state === WORDS.state) { if (now.state === "repairing") doing.textContent = now.text; return; }
    if (now.state === "repaired") { doing.textContent = WORDS.starts; clearInterval(look); return; }
    location.reload();
  } catch { doing.textContent = WORDS.gone; clearInterval(look); }
}, 1000);
"""


class Repair:
    """One failure and the attempts to repair it. Each press of Repair needs a one-time token that no other page can know."""

    def __init__(self, failed: StartFailure, folder: Path, tries: int) -> None:
        self.failed, self.again, self.state, self.deed = failed, tries > 0, "failed", "repair"
        self.token = secrets.token_urlsafe(32)
        self.seen_s = time.monotonic() + FIRST_S - AWAY_S
        self._folder, self._began_s, self._lock = folder, 0.0, threading.Lock()
        self._worker = threading.Thread(target=self._carry_out, name="repair", daemon=True)

    def can_go_back(self) -> bool:
        return slots.leads_back(self._folder)

    def press(self, token: str, deed: str) -> bool:
        with self._lock:
            if self.state != "failed" or deed not in DEEDS or not secrets.compare_digest(token.encode(), self.token.encode()):
                return False
            self.token, self.state, self.deed, self._began_s = secrets.token_urlsafe(32), "repairing", deed, time.monotonic()
            self._worker = threading.Thread(target=self._carry_out, name="repair", daemon=True)
            self._worker.start()
            return True

    def now(self, spoken: str) -> dict[str, str]:
        self.seen_s = time.monotonic()
        text = ""
        if self.state == "repairing":
            log = self._folder / "install.log"
            now = describe_progress(log) if log.is_file() else ()
            text = "  ".join(map(translator(spoken), (word_duration(time.monotonic() - self._began_s), DOING, *now)))
        return {"state": self.state, "text": text}

    def _carry_out(self) -> None:
        command = [sys.executable, str(slots.TOP / "start.py"), self.deed]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            )
            code, said = done.returncode, done.stderr.strip()
        except OSError as fault:
            code, said = 1, str(fault)
        if code:
            self.failed = describe_untranslated(find_sentence(said), f"{said}\n\n{read_tail(self._folder / 'install.log')}")
            self.again = False  # nothing was rebuilt
        self.state = "failed" if code else "repaired"
        print(said, file=sys.stderr, flush=True)


def make_handler(repair: Repair) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        timeout = 20

        def do_GET(self) -> None:
            if not self._ours():
                self._send(421, "")
            elif self.path == "/state":
                self._send(200, json.dumps(repair.now(language_of(self.headers))), "application/json")
            elif self.path == "/":
                nonce = secrets.token_urlsafe(16)
                self._send(200, render_repair_page(repair, language_of(self.headers), nonce), nonce=nonce)
            else:
                self._send(404, "")

        def do_POST(self) -> None:
            origin, length = self.headers.get("Origin"), self.headers.get("Content-Length", "")
            if not self._ours():
                self._send(421, "")
            elif origin not in (None, f"http://{self.headers['Host']}") or self.path != "/repair":
                self._send(403 if self.path == "/repair" else 404, "")
            elif not (length.isascii() and length.isdigit() and int(length) <= BODY_BYTES):
                self._send(413, "")
            else:
                given = parse_qs(self.rfile.read(int(length)).decode("utf-8", "replace"))
                pressed = repair.press(given.get("token", [""])[0], given.get("deed", ["repair"])[0])
                self._send(303 if pressed else 403, "", location="/")

        def _ours(self) -> bool:
            """Return whether the Host is ours; a website that rebinds its name has another."""
            address = f":{self.connection.getsockname()[1]}"
            return self.headers.get_all("Host") in (["127.0.0.1" + address], ["localhost" + address])

        def _send(self, status: int, body: str, kind: str = "text/html", nonce: str = "", location: str = "") -> None:
            content = body.encode()
            self.send_response(status)
            script = f"script-src 'nonce-{nonce}'; " if nonce else ""
            for name, value in {
                "Content-Type": f"{kind}; charset=utf-8",
                "Content-Length": str(len(content)),
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "same-origin",
                "Content-Security-Policy": f"default-src 'none'; {script}style-src 'unsafe-inline'; connect-src 'self'; form-action 'self'; "
                f"frame-ancestors 'none'; base-uri 'none'",
            }.items():
                self.send_header(name, value)
            if location and status == 303:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    return Answering


def render_repair_page(repair: Repair, spoken: str, nonce: str) -> str:
    plain, now = translator(spoken), repair.now(spoken)

    def text(sentence: Sentence) -> str:
        return html.escape(plain(sentence))

    starts = DEEDS[repair.deed]
    words = {"state": now["state"], "starts": plain(starts), "gone": plain(GONE), "take": plain(TAKE)}
    script = f'<script nonce="{nonce}">const WORDS = {json.dumps(words)};{SCRIPT}</script>'
    status = f'<p role="status">{text(starts) if now["state"] == "repaired" else html.escape(now["text"])}</p>'
    back = f' <button class="quiet" name="deed" value="back">{text(BACK)}</button>' if repair.can_go_back() else ""
    token = f'<input type="hidden" name="token" value="{repair.token}">'
    press = f'<form method="post" action="/repair">{token}<button>{text(BUTTON)}</button>{back}</form>'
    again = f"<p>{text(AGAIN)}</p>" if repair.again else ""
    middle = f"{again}<p>{text(OFFER)}</p>{press}{status}" if now["state"] == "failed" else status
    refresh = '<noscript><meta http-equiv="refresh" content="2"></noscript>' if now["state"] == "repairing" else ""
    return render_page(repair.failed, spoken, middle, refresh).replace("</main>", f"</main>{script}")


def offer_repair(failed: StartFailure, folder: Path, browser: bool, tries: int) -> str:
    """Serve the page until a deed succeeds or nobody looks any more; return which one succeeded, or ""."""
    repair = Repair(failed, folder, tries)
    with ThreadingHTTPServer(("127.0.0.1", 0), make_handler(repair)) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.1,), name="page", daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        try:
            if not browser or not can_show_pages() or not webbrowser.open(address):
                tell(say("repair.file", "Report for a bug report: {file}", file=str(write_text_file(failed))))
                tell(say("repair.command", "To reinstall everything: {hearth} repair"))
                if repair.can_go_back():
                    tell(say("repair.back-command", "To go back to the version before the update: {hearth} back"))
                return ""
            tell(
                say(
                    "repair.page",
                    "{address} shows the reason and offers Repair. It ends when the page is closed, or with Ctrl+C.",
                    address=address,
                )
            )
            while repair.state == "repairing" or (repair.state == "failed" and time.monotonic() - repair.seen_s < AWAY_S):
                time.sleep(0.2)
            if repair.state == "repaired":
                time.sleep(BYE_S)  # the page asks once more
        except KeyboardInterrupt:
            return ""
        finally:
            server.shutdown()
    return repair.deed if repair.state == "repaired" else ""


def can_show_pages() -> bool:
    """Return whether a browser can open; on Linux without a screen a text browser would answer."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform != "linux" or any(os.environ.get(each) for each in screens)
