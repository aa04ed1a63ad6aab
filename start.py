"""The one way in, standard library only: makes the environment (the right torch for this card), then runs Hearth.

    python3 start.py            open Hearth; where that fails, a page with the reason and Repair
    python3 start.py test ...   add what the tests need and run them: all, fast, those of a room (test keeper); other words go to pytest
    python3 start.py style      check the checkout's style and format alone, before a commit
    python3 start.py lint       check the checkout's style, format and house rules
    python3 start.py types      check the checkout's types
    python3 start.py add NAME   add an extra of pyproject.toml (aac, keyring, machines, mcp, pdf, quantised, window); it stays over updates and repairs
    python3 start.py repair     make the environment anew
    python3 start.py update     newer code and its environment beside the old one, swapped in once proven
    python3 start.py back       one step back, to what was there before the last update
    python3 start.py speak ...  anything else is Hearth's own command line

The work is done in app/launcher; this file only makes sure of the Python first.
"""

import sys
from pathlib import Path

NEEDED = (3, 11)
if sys.version_info < NEEDED:
    sys.exit(
        f"Hearth needs Python {NEEDED[0]}.{NEEDED[1]} or newer, and this is Python {sys.version_info[0]}.{sys.version_info[1]}. "
        "Install a newer one from python.org and start again with it."
    )

sys.path.insert(0, str(Path(__file__).resolve().parent))  # also where Python was told not to look beside a script
try:
    from app.launcher.command import main
except ImportError as fault:
    sys.exit(f"hearth: Files of Hearth's own are missing ({fault}). Get it again, into the same folder; what you made lies elsewhere.")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], __doc__ or ""))
