"""Where everything lives: models, creations, settings, logs, verdicts. Names folders; makes none until asked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from app.base.disk_faults import word_fault
from app.base.other_disk import DATABASE, is_away, mend_all
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble


@dataclass(frozen=True, slots=True)
class Home:
    """One root that everything Hearth writes goes under; only the hub's shared cache lies elsewhere, unless a root was named."""

    root: Path
    models: Path

    @property
    def creations(self) -> Path:
        return self.root / "creations"

    @property
    def database(self) -> Path:
        return self.root / DATABASE

    @property
    def gallery(self) -> Path:
        """A database of albums, tags and names, beside the one that older versions know; made when there is something to keep in it."""
        return self.root / "gallery.sqlite3"

    @property
    def backups(self) -> Path:
        """Copies of the databases; made when the first one is."""
        return self.root / "backups"

    @property
    def voices(self) -> Path:
        return self.root / "voices"

    @property
    def loras(self) -> Path:
        """LoRAs and embeddings, in folders as a person likes; made when the first one is put there."""
        return self.root / "loras"

    @property
    def enlargers(self) -> Path:
        """Networks that enlarge pictures; made by whoever puts one there."""
        return self.root / "enlargers"

    @property
    def controls(self) -> Path:
        """Control models (ControlNet), which let a picture guide another; made by whoever puts one there."""
        return self.root / "controlnet"

    @property
    def adapters(self) -> Path:
        """IP-Adapters, by which a picture is painted like another, and their image encoders; made by whoever puts one there."""
        return self.root / "ipadapter"

    @property
    def settings(self) -> Path:
        return self.root / "settings.json"

    @property
    def pronunciations(self) -> Path:
        return self.root / "pronunciations.json"

    @property
    def covers(self) -> Path:
        """Pictures of the books that were spoken; made when the first one is put there."""
        return self.root / "covers"

    @property
    def verdicts(self) -> Path:
        return self.root / "verdicts"

    @property
    def used(self) -> Path:
        """A file for each model that leaves no creation says by its time when it was last used."""
        return self.root / "used"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def open_lock(self) -> Path:
        """Held by the window as long as it is open."""
        return self.root / "open.lock"

    @property
    def scratch(self) -> Path:
        """Uploads and half-done work; may be emptied when nothing runs."""
        return self.root / "scratch"

    def create(self) -> Home:
        """Make what is missing; only its owner may look into a new one. A Trouble where it cannot be used."""
        if not is_utf8(self.root):
            raise Trouble(
                say(
                    "home.letters",
                    "Hearth cannot use the folder {folder}: its name is not in UTF-8. Rename it, or choose another folder with --home.",
                    folder=os.fsencode(self.root).decode("utf-8", "replace"),
                )
            )
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            mend_all(self.root, self.models)
            for folder in (self.models, self.creations, self.voices, self.verdicts, self.logs, self.scratch):
                if not is_away(folder):
                    folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise Trouble(self.word_unusable(fault)) from fault
        return self

    def word_unusable(self, fault: OSError) -> Sentence:
        return say(
            "start.folder",
            "Hearth cannot use {file} ({fault}). If something else stands in its place, move that away. See that its disk works and is not read-only, and "
            "that your account may write in {folder}; or choose another folder with --home.",
            file=str(fault.filename),
            fault=word_fault(fault),
            folder=str(self.root),
        )


def is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:  # a name in another encoding, which neither a database nor a page can hold
        return False
    return True


def home(named: str | os.PathLike[str] | None = None) -> Home:
    """The named root, else $HEARTH_HOME, else the system's place for an app's data."""
    chosen = named or os.environ.get("HEARTH_HOME")
    if chosen:
        try:
            root = Path(chosen).expanduser().resolve()
        except RuntimeError as fault:
            raise Trouble(
                say(
                    "home.nobody",
                    "There is no folder {folder}: this computer has no such account. Choose another one with --home.",
                    folder=str(chosen),
                )
            ) from fault
        return Home(root, root / "models")
    hub = os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME", "~/.cache/huggingface")) / "hub"
    return Home(platformdirs.user_data_path("Hearth", appauthor=False), Path(hub).expanduser())


def assets() -> Path:
    """Icons and starter models: inside the installed package, or at the checkout's top."""
    inside = Path(__file__).parents[1] / "assets"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "assets"
