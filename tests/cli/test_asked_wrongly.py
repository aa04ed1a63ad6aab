"""What a command cannot do as asked ends with 2 before anything starts, in JSON too where that was asked for; one name for the command everywhere."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from app.__main__ import main
from app.base import paths, proxies
from app.base.commands import COMMANDS, WORDS
from app.base.languages import languages, templates
from app.base.sentence import say
from app.base.start_command import name_command
from app.base.trouble import Impossible, Trouble
from app.cli import completion, job, output_file, paint
from app.cli.speak import read_script
from app.compat.planning.types import Need
from app.engine.jobs.events import Failed, Stopped
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.schedulers import find_scheduler
from app.engine.models import catalog
from app.engine.pictures.run.input_images import open_image
from app.engine.session.loaded_models import ModelHolder
from tests.support import light_engine
from tests.support.books import save_epub
from tests.support.plans import plan
from tests.support.sentences import find_spoken

pytestmark = pytest.mark.long


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    light_engine.replace_engines(monkeypatch)
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / light_engine.LIVES).write_text("[]")
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("paint", "x", "--size", "512x512"), "256 x 256 only"),
        (("paint", "x", "--model", "./nothere.safetensors"), "no such file or folder"),
        (("paint", "x", "--seed", "1.5"), "must be a whole number"),
        (("paint", "x", "-f", "p.txt"), "a prompt and a file"),
        (("paint", "x", "-o", "-", "--batch", "2"), "one picture"),
        (("paint", "-f", "none.txt"), "none.txt cannot be read as text (No such file or directory)"),
        (("paint", "x", "--adapter", "plus"), "--adapter does nothing without --reference"),
        (("paint", "x", "--guide-strength", "2"), "--guide-strength does nothing without --guide"),
        (("paint", "x", "--mask-blur", "2"), "--mask-blur does nothing without --mask"),
        (("paint", "x", "--mask-blur", "0"), "--mask-blur does nothing without --mask"),
        (("paint", "x", "--enlarger", "sharp", "--upscale", "1"), "--enlarger does nothing without --upscale"),
        (("paint", "x", "--strength", "0.3"), "--strength does nothing without --image"),
        (("paint", "x", "--enlarger", "sharp"), "--enlarger does nothing without --upscale"),
        (("speak", "Hi.", "-f", "s.txt"), "a script and a file"),
        (("speak", "Hi.", "--cast", "none.toml"), "none.toml cannot be read (No such file or directory)"),
        (("speak", "Hi.", "--pronunciations", "none.csv"), "none.csv cannot be opened (No such file or directory)"),
        (("speak", "Hi.", "-o", "x.wav", "--format", "mp3"), "two formats"),
        (("speak", "Hi.", "-o", "x.out"), "x.out has another ending. Use x.wav."),
        (("speak", "Hi.", "-o", "x.wav", "--show-text"), "speaks nothing"),
        (("speak", "Hi.", "--voice", "none.wav", "--transcript", "hi"), "no recording at none.wav"),
    ],
)
def test_what_is_impossible_is_told_before_anything_starts(
    home: Path, words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--json"]) == job.TROUBLE
    seen = capsys.readouterr()
    assert told in seen.err and told in json.loads(seen.out)["sentence"] and json.loads(seen.out)["event"] == "failed"
    assert not (home / "hearth.sqlite3").exists()


@pytest.mark.parametrize(
    ("words", "told", "chinese"),
    [
        ("paint x --dtype int3", "--dtype cannot be int3. Choose one of: auto, float64,", "--dtype 不能是 int3。可选：auto、"),
        ("paint x --guide-as lines", "--guide-as cannot be lines. Choose one of: edges, depth, pose.", "可选：edges、depth、pose。"),
        ("models frob", "action cannot be frob. Choose one of: list, get,", "action 不能是 frob。可选：list、get"),
        ("paint x --batch two", "--batch must be a number, not two.", "--batch 必须是数字"),
        ("speak x --voice", "--voice needs a value after it.", "--voice 后面缺少一个值。"),
        ("paint x --bach 2", "There is no option --bach. Similar ones: --batch", "没有 --bach 这个选项。相近的有：--batch"),
        ("paint a boat", "paint does not know what to do with boat. See", "paint 不知道怎么处理 boat。请看"),
        ("machines --pretend m1-8gb", "machines does not know what to do with --pretend. See", "machines 不知道怎么处理 --pretend。请看"),
        ("open --browser --no-browser", "not allowed with argument --browser. See", "参数 --no-browser：不能与 --browser 同时使用。请看"),
    ],
)
def test_words_that_cannot_be_read_are_told_in_hearths_own(
    words: str, told: str, chinese: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert main([*words.split(), "--json"] if "open" not in words else words.split()) == job.TROUBLE
    seen = capsys.readouterr()
    assert told in seen.err and len(seen.err.splitlines()) == 1
    if "open" not in words:
        assert json.loads(seen.out)["code"] == "usage" and told in json.loads(seen.out)["sentence"]
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert main(words.split()) == job.TROUBLE
    assert chinese in capsys.readouterr().err


def load_what_is_not_installed() -> None:
    list(ModelHolder(paths.home()).load(catalog.find("sd15"), Need(), plan()))


@pytest.mark.parametrize("impossible", [lambda: find_scheduler("foo"), lambda: open_image("/nothere.png"), load_what_is_not_installed])
def test_what_only_the_engine_can_refuse_has_that_code_too(
    impossible: Any, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Trouble) as refused:
        impossible()
    monkeypatch.setattr(job, "follow", lambda *given: Failed.of(refused.value))
    assert main(["speak", "Hi.", "--json"]) == job.TROUBLE and not capsys.readouterr().out, "nothing was written"
    monkeypatch.setattr(job, "follow", lambda *given: Failed.of(Trouble(refused.value.sentence)))
    assert main(["speak", "Hi."]) == job.FAILED, "what broke is no wrong request"


@pytest.mark.skipif(find_spec("av") is None, reason="an extra")
@pytest.mark.parametrize(
    ("end", "code", "goes_on"),
    [
        (Stopped((), 0.0), job.STOPPED, True),
        (Failed.of(Impossible(say("test", "x"))), job.TROUBLE, False),
        (Failed.of(Trouble(say("test", "x"))), job.FAILED, True),
    ],
)
def test_an_audiobook_that_is_not_finished_has_the_code_of_readmes_table(
    end: Any, code: int, goes_on: bool, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    book = save_epub(tmp_path / "book.epub", {"a.xhtml": "<p>It rained in May.</p>"}, {"a.xhtml": "May"})
    asked = ["speak", str(book), "-o", str(tmp_path / "book.m4b")]
    monkeypatch.setattr(job, "follow", lambda *given: end)
    assert main(asked) == code and ("Run the same command again" in capsys.readouterr().err) == goes_on


@pytest.mark.skipif(find_spec("av") is None, reason="an extra")
def test_an_audiobook_is_told_as_an_event_and_has_no_subtitles(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = save_epub(tmp_path / "book.epub", {"a.xhtml": "<p>It rained in May.</p>"}, {"a.xhtml": "May"})
    out = str(tmp_path / "book.m4b")
    assert main(["speak", str(book), "-o", out, "--subtitles", str(tmp_path / "x.srt")]) == job.TROUBLE
    assert "Subtitles cannot be written beside an audiobook" in capsys.readouterr().err and not Path(out).exists()
    assert main(["speak", str(book), "-o", out, "--json"]) == job.FINISHED
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"event": "written", "files": [out]}


def test_a_backup_of_nothing_says_so(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert main(["backup"]) == 0 and "还没有数据库" in capsys.readouterr().out


def test_what_cannot_be_a_path_is_a_name() -> None:
    assert paint.find_whole_path(long := "x" * 5000) == long and paint.find_whole_path("") == ""
    assert paint.find_whole_path("~") == str(Path.home().resolve())


def test_a_result_goes_to_standard_output(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["speak", "[S1] Hi.", "-o", "-", "--quiet"]) == job.FINISHED
    seen = capsysbinary.readouterr()
    assert seen.out.startswith(b"RIFF") and not seen.err and not (tmp_path / "-").exists()
    with pytest.raises(Trouble, match="--json"):
        output_file.check_stdout(PictureRequest("x"), json=True)


@pytest.mark.parametrize(("given", "file"), [("-", None), (None, Path("-")), (None, None)])
def test_a_script_and_a_prompt_come_from_standard_input(given: str | None, file: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for read in (read_script, job.read_text):
        monkeypatch.setattr(sys, "stdin", io.StringIO("a red ball"))
        assert read(given, file) == "a red ball"


def test_quiet_and_json_tell_where_the_result_is(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "x.wav")
    assert main(["speak", "[S1] Hi.", "-o", out, "-q"]) == job.FINISHED
    assert capsys.readouterr() == (f"{out}\n", "")
    assert main(["speak", "[S1] Hi.", "-o", out, "--json"]) == job.FINISHED
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"event": "written", "files": [out]}


@pytest.mark.skipif(find_spec("av") is None, reason="an extra")
def test_a_result_is_aac_by_its_name(home: Path, tmp_path: Path) -> None:
    assert main(["speak", "[S1] Hi.", "-o", str(tmp_path / "x.aac"), "-q"]) == job.FINISHED
    assert (tmp_path / "x.aac").read_bytes()[:2] in (b"\xff\xf1", b"\xff\xf9")


def test_what_ctrl_c_stopped_goes_on_by_the_same_command(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = " (pause 0.2s) ".join(["[S1] The water is warm today."] * 4)
    (home / light_engine.LIVES).write_text(json.dumps([{"parts": 2}, {"dies": "loading"}, {"dies": "loading"}]))
    assert main(["speak", script]) == job.INCOMPLETE
    with closing(sqlite3.connect(home / "hearth.sqlite3")) as database, database:
        assert database.execute("UPDATE jobs SET state='stopped'").rowcount == 1
    before = {path: path.stat().st_mtime_ns for path in home.rglob("part-*.wav")}
    (home / light_engine.LIVES).write_text("[]")
    assert len(before) == 2 and main(["speak", script]) == job.FINISHED
    assert "Resuming the job" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in before} == before and len([*home.rglob("part-*.wav")]) == 4


def test_every_sentence_has_one_name_for_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    told = {text for _, text, _ in find_spoken()} | {each for code in languages() for each in templates(code).values()}
    named = re.compile(
        rf"(?<![\w{{/])hearth (?:{'|'.join(COMMANDS)})\b|\bcommand models\b|(?<!python3 )start\.py (?:{'|'.join(COMMANDS)}|repair|add|back|{{)"
    )
    assert not [each for each in told if named.search(each)]
    assert name_command() in ("python3 start.py", "Hearth.bat")
    assert main(["voices", "rename"]) == job.TROUBLE and f"{name_command()} voices rename" in capsys.readouterr().err


def test_a_socks_proxy_is_set_aside_and_told_where_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*proxies.NAMES, *map(str.lower, proxies.NAMES)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(proxies.NOTED, "")  # taken back at the end, whatever the product puts there
    proxies.refuse_socks()
    monkeypatch.setenv("ALL_PROXY", "socks5://user:secret@127.0.0.1:9")
    monkeypatch.setattr(proxies, "find_spec", lambda name: None)
    proxies.set_socks_aside()
    assert "ALL_PROXY" not in os.environ and "secret" not in os.environ[proxies.NOTED]
    with pytest.raises(Trouble, match="ALL_PROXY names a SOCKS proxy"):
        proxies.refuse_socks()
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    proxies.refuse_socks()


def test_shells_complete_commands_and_their_options() -> None:
    for shell in completion.SHELLS:
        script = completion.write(shell)
        assert all(name in script for name in COMMANDS) and all(word in script for word in WORDS["paint"].split()), shell


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes() -> None:
    for typed, offered in (
        (["hearth", "pa"], "paint"),
        (["hearth", "paint", "--nega"], "--negative"),
        (["hearth", "models", "rem"], "remove"),
    ):
        asked = f"COMP_WORDS=({' '.join(typed)}); COMP_CWORD={len(typed) - 1}; _hearth; echo ${{COMPREPLY[@]}}"
        ran = subprocess.run(["bash", "-c", f"{completion.write('bash')}\n{asked}"], capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == offered and not ran.stderr


TYPED = (
    ("hearth pai", "paint"),
    ("hearth models rem", "remove"),
    ("hearth add quan", "quantised"),
    ("hearth bench paint --qui", "--quick --quicker"),
)


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(("typed", "offered"), TYPED)
def test_fish_completes(typed: str, offered: str, tmp_path: Path) -> None:
    (script := tmp_path / "hearth.fish").write_text(completion.write("fish"))
    asked = f"cat '{script}' | source; complete -C '{typed}'"
    ran = subprocess.run(["fish", "--no-config", "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == offered.split() and not ran.stderr


@pytest.mark.skipif(shutil.which("pwsh") is None, reason="needs PowerShell")
@pytest.mark.parametrize(("typed", "offered"), TYPED)
def test_powershell_completes(typed: str, offered: str) -> None:
    asked = f"{completion.write('powershell')}\n(TabExpansion2 '{typed}' {len(typed)}).CompletionMatches.CompletionText"
    ran = subprocess.run(["pwsh", "-NoProfile", "-Command", asked], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == offered.split()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes(tmp_path: Path) -> None:
    """In a terminal, as it completes nowhere else, without any settings of a person's own."""
    import pty

    (script := tmp_path / "hearth.zsh").write_text(completion.write("zsh"))
    ours, its = pty.openpty()
    environment = {**os.environ, "ZDOTDIR": str(tmp_path), "TERM": "xterm", "PS1": ""}
    with subprocess.Popen(["zsh", "-i"], stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True) as shell:
        os.close(its)
        os.write(ours, f"eval \"$(cat '{script}')\"\n".encode())
        for typed, offered in TYPED[:3]:
            whole, seen = f"{typed.rpartition(' ')[0]} {offered}", b""
            os.write(ours, f"{typed}\t\x01echo said: \n".encode())  # the key for the line's beginning
            while f"\nsaid: {whole}".encode() not in seen:
                seen += os.read(ours, 1 << 16)
        os.write(ours, b"exit\n")
        shell.wait()
        os.close(ours)


def test_the_text_is_shown_as_it_would_be_spoken(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (listed := tmp_path / "names.csv").write_text("Siobhan,Shivawn\n")
    words = ["speak", "--show-text", "--home", str(home), "--model", "starter-voice", "--pronunciations", str(listed)]
    assert main([*words, "[Anna] Siobhan paid £4 at 9:45 p.m. [Ben] No. 42?"]) == 0
    assert capsys.readouterr().out.splitlines() == ["[Anna] Shivawn paid four pounds at nine forty five P M.", "[Ben] number forty two?"]
    assert main([*words, "--json", "It is 3."]) == 0
    assert json.loads(capsys.readouterr().out) == {"event": "text", "speaker": "S1", "text": "It is three."}
