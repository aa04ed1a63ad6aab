"""A main machine that is to be killed: it says its code, waits for a helper, speaks what only it may, and says the job that the helper has then."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from app.base.paths import home
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.keeper import worker
from app.engine.keeper.keeper import Keeper
from app.ui.state.other_machines import OtherMachines
from app.ui.state.settings import Settings
from tests.support import light_painter
from tests.support.waiting import LOADING_S, until

if __name__ == "__main__":
    worker.main = light_painter.main
    place = home(Path(sys.argv[1])).create()
    keeper = Keeper(place)
    others = OtherMachines(keeper, Settings(place.settings))
    others.use()
    others.show_code()
    hub = others.hub
    assert hub is not None and hub.pairing is not None
    machines = hub.list_machines
    print(hub.pairing.state.code, flush=True)
    until(lambda: any(each.online and not each.paused and each.models for each in machines()), LOADING_S)
    here = keeper.submit(SpeechRequest("[S1] hello. good morning. " * 40, model="starter-voice", seed=1, only_parts=(0,))).id
    until(lambda: keeper.state.job == here, LOADING_S)
    print(keeper.submit(PictureRequest("a ball", model="starter-painter", batch=8, seed=100)).id, flush=True)
    time.sleep(600)
