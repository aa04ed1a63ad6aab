"""Finished pictures made larger without being painted anew: which are being enlarged, and where the results go."""

from __future__ import annotations

import logging
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.base import notices
from app.base.foreign_formats import open_picture
from app.base.path_checks import is_file
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import END, Failed, Finished
from app.engine.jobs.tasks import Enlarge
from app.engine.keeper.keeper import Keeper
from app.engine.kinds import is_heard
from app.engine.models.enlargers import find_enlarger, locate_enlarger, read_enlarger

PIXELS_MOST: Final = 100_000_000
"""Hearth opens no picture again that has more."""
_log = logging.getLogger(__name__)


class Stopped(Trouble):
    """Somebody stopped it."""


@dataclass(slots=True)
class Enlarging:
    keeper: Keeper
    tasks: dict[int, str] = field(default_factory=dict)
    """While a creation is enlarged, the task that does it stands here."""

    def begin(self, creation: Creation, times: int, enlarger: str) -> None:
        """Enlarge a creation, ahead of the jobs that wait, and put the result beside it; what fails is told as a notice."""
        if is_heard(creation.kind) or creation.binned or not is_file(creation.path):
            raise Trouble(
                say(
                    "enlarge.gone",
                    "Only a picture on the shelf can be enlarged, and this file is not there. Restore it, or choose another one.",
                )
            )
        if creation.id not in self.tasks:
            self.tasks[creation.id] = self.start(creation.path, times, enlarger)
            threading.Thread(target=self._finish, args=(creation,), name="enlarging", daemon=True).start()

    def stop(self, id_: int) -> None:
        if id_ in self.tasks:
            self.keeper.stop(self.tasks[id_])

    def start(self, picture: Path, times: int, enlarger: str) -> str:
        """Queue the task; raise a Trouble for what would fail in it."""
        name = find_enlarger(self.keeper.home, enlarger)
        if name:
            read_enlarger(locate_enlarger(name))
        try:
            with open_picture(picture) as opened:
                width, height = opened.width * times, opened.height * times
        except OSError as fault:
            raise Trouble(
                say("enlarge.damaged", "{name} cannot be read as a picture; it may be damaged. Choose another one.", name=picture.name)
            ) from fault
        if width * height > PIXELS_MOST:
            raise Trouble(
                say(
                    "enlarge.large",
                    "Enlarged, the picture would be {width} x {height}, more than {most} million pixels. Enlarge it less.",
                    width=width,
                    height=height,
                    most=PIXELS_MOST // 1_000_000,
                )
            )
        return self.keeper.start_task(Enlarge(str(picture), times, name))

    def _finish(self, creation: Creation) -> None:
        target = self.keeper.home.scratch / f"{self.tasks[creation.id]}.png"
        try:
            self.take(self.tasks[creation.id], target)
            self.keeper.shelf.keep_enlarged(creation, target)
        except Stopped:
            pass
        except Trouble as trouble:
            notices.tell(say("enlarge.failed", "{name} was not enlarged. {why}", name=creation.path.name, why=trouble.sentence))
        except Exception:
            _log.exception("enlarging")
            notices.tell(
                say(
                    "enlarge.not-kept",
                    "{name} was enlarged, but the result could not be put on the shelf. Look whether its disk has room, and try again.",
                    name=creation.path.name,
                )
            )
        finally:
            target.unlink(missing_ok=True)
            del self.tasks[creation.id]

    def take(self, task: str, target: Path) -> None:
        """Wait for a task and move its file; raise a Trouble where it has none."""
        end = next((event for event in self.keeper.follow(task) if isinstance(event, END)), None)
        if isinstance(end, Failed):
            raise end.trouble
        if not isinstance(end, Finished):
            raise Stopped(say("enlarge.stopped", "Enlarging was stopped before its end. Try again."))
        shutil.move(end.files[0], target)
        shutil.rmtree(self.keeper.folder(task), ignore_errors=True)
