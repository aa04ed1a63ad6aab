"""Unpack a release's archive: plain files below one folder, within bounds; nothing that leads out of it, and no links."""

from __future__ import annotations

import re
import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Final

from app.base.sentence import say
from app.launcher.console import Refused

MOST_FILES: Final = 10_000
MOST_BYTES: Final = 1 << 30
LONGEST: Final = 180
"""No path inside may have more letters: Windows takes 260 with the folder above."""
NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.+-]*[A-Za-z0-9_+-])?")
"""Every part of a path in Hearth's archive matches it; none is hidden, leads upwards or names a drive."""

ODD: Final = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, FileExistsError, NotADirectoryError)
"""Reading an archive that is not as it should be raises these; a method that zipfile does not know is a RuntimeError too."""


def unpack(archive: Path, into: Path) -> None:
    """Write the archive's files without the folder that holds them all. Refused, and `into` to be removed, where it is not as Hearth makes it."""
    try:
        with zipfile.ZipFile(archive) as packed:
            members = [each for each in packed.infolist() if not each.is_dir()]
            places = [_find_place(each) for each in members]
            if len(members) > MOST_FILES or sum(each.file_size for each in members) > MOST_BYTES:
                raise _odd(f"{len(members)} files")
            if len({str(each).lower() for each in places}) < len(places):
                raise _odd("the same name twice")
            for member, place in zip(members, places, strict=True):
                file = into / place
                file.parent.mkdir(parents=True, exist_ok=True)
                with packed.open(member) as source, file.open("xb") as target:
                    shutil.copyfileobj(source, target)  # reads no more than file_size, and compares the CRC
                if member.external_attr >> 16 & stat.S_IXUSR:
                    file.chmod(0o755)
    except ODD as fault:
        raise _odd(str(fault) or type(fault).__name__) from fault


def _find_place(member: zipfile.ZipInfo) -> PurePosixPath:
    """Return where a member goes, without the first folder; Refused for any name or kind that no file of Hearth's has."""
    first, *rest = member.filename.split("/")
    kind = stat.S_IFMT(member.external_attr >> 16)
    named = rest and all(map(NAME.fullmatch, (first, *rest))) and len(member.filename) <= LONGEST
    if not named or kind not in (0, stat.S_IFREG) or member.flag_bits & 1:
        raise _odd(member.filename[:LONGEST])
    return PurePosixPath(*rest)


def _odd(what: str) -> Refused:
    return Refused(
        say("release.odd", "The archive holds what no release of Hearth has ({what}). Nothing was changed.", what=ascii(what)[1:-1])
    )
