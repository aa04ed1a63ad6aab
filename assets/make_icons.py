"""Make every size of the icon from icons/icon.svg with Chromium; run by hand: python assets/make_icons.py"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ICONS = Path(__file__).resolve().parent / "icons"
SIZES = (16, 32, 48, 64, 128, 180, 192, 256, 512, 1024)
ICO = (16, 24, 32, 48, 64, 128, 256)


def drawn() -> Image.Image:
    browser = next((found for name in ("chromium", "google-chrome", "chrome") if (found := shutil.which(name))), None)
    if browser is None:
        sys.exit("Icons are drawn by Chromium, and none is on the PATH.")
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder, "page.html"), Path(folder, "shot.png")
        page.write_text(f"<body style='margin:0'>{(ICONS / 'icon.svg').read_text('utf-8')}", "utf-8")
        options = ("--headless", "--no-sandbox", "--hide-scrollbars", "--default-background-color=00000000")
        command = [browser, *options, "--window-size=1024,1024", f"--screenshot={shot}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        return Image.open(shot).convert("RGBA").crop((0, 0, 1024, 1024))


def main() -> None:
    large = drawn()
    for size in SIZES:
        large.resize((size, size), Image.Resampling.LANCZOS).save(ICONS / f"icon-{size}.png", optimize=True)
    large.save(ICONS / "hearth.ico", sizes=[(size, size) for size in ICO])
    large.save(ICONS / "hearth.icns")


if __name__ == "__main__":
    main()
