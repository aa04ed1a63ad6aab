"""Print what makes a shell complete Hearth's commands and options: eval "$(python3 start.py completion bash)"."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Final

from app.base.commands import COMMANDS, EXTRAS, STARTS, WORDS
from app.base.languages import word_help
from app.base.sentence import say
from app.base.start_command import START

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
    return f"""(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit -i; }}
hearth() {{ {run} "$@" }}
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
    lines += [f"complete -c hearth -n '__hearth_does {name}' -a '{may}'" for name, may in words.items() if may]
    does = 'function __hearth_does; set -l said (commandline -opc); test "$said[2]" = $argv[1]; end'
    return "\n".join([f"function hearth; {run} $argv; end", does, *lines])


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
    parser.add_argument("shell", choices=tuple(SHELLS), help=word_help(say("usage.completion-shell", "the shell that is to complete")))


def main(args: argparse.Namespace) -> int:
    print(write(args.shell))
    return 0


def write(shell: str) -> str:
    """Return the script, which also makes `hearth` a command where Hearth runs from its folder."""
    if START.is_file():
        run = f'{"py" if os.name == "nt" else "python3"} "{START}"'
    elif shell == "powershell":
        run = "(Get-Command hearth -CommandType Application -TotalCount 1)"
    else:
        run = "command hearth"
    known = {**WORDS, "add": " ".join(EXTRAS)}
    return SHELLS[shell](run, {name: known.get(name, "") for name in sorted({*COMMANDS, *STARTS})})
