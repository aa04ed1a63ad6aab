"""Ask for the newest release, believe only what Hearth's key has signed, and fetch its code beside the one that runs.

A release is three files: an archive, `release.json` that names it with its SHA-256, and the signature of that. What is signed is the
table as a whole, so that no older version can pass for a newer one, and no notes for others.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from app import __version__
from app.base.sentence import Sentence, say
from app.launcher import slots
from app.launcher.console import Refused, tell
from app.launcher.ed25519 import verify
from app.launcher.slots import TOP

TABLE: Final = "release.json"
SIGNATURE: Final = "release.json.sig"
TABLE_BYTES: Final = 64 << 10
ARCHIVE_BYTES: Final = 512 << 20
"""Every release is smaller."""
UNPACKED_TIMES: Final = 4
"""Its files are thought to be so much larger than the archive, when room is looked for."""
PIECE_BYTES: Final = 1 << 20
REACH_S: Final = 20.0
"""The server may be silent so long."""
VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})")
FULL: Final = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


@dataclass(frozen=True, slots=True)
class Offer:
    """A release, as its signed table tells it."""

    version: str
    archive: str
    bytes: int
    sha256: str
    notes: str


def read_address(top: Path = TOP) -> str:
    """Return where the newest release's files are: below the project's own address, as pyproject.toml has it; "" where it has none."""
    project = tomllib.loads((top / "pyproject.toml").read_text("utf-8"))["project"]
    address = str(project.get("urls", {}).get("Repository", "")).rstrip("/")
    there = urlsplit(address)
    safe = there.scheme == "https" or (there.scheme == "http" and there.hostname == "127.0.0.1")
    return f"{address}/releases/latest/download/" if safe else ""


def read_keys(top: Path = TOP) -> tuple[bytes, ...]:
    text = (top / "app" / "launcher" / "release_keys.txt").read_text("utf-8")
    return tuple(bytes.fromhex(line) for line in text.splitlines() if re.fullmatch(r"[0-9a-f]{64}", line))


def explain_unknown(top: Path = TOP) -> Sentence | None:
    """Say why this copy cannot ask for releases; None if it can."""
    if read_address(top) and read_keys(top):
        return None
    return say(
        "release.unknown",
        "This copy of Hearth does not know where its releases are, or by which key to check them. Download a newer one to replace it; what you made "
        "lies elsewhere and stays.",
    )


def is_newer(version: str, than: str = __version__) -> bool:
    one, other = VERSION.fullmatch(version), VERSION.fullmatch(than)
    return one is not None and other is not None and [*map(int, one.groups())] > [*map(int, other.groups())]


def find_newer(top: Path = TOP) -> Offer | None:
    """Ask for the newest release; None if this one is as new. Refused where it cannot be asked, or is not signed."""
    unknown = explain_unknown(top)
    if unknown is not None:
        raise Refused(unknown)
    address = read_address(top)
    signature, table = _read(address + SIGNATURE, 1 << 10), _read(address + TABLE, TABLE_BYTES)
    offer = read_offer(table, signature, read_keys(top))
    if offer is None:
        raise Refused(
            say(
                "release.forged",
                "What {place} offers as a new version is not signed with Hearth's key, or has a number, name or size that no release has. Nothing of it was "
                "used, and nothing was changed.",
                place=urlsplit(address).netloc,
            )
        )
    return offer if is_newer(offer.version) else None


def read_offer(table: bytes, signature: bytes, keys: Sequence[bytes]) -> Offer | None:
    """Return what the table offers; None unless one of the keys has signed it, and its version, name and size are such as a release has."""
    try:
        signed = bytes.fromhex(signature.decode("ascii").strip())
    except ValueError:
        return None
    if not any(verify(key, table, signed) for key in keys):
        return None
    said: dict[str, Any] = json.loads(table)
    offer = Offer(str(said["version"]), str(said["archive"]), int(said["bytes"]), str(said["sha256"]), str(said["notes"]))
    fits = VERSION.fullmatch(offer.version) and re.fullmatch(r"[\w.-]+\.zip", offer.archive) and 0 < offer.bytes <= ARCHIVE_BYTES
    return offer if fits else None


def fetch(offer: Offer, folder: Path, top: Path = TOP) -> Path:
    """Return the folder of the offer's code, downloaded, checked and unpacked; it has its name once it is whole. Call under the releases' lock."""
    from app.launcher import release_archive  # and zipfile, which each start would feel

    code = folder / slots.VERSIONS / offer.version
    if (code / "start.py").is_file():
        return code
    archive, half = code.with_name(f"{offer.version}.zip.part"), code.with_name(f"{offer.version}.half")
    try:
        with _saying_full(folder, offer):
            code.parent.mkdir(exist_ok=True)
            _require_room(folder, offer)
            tell(
                say(
                    "release.fetches", "Downloading Hearth {version} ({size} MB).", version=offer.version, size=max(1, offer.bytes // 10**6)
                )
            )
            _download(read_address(top) + offer.archive, archive, offer, folder / "install.log")
            shutil.rmtree(half, ignore_errors=True)
            release_archive.unpack(archive, half)
            _require_version(half, offer)
            _require_python(half, offer)
            half.rename(code)
    finally:
        archive.unlink(missing_ok=True)
        shutil.rmtree(half, ignore_errors=True)
    return code


def _read(address: str, most: int) -> bytes:
    with closing(_read_pieces(address, most + 1)) as pieces:
        content = next(pieces, b"")
    if len(content) > most:
        raise Refused(say("release.large", "What {address} answers is larger than any such file is. Nothing was changed.", address=address))
    return content


def _read_pieces(address: str, piece_bytes: int = PIECE_BYTES) -> Generator[bytes, None, None]:
    """Yield what an address answers, piece by piece; whatever its server or the network does wrong becomes a sentence."""
    import http.client  # both are slow to import, which each start would feel
    import urllib.request

    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers={"User-Agent": "hearth"}), timeout=REACH_S) as answer:
            while piece := answer.read(piece_bytes):
                yield piece
    except (OSError, http.client.HTTPException, ValueError) as fault:
        raise Refused(
            say(
                "release.unreachable",
                "A newer version could not be fetched from {place} ({fault}). Check the connection, then try again. Nothing was changed.",
                place=urlsplit(address).netloc,
                fault=str(fault) or type(fault).__name__,
            )
        ) from None


def _download(address: str, file: Path, offer: Offer, log: Path) -> None:
    """Write exactly what was signed, and in the log how far it is, as pip does it."""
    digest, got = hashlib.sha256(), 0
    with file.open("wb") as into, log.open("w", encoding="utf-8") as noise, closing(_read_pieces(address)) as pieces:
        print(f"Downloading {offer.archive}", file=noise, flush=True)
        for piece in pieces:
            into.write(piece)
            digest.update(piece)
            got += len(piece)
            print(f"Progress {got} of {offer.bytes}", file=noise, flush=True)
            if got > offer.bytes:
                break
    if got < offer.bytes:
        raise Refused(
            say(
                "release.broken",
                "The connection broke off after {got} of {total} MB. Try again. Nothing was changed.",
                got=got // 10**6,
                total=offer.bytes // 10**6,
            )
        )
    if got > offer.bytes or digest.hexdigest() != offer.sha256:
        raise Refused(
            say(
                "release.changed",
                "What was downloaded is not the version that was signed: its SHA-256 differs. It was deleted, and nothing was changed. Try again later.",
            )
        )


def _require_version(code: Path, offer: Offer) -> None:
    """An archive under a newer name must not bring an older Hearth."""
    text = (code / "app" / "__init__.py").read_text("utf-8")
    if not (code / "start.py").is_file() or re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE) != [offer.version]:
        raise Refused(
            say("release.other", "The archive of version {version} holds another one. Nothing was changed.", version=offer.version)
        )


def _require_python(code: Path, offer: Offer) -> None:
    """Say before anything is installed that a version needs a newer Python; its test would only fail."""
    needed = re.search(r'^requires-python = ">=(\d+)\.(\d+)', (code / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    if needed and sys.version_info[:2] < (int(needed[1]), int(needed[2])):
        raise Refused(
            say(
                "release.python",
                "Hearth {version} needs Python {needed} or newer, and this one runs on {have}. Install that from python.org, close Hearth, run "
                "{hearth} repair, and update then. Nothing was changed.",
                version=offer.version,
                needed=f"{needed[1]}.{needed[2]}",
                have=f"{sys.version_info[0]}.{sys.version_info[1]}",
            )
        )


def _require_room(folder: Path, offer: Offer) -> None:
    need, free = (1 + UNPACKED_TIMES) * offer.bytes, shutil.disk_usage(folder).free
    if free < need:
        raise OSError(errno.ENOSPC, "")


@contextmanager
def _saying_full(folder: Path, offer: Offer) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        if fault.errno not in FULL:
            raise Refused(
                say(
                    "release.files",
                    "The new version cannot be written to {folder} ({fault}). Nothing was changed.",
                    folder=str(folder),
                    fault=fault.strerror or type(fault).__name__,
                )
            ) from fault
        need = (1 + UNPACKED_TIMES) * offer.bytes
        raise Refused(
            say(
                "release.full",
                "The disk is full: the new version needs {need} MB in {folder}. Free some space and try again. Nothing was changed.",
                need=need // 10**6,
                folder=str(folder),
            )
        ) from fault
