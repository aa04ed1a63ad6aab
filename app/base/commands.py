"""Hearth's commands, each with its module and what it does. The launcher reads it before there is an environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

START: Final = Path(__file__).parents[2] / "start.py"

COMMANDS: Final = {
    "open": ("app.cli.open", "open the window (the default)"),
    "speak": ("app.cli.speak", "speak a script into a sound file"),
    "paint": ("app.cli.paint", "paint a prompt into a picture"),
    "voices": ("app.cli.voices", "list voices; send, take, rename and remove saved ones"),
    "models": ("app.cli.models", "list, download and remove models"),
    "disk": ("app.cli.disk", "show what takes room on the disk; move it to another one, and back"),
    "doctor": ("app.cli.doctor", "show what this machine can do and how models will run on it, with reasons"),
    "bench": ("app.cli.bench", "measure Hearth on this machine, in turn with the plain libraries"),
    "lend": ("app.cli.lend", "let another computer's Hearth use this one"),
    "machines": ("app.cli.machines", "list, add and remove the computers that help this one, or use a Dask cluster"),
    "backup": ("app.cli.backup", "copy the database of jobs and creations to its backups"),
    "completion": ("app.cli.completion", "print what makes bash, zsh, fish or PowerShell complete these commands"),
    "install-app": ("app.launcher.desktop_entry", "add Hearth to your apps"),
    "remove-app": ("app.launcher.desktop_entry", "remove Hearth from your apps, and show where your files are"),
    "update": ("app.launcher.update", "install the newest version, after testing it"),
}
"""Each module has `add_arguments(parser)` and `main(args) -> exit code`, and is imported only when its command is used."""

WORDS: Final = {
    "open": "--browser --certificate --home --key --lang --listen --mcp --no-browser --port --pretend --share",
    "speak": "--anew --cast --chunk --dtype --file --format --gqa --guidance --home --json --kernels --model --offload --output --pretend "
    "--pronunciations --quantised --quiet --seed --show-text --speed --subtitles --temperature --top-p --title --transcript --voice --words -f -o -q",
    "paint": "--adapter --anew --batch --chunk --control --dtype --enlarger --file --gqa --guidance --guide --guide-as --guide-from --guide-strength "
    "--guide-to --hires --hires-strength --home --image --json --kernels --lora --mask --mask-blur --masked-only --masked-padding --model --negative "
    "--offload --output --pretend --quantised --quicker --quiet --reference --reference-strength --scheduler --seed --size --steps --strength --upscale "
    "-f -o -q",
    "voices": "list export import rename describe remove --home --json --model",
    "models": "list get remove where size found --home --json --pretend",
    "disk": "list twice move back --home --json",
    "doctor": "--forget --home --json --model --pretend --selftest --why",
    "bench": "attention machines paint queue speech start voices --against --batch --deviation --dtype --each --frames --helpers --home --jobs --json "
    "--layers --measure --model --no-loading --no-memory --no-window --only --pictures --pretended --quantised --quick --quicker --rounds --rows "
    "--rows-only --seconds --singles --size --steps --tasks --threads --times-only",
    "lend": "--fetch-models --home --pretend",
    "machines": "list add remove use --ca --cert --home --key",
    "backup": "--home",
    "completion": "bash fish powershell zsh",
    "remove-app": "--delete-creations",
    "update": "--back",
}
"""These are the options of each command, and the actions of those that have some: what is mistyped is refused before an environment is
made."""

EXTRAS: Final = ("aac", "keyring", "machines", "mcp", "pdf", "quantised", "window")
STARTS: Final = {
    "add": f"add an extra of pyproject.toml ({', '.join(EXTRAS)}); it stays over updates and repairs",
    "back": "one step back, to what was there before the last update",
    "lint": "check the checkout's style, format and house rules",
    "repair": "make the environment anew",
    "style": "check the checkout's style and format alone, before a commit",
    "test": "add what the tests need and run them: all, fast, those of a room (test keeper); other words go to pytest",
    "types": "check the checkout's types",
    "update": "newer code and its environment beside the old one, swapped in once proven",
}
"""start.py does these itself, under any Python; `update` is a command of Hearth's too, for those who installed it with pip."""


def name_command() -> str:
    """Return how Hearth is called in a terminal, as every sentence writes it: from its folder, as the README does, or where pip put it."""
    if not START.is_file():
        return "hearth"
    return "Hearth.bat" if os.name == "nt" else "python3 start.py"
