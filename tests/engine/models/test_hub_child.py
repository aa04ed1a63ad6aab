"""The process that talks to the hub: it alone connects, it alone has the token, and its death is a sentence."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from app.base.paths import Home
from app.base.trouble import Trouble
from app.engine.keeper import no_network
from app.engine.models import hub_child, hub_token
from app.engine.models.downloads import Downloads
from tests.support import downloaded
from tests.support.downloaded import MODEL, MORE, REPO, SIZE, UNET, WEIGHTS, await_status, checked, ended
from tests.support.hub import Hub, etag
from tests.support.places import TOP

pytestmark = pytest.mark.long

hub, place, fetching = downloaded.hub, downloaded.place, downloaded.fetching
TOKEN = "hf_OfTheOwner"

PROGRAM = """
import dataclasses, sys, time
seen = []
sys.addaudithook(lambda event, given: seen.append((event, given[1:])) if event in {
    "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"} else None)
import os, psutil
from app.engine.models import downloads, on_disk
from app.engine.models.catalog import BY_ID
from app.engine.models.model import Companion, Source
from app.base.paths import home
MODEL = dataclasses.replace(
    BY_ID["sd15"], id="pictures", source=Source(sys.argv[2], ("model_index.json", "*/*.json", "*/*.fp16.safetensors"), 1),
    companions=(Companion("few-steps", Source(sys.argv[3], ("lora.safetensors",), 1)),),
)
place = home(sys.argv[1]).create()
own = downloads.Downloads(place)
assert own.check_line() is None
own.start(MODEL)
while (now := own.list_status()[0]).state in ("queued", "running"):
    time.sleep(0.02)
assert now.state == "done" and on_disk.locate(place, MODEL), now
assert not [each for each in seen if each[0] != "socket.connect" or not isinstance(each[1][0], (str, bytes))], seen
assert "app.engine.models.hub" not in sys.modules and "app.engine.models.hub_process" not in sys.modules
assert not [name for name, value in os.environ.items() if value == "hf_OfTheOwner"]
import multiprocessing, time
later = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(30,), daemon=True)
later.start()
assert "hf_OfTheOwner" not in psutil.Process(later.pid).environ().values(), "what is started later has the token"
later.kill()
"""


def test_the_window_connects_to_no_hub_and_has_no_token_in_its_environment(hub: Hub, place: Home) -> None:
    """A whole download and a look at the line, by a program whose every connection is recorded; the hub opens for the token alone."""
    hub.gated.add(REPO)
    hub.tokens = {TOKEN: {REPO}}
    environment = os.environ | {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(place.root / "hf"), "HF_TOKEN": TOKEN}
    command = [sys.executable, "-c", PROGRAM, str(place.root), REPO, MORE]
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    asked = hub.gets(f"{REPO}/resolve")[0]
    assert next(value for name, value in asked.items() if name.lower() == "authorization") == f"Bearer {TOKEN}"
    checked(place)


def test_what_it_imports_is_small() -> None:
    code = (
        "import sys, app.engine.models.hub_process\n"
        "large = {'torch', 'transformers', 'diffusers', 'gradio', 'numpy', 'PIL', 'pandas', 'dask'} & sys.modules.keys()\n"
        "assert 'huggingface_hub' in sys.modules and not large, large\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def find_children() -> list[psutil.Process]:
    living = (each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE)
    return [each for each in living if "spawn_main" in " ".join(each.cmdline())]


@pytest.mark.slow
def test_its_death_is_a_sentence_and_what_came_is_kept(fetching: Downloads, hub: Hub, place: Home) -> None:
    hub.bytes_a_second = 400_000
    fetching.start(MODEL)
    await_status(fetching, lambda status: status.done_bytes > 100_000)
    [child] = find_children()
    child.kill()
    status = ended(fetching)
    assert status.state == "failed" and status.sentence.key == "download.fault", status  # type: ignore[union-attr]
    assert "its process ended with code -9" in str(status.sentence) or sys.platform == "win32"
    part = place.models / "models--maker--pictures" / "blobs" / f"{etag(UNET, WEIGHTS)}.incomplete"
    kept = part.stat().st_size
    hub.rest()
    assert 100_000 < kept < SIZE
    before, hub.bytes_a_second = hub.sent[UNET], 0
    fetching.resume(MODEL.id)
    assert ended(fetching).state == "done" and hub.sent[UNET] - before == SIZE - kept
    checked(place)
    assert not find_children()


def test_a_hub_that_says_nothing_holds_up_no_pause(place: Home) -> None:
    """The client waits half a minute for an answer; its process does not."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        downloads = Downloads(place, f"http://127.0.0.1:{silent.getsockname()[1]}")
        downloads.start(MODEL)
        connection, _ = silent.accept()
        begun_s = time.monotonic()
        downloads.remove(MODEL, ())
        assert time.monotonic() - begun_s < 15 and not find_children()
        connection.close()


@pytest.mark.slow
def test_a_token_that_cannot_be_checked_is_a_sentence(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(hub_child, "PATIENCE_S", 4.0)
        with pytest.raises(Trouble) as told:
            hub_child.store_token("hf_thisisright")
    assert told.value.sentence.key == "token.died" and not (tmp_path / "token").exists()


def test_both_lists_of_variables_agree() -> None:
    assert set(no_network.TOKENS) == set(hub_token.NAMES)
