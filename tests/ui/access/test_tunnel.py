"""The tunnel of a share link, with scripts that print what frpc 0.3 printed; test_tunnel_program.py has frpc itself."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.base.trouble import Trouble
from app.ui.access.tunnel import fetch_program, open_tunnel
from tests.support.share_api import Standin, programs, serve
from tests.support.waiting import until

pytestmark = pytest.mark.long

unix = pytest.mark.skipif(os.name == "nt", reason="the stand-in is a script")

# What frpc 0.3 printed while a share server let it in, refused it, broke off and took it back.
OPENED = "2026/11/22 04:54:50 [I] [control.go:178] [93fc0ebbf1dd7529] [2ca7289b5248632c8f] start proxy success: https://2ca7289b5248632c8f.gradio.live"
BROKEN = """2026/11/22 04:54:52 [I] [control.go:313] [93fc0ebbf1dd7529] control writer is closing
2026/11/22 04:54:53 [I] [service.go:209] [93fc0ebbf1dd7529] try to reconnect to server...
2026/11/22 04:54:53 [E] [service.go:348] [93fc0ebbf1dd7529] in a moment
2026/11/22 04:54:53 [W] [service.go:212] [93fc0ebbf1dd7529] reconnect to server error: in a moment, wait 1s for another retry"""
REFUSED = """2026/11/22 04:54:46 [E] [service.go:348] no more room
2026/11/22 04:54:46 [W] [service.go:132] login to server failed: no more room
no more room"""
TAKEN = """2026/11/22 04:54:48 [I] [proxy_manager.go:147] [972f4e4d3d5d97bf] proxy added: [2ca7289b5248632c8f]
2026/11/22 04:54:48 [W] [control.go:176] [972f4e4d3d5d97bf] [2ca7289b5248632c8f] start error: no more room"""
DISTRUSTED = "2026/11/22 04:55:09 [W] [service.go:132] login to server failed: session shutdown\nsession shutdown"

SCRIPT = f"""#!/bin/sh
'''exec' "{sys.executable}" "$0" "$@"
' '''
import pathlib, sys, time
here = pathlib.Path(sys.argv[0])
here.with_suffix(".said").write_text("\\n".join(sys.argv[1:]))
def say(text): print(text, flush=True)
def wait_for(name):
    while not here.with_name(name).exists(): time.sleep(0.02)
"""
STAYS = f"{SCRIPT}say({OPENED!r})\ntime.sleep(60)\n"
TALKS = f"""{SCRIPT}say({OPENED!r})
for n in range(5000):
    say("[E] connect to local service error: connection refused, once more and at some length")
here.with_name("through").touch()
time.sleep(60)
"""
RECONNECTS = f"{SCRIPT}say({OPENED!r})\nwait_for('cut')\nsay({BROKEN!r})\nwait_for('back')\nsay({OPENED!r})\ntime.sleep(60)\n"


@pytest.fixture
def standin() -> Iterator[Standin]:
    with serve() as server:
        yield server


@unix
def test_the_tunnel_is_opened_and_closed(standin: Standin, tmp_path: Path) -> None:
    before = programs()
    opened = standin.run(tmp_path, STAYS)
    assert opened.address == "https://2ca7289b5248632c8f.gradio.live" and opened.find_fault() is None
    (said,) = tmp_path.glob("*.said")
    given = said.read_text().splitlines()
    named = {flag: given[given.index(flag) + 1] for flag in ("-l", "-i", "-n", "--sd", "--tls_trusted_ca_file")}
    assert (named["-l"], named["-i"], named["--sd"]) == ("4321", "127.0.0.1", "random")
    assert {"--uc", "--ue", "--tls_enable"} <= set(given), "compressed, encrypted, by TLS"
    assert len(named["-n"]) >= 43, "who guesses it could take the link over"
    assert Path(named["--tls_trusted_ca_file"]).read_text().startswith("-----BEGIN")
    opened.close()
    until(lambda: programs() <= before, 20)


@unix
def test_a_program_that_talks_never_waits_for_a_reader(standin: Standin, tmp_path: Path) -> None:
    """A pipe holds 64 KB."""
    opened = standin.run(tmp_path, TALKS)
    until((tmp_path / "through").exists, 20)
    assert opened.find_fault() is None
    opened.close()
    assert (fault := opened.find_fault()) is not None and fault.key == "tunnel.ended"


@unix
def test_a_broken_tunnel_is_told_and_mends_itself(standin: Standin, tmp_path: Path) -> None:
    opened = standin.run(tmp_path, RECONNECTS)
    assert opened.find_fault() is None
    (tmp_path / "cut").touch()
    until(lambda: (fault := opened.find_fault()) is not None and fault.key == "tunnel.lost", 20)
    (tmp_path / "back").touch()
    until(lambda: opened.find_fault() is None, 20)
    opened.close()


@unix
def test_a_program_that_does_not_run_is_a_sentence(standin: Standin, tmp_path: Path) -> None:
    with pytest.raises(Trouble) as caught:
        standin.run(tmp_path, "for another machine")
    assert caught.value.sentence.key == "tunnel.program" and "on this machine: [Errno 8]" in str(caught.value)


@pytest.mark.slow
@unix
@pytest.mark.parametrize(
    ("says", "key"), [(REFUSED, "tunnel.refused"), (TAKEN, "tunnel.refused"), (DISTRUSTED, "tunnel.blocked"), ("", "tunnel.blocked")]
)
def test_no_link_is_a_sentence(standin: Standin, tmp_path: Path, says: str, key: str) -> None:
    begun_s, before = time.monotonic(), programs()
    with pytest.raises(Trouble) as caught:
        standin.run(tmp_path, f"{SCRIPT}say({says!r})\ntime.sleep(60)\n", wait_s=30 if says else 2)
    assert caught.value.sentence.key == key and time.monotonic() - begun_s < 20, "before its patience ended"
    assert key != "tunnel.refused" or "reports: no more room." in str(caught.value)
    until(lambda: programs() <= before, 20)


@unix
def test_a_program_that_ends_at_once_is_a_sentence(standin: Standin, tmp_path: Path) -> None:
    with pytest.raises(Trouble) as caught:
        standin.run(tmp_path, SCRIPT)
    assert caught.value.sentence.key == "tunnel.blocked"


def test_no_network_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Trouble) as caught:
        open_tunnel(1, tmp_path, "http://127.0.0.1:9/api", "http://127.0.0.1:9/frpc", "0" * 64)
    assert caught.value.sentence.key == "tunnel.fetch"
    assert not list(tmp_path.iterdir())


@unix
def test_a_server_that_makes_no_sense_is_a_sentence(standin: Standin, tmp_path: Path) -> None:
    standin.answer = {"nothing": 1}
    with pytest.raises(Trouble) as caught:
        standin.run(tmp_path, STAYS)
    assert caught.value.sentence.key == "tunnel.offline"


def test_the_checksum_is_asked_every_time(standin: Standin, tmp_path: Path) -> None:
    """Gradio looks only after a download: a program that was changed since is run. Here it is fetched again, or refused."""
    standin.program = b"the real one"
    source, right = f"{standin.at}/frpc", hashlib.sha256(b"the real one").hexdigest()
    program = fetch_program(tmp_path, source, right)
    assert fetch_program(tmp_path, source, right) == program and standin.fetched == 1
    program.write_bytes(b"a wrong one")
    assert fetch_program(tmp_path, source, right).read_bytes() == b"the real one" and standin.fetched == 2
    program.write_bytes(b"a wrong one")
    standin.program = b"meddled with"
    with pytest.raises(Trouble) as caught:
        fetch_program(tmp_path, source, right)
    assert caught.value.sentence.key == "tunnel.checksum" and not list(tmp_path.iterdir())
    with pytest.raises(Trouble) as caught:
        fetch_program(tmp_path, source, "")
    assert caught.value.sentence.key == "tunnel.platform"
