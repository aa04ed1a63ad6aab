"""The engine's process: no connection, no hub, no token, no pickle."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.places import TOP

ENGINE = """
import sys, types
from pathlib import Path
from app.engine.keeper import worker
from app.base.paths import home

class Session:
    loaded, held_bytes, checked, hardware = "", 0, (0, 0), None
    def __init__(self, *given): ...
    def use_idle_time(self): return iter(())
    def free(self): ...

class Pipe:
    def send(self, report): ...
    def recv(self): import time; time.sleep(60)

def look(self, session, ahead):
    {look}

sys.modules["app.engine.session.session"] = types.SimpleNamespace(Session=Session)
worker.Worker.work = look
assert not [name for name in sys.modules if name.startswith(("huggingface_hub", "transformers"))], "they read the environment once"
worker.main(Pipe(), home(Path(sys.argv[1])).create(), "", Path(sys.argv[1], "engine.log"))
"""
"""It is an engine as it starts, with nothing to load; what it would do is replaced by a look around."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what a look around printed; one engine for all, as it imports torch."""
    folder = tmp_path_factory.mktemp("engine")
    look = "\n".join((CONNECT, HUB, PICKLE)).strip().splitlines()
    code = ENGINE.format(look="\n    ".join(look))
    token = folder / "token"
    token.write_text("hf_OfTheOwner")
    given = {"HF_TOKEN": "hf_OfTheOwner", "HUGGING_FACE_HUB_TOKEN": "hf_OfTheOwner", "HF_TOKEN_PATH": str(token), "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=TOP, env=os.environ | given, capture_output=True, text=True, timeout=300
    )
    log = (folder / "engine.log").read_text("utf-8") if (folder / "engine.log").exists() else ""
    assert done.returncode == 0, log + done.stderr
    return log


CONNECT = """
import asyncio, socket
for act in (
    lambda: socket.create_connection(("127.0.0.1", 9)),
    lambda: socket.socket().connect(("127.0.0.1", 9)),
    lambda: socket.socket().connect_ex(("127.0.0.1", 9)),
    lambda: socket.socket(socket.AF_INET6).connect(("::1", 9)),
    lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)),
    lambda: socket.getaddrinfo("localhost", 9),
    lambda: socket.gethostbyname("localhost"),
):
    try:
        act()
    except PermissionError as fault:
        print("refused:", fault)
    else:
        print("WENT OUT")
"""


def test_no_connection_leaves_the_engine(told: str) -> None:
    assert told.count("the engine has no network") == 7 and "WENT OUT" not in told, told


HUB = """
import huggingface_hub
from huggingface_hub import constants
from app.engine.models import hub_token
print("offline", constants.HF_HUB_OFFLINE, huggingface_hub.is_offline_mode(), constants.HF_HUB_DISABLE_TELEMETRY)
print("token", huggingface_hub.get_token(), hub_token.get_token(), huggingface_hub.utils.build_hf_headers().get("authorization"))
try:
    huggingface_hub.HfApi().model_info("evil/backbone")
except Exception as fault:
    print(type(fault).__name__)
"""


def test_the_hub_and_its_token_are_out_of_reach(told: str) -> None:
    assert "offline True True True" in told and "token None None None" in told and "OfflineModeIsEnabled" in told, told


PICKLE = """
import torch
for load in (torch.load, torch.serialization.load):
    try:
        load("/nowhere/x.bin")
    except Exception as fault:
        print(fault)
"""


def test_no_pickle_is_opened(told: str) -> None:
    assert told.count("Hearth opens no pickle files such as /nowhere/x.bin") == 2, told
