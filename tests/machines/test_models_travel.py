"""A model that lies in a folder of the main machine's reaches a helper whose owner lets it, and no other; for real, TLS on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue

import pytest
from PIL import Image

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.engine.jobs.events import END, Finished
from app.engine.jobs.request import PictureRequest
from app.machines.hub import TaskEnd
from app.machines.known_models import KnownModels
from app.machines.sent_models import SentModels
from app.machines.tasks.portable import pack
from app.paths import assets, home
from tests.support.lent import open_main
from tests.support.light_painter import read_made
from tests.support.places import TOP
from tests.support.waiting import LOADING_S, until

PROMPT = "a red ball on grass"


def test_a_local_model_is_sent_and_used(tmp_path: Path) -> None:
    folder = tmp_path / "My painter"
    shutil.copytree(assets() / "starter" / "painter", folder)
    (folder / "setup.py").write_text("raise SystemExit")
    with open_main(tmp_path / "main") as main:
        willing = main.start_helper(tmp_path / "willing", words=("--fetch-models",))
        unwilling = main.start_helper(tmp_path / "unwilling")
        (tmp_path / "main" / "pace.json").write_text('{"step_s": 3.0}')
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
        main.hub.submit("task", pack(request), [main.find(helper).id], lambda machine, event: None, take)
        end, made = ends.get(timeout=250)
    assert isinstance(end.event, Finished) and len(made) == 1, (end, helper.log)
    here = ["--model", str(folder), "--seed", "5", "--steps", "3", "-o", str(tmp_path / "here.png"), "--home", str(tmp_path / "here")]
    subprocess.run([sys.executable, "-m", "app", "paint", PROMPT, *here], cwd=TOP, check=True, capture_output=True)
    with Image.open(tmp_path / "here.png") as same:
        assert made[0].tobytes() == same.tobytes()
