"""Hearth's commands, each with its module and what it does. The launcher reads it before there is an environment."""

from __future__ import annotations

from typing import Final

from app.base.sentence import say

COMMANDS: Final = {
    "open": ("app.cli.open", say("usage.open", "open the window (the default)")),
    "speak": ("app.cli.speak", say("usage.speak", "speak a script into a sound file")),
    "paint": ("app.cli.paint", say("usage.paint", "paint a prompt into a picture")),
    "voices": ("app.cli.voices", say("usage.voices", "list voices; send, take, rename and remove saved ones")),
    "models": ("app.cli.models", say("usage.models", "list, download and remove models")),
    "disk": ("app.cli.disk", say("usage.disk", "show what takes room on the disk; move it to another one, and back")),
    "doctor": ("app.cli.doctor", say("usage.doctor", "show what this machine can do and how models will run on it, with reasons")),
    "bench": ("app.cli.bench", say("usage.bench", "measure Hearth on this machine, in turn with the plain libraries")),
    "lend": ("app.cli.lend", say("usage.lend", "let another computer's Hearth use this one")),
    "machines": ("app.cli.machines", say("usage.machines", "list, add and remove the computers that help this one, or use a Dask cluster")),
    "backup": ("app.cli.backup", say("usage.backup", "copy the database of jobs and creations to its backups")),
    "completion": ("app.cli.completion", say("usage.completion", "print what makes bash, zsh, fish or PowerShell complete these commands")),
    "install-app": ("app.launcher.desktop_entry", say("usage.install-app", "add Hearth to your apps")),
    "remove-app": ("app.launcher.desktop_entry", say("usage.remove-app", "remove Hearth from your apps, and show where your files are")),
    "update": ("app.launcher.update", say("usage.update", "install the newest version, after testing it")),
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
    "disk": "list twice move here back --home --json",
    "doctor": "--forget --home --json --model --pretend --selftest --why",
    "bench": "attention machines paint queue speech start voices --against --batch --busy --codec --deviation --dtype --each --frames --helpers --home --jobs "
    "--json --layers --measure --model --no-loading --no-memory --no-window --only --pictures --pretended --quantised --quick --quicker --rounds --rows "
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
    "add": say("usage.add", "add an extra of pyproject.toml ({names}); it stays over updates and repairs", names=EXTRAS),
    "back": say("usage.back", "one step back, to what was there before the last update"),
    "lint": say("usage.lint", "check the checkout's style, format and house rules"),
    "repair": say("usage.repair", "make the environment anew"),
    "style": say("usage.style", "check the checkout's style and format alone, before a commit"),
    "test": say("usage.test", "add what the tests need and run them: all, fast, those of a room (test keeper); other words go to pytest"),
    "types": say("usage.types", "check the checkout's types"),
    "update": say("usage.renew", "newer code and its environment beside the old one, swapped in once proven"),
}
"""start.py does these itself, under any Python; `update` is a command of Hearth's too, for those who installed it with pip."""
