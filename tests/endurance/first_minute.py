"""A newcomer's first minute, in seconds: the archive unpacked, installed, opened in a browser, a first sound, a first picture and a first natural
voice; and a guest's on a phone, from the link to a sound and a picture.

`python -m tests.endurance.first_minute FOLDER` unpacks this commit there and installs it as the README says; a folder that has it already is opened alone,
by the environment in HEARTH_ENV where that is set. Screenshots of each step lie beside it. Each newcomer begins with an empty home, and all machines but
this one are pretended. The natural voice comes from a hub on loopback and has random weights: its real download is counted apart, by its size.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.support.hub import serving
from tests.support.phonon_hub import PHONON, make_hub
from tests.support.places import TOP
from tests.support.window import chromium, open_page

PLAYS = "[...document.querySelectorAll('audio')].some((each) => each.currentTime > 0)"
MACHINES = {"this machine": "", "GTX 1060": "gtx-1060", "MacBook Air M2": "m2-16gb"}
WAIT_MS = 600_000
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
DESKTOP: dict[str, Any] = {"locale": "en-US", "viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"locale": "en-US", "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@contextmanager
def timed(who: str, step: str) -> Iterator[None]:
    before_s = time.monotonic()
    yield
    print(f"{who:16} {step:44} {time.monotonic() - before_s:7.1f} s", flush=True)


def unpack(folder: Path) -> None:
    packed = folder / "hearth.zip"
    subprocess.run(["git", "archive", "--format=zip", "--prefix=hearth/", "-o", str(packed), "HEAD"], cwd=TOP, check=True)
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(packed), str(folder)], check=True)


@contextmanager
def opened(folder: Path, home: Path, *more: str, **env: str) -> Iterator[str]:
    """`python3 start.py` until the window says where it is, with what it says on the way."""
    command = [sys.executable, "-u", str(folder / "hearth" / "start.py"), "open", "--no-browser", "--home", str(home), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C.UTF-8", **env}) as process:
        assert process.stdout is not None
        before_s = time.monotonic()
        for line in process.stdout:
            print(f"    {time.monotonic() - before_s:7.1f} s  {line.rstrip()}", flush=True)
            if found := ADDRESS.search(line):
                yield found[0]
                break
        process.terminate()


def walk(page: Page, who: str, looks: Path) -> None:
    """What the greeting offers: hear something, then see something."""
    for step, words in (("Speak something", "ready to play"), ("Paint something", "picture in")):
        tab = step.split()[0].lower()
        button = page.get_by_role("button", name=step, exact=True)
        greeted = button.is_visible()
        with timed(who, f"{step}: until it is there"):
            if greeted:
                button.click()
            else:  # the greeting is gone after the first, and no guest has one
                page.get_by_role("tab", name=tab.title()).click()
                page.locator('[role="group"][aria-label^="Sample"] button:visible').first.click()
                page.locator(f"#{tab}-go").click()
            expect(page.locator(f"#h-{'parts' if tab == 'speak' else 'canvas'} .h-heard")).to_contain_text(words, timeout=WAIT_MS)
        if not greeted and tab == "speak":
            with timed(who, "Play: until it sounds"):
                page.locator("#h-parts").get_by_role("button", name="Play part 1").click()  # Play all has no element of its own
                page.wait_for_function(PLAYS)
        page.screenshot(path=looks / f"{who} {tab}.png")


def look(browser: Browser, address: str, who: str, looks: Path) -> None:
    before_s = time.monotonic()
    with open_page(browser, address, **DESKTOP) as page:
        expect(page.locator("#h-greeting .h-fit").first).not_to_be_empty(timeout=WAIT_MS)
        print(f"{who:16} {'page, until it knows the machine':44} {time.monotonic() - before_s:7.1f} s", flush=True)
        page.screenshot(path=looks / f"{who} greeting.png")
        walk(page, who, looks)


def hear_natural(browser: Browser, address: str, who: str, looks: Path) -> None:
    """The first that the greeting offers, downloaded and spoken with, by its buttons."""
    size_mb = sum(each.bytes for each in (PHONON.source, *(part.source for part in PHONON.companions)) if each) // 10**6
    with open_page(browser, address, **DESKTOP) as page:
        page.set_default_timeout(WAIT_MS)
        card = page.locator(".h-model-card", has_text=PHONON.title)
        with timed(who, f"{PHONON.title}: asked for, there ({size_mb} MB apart)"):
            page.get_by_role("button", name=f"Download {PHONON.title}").click()
            page.get_by_role("alertdialog").get_by_role("button", name="Download", exact=True).click()
            expect(card.get_by_text("installed")).to_be_visible(timeout=WAIT_MS)
        with timed(who, "Speak with it: until it is there"):
            card.get_by_role("button", name="Speak with it").click()
            expect(page.locator("#h-parts .h-heard")).to_contain_text("ready to play", timeout=WAIT_MS)
        page.screenshot(path=looks / f"{who} natural.png")


def visit(browser: Browser, address: str, looks: Path) -> None:
    """The owner shares in the own network; the guest has the link and the password, and a phone."""
    who = "guest on a phone"
    with open_page(browser, address, **DESKTOP) as owner:
        owner.get_by_role("button", name="Share", exact=True).click()
        with timed("its owner", "Create link: until it is there"):
            owner.get_by_role("radio", name="At home").check()
            owner.get_by_role("button", name="Create link").click()
            expect(owner.locator(".h-secret code")).not_to_be_empty(timeout=WAIT_MS)
        link, words = owner.locator(".h-address").inner_text(), owner.locator(".h-secret code").inner_text()
        phone = browser.new_context(**PHONE).new_page()
        phone.set_default_timeout(WAIT_MS)
        with timed(who, "link, until it asks for the password"):
            phone.goto(link)
            phone.locator("[name=password]").wait_for()
        phone.screenshot(path=looks / f"{who} door.png")
        phone.fill("[name=password]", words)
        with timed(who, "password, until the page answers"):
            phone.locator("form button").tap()
            phone.wait_for_selector("#h-strip .h-doing:not(:empty)")
        phone.screenshot(path=looks / f"{who} page.png")
        walk(phone, who, looks)
        phone.context.close()


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("folder", type=Path)
    folder = given.parse_args().folder.resolve()
    looks = folder / "looks"
    looks.mkdir(parents=True, exist_ok=True)
    if not (folder / "hearth").is_dir():
        with timed("this machine", "archive unpacked"):
            unpack(folder)
    with chromium() as browser:
        for who, name in MACHINES.items():
            before_s = time.monotonic()
            with opened(folder, folder / f"home of {who}", *(["--pretend", name] if name else [])) as address:
                print(f"{who:16} {'start.py, until the window is there':44} {time.monotonic() - before_s:7.1f} s", flush=True)
                look(browser, address, who, looks)
                if not name:
                    visit(browser, address, looks)
        with serving(make_hub(folder / "hub")) as hub:
            own = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder / "downloads")}
            with opened(folder, folder / "home of a listener", **own) as address:
                hear_natural(browser, address, "this machine", looks)


if __name__ == "__main__":
    main()
