"""Talk to the hub, one file at a time: list a repository, fetch with resume and checksum, fill the cache. No queue, no threads;
only the hub's process imports it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

import httpx2
from huggingface_hub import HfApi, get_session, hf_hub_url, hf_raise_for_status
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils import WeakFileLock, build_hf_headers, filter_repo_objects  # type: ignore[attr-defined]  # it exports them lazily

from app.base import atomic_write
from app.base.sentence import say
from app.base.trouble import NotThere, Trouble
from app.engine.models import hub_token
from app.engine.models.hub_faults import CutError, WrongBytesError, name_host
from app.engine.models.model import Source
from app.engine.models.on_disk import partial_path, repo_folder
from app.engine.models.safetensors import PICKLES

SAFE: Final = frozenset({".safetensors", ".gguf", ".json", ".jsonl", ".txt", ".model", ".jinja"})
WEIGHTS: Final = frozenset({".safetensors", ".gguf"})
BLOCK_BYTES: Final = 1 << 22
TIMEOUT: Final = httpx2.Timeout(15.0, read=30.0)
LINE_TIMEOUT_S: Final = 3.0
"""The person waits for this answer."""
LOCK_WAIT_S: Final = 0.3
ORPHAN_AFTER_S: Final = 600
"""huggingface_hub 2.4 downloads into a file with a new name each time and cannot resume it; a file this old is
abandoned."""
_HEX: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class File:
    path: str
    size_bytes: int
    etag: str
    """Its blob in the cache has this name: a sha256 for large files, git's sha1 for small ones."""


@dataclass(frozen=True, slots=True)
class Listing:
    source: Source
    commit: str
    files: tuple[File, ...]


class Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


def list_files(source: Source, endpoint: str | None = None) -> Listing:
    """List the wanted files of a repository with exact sizes and checksums, in one request."""
    info = HfApi(endpoint=endpoint, token=hub_token.get_token()).model_info(
        source.repo, revision=source.revision, files_metadata=True, timeout=TIMEOUT.read
    )
    there = {each.rfilename: each for each in info.siblings or ()}
    names = list(filter_repo_objects(there, allow_patterns=list(source.files), ignore_patterns=list(source.leave)))
    wanted = [there[name] for name in names if PurePosixPath(name).suffix.lower() in SAFE]
    if any(pattern.endswith(tuple(WEIGHTS)) for pattern in source.files):
        refuse_without_weights(source.repo, names, list(there))
    files = []
    for each in wanted:
        etag = each.lfs.sha256 if each.lfs is not None else each.blob_id or ""
        # These become paths on this machine, so a mirror may not choose them freely.
        if not _HEX.fullmatch(etag) or not _is_plain(each.rfilename) or each.size is None:
            raise Trouble(
                say(
                    "hub.strange",
                    "The server sent an unsafe description of {file} in {repo}. Try another mirror (HF_ENDPOINT).",
                    file=each.rfilename,
                    repo=source.repo,
                )
            )
        files.append(File(each.rfilename, each.size, etag))
    if not info.sha or not _HEX.fullmatch(info.sha):
        raise Trouble(
            say(
                "hub.no-commit",
                "The server did not say which version of {repo} it has. Try another mirror (HF_ENDPOINT).",
                repo=source.repo,
            )
        )
    return Listing(source, info.sha, tuple(files))


def find_line_fault(endpoint: str | None = None) -> Exception | None:
    """Return why the hub cannot be reached now; None for any answer."""
    try:
        get_session().head(name_host(endpoint), timeout=LINE_TIMEOUT_S)
    except (httpx2.TransportError, OfflineModeIsEnabled) as fault:
        return fault
    return None


def refuse_without_weights(repo: str, names: list[str], there: list[str]) -> None:
    if any(PurePosixPath(name).suffix in WEIGHTS for name in names):
        return
    suffixes = {PurePosixPath(name).suffix.lower() for name in there}
    if suffixes & PICKLES:
        raise NotThere(
            say(
                "hub.pickles",
                "{repo} only has pickle files, which can run any program when opened. "
                "Hearth downloads only .safetensors and GGUF; choose another model.",
                repo=repo,
            )
        )
    if ".py" in suffixes:
        raise NotThere(
            say(
                "hub.code",
                "{repo} contains programs instead of weights that Hearth can load. Hearth never runs code from a model; "
                "choose another one.",
                repo=repo,
            )
        )
    raise NotThere(
        say("hub.no-weights", "{repo} does not have the weights for this model (any more). Update Hearth and try again.", repo=repo)
    )


def _is_plain(name: str) -> bool:
    """Tell whether a name leads nowhere but down."""
    parts = name.split("/")
    return not any(part in ("", ".", "..") or "\\" in part or ":" in part for part in parts)


def new_digest(file: File) -> Digest:
    if len(file.etag) == 64:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)


def fetch(models: Path, listing: Listing, file: File, tell: Callable[[int], None], endpoint: str | None = None) -> None:
    """Fetch a file into the cache, resuming an earlier attempt. `tell` is called for each block and may raise to
    stop."""
    folder = repo_folder(models, listing.source.repo)
    blob, pointer = folder / "blobs" / file.etag, folder / "snapshots" / listing.commit / file.path
    if pointer.is_file() and pointer.stat().st_size == file.size_bytes:
        return  # Without links, huggingface_hub keeps the blob here.
    # Use huggingface_hub's own lock, so that no two programs write to one file.
    lock = models / ".locks" / folder.name / f"{file.etag}.lock"
    blob.parent.mkdir(parents=True, exist_ok=True)
    lock.parent.mkdir(parents=True, exist_ok=True)
    while not blob.exists():
        try:
            with WeakFileLock(lock, timeout=LOCK_WAIT_S):
                if not blob.exists():
                    _fetch(partial_path(blob), listing, file, tell, endpoint)
                    partial_path(blob).replace(blob)
        except TimeoutError:
            tell(0)


def _fetch(part: Path, listing: Listing, file: File, tell: Callable[[int], None], endpoint: str | None) -> None:
    digest, have = new_digest(file), 0
    if part.exists():
        with part.open("rb") as kept:
            while block := kept.read(BLOCK_BYTES):
                digest.update(block)
                have += len(block)
                tell(0)
    if have < file.size_bytes or not part.exists():
        url = hf_hub_url(listing.source.repo, file.path, revision=listing.commit, endpoint=endpoint)
        # Ask for uncompressed bytes: a compressed response could not be resumed.
        headers = {**build_hf_headers(token=hub_token.get_token()), "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT) as answer:
            hf_raise_for_status(answer)
            if have and answer.status_code != 206:
                digest, have = new_digest(file), 0
            # Unbuffered, so that a killed program leaves all received bytes on disk.
            with part.open("ab" if have else "wb", buffering=0) as out:
                for block in answer.iter_bytes():
                    out.write(block)
                    digest.update(block)
                    have += len(block)
                    tell(len(block))
    if have < file.size_bytes:
        raise CutError(file.path)
    if have > file.size_bytes or digest.hexdigest() != file.etag:
        part.unlink()
        raise WrongBytesError(file.path)


def link_snapshot(models: Path, listing: Listing) -> None:
    """Link names to the blobs as huggingface_hub does; the revision last, so that an incomplete model stays
    invisible."""
    folder = repo_folder(models, listing.source.repo)
    for file in listing.files:
        pointer = folder / "snapshots" / listing.commit / file.path
        pointer.parent.mkdir(parents=True, exist_ok=True)
        if not pointer.exists():
            pointer.unlink(missing_ok=True)  # a link to a blob that was deleted
            _link(folder / "blobs" / file.etag, pointer)
    atomic_write.write_text(folder / "refs" / listing.source.revision, listing.commit)
    for orphan in (folder / "blobs").glob("*.????????.incomplete"):
        with suppress(FileNotFoundError):  # another program may be cleaning up, too
            if time.time() - orphan.stat().st_mtime > ORPHAN_AFTER_S:
                orphan.unlink()


def _link(blob: Path, pointer: Path) -> None:
    """Link or copy. Windows allows symbolic links to few users; use a hard link there, or a copy if the disk has
    none."""
    try:
        pointer.symlink_to(os.path.relpath(blob, pointer.parent))
    except OSError:
        try:
            pointer.hardlink_to(blob)
        except OSError:
            part = partial_path(pointer)  # its process may be ended in the middle
            shutil.copyfile(blob, part)
            part.replace(pointer)


def require_room(models: Path, needed_bytes: int, spare_bytes: int = 1 << 28) -> None:
    """Raise a Trouble if the disk has no room for the remaining bytes."""
    there = next(each for each in (models, *models.parents) if each.exists())
    free = shutil.disk_usage(there).free
    if needed_bytes + spare_bytes > free:
        raise Trouble(
            say(
                "hub.no-room",
                "The download needs {needed} GB more, but the disk with {folder} has only {free} GB free. "
                "Free some space, or store models elsewhere (HF_HUB_CACHE).",
                needed=round(needed_bytes / (1 << 30), 1),
                folder=str(models),
                free=round(free / (1 << 30), 1),
            )
        )
