"""Add Hearth to the user's apps: a bundle on macOS, shortcuts on Windows, a desktop entry on Linux; written here, so never quarantined.

One pure function per system makes the files, `main` writes them, `remove-app` deletes them.
"""

from __future__ import annotations

import argparse
import base64
import plistlib
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs

from app import __version__
from app.base.languages import ENGLISH, languages, system_language, templates, word_for, word_help
from app.base.paths import Home, assets, home
from app.base.sentence import Sentence, say
from app.base.system_notice import find_powershell
from app.base.trouble import Trouble
from app.launcher.slots import find_place

TOP = Path(__file__).parents[2]
IDENTIFIER = "io.github.hearth-app.hearth"
SIZES_PX = (16, 32, 48, 64, 128, 256, 512)
COMMENT: Final = say("install.comment", "Speak scripts and paint pictures on this computer")


@dataclass(frozen=True, slots=True)
class AppFile:
    """One file: its path under a root, its content, and whether it is executable."""

    path: str
    content: bytes
    runs: bool = False


def start_command(system: str) -> list[str]:
    """Return the command that starts Hearth from anywhere: the checkout's launcher, or this Python if installed with pip."""
    launcher = find_place(TOP) / ("Hearth.bat" if system == "Windows" else "hearth.sh")
    return [str(launcher)] if launcher.is_file() else [sys.executable, "-I", "-m", "app"]


def mac_bundle(command: list[str], icon: bytes, log: Path) -> list[AppFile]:
    """Make Hearth.app. It stays out of the Dock, where the process of the window stands."""
    about = {
        "CFBundleName": "Hearth",
        "CFBundleDisplayName": "Hearth",
        "CFBundleIdentifier": IDENTIFIER,
        "CFBundleVersion": __version__,
        "CFBundleShortVersionString": __version__,
        "CFBundlePackageType": "APPL",
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleExecutable": "Hearth",
        "CFBundleIconFile": "hearth.icns",
        "LSMinimumSystemVersion": "14.0",
        "LSArchitecturePriority": ["arm64"],  # else a script may be started as an Intel program
        "LSUIElement": True,
        "NSHighResolutionCapable": True,
        "NSMicrophoneUsageDescription": say(
            "install.microphone", "Hearth records a clip of a voice when you press Record. It stays on this computer."
        ).translate(templates(system_language())),
    }
    quoted_log = shlex.quote(str(log))
    script = f"""#!/bin/bash
# Written by hearth install-app. The Finder starts this in / with hardly an environment.
cd "$HOME" || exit 1
mkdir -p {shlex.quote(str(log.parent))}
if ! {shlex.join(command)} >{quoted_log} 2>&1 </dev/null; then
  osascript -e 'on run argv' -e 'display alert "Hearth could not start" message (item 1 of argv) as critical' -e 'end run' \\
    "$(tail -n 5 {quoted_log})" && open -e {quoted_log}
  exit 1
fi
"""
    return [
        AppFile("Contents/Info.plist", plistlib.dumps(about)),
        AppFile("Contents/PkgInfo", b"APPL????"),
        AppFile("Contents/MacOS/Hearth", script.encode(), runs=True),
        AppFile("Contents/Resources/hearth.icns", icon),
    ]


def desktop_entry(command: list[str], icon: Path) -> str:
    """Make a desktop entry, quoted by freedesktop.org's rules."""

    def quoted(word: str) -> str:
        inner = "".join("\\" + each if each in '"`$\\' else each for each in word)
        return ('"' + inner + '"').replace("\\", "\\\\").replace("%", "%%")

    return "\n".join(
        (
            "[Desktop Entry]",
            "Type=Application",
            "Version=1.0",
            "Name=Hearth",
            *in_all_languages("GenericName", say("install.kind", "Speech and pictures")),
            *in_all_languages("Comment", COMMENT),
            f"Exec={' '.join(quoted(word) for word in command)}",
            "Icon=" + str(icon).replace("\\", "\\\\"),
            "Terminal=false",
            "Categories=Graphics;",
            "Keywords=speech;voice;tts;pictures;diffusion;",
            "StartupNotify=true",
            "StartupWMClass=hearth",
            "",
        )
    )


def in_all_languages(name: str, sentence: Sentence) -> list[str]:
    """Write a line of a desktop entry for each language; English needs no mark."""
    marks = {code: "" if code == ENGLISH else f"[{each.tags[0].replace('-', '_')}]" for code, each in languages().items()}
    return [f"{name}{mark}={sentence.translate(templates(code))}" for code, mark in marks.items()]


def windows_shortcuts(command: list[str], icon: Path) -> str:
    """Write the PowerShell that adds Hearth to the Start menu and the desktop, wherever Windows keeps them."""

    def quoted(word: str) -> str:
        return "'" + word.replace("'", "''") + "'"

    arguments = subprocess.list2cmdline(command[1:])
    return f"""$ErrorActionPreference = 'Stop'
$shell = New-Object -ComObject WScript.Shell
foreach ($place in 'Programs', 'Desktop') {{
  $folder = [Environment]::GetFolderPath($place)
  $link = $shell.CreateShortcut((Join-Path $folder 'Hearth.lnk'))
  $link.TargetPath = {quoted(command[0])}
  $link.Arguments = {quoted(arguments)}
  $link.WorkingDirectory = $HOME
  $link.IconLocation = {quoted(f"{icon},0")}
  $link.Description = {quoted(COMMENT.translate(templates(system_language())))}
  $link.WindowStyle = 7
  $link.Save()
}}
"""


NO_SHORTCUTS = """foreach ($place in 'Programs', 'Desktop') {
  Remove-Item -LiteralPath (Join-Path ([Environment]::GetFolderPath($place)) 'Hearth.lnk') -ErrorAction SilentlyContinue
}
"""


def powershell_command(script: str) -> list[str]:
    """Encode a script so that folder names survive any console code page.

    Errors go to stdout in UTF-8, because stderr is XML then. The explicit exit 0 is needed: PowerShell ends with 1 if a
    shortcut was already gone.
    """
    script = f"""try {{
{script}exit 0
}} catch {{
  $why = [Text.Encoding]::UTF8.GetBytes($_.Exception.Message)
  [Console]::OpenStandardOutput().Write($why, 0, $why.Length)
  exit 1
}}
"""
    encoded = base64.b64encode(script.encode("utf-16-le")).decode("ascii")
    return [find_powershell(), "-NoProfile", "-NonInteractive", "-EncodedCommand", encoded]


def write_files(root: Path, files: list[AppFile]) -> None:
    for file in files:
        target = root / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.runs else 0o644)


def installed_paths(system: str) -> list[Path]:
    """List all that install-app writes; on Windows nothing, because the shortcuts are in Windows' own folders."""
    if system == "Darwin":
        return [Path.home() / "Applications" / "Hearth.app"]
    if system == "Windows":
        return []
    data = platformdirs.user_data_path()
    icons = [data / f"icons/hicolor/{size}x{size}/apps/hearth.png" for size in SIZES_PX]
    return [data / "applications" / "hearth.desktop", *icons]


def install(system: str, where: Home) -> list[Path]:
    icons = assets() / "icons"
    command = start_command(system)
    put_in = installed_paths(system)
    if system == "Darwin":
        shutil.rmtree(put_in[0], ignore_errors=True)
        write_files(put_in[0], mac_bundle(command, (icons / "hearth.icns").read_bytes(), where.logs / "app.log"))
    elif system == "Windows":
        run(powershell_command(windows_shortcuts(command, icons / "hearth.ico")))
    else:
        for size, path in zip(SIZES_PX, put_in[1:], strict=True):
            write_files(path.parent, [AppFile(path.name, (icons / f"icon-{size}.png").read_bytes())])
        write_files(put_in[0].parent, [AppFile(put_in[0].name, desktop_entry(command, put_in[-1]).encode(), runs=True)])
    return put_in[:1]


def remove(system: str) -> None:
    if system == "Windows":
        run(powershell_command(NO_SHORTCUTS))
    for path in installed_paths(system):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        why = (done.stdout.strip().splitlines() or ["?"])[0]
        raise Trouble(say("install.shortcut", "The shortcuts could not be created. Windows says: {why}", why=why))


def system_name() -> str:
    return {"darwin": "Darwin", "win32": "Windows"}.get(sys.platform, "Linux")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    if parser.prog.endswith("remove-app"):
        parser.add_argument(
            "--delete-creations",
            action="store_true",
            help=word_help(say("usage.delete-creations", "also delete creations, voices and settings; by default they stay")),
        )


def tell(sentence: Sentence) -> None:
    print(word_for(sys.stdout, sentence))


def main(args: argparse.Namespace) -> int:
    where = home()
    if args.command == "install-app":
        put_in = install(system_name(), where)
        named = str(put_in[0]) if put_in else "Start menu, desktop"
        tell(say("install.done", "Hearth was added to your apps: {where}", where=named))
        return 0
    remove(system_name())
    tell(say("install.removed", "Hearth was removed from your apps."))
    if args.delete_creations or (sys.stdin.isatty() and not ask_to_keep(where)):
        shutil.rmtree(where.root, ignore_errors=True)
        if where.root.exists():  # Windows does not delete files in use
            tell(
                say(
                    "install.in-use",
                    "Some files are in use and could not be deleted. Close Hearth, then delete the rest: {root}",
                    root=str(where.root),
                )
            )
        else:
            tell(say("install.deleted", "Deleted: {root}", root=str(where.root)))
    else:
        tell(say("install.kept", "Your creations, voices and settings are still in {root}", root=str(where.root)))
    if where.models.is_dir():
        tell(say("install.models", "Downloaded models are still in {models}", models=str(where.models)))
    if (TOP / "start.py").is_file():
        top = find_place(TOP)
        tell(say("install.folder", "The program itself is the folder {top}. Delete it to remove Hearth completely.", top=str(top)))
    return 0


def ask_to_keep(where: Home) -> bool:
    question = say("install.keep", "Keep your creations, voices and settings in {root}? [Y/n] ", root=str(where.root))
    return not input(word_for(sys.stdout, question)).strip().lower().startswith("n")
