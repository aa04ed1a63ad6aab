"""Three helpers of different speed, killed at random twelve times over sixty pictures and a script of forty parts: all delivered, each once."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import psutil
import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.engine.jobs.events import END, Finished
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.models.on_disk import find_limits
from app.engine.speech.sound import sound
from app.engine.speech.text import script
from tests.support.lent import Main, open_main, start
from tests.support.light_painter import pace, read_made
from tests.support.waiting import LOADING_S, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLS, JOBS, BATCH = 12, 4, 15
SEEDS = (20_261_123, 1, 2)
SPEEDS = (0.2, 0.4, 0.8)
SCRIPT = "[S1] hello. good morning. " * 160
"""It waits while all are at the pictures, then its parts go to whoever is idle."""
PART_SAMPLES, JOINT_SAMPLES = 4000, 64
"""A part has so many samples, and so many lie where two of them overlap."""


def kill_one(main: Main, draw: random.Random) -> str:
    """Kill a helper as a whole, one of its processes, or the main machine's machines process."""
    place = draw.randrange(len(SPEEDS) + 1)
    if place == len(SPEEDS):
        if main.hub.pid is not None:
            psutil.Process(main.hub.pid).kill()
        return "main's machines process"
    helper = main.helpers[place]
    below = psutil.Process(helper.process.pid).children()
    if below and draw.random() < 0.5:
        draw.choice(below).kill()
        return f"a process of helper {place}"
    helper.kill()
    main.helpers[place] = start(helper.home)
    return f"helper {place}"


@pytest.mark.parametrize("seed", SEEDS)
def test_twelve_kills_over_sixty_pictures_and_a_script(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    with open_main(tmp_path / "main") as main:
        pace(main.keeper.home.root, step_s=0.3)
        for place, step_s in enumerate(SPEEDS):
            main.start_helper(tmp_path / f"helper-{place}", step_s)
        done, killed = threading.Event(), list[str]()

        def kill_now_and_then() -> None:
            while len(killed) < KILLS and not done.wait(draw.uniform(0.5, 3.0)):
                killed.append(kill_one(main, draw))

        killer = threading.Thread(target=kill_now_and_then)
        killer.start()
        jobs = [main.keeper.submit(PictureRequest("a ball", model="starter-painter", batch=BATCH, seed=1000 * n)).id for n in range(JOBS)]
        spoken = main.keeper.submit(SpeechRequest(SCRIPT, model="starter-voice", seed=90_000, loudness_lufs=None, tail_s=0.0)).id
        for job in jobs:
            end = next(event for event in main.keeper.follow(job) if isinstance(event, END))
            assert isinstance(end, Finished) and len(end.files) == BATCH, (end, killed)
        *_, last = main.keeper.follow(spoken)
        assert isinstance(last, Finished), (last, killed)
        done.set()
        killer.join()
        kept = [each for job in jobs for each in main.keeper.shelf.list_of_job(job)]
        assert len(kept) == JOBS * BATCH and len({each.path.read_bytes() for each in kept}) == JOBS * BATCH, killed
        (sound_file,) = main.keeper.shelf.list_of_job(spoken)
        total = len(script.parse_script(SCRIPT, find_limits(main.keeper.home, "starter-voice")).parts)
        samples, _ = sound.read(sound_file.path)
        levels = [samples[int((index + 0.5) * len(samples) / total)] for index in range(total)]
        assert total >= 40 and len(samples) == total * PART_SAMPLES - (total - 1) * JOINT_SAMPLES, killed
        assert levels == pytest.approx([0.1 + index / 100 for index in range(total)], abs=1e-3), "each part once, in its place"
        assert len(killed) == KILLS, "the batches were too short for so many kills"
        assert all(any(word == "finished" for word, *_ in read_made(helper.home)) for helper in main.helpers)
        until(lambda: all(each.online for each in main.hub.list_machines()), LOADING_S)
