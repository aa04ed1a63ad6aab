"""A newcomer's first minute, in seconds: the archive unpacked, installed, opened in a browser, a first sound and a first picture.

`python -m tests.endurance.first_minute FOLDER` unpacks this commit there and installs it as the README says; a folder that has it already is opened alone.
Screenshots of each step lie beside it. Each machine, the others pretended, begins with an empty home.
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

from playwright.sync_api import Browser, Page, expect

from tests.support.places import TOP
from tests.support.window import chromium, open_page

MACHINES = {"this machine": "", "GTX 1060": "gtx-1060", "MacBook Air M2": "m2-16gb"}
WAIT_MS = 600_000
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
DESKTOP = {"locale": "en-US", "viewport": {"width": 1280, "height": 800}}
PHONE = {"locale": "en-US", "viewport": {"width": 390, "height": 844}, "has_touch": True}


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
def opened(folder: Path, home: Path, *more: str) -> Iterator[str]:
    """`python3 start.py` until the window says where it is, with what it says on the way."""
    command = [sys.executable, "-u", str(folder / "hearth" / "start.py"), "open", "--no-browser", "--home", str(home), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}) as process:
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
        with timed(who, f"{step}: until it is there"):
            button = page.get_by_role("button", name=step, exact=True)
            if button.is_visible():
                button.click()
            else:  # the greeting is gone after the first
                page.get_by_role("tab", name=tab.title()).click()
                page.locator('[role="group"][aria-label^="Sample"] button:visible').first.click()
                page.locator(f"#{tab}-go").click()
            expect(page.locator(f"#h-{'parts' if tab == 'speak' else 'canvas'} .h-heard")).to_contain_text(words, timeout=WAIT_MS)
        page.screenshot(path=looks / f"{who} {tab}.png")


def look(browser: Browser, address: str, who: str, looks: Path) -> None:
    before_s = time.monotonic()
    with open_page(browser, address, **DESKTOP) as page:
        expect(page.locator("#h-greeting .h-fit").first).not_to_be_empty(timeout=WAIT_MS)
        print(f"{who:16} {'page, until it knows the machine':44} {time.monotonic() - before_s:7.1f} s", flush=True)
        page.screenshot(path=looks / f"{who} greeting.png")
        walk(page, who, looks)


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


if __name__ == "__main__":
    main()
