"""Print what makes a shell complete Hearth's commands and options: eval "$(python3 start.py completion bash)"."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Final

from app.base.commands import COMMANDS, START, STARTS, WORDS

Words = Mapping[str, str]
"""A command may be followed by any of the words that it maps to."""


def write_bash(run: str, words: Words) -> str:
    cases = "\n".join(f"    {name}) words='{may}' ;;" for name, may in words.items())
    return f"""hearth() {{ {run} "$@"; }}
_hearth() {{
  local words=''
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  [ "$COMP_CWORD" -eq 1 ] && words='{" ".join(words)}'
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _hearth hearth"""


def write_zsh(run: str, words: Words) -> str:
    cases = "\n".join(f"    {name}) may=({may}) ;;" for name, may in words.items())
    return f"""hearth() {{ {run} "$@" }}
_hearth() {{
  local -a may
  case "$words[2]" in
{cases}
  esac
  (( CURRENT == 2 )) && may=({" ".join(words)})
  compadd -a may
  (( CURRENT > 2 )) && _files
}}
compdef _hearth hearth"""


def write_fish(run: str, words: Words) -> str:
    lines = [f"complete -c hearth -n __fish_use_subcommand -f -a '{' '.join(words)}'"]
    lines += [f"complete -c hearth -n '__fish_seen_subcommand_from {name}' -a '{may}'" for name, may in words.items() if may]
    return "\n".join([f"function hearth; {run} $argv; end", *lines])


def write_powershell(run: str, words: Words) -> str:
    rows = "\n".join(f"    '{name}' = '{may}'" for name, may in words.items())
    return f"""function hearth {{ & {run} @args }}
Register-ArgumentCompleter -Native -CommandName hearth -ScriptBlock {{
  param($word, $line, $at)
  $may = @{{
{rows}
  }}
  $before = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object {{ "$_" }})
  $first = $before.Count -eq 0 -or ($before.Count -eq 1 -and $word)
  $all = if ($first) {{ $may.Keys }} else {{ "$($may[$before[0]])" -split ' ' }}
  $all | Where-Object {{ $_ -like "$word*" }} | Sort-Object | ForEach-Object {{ [System.Management.Automation.CompletionResult]::new($_) }}
}}"""


SHELLS: Final[Mapping[str, Callable[[str, Words], str]]] = {
    "bash": write_bash, "zsh": write_zsh, "fish": write_fish, "powershell": write_powershell,
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell that is to complete")


def main(args: argparse.Namespace) -> int:
    print(write(args.shell))
    return 0


def write(shell: str) -> str:
    """Return the script, which also makes `hearth` a command where Hearth runs from its folder."""
    python = "py" if shell == "powershell" else "python3"
    run = f'{python} "{START}"' if START.is_file() else "command hearth"
    if shell == "powershell" and not START.is_file():
        run = "hearth.exe"
    words = {name: WORDS.get(name, "") for name in sorted({*COMMANDS, *STARTS})}
    return SHELLS[shell](run, words)
