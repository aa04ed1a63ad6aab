"""A model that lies in a folder of the main machine's reaches a helper whose owner lets it, and no other; for real, TLS on."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.base.paths import assets, home
from app.engine.jobs.events import END, Finished, Step
from app.engine.jobs.parts import MACHINES
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.keeper.keeper import Keeper
from app.engine.speech.sound import sound, spoken_parts
from app.machines.hub import Hub, TaskEnd
from app.machines.known_models import KnownModels
from app.machines.spreader import Spreader
from app.machines.tasks.portable import pack
from app.machines.wanted_models import SentModels
from tests.support import tiny_voices
from tests.support.lent import Main, open_main
from tests.support.light_painter import pace, read_made
from tests.support.places import TOP
from tests.support.waiting import LOADING_S, until

pytestmark = pytest.mark.long

PROMPT = "a red ball on grass"


@pytest.mark.slow
def test_a_local_model_is_sent_and_used(tmp_path: Path) -> None:
    folder = tmp_path / "My painter"
    shutil.copytree(assets() / "starter" / "painter", folder)
    (folder / "setup.py").write_text("raise SystemExit")
    with open_main(tmp_path / "main") as main:
        willing = main.start_helper(tmp_path / "willing", words=("--fetch-models",))
        unwilling = main.start_helper(tmp_path / "unwilling")
        pace(tmp_path / "main", step_s=3.0)
        job = main.keeper.submit(PictureRequest("a ball", model=str(folder), batch=4, seed=100)).id
        until(lambda: any(name.startswith("files:") for name in main.find(willing).models), LOADING_S)
        end = next(event for event in main.keeper.follow(job) if isinstance(event, END))
        assert isinstance(end, Finished) and len(end.files) == 4
        made = {seed for word, seed, _ in read_made(willing.home) if word == "finished"}
        assert made and made <= {*range(100, 104)}, "the helper that has the model by now did nothing"
        assert read_made(unwilling.home) == [] and SentModels(home(unwilling.home)).list_keys() == []
        (key,) = SentModels(home(willing.home)).list_keys()
        found = SentModels(home(willing.home)).find(key)
        assert found is not None and not list(found.rglob("*.py"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_real_engine_paints_with_a_model_that_was_sent(tmp_path: Path) -> None:
    folder = tmp_path / "My painter"
    shutil.copytree(assets() / "starter" / "painter", folder)
    ends: SimpleQueue[tuple[TaskEnd, list[Image.Image]]] = SimpleQueue()

    def take(end: TaskEnd) -> None:
        ends.put((end, [Image.open(file).copy() for file in end.files.values()]))

    with open_main(tmp_path / "main", spreads=False) as main:
        helper = main.start_helper(tmp_path / "helper", module="app", words=("lend", "--fetch-models"))
        known = KnownModels(main.keeper.home, main.hub, lambda: None)
        until(lambda: known.name(str(folder)) != "")
        name = known.name(str(folder))
        until(lambda: main.find(helper).fetches, LOADING_S)
        known.want(main.hub.list_machines(), str(folder))
        until(lambda: name in main.find(helper).models, LOADING_S)
        until(lambda: not main.find(helper).paused, LOADING_S)
        request = PictureRequest(PROMPT, model=name, seed=5, steps=3)
        main.hub.submit("task", pack(request), main.find(helper).id, lambda machine, event: None, take)
        end, made = ends.get(timeout=250)
    assert isinstance(end.event, Finished) and len(made) == 1, (end, helper.log)
    here = ["--model", str(folder), "--seed", "5", "--steps", "3", "-o", str(tmp_path / "here.png"), "--home", str(tmp_path / "here")]
    subprocess.run([sys.executable, "-m", "app", "paint", PROMPT, *here], cwd=TOP, check=True, capture_output=True)
    with Image.open(tmp_path / "here.png") as same:
        assert made[0].tobytes() == same.tobytes()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_local_voice_speaks_on_both_machines_and_each_part_once(tmp_path: Path) -> None:
    """Neither machine has it in a folder of the same name; the engine here takes a part from there only if its key is the one it expects."""
    folder = tiny_voices.save_voice(tmp_path / "~ voice ~")
    request = SpeechRequest("[S1] hello. good morning. " * 120, model=str(folder), seed=5, carry_voice=False, max_frames=250)
    keys, made_by, sounds, spoken_here = list[list[str]](), dict[str, str](), list[sound.Samples](), list[set[int]]()
    for helped in (True, False):
        keeper = Keeper(home(tmp_path / f"helped-{helped}"))
        main = Main(keeper, Hub(keeper.home, "127.0.0.1"))
        try:
            if helped:
                helper = main.start_helper(tmp_path / "helper", module="app", words=("lend", "--fetch-models"))
                main.spreader = Spreader(keeper, main.hub).start()
                until(lambda: main.spreader.models.name(str(folder)) != "")  # type: ignore[union-attr]  # noqa: B023
                name = main.spreader.models.name(str(folder))
                until(lambda: main.find(helper).fetches, LOADING_S)  # noqa: B023
                main.spreader.models.want(main.hub.list_machines(), str(folder))
                until(lambda: name in main.find(helper).models and not main.find(helper).paused, LOADING_S)  # noqa: B023
            job = keeper.submit(request).id
            *events, end = keeper.follow(job)
            assert isinstance(end, Finished), end
            spoken_here.append({event.part for event in events if isinstance(event, Step)})
            sounds.append(sound.read(Path(end.files[0]))[0])
            parts = [spoken_parts.find(path) for path in sorted(keeper.folder(job).glob("part-*.wav"))]
            keys.append([part.key for part in parts if part is not None])
            if (keeper.folder(job) / MACHINES).exists():
                made_by = json.loads((keeper.folder(job) / MACHINES).read_text())
        finally:
            for each in main.helpers:
                each.end()
            if main.spreader is not None:
                main.spreader.close()
            main.hub.close()
            keeper.close()
    there = sum(name.endswith(".wav") for name in made_by)
    assert keys[0] == keys[1] and len(keys[0]) > 4 and there > 0, made_by
    assert spoken_here[1] == {*range(len(keys[0]))} > spoken_here[0], "what the helper spoke was spoken here again"
    alone, together = sounds
    assert np.array_equal(alone, together)
    print(f"{there} of {len(keys[0])} parts by the helper")
