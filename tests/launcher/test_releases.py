"""A release is believed only with its signature, its checksum, a newer version and a plain archive; whatever goes wrong leaves nothing behind."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import stat
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app import __version__
from app.launcher import release_archive, releases
from app.launcher.console import Refused
from release import make_release as script
from tests.support.places import TOP
from tests.support.release_server import KEY, Server, believe, make_release, serve, set_version

FOREIGN = Ed25519PrivateKey.from_private_bytes(b"another one's key, of nobody ...")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """What of a copy of Hearth a look for releases reads."""
    top = tmp_path / "hearth"
    (top / "app" / "launcher").mkdir(parents=True)
    (top / "start.py").write_text("")
    (top / "app" / "__main__.py").write_text("one")
    (top / "pyproject.toml").write_text("[project]\n")
    (top / "constraints.txt").write_text("")
    set_version(top, "0.1.0")
    return top


@pytest.fixture
def server(top: Path) -> Iterator[Server]:
    with serve() as server:
        believe(top, server.address)
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slots").mkdir()
    return tmp_path / "slots"


def fetch(top: Path, folder: Path) -> Path:
    offer = releases.find_newer(top)
    assert offer is not None
    return releases.fetch(offer, folder, top)


def refuse(told: str, top: Path, folder: Path) -> None:
    with pytest.raises(Refused, match=told):
        fetch(top, folder)
    assert not [*folder.glob("versions/*")], "nothing is left"


def test_a_signed_newer_release_is_fetched_once(top: Path, folder: Path, server: Server, tmp_path: Path) -> None:
    server.offer(make_release(top, "99.0.1", tmp_path / "out", {"one": "two"}))
    offer = releases.find_newer(top)
    assert offer is not None and (offer.version, offer.notes) == ("99.0.1", "What is new in 99.0.1")
    code = fetch(top, folder)
    assert (code / "app/__main__.py").read_text() == "two" and [each.name for each in folder.glob("versions/*")] == ["99.0.1"]
    log = (folder / "install.log").read_text()
    assert log.startswith("Downloading hearth-99.0.1.zip\nProgress ") and f"of {offer.bytes}" in log
    server.files.pop(offer.archive)
    assert fetch(top, folder) == code, "what is whole is not fetched again"


@pytest.mark.parametrize("version", ["0.0.9", __version__])
def test_no_older_or_equal_release_is_taken(version: str, top: Path, server: Server, tmp_path: Path) -> None:
    server.offer(make_release(top, version, tmp_path / "out"))
    assert releases.find_newer(top) is None


@pytest.mark.parametrize(
    ("version", "than", "newer"),
    [("0.10.0", "0.9.9", True), ("0.9.9", "0.10.0", False), ("1.0.0", "1.0.0", False), ("2", "1.0.0", False), ("9.9.9-x", "1.0.0", False)],
)
def test_versions_are_compared_by_their_numbers(version: str, than: str, newer: bool) -> None:
    assert releases.is_newer(version, than) is newer


def test_without_key_or_address_nothing_is_asked(top: Path, server: Server) -> None:
    believe(top, server.address)
    assert releases.explain_unknown(top) is None
    believe(top, "http://example.org/hearth")  # neither https nor this computer
    with pytest.raises(Refused, match="does not know where its releases are"):
        releases.find_newer(top)
    believe(top, server.address)
    (top / "app/launcher/release_keys.txt").write_text("# none yet\n")
    with pytest.raises(Refused, match="by which key to check them"):
        releases.find_newer(top)
    assert not server.asked


def resign(server: Server, key: Ed25519PrivateKey = KEY, **changes: object) -> None:
    table = json.dumps({**json.loads(server.files["release.json"]), **changes}).encode()
    server.files.update({"release.json": table, "release.json.sig": key.sign(table).hex().encode()})


def change_byte(server: Server) -> None:
    name = next(each for each in server.files if each.endswith(".zip"))
    content = bytearray(server.files[name])
    content[len(content) // 2] ^= 1
    server.files[name] = bytes(content)


def sign_with_another(server: Server) -> None:
    resign(server, FOREIGN)


def keep_signature(server: Server) -> None:
    """A table with a true checksum, and the signature of another table."""
    server.files["release.json"] = server.files["release.json"].replace(b"99.0.1", b"99.0.2")


def break_table(server: Server) -> None:
    server.files["release.json.sig"] = "ß".encode()


def lie_about_bytes(server: Server) -> None:
    resign(server, bytes=json.loads(server.files["release.json"])["bytes"] - 1)


def rename_version(server: Server) -> None:
    """Signed, though by mistake: the archive holds another version than its table says."""
    resign(server, version="99.9.9")


def name_no_archive(server: Server) -> None:
    """Signed, though by mistake."""
    resign(server, archive="../hearth.zip")


def cut_archive(server: Server) -> None:
    server.sends["hearth-99.0.1.zip"] = 100


def cut_table(server: Server) -> None:
    server.sends["release.json"] = 10


def lose_archive(server: Server) -> None:
    del server.files["hearth-99.0.1.zip"]


def swell(server: Server) -> None:
    server.files["release.json"] += bytes(releases.TABLE_BYTES)


@pytest.mark.parametrize(
    ("forge", "told"),
    [
        (change_byte, "SHA-256 differs"), (sign_with_another, "not signed with Hearth's key"), (keep_signature, "not signed with Hearth's key"),
        (break_table, "not signed with Hearth's key"), (lie_about_bytes, "SHA-256 differs"), (rename_version, "holds another one"),
        (name_no_archive, "a number, name or size that no release has"),
        (cut_archive, "could not be fetched|broke off"), (cut_table, "could not be fetched|not signed"), (lose_archive, "could not be fetched"),
        (swell, "larger than any such file"),
    ],
)  # fmt: skip
def test_what_is_forged_or_broken_is_refused(
    forge: Callable[[Server], None], told: str, top: Path, folder: Path, server: Server, tmp_path: Path
) -> None:
    server.offer(make_release(top, "99.0.1", tmp_path / "out"))
    forge(server)
    refuse(told, top, folder)


def test_a_release_that_needs_a_newer_python_says_so(top: Path, folder: Path, server: Server, tmp_path: Path) -> None:
    project = top / "pyproject.toml"
    text = re.sub("requires-python = .*\n", "", project.read_text("utf-8"))
    project.write_text(text.replace("[project]\n", '[project]\nrequires-python = ">=3.99"\n'), "utf-8")
    server.offer(make_release(top, "99.0.1", tmp_path / "out"))
    refuse(r"needs Python 3\.99 or newer, and this one runs on 3\.", top, folder)


def test_a_full_disk_is_told_and_left_as_it_was(
    top: Path, folder: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.offer(make_release(top, "99.0.1", tmp_path / "out"))
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
        refuse("The disk is full", top, folder)
    assert "hearth-99.0.1.zip" not in server.asked, "before anything is fetched"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only the system's owner may mount a small disk here")
    try:
        (folder / "ballast").write_bytes(bytes(60 << 10))
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 40))  # it fills up meanwhile
        resign(server, bytes=8 << 10)
        server.files["hearth-99.0.1.zip"] = os.urandom(8 << 10)
        refuse("The disk is full: the new version needs", top, folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_fails_is_not_taken_for_the_network(
    top: Path, folder: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def open_file(file: Path, *how: str, **more: str) -> IO[Any]:
        return Failing() if file.suffix == ".part" else usual(file, *how, **more)  # type: ignore[call-overload]

    server.offer(make_release(top, "99.0.1", tmp_path / "out"))
    usual = Path.open
    monkeypatch.setattr(Path, "open", open_file)
    refuse(rf"The new version cannot be written to .*\({os.strerror(errno.EIO)}\)", top, folder)


def pack(file: Path, *members: tuple[str, int], content: bytes = b"x") -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, mode in members:
            info = zipfile.ZipInfo("placeholder")
            info.filename, info.external_attr, info.compress_type = name, mode << 16, zipfile.ZIP_DEFLATED
            packed.writestr(info, content)
    return file


@pytest.mark.parametrize(
    "name",
    [
        "../start.py", "hearth/../../start.py", "/etc/passwd", "hearth//etc/passwd", "hearth/app/../../../x", "C:/x/y", "hearth/C:x", "hearth/a\\..\\b",
        "hearth/.bashrc", "hearth/x.", "hearth/x\x07", "hearth/ü", "start.py", f"hearth/{'a' * 200}",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    archive = pack(tmp_path / "a.zip", (name, stat.S_IFREG | 0o644))
    with pytest.raises(Refused, match="no release of Hearth has"):
        release_archive.unpack(archive, tmp_path / "into")
    assert not [each for each in tmp_path.rglob("*") if each != archive and each.is_file()]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_nothing_but_files_is_unpacked(kind: int, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no release of Hearth has"):
        release_archive.unpack(pack(tmp_path / "a.zip", ("hearth/a", kind | 0o777)), tmp_path / "into")


def test_an_archive_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = [(f"hearth/{each}", stat.S_IFREG | 0o644) for each in "ab"]
    monkeypatch.setattr(release_archive, "MOST_BYTES", 100)
    with pytest.raises(Refused, match="2 files"):
        release_archive.unpack(pack(tmp_path / "a.zip", *two, content=bytes(60)), tmp_path / "a")
    monkeypatch.setattr(release_archive, "MOST_FILES", 1)
    with pytest.raises(Refused, match="2 files"):
        release_archive.unpack(pack(tmp_path / "b.zip", *two), tmp_path / "b")
    with pytest.raises(Refused, match="twice"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_archive, "MOST_FILES", 9)
        release_archive.unpack(pack(tmp_path / "c.zip", ("hearth/a", 0), ("hearth/A", 0)), tmp_path / "c")
    (tmp_path / "d.zip").write_bytes(b"no archive")
    with pytest.raises(Refused, match="no release of Hearth has"):
        release_archive.unpack(tmp_path / "d.zip", tmp_path / "d")


def test_the_releases_of_this_very_checkout_unpack_and_can_be_run(tmp_path: Path) -> None:
    """Every name in it is one that `unpack` takes, what starts Hearth may be run, and of the tests there is nothing."""
    files = [each for each in script.list_files(TOP) if not each.startswith("assets/")]
    script.write_archive(TOP, files, tmp_path / "a.zip")
    release_archive.unpack(tmp_path / "a.zip", tmp_path / "into")
    found = {each.relative_to(tmp_path / "into").as_posix() for each in (tmp_path / "into").rglob("*") if each.is_file()}
    assert found == set(files) and {"start.py", "app/launcher/release_keys.txt", "hearth.sh", "bench/command.py", "LICENSE"} <= found
    assert not [each for each in found if each.startswith(("tests/", "training/", "release/", ".")) or "/." in each]
    if os.name != "nt":
        assert os.access(tmp_path / "into/hearth.sh", os.X_OK) and not os.access(tmp_path / "into/start.py", os.X_OK)


def test_the_notes_are_the_changelogs_section(tmp_path: Path) -> None:
    text = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] 2026-12-24\n\n### Speech\n\n- One.\n\n## [0.1.0] 2026-11-30\n\n- Two.\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    assert script.read_notes(tmp_path, "0.2.0") == "### Speech\n\n- One." and script.read_notes(tmp_path, "0.1.0") == "- Two."
    for missing in ("0.3.0", "Unreleased", "0.2"):
        with pytest.raises(SystemExit, match="no section"):
            script.read_notes(tmp_path, missing)


def test_a_private_key_stays_out_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: Path) -> None:
    monkeypatch.setattr(script, "TOP", top)
    (top / "app/launcher/release_keys.txt").write_text("# none\n")
    with pytest.raises(SystemExit, match="inside the project"):
        script.make_key(top / "key")
    script.make_key(tmp_path / "key")
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex((tmp_path / "key").read_text()))
    assert releases.read_keys(top) == (private.public_key().public_bytes_raw(),)
    assert os.name == "nt" or stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    with pytest.raises(SystemExit, match="is there already"):
        script.make_key(tmp_path / "key")
