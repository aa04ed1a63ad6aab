"""What jobs are made from lies in Hearth's folders, and a stored job that names anything else is not gone on with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.base.paths import assets, home
from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest, VoicePrompt
from app.engine.keeper.keeper import Keeper
from app.engine.keeper.own_inputs import adopt, require_own


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    keeper = Keeper(home(tmp_path / "home"), rest_s=600.0)
    yield keeper
    keeper.close()


def save(path: Path, words: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words)
    return str(path)


def test_a_job_is_made_from_a_copy_of_what_lies_elsewhere(keeper: Keeper, tmp_path: Path) -> None:
    picture, clip, note = (save(tmp_path / "mine" / name, name) for name in ("boat.png", "ann.wav", "ann.json"))
    asked = PictureRequest("a boat", "none-such", image=picture, mask=picture)
    job = keeper.submit(asked)
    assert isinstance(job.request, PictureRequest) and job.request.image == job.request.mask != picture
    copy = Path(str(job.request.image))
    assert copy.name == "boat.png" and copy.read_text() == "boat.png" and copy.parent.parent == keeper.home.scratch / "uploads"
    assert adopt(keeper.home, asked) == job.request == adopt(keeper.home, job.request)
    spoken = adopt(keeper.home, SpeechRequest("Hello.", voice=VoicePrompt(clip, "Hello.")))
    assert spoken.voice is not None and Path(spoken.voice.path).with_suffix(".json").read_text() == Path(note).name
    gone = PictureRequest("a boat", image=str(tmp_path / "nowhere.png"))
    assert adopt(keeper.home, gone) == gone
    keeper.stop(job.id)
    keeper.resume(job.id)
    assert keeper.journal.get(job.id).state == "queued"


@pytest.mark.parametrize("part", ["image", "mask", "voice", "keep"])
def test_a_stored_job_that_names_a_file_elsewhere_is_not_gone_on_with(part: str, keeper: Keeper, tmp_path: Path) -> None:
    """Such rows come with a stranger's database alone."""
    private, own = save(tmp_path / "private.png", "secret"), save(keeper.home.scratch / "uploads" / "a" / "boat.png", "boat")
    asked: Request = PictureRequest("a boat", "none-such", image=own, mask=own)
    if part in ("voice", "keep"):
        asked = SpeechRequest("Hello.", "none-such", voice=VoicePrompt(own, "Hello."), keep=(own, ""))
    require_own(keeper.home, asked)
    named: Any = {"voice": VoicePrompt(private, "Hello."), "keep": (own, private)}.get(part, private)
    row = keeper.journal.queue(replace(asked, **{part: named}), Choice())  # past submit, as in a database from elsewhere
    keeper.journal.end(row.id, "failed")
    with pytest.raises(Trouble, match="outside Hearth's folders"):
        keeper.resume(row.id)
    assert keeper.journal.get(row.id).state == "failed"


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a permission there")
def test_a_link_out_of_the_folders_counts_as_elsewhere(keeper: Keeper, tmp_path: Path) -> None:
    link = keeper.home.voices / "ann.wav"
    link.symlink_to(save(tmp_path / "private.wav", "secret"))
    with pytest.raises(Trouble):
        require_own(keeper.home, SpeechRequest("Hello.", voice=VoicePrompt(str(link), "Hello.")))
    ready = next((assets() / "starter" / "voice" / "voices").glob("*.ogg"))
    require_own(keeper.home, SpeechRequest("Hello.", voice=VoicePrompt(str(ready), "Hello.")))


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a permission there")
def test_only_what_is_noted_beside_a_clip_is_copied_with_it(keeper: Keeper, tmp_path: Path) -> None:
    secret = save(tmp_path / "secret.json", "secret")
    for name, kind in (("boat.png", "picture"), ("linked.wav", "linked"), ("long.wav", "long"), ("noted.wav", "noted")):
        file = Path(save(tmp_path / "mine" / name, kind))
        note = file.with_suffix(".json")
        if kind == "linked":
            note.symlink_to(secret)
        else:
            note.write_text("x" * (1 + (1 << 20) * (kind == "long")))
        asked: Request = (
            PictureRequest("a", image=str(file)) if kind == "picture" else SpeechRequest("a", voice=VoicePrompt(str(file), "a"))
        )
        (copy,) = adopt(keeper.home, asked).files
        assert Path(copy).read_text() == kind and Path(copy).with_suffix(".json").exists() == (kind == "noted")


def test_a_file_of_the_longest_name_is_copied_under_another(keeper: Keeper, tmp_path: Path) -> None:
    asked = adopt(keeper.home, PictureRequest("a", image=save(tmp_path / ("y" * 246 + ".png"), "boat")))
    assert isinstance(asked, PictureRequest)
    require_own(keeper.home, asked)
    assert Path(str(asked.image)).suffix == ".png" and Path(str(asked.image)).read_text() == "boat"


@pytest.mark.skipif(sys.platform != "linux", reason="such files are Linux's")
def test_a_file_is_read_as_far_as_it_says_that_it_goes(keeper: Keeper) -> None:
    """/proc/kmsg has no end."""
    asked = adopt(keeper.home, PictureRequest("a", image="/proc/self/status"))
    assert isinstance(asked, PictureRequest)
    copy = Path(str(asked.image))
    assert copy.name == "status" and copy.read_bytes() == b""
