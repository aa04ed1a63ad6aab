"""Make a release: its archive without the tests, the checksum, the signed table that app/launcher/releases.py believes, and the notes.

python release/make_release.py key FILE           make a key pair: the private half into FILE, the public half into the code
python release/make_release.py make FILE FOLDER   write the release of this checkout into FOLDER, signed with the key in FILE
python release/make_release.py prove OLD FOLDER   let the older Hearth unpacked in OLD update itself to the release in FOLDER, and go back
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))  # run by its path
from app.launcher.releases import SIGNATURE, TABLE, read_address, read_keys, read_offer  # noqa: E402

LEFT_OUT = ("tests/", "training/", "release/", ".")
"""What only this checkout needs: beginnings of paths."""
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""Of every file: the same tree makes the same archive."""


def list_files(top: Path) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=top, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted(each for each in listed if each and not each.startswith(LEFT_OUT))


def read_version(top: Path) -> str:
    (version,) = re.findall(r'^__version__ = "(.*)"$', (top / "app" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    return str(version)


def read_notes(top: Path, version: str) -> str:
    """Return the changelog's section of a version."""
    found = re.search(rf"^## \[{re.escape(version)}\].*\n([\s\S]*?)(?=^## |\Z)", (top / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if found is None or not found[1].strip():
        raise SystemExit(f"CHANGELOG.md has no section of {version}.")
    return found[1].strip()


def write_archive(top: Path, files: Sequence[str], file: Path) -> None:
    name = f"hearth-{read_version(top)}"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for each in files:
            member = zipfile.ZipInfo(f"{name}/{each}", ZIP_TIME)
            member.compress_type, member.create_system = zipfile.ZIP_DEFLATED, 3
            member.external_attr = (0o100755 if each.endswith((".sh", ".command")) else 0o100644) << 16
            packed.writestr(member, (top / each).read_bytes())


def write_release(top: Path, files: Sequence[str], notes: str, key: Ed25519PrivateKey, folder: Path) -> None:
    version = read_version(top)
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"hearth-{version}.zip"
    write_archive(top, files, archive)
    content = archive.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    said = {"version": version, "archive": archive.name, "bytes": len(content), "sha256": digest, "notes": notes}
    table = json.dumps(said, ensure_ascii=False, indent=1).encode()
    (folder / TABLE).write_bytes(table)
    (folder / SIGNATURE).write_text(key.sign(table).hex() + "\n")
    (folder / "SHA256SUMS").write_text(f"{digest}  {archive.name}\n")
    (folder / "notes.md").write_text(notes + "\n", "utf-8")


def make_key(file: Path) -> None:
    if TOP in file.resolve().parents or file.exists():
        raise SystemExit(f"{file} is there already or inside the project. The private key belongs to a new file elsewhere.")
    key = Ed25519PrivateKey.generate()
    file.touch(mode=0o600)
    file.write_text(key.private_bytes_raw().hex() + "\n")
    with (TOP / "app" / "launcher" / "release_keys.txt").open("a", encoding="utf-8") as keys:
        keys.write(key.public_key().public_bytes_raw().hex() + "\n")
    print(f"The private key is in {file}. Whoever has it can update every Hearth: keep it away from the project. Commit release_keys.txt.")


def make(key_file: Path, folder: Path) -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key_file.read_text().strip()))
    if key.public_key().public_bytes_raw() not in read_keys(TOP) or not read_address(TOP):
        raise SystemExit(
            "The code has no such public key, or pyproject.toml names no Repository: no Hearth would believe or find this release."
        )
    write_release(TOP, list_files(TOP), read_notes(TOP, read_version(TOP)), key, folder)
    offer = read_offer((folder / TABLE).read_bytes(), (folder / SIGNATURE).read_bytes(), read_keys(TOP))
    if offer is None:
        raise SystemExit("The signature does not verify.")
    print(f"{folder / offer.archive}: {offer.bytes / 1e6:.1f} MB, SHA-256 {offer.sha256}")


class Quiet(SimpleHTTPRequestHandler):
    """The files of one folder, whatever folders the address names."""

    def translate_path(self, path: str) -> str:
        return str(Path(self.directory) / Path(path).name)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def point_at(top: Path, address: str) -> None:
    """Have a copy of Hearth ask this address for its releases."""
    file = top / "pyproject.toml"
    text = re.sub(r"^\[project\.urls\]\n(?:.+\n)*", "", file.read_text("utf-8"), flags=re.MULTILINE)
    file.write_text(f'{text}\n[project.urls]\nRepository = "{address}"\n', "utf-8")


def prove(old: Path, folder: Path) -> None:
    """Run the older Hearth's own start.py as a person does: open, update, open, back, open."""

    def start(*words: str) -> str:
        print("start.py", *words, flush=True)
        done = subprocess.run([sys.executable, str(old / "start.py"), *words], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"start.py {' '.join(words)} ended with {done.returncode}.")
        return done.stdout.strip()

    new = str(json.loads((folder / TABLE).read_text("utf-8"))["version"])
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        point_at(old, f"http://127.0.0.1:{server.server_port}")
        began, before = time.monotonic(), start("--version")
        start("update")
        updated = start("--version")
        start("back")
        undone = start("--version")
        server.shutdown()
    if new not in updated or before == updated or before != undone:
        raise SystemExit(f"It was {before}, then {updated}, then {undone}; {new} was meant to be between.")
    print(f"{before} became {updated} and {undone} again, in {time.monotonic() - began:.0f} s.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in {"key": ["file"], "make": ["file", "folder"], "prove": ["old", "folder"]}.items():
        command = commands.add_parser(name)
        for each in words:
            command.add_argument(each, type=Path)
    args = parser.parse_args()
    if args.command == "key":
        make_key(args.file)
    elif args.command == "make":
        make(args.file, args.folder)
    else:
        prove(args.old.resolve(), args.folder)


if __name__ == "__main__":
    main()
