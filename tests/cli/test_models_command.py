"""Test hearth models against a hub on loopback, and for pretended machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.__main__ import EXIT_TROUBLE, main
from app.engine.models.catalog import BY_ID
from tests.engine.models.test_found import SD15, write
from tests.support.hub import Fault, Hub, cached, etag, serving
from tests.support.places import TOP
from tests.support.waiting import until

DIA, DAC = "nari-labs/Dia-1.6B-0626", "descript/dac_44khz"
SIZE = 2_000_000
SHARDS = {f"model-0000{n}-of-00002.safetensors": bytes([n]) * (SIZE // 2) for n in (1, 2)}
REPOS = {
    DIA: {"config.json": b'{"model_type": "dia"}', **SHARDS, "pytorch_model.bin": b"\x80\x02"},
    DAC: {"config.json": b"{}", "model.safetensors": b"d" * 1000},
}


def hearth(place: Path, *words: str, endpoint: str = "", timeout_s: float = 90) -> subprocess.Popen[str]:
    environment = {**os.environ, "HF_HOME": str(place / "hf"), "OMP_NUM_THREADS": "1", "HF_ENDPOINT": endpoint}
    command = [sys.executable, "-m", "app", "models", *words, "--home", str(place), "--pretend", "t4"]
    return subprocess.Popen(command, cwd=TOP, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_list_says_what_fits_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list", "--json", "--home", str(tmp_path), "--pretend", "m1-8gb"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in rows] == [*BY_ID]
    assert {row["fit"] for row in rows} == {"fits", "no"}  # a plan that keeps to its share of the memory is never tight
    assert all(row["because"] for row in rows) and not any(row["here"] for row in rows if not BY_ID[row["id"]].starter)
    flux = next(row for row in rows if row["id"] == "flux1-schnell")
    assert flux["quantised"] == "gguf" and flux["download_bytes"] < 20e9
    assert main(["models", "--home", str(tmp_path), "--pretend", "rtx-3060"]) == 0
    told = capsys.readouterr().out
    assert "Dia 1.6B, fits, 6.8 GB to download, Apache-2.0" in told and "terms on the hub" in told
    assert len({line.index(model.title) for model in BY_ID.values() for line in told.splitlines() if line.startswith(f"{model.id} ")}) == 1
    assert all(f"\n{id_} " in f"\n{told}" for id_ in BY_ID), "a long name runs into no title"


def test_unknown_models_are_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for act in ("get", "remove", "where", "size"):
        assert main(["models", act, "dia-9000", "--home", str(tmp_path), "--pretend", "t4"]) == EXIT_TROUBLE
        assert "Did you mean" in capsys.readouterr().err
    assert main(["models", "get", "nothing", "--home", str(tmp_path)]) == EXIT_TROUBLE
    assert "Did you mean" not in capsys.readouterr().err, "what hardly resembles a name is no help"
    assert main(["paint", "a ball", "--model", "moonshine", "--home", str(tmp_path), "--pretend", "t4"]) == EXIT_TROUBLE
    assert "moonshine-" not in capsys.readouterr().err, "a recogniser cannot paint"
    capsys.readouterr()
    assert main(["models", "get", "--json", "--home", str(tmp_path)]) == EXIT_TROUBLE
    assert json.loads(capsys.readouterr().out)["code"] == "usage"
    assert main(["models", "get", "starter-voice", "--home", str(tmp_path), "--pretend", "t4"]) == EXIT_TROUBLE
    assert main(["models", "remove", "starter-voice", "--home", str(tmp_path)]) == EXIT_TROUBLE


def test_found_lists_other_programs_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("HF_HOME", "HF_HUB_CACHE", "INVOKEAI_ROOT", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    assert main(["models", "found", "--home", str(tmp_path / "hearth")]) == 0
    assert "by its path: --model PATH" in capsys.readouterr().out
    file = write(tmp_path / "ComfyUI/models/checkpoints/nice.safetensors", SD15)
    (file.parent / "old.ckpt").write_bytes(b"PK")
    assert main(["models", "found", "--home", str(tmp_path / "hearth")]) == 0
    told = capsys.readouterr().out
    assert "ComfyUI (2 models, 0 LoRAs)" in told and f"{file}\n      Stable Diffusion 1.5, float16, 0.0 MB" in told and "A pickle" in told
    assert main(["models", "found", "nice", "--json", "--home", str(tmp_path / "hearth")]) == 0
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["path"], row["usable"], row["because"]) == (str(file), True, "")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there only a person at the console presses Ctrl+C")
def test_get_interrupt_get_again_where_size_remove(tmp_path: Path) -> None:
    with serving(Hub(REPOS, bytes_a_second=500_000)) as hub:
        first = next(iter(SHARDS))
        part = tmp_path / "models" / "models--nari-labs--Dia-1.6B-0626" / "blobs" / f"{etag(first, SHARDS[first])}.incomplete"
        running = hearth(tmp_path, "get", "dia-1.6b", endpoint=hub.endpoint)
        until(lambda: running.poll() is not None or (part.exists() and part.stat().st_size > 100_000), 180)  # two processes start
        assert running.poll() is None, running.communicate()
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
        assert running.returncode == 130 and "same command again to resume" in told
        kept = part.stat().st_size
        hub.rest()
        before, hub.bytes_a_second = hub.sent[first], 0
        running = hearth(tmp_path, "get", "dia-1.6b", endpoint=hub.endpoint)
        told, _ = running.communicate(timeout=90)
        assert running.returncode == 0 and "is installed" in told
        assert hub.sent[first] - before == SIZE // 2 - kept
        assert "pytorch_model.bin" not in hub.sent


def test_where_size_and_remove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Use a cache that another program filled."""
    snapshot = cached(tmp_path / "models", DIA)
    for name, data in REPOS[DIA].items():
        (snapshot / name).write_bytes(data)
    assert main(["models", "where", "dia-1.6b", "--home", str(tmp_path)]) == 0
    assert "not installed" in capsys.readouterr().out  # its codec is missing
    codec = cached(tmp_path / "models", DAC)
    for name, data in REPOS[DAC].items():
        (codec / name).write_bytes(data)
    assert main(["models", "where", "dia-1.6b", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(snapshot)
    assert main(["models", "size", "dia-1.6b", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == ["2.0", "MB", "dia-1.6b"]
    for act, told in (("where", {"folder": str(snapshot)}), ("size", {"bytes": 2_001_105})):
        assert main(["models", act, "dia-1.6b", "--json", "--home", str(tmp_path)]) == 0
        assert json.loads(capsys.readouterr().out) == {"id": "dia-1.6b", **told}
    assert main(["models", "remove", "dia-1.6b", "--home", str(tmp_path)]) == 0
    assert "2.0 MB were freed" in capsys.readouterr().out
    nothing: dict[str, dict[str, Any]] = {"where": {"folder": None}, "size": {"bytes": 0}, "remove": {"removed": False, "freed_bytes": 0}}
    for act, absent in nothing.items():
        assert main(["models", act, "sd15", "--home", str(tmp_path)]) == 0
        assert "is not installed" in capsys.readouterr().out, act
        assert main(["models", act, "sd15", "--json", "--home", str(tmp_path)]) == 0
        assert json.loads(capsys.readouterr().out) == {"id": "sd15", **absent}
    assert not list((tmp_path / "models").glob("models--*"))


@pytest.mark.slow
def test_a_refusal_is_told_with_its_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Hub(REPOS, faults={"list": [Fault("status", 404, 9, {"X-Error-Code": "RepoNotFound"})]})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        code = main(["models", "get", "dia-1.6b", "--home", str(tmp_path), "--pretend", "t4"])
        assert code == 1
        assert DIA in capsys.readouterr().err and hub.asked


def test_answers_are_in_the_systems_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("app.base.languages.system_language", lambda: "de")
    assert main(["models", "where", "dia-1.6b", "--home", str(tmp_path)]) == 0
    assert main(["models", "get", "--home", str(tmp_path)]) == EXIT_TROUBLE
    told = capsys.readouterr()
    assert told.out == "Dia 1.6B ist nicht installiert.\n" and "Nenne ein Modell:" in told.err
