"""The one way in, standard library only: makes the environment (the right torch for this card), then runs Hearth.

`start.py --help` lists what it does. The work is done in app/launcher; this file only makes sure of the Python first, in words of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

NEEDED = (3, 11)


def say(english: str, german: str, chinese: str, japanese: str) -> str:
    """Choose the terminal's language, as app/base/languages.py does, which needs a newer Python."""
    named = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "").lower()
    can = "utf" in (sys.stderr.encoding or "").lower()
    return {"de": german, "zh": chinese, "ja": japanese}.get(named[:2], english) if can else english


if sys.version_info < NEEDED:
    needed, found = (f"{version[0]}.{version[1]}" for version in (NEEDED, sys.version_info))
    sys.exit(
        say(
            f"Hearth needs Python {needed} or newer, and this is Python {found}. Install a newer one from python.org and start again with it.",
            f"Hearth braucht Python {needed} oder neuer, und dies ist Python {found}. Installiere ein neueres von python.org und starte damit noch einmal.",
            f"Hearth 需要 Python {needed} 或更新的版本，而这是 Python {found}。请从 python.org 安装较新的版本，再用它启动。",
            f"HearthにはPython {needed}以降が必要ですが、これはPython {found}です。python.orgから新しいものをインストールし、それで起動し直してください。",
        )
    )

sys.path.insert(0, str(Path(__file__).resolve().parent))  # also where Python was told not to look beside a script
try:
    from app.launcher.broken_pull import mend

    if __name__ == "__main__" and mend():
        sys.exit(subprocess.call([sys.executable, *sys.argv]))  # what is imported is of the code from before
    from app.launcher.command import main
except ImportError as fault:
    lacks = say(
        f"Files of Hearth's own are missing ({fault}). Get it again, into the same folder; what you made lies elsewhere.",
        f"Es fehlen Dateien von Hearth selbst ({fault}). Hole es noch einmal, in denselben Ordner; deine Werke liegen woanders.",
        f"Hearth 自身的文件不全（{fault}）。请重新获取，放到同一个文件夹；你的作品在别处。",
        f"Hearth自身のファイルが足りません（{fault}）。同じフォルダーへもう一度入手してください。作品は別の場所にあります。",
    )
    sys.exit(f"hearth: {lacks}")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
