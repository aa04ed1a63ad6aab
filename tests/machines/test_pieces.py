"""The pieces of a job: which hang on no other, what is asked for each, and what of another machine's is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.base.paths import home
from app.engine.jobs.parts import SPOKEN
from app.engine.jobs.request import Actor, PictureRequest, Request, SpeechRequest, VoicePrompt
from app.engine.jobs.seed import is_drawn
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.models.voice_limits import DIA, VoiceLimits
from app.engine.speech import kind
from app.engine.speech.sound import spoken_parts
from app.engine.speech.sound.spoken_parts import SpokenPart
from app.engine.speech.text import script
from app.machines.shared_job import Pieces, find_pieces

LINE = "The red boat is near the old bridge, and the water is calm and clear this morning. "
TWO = SpeechRequest("[S1] one. (pause 1s) [S1] two.", "starter-voice", seed=5)
SCRIPT = f"[S1] {LINE * 3}\n[S2] {LINE * 3}\n[S1] {LINE * 3}"


def pieces_of(folder: Path, request: Request) -> Pieces:
    found = find_pieces(home(folder), request, folder)
    assert found is not None
    return found


def test_a_picture_has_the_seed_that_it_has_in_the_batch(tmp_path: Path) -> None:
    request = PictureRequest("a ball", "m", batch=4, seed=SEED_LIMIT - 1)
    assert [pieces_of(tmp_path, request).ask_for(place).seed for place in range(3)] == [SEED_LIMIT - 1, 0, 1]
    assert pieces_of(tmp_path, replace(request, seed=5)).ask_for(2) == PictureRequest("a ball", batch=1, seed=7, model="m")


def test_parts_whose_voice_hangs_on_none_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = script.require_speakable(SCRIPT).parts
    assert len(parts) > 2
    every, both = tuple(range(len(parts))), VoicePrompt("clip.wav", "[S1] Hello there. [S2] Good morning.")
    request = SpeechRequest(SCRIPT, seed=1)

    def find_free(request: SpeechRequest, limits: VoiceLimits = DIA) -> tuple[int, ...]:
        monkeypatch.setattr(kind, "find_limits", lambda home, model: limits)
        found = find_pieces(home(tmp_path), request, tmp_path)
        return found.places if found is not None else ()

    assert find_free(request) == (), "each goes on with the voices of the one before"
    assert find_free(replace(request, carry_voice=False)) == every
    assert find_free(request, replace(DIA, carries=False)) == every
    assert find_free(replace(request, voice=both)) == every
    told = replace(request, text=SCRIPT.replace("S1", "Anna").replace("S2", "Ben"))
    clips = tuple(Actor(name, VoicePrompt("clip.wav", "[S1] Hello there.")) for name in ("Anna", "Ben"))
    assert find_free(told) == () and find_free(replace(told, cast=clips)) == every
    assert 0 < len(find_free(replace(told, cast=clips[:1]))) < len(parts), "those of the one who has a recording"
    one = find_free(replace(request, voice=VoicePrompt("clip.wav", "[S1] Hello there.")))
    assert one == tuple(place for place, part in enumerate(parts) if part.speakers == {1}) and 0 < len(one) < len(parts)
    assert find_free(replace(request, voice=VoicePrompt("clip.wav", ""))) == (), "a clip without words is refused here"


def test_what_has_pieces(tmp_path: Path) -> None:
    place = home(tmp_path)
    batch, spoken = PictureRequest("a ball", "starter-painter", batch=3), SpeechRequest("[S1] hello. " * 40, "starter-voice", seed=1)
    assert not is_drawn(batch, tmp_path) and is_drawn(spoken, tmp_path)
    (tmp_path / "seed").write_text("7")
    assert is_drawn(batch, tmp_path)
    found = pieces_of(tmp_path, batch)
    assert found.seed == 7 and found.places == (0, 1, 2)
    one = pieces_of(tmp_path, replace(batch, batch=1))
    assert one.places == (0,), "a single picture is one piece"
    parts = pieces_of(tmp_path, spoken)
    assert len(parts.places) == len(parts.parts.planned) > 1 and parts.complete
    assert not replace(parts, places=(0,)).complete and one.complete
    assert parts.ask_for(1) == replace(spoken, only_parts=(1,))
    assert find_pieces(place, replace(spoken, text="[S1] hello."), tmp_path) is None
    assert find_pieces(place, replace(spoken, only_parts=(0,)), tmp_path) is None
    play = replace(spoken, text="[Anna] hello. (pause 1s) [Ben] hi. " * 8, cast=(Actor("Ben", None, "starter-voice", pace=1.1),))
    assert pieces_of(tmp_path, play).complete, "a cast whose voices one model has"
    assert find_pieces(place, replace(play, cast=(Actor("Ben", None, "dia-1.6b"),)), tmp_path) is None
    own = pieces_of(tmp_path, replace(spoken, text=spoken.text * 5, model="/some/folder", carry_voice=False))
    assert own.request.model == "/some/folder", "a voice of the user's own"
    assert pieces_of(tmp_path, replace(batch, model="/some/folder")).request.model == "/some/folder"


def save_part(folder: Path, **changes: object) -> dict[str, Path]:
    """As a helper sends part 1 of a script with seed 5."""
    path = SPOKEN.shown(folder, 1)
    spoken_parts.save(SpokenPart("two", 6, "key", 0.5, True, np.zeros((8, 1), np.int16), path), np.zeros(4000, np.float32), 8000)
    about = path.with_suffix(".json")
    about.write_text(json.dumps({**json.loads(about.read_text()), **changes}))
    return {each.name: each for each in (path, about)}


@pytest.mark.parametrize(
    "changes", [{}, {"text": "other"}, {"seed": 7}, {"whole": False}, {"channels": 0}, {"codes": "?"}, {"text": 5}, {"doubt": "x"}]
)
def test_only_the_part_that_was_asked_for_is_taken(changes: dict[str, object], tmp_path: Path) -> None:
    asked = pieces_of(tmp_path, TWO)
    files = save_part(tmp_path, **{"text": asked.parts.planned[1].words, **changes})
    assert (asked.accept(1, files) == files) is (not changes)
    assert asked.accept(0, files) is None and asked.accept(1, {}) is None


def test_what_a_helper_doubts_of_a_part_is_told_here(tmp_path: Path) -> None:
    asked = pieces_of(tmp_path, TWO)
    assert [asked.tell(1, save_part(tmp_path, **changes)["part-001.wav"]).doubt for changes in ({}, {"doubt": "long"})] == ["", "long"]


def test_only_one_whole_picture_is_taken(tmp_path: Path) -> None:
    asked = pieces_of(tmp_path, PictureRequest("a ball", "m", batch=4, seed=5))
    Image.new("RGB", (8, 8)).save(tmp_path / "picture-0.png")
    (tmp_path / "other.png").write_bytes((tmp_path / "picture-0.png").read_bytes()[:40])
    right, broken = tmp_path / "picture-0.png", tmp_path / "other.png"
    assert asked.accept(2, {"picture-0.png": right}) == {"picture-2.png": right}
    Image.new("1", (5000, 1)).save(tmp_path / "bomb.png")
    assert asked.accept(2, {"picture-0.png": tmp_path / "bomb.png"}) is None
    assert asked.accept(2, {"picture-0.png": broken}) is None and asked.accept(2, {"a.png": right}) is None
