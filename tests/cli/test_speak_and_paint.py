"""Test hearth speak and paint: the output path is checked before loading, and results are never lost, even if engines die."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import soundfile

from app.__main__ import main
from app.base import paths
from app.base.paths import Home
from app.base.trouble import Trouble
from app.cli import job, output_file, paint
from app.cli.paint import parse_size
from app.cli.speak import find_voice, read_script, tag_chapters, write_subtitles
from app.engine.jobs.creation import Creation
from app.engine.jobs.request import PictureRequest, SpeechRequest, VoicePrompt
from app.engine.jobs.shelf import Search
from app.engine.keeper.deaths import DEATHS
from app.engine.keeper.keeper import Keeper
from app.engine.models.voice_limits import DIA
from app.engine.speech.book.book import Book, Chapter
from app.engine.speech.text import voices
from tests.support import light_engine
from tests.support.books import save_epub
from tests.support.places import TOP
from tests.support.tiny_ears import complete, place_for, save_whisper
from tests.support.waiting import Idle

pytestmark = pytest.mark.long

SCRIPT = " (pause 0.2s) ".join(["[S1] The water is warm today."] * 5)
Speak = Callable[..., int]


@pytest.fixture
def speak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Speak:
    """Run the command with engines that die as planned."""
    light_engine.replace_engines(monkeypatch)
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()

    def run(*words: str, plan: tuple[dict[str, Any], ...] = (), text: str = SCRIPT) -> int:
        (tmp_path / "home" / light_engine.LIVES).write_text(json.dumps(plan))
        return main(["speak", text, *words])

    return run


def test_a_voice_is_called_by_its_name(tmp_path: Path) -> None:
    place = Home(tmp_path, tmp_path)
    ready = voices.list_ready_voices()[0]
    assert find_voice(ready.name.upper(), None, place) == ready.prompt
    assert find_voice(None, None, place) is None
    (alone := place.root / "alone.wav").write_bytes(b"RIFF")
    assert find_voice(str(alone), None, place, replace(DIA, needs_transcript=False)) == VoicePrompt(str(alone.resolve()), "")
    with pytest.raises(Trouble):
        find_voice(str(alone), None, place)
    assert find_voice(str(alone), "Hello.", place) == VoicePrompt(str(alone.resolve()), "Hello.")
    for name, words in (("nobody", None), (None, "Hello.")):
        with pytest.raises(Trouble) as told:
            find_voice(name, words, place)
        assert ready.name in str(told.value.sentence)


GIVEN_UP: tuple[dict[str, Any], ...] = ({"parts": 2}, {"dies": "loading"}, {"dies": "loading"})


@pytest.mark.slow
def test_a_command_that_is_given_up_writes_what_is_finished_and_goes_on(
    speak: Speak, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.wav"
    assert speak("-o", str(out), plan=GIVEN_UP) == job.INCOMPLETE
    told = capsys.readouterr()
    assert "Finished: 2 of 5. Missing: 3-5." in told.err and "Run the same command again" in told.err
    assert "Traceback" not in told.err and told.out.strip() == str(out)
    some_s = soundfile.info(out).duration
    assert some_s > 2 * 0.5
    parts = {part: part.stat().st_mtime_ns for part in (tmp_path / "home").rglob("part-*.wav")}
    assert len(parts) == 2
    assert speak("-o", str(out)) == job.FINISHED
    assert "Resuming the job" in capsys.readouterr().err
    assert {part: part.stat().st_mtime_ns for part in parts} == parts, "a finished part was done again"
    assert len(list((tmp_path / "home").rglob("part-*.wav"))) == 5
    assert speak("-o", str(out)) == job.FINISHED, "what came to its end is not gone on with"
    assert "Resuming the job" not in capsys.readouterr().err
    assert len(list((tmp_path / "home").rglob("part-*.wav"))) == 10


def test_anew_begins_from_the_start(speak: Speak, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert speak(plan=GIVEN_UP) == job.INCOMPLETE
    assert speak("--anew") == job.FINISHED
    assert "Resuming the job" not in capsys.readouterr().err
    assert len(list((tmp_path / "home").rglob("part-*.wav"))) == 2 + 5


def test_a_book_is_read_with_all_its_chapters(tmp_path: Path) -> None:
    book = save_epub(tmp_path / "x.epub", {"a.xhtml": "<h1>One</h1><p>It rained.</p>", "b.xhtml": "<h1>Two</h1><p>It snowed.</p>"}, None)
    assert read_script(None, book) == "One\n\nIt rained.\n\nTwo\n\nIt snowed."
    assert read_script("typed", book) == "typed"
    reading, writing = os.pipe()
    os.write(writing, b"From a pipe.")
    os.close(writing)
    if Path("/dev/fd").is_dir():  # as `-f <(command)` gives it
        assert read_script(None, Path(f"/dev/fd/{reading}")) == "From a pipe."
    os.close(reading)
    with pytest.raises(Trouble, match="cannot be opened"):
        read_script(None, tmp_path / "none.epub")


@pytest.mark.parametrize(
    "given", ["/nowhere", "./no.odt", "..\\no.odt", "~/no.txt", r"C:\no\where.rtf", "/no such/book.txt", "chapters/one.MD", "nowhere.epub"]
)
def test_a_file_that_is_not_there_is_not_spoken_by_its_name(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Trouble, match=rf"^{re.escape(str(Path(given)))} cannot be opened .* Check its name\.$"):
        read_script(given, None)


@pytest.mark.parametrize("words", ["24/7", "and/or", "/", "Hello.", "Read /etc/fstab", "Open notes.txt", "10:30/11:00", "A:B"])
def test_words_with_a_slash_are_a_script(words: str) -> None:
    assert read_script(words, None) == words


PLAY = "Anna: Where were you?\nBen: At home.\nAnna: All night?"


def test_names_that_are_read_aloud_are_told(speak: Speak, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The window offers to make speakers of them; a command only read them aloud."""
    assert speak("-o", str(tmp_path / "out.wav"), text=PLAY) == job.FINISHED
    told = capsys.readouterr()
    assert "Anna, Ben speak here." in told.err and "read aloud" in told.err and "write [Anna] in place of Anna:" in told.err
    assert speak("--json", text=PLAY) == job.FINISHED
    notes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any(each["event"] == "note" and "Anna, Ben speak here." in str(each) for each in notes)
    (tmp_path / "cast.toml").write_text('Anna = ""\nBen = ""\n')
    cast = ["--cast", str(tmp_path / "cast.toml")]
    for more, text in ((["--quiet"], PLAY), (cast, PLAY), ([], PLAY.replace("Anna:", "[Anna]").replace("Ben:", "[Ben]")), ([], SCRIPT)):
        assert speak(*more, text=text) == job.FINISHED
        assert "speak here" not in capsys.readouterr().err


def test_nothing_finished_is_a_code_of_its_own(speak: Speak, capsys: pytest.CaptureFixture[str]) -> None:
    assert speak(plan=({"dies": "loading"},) * DEATHS) == job.FAILED
    assert "same command" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [["speak", "[S1] a"], ["paint", "a"]])
def test_a_place_that_cannot_be_written_is_told_before_anything_is_loaded(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each used to be a stack trace after all the work."""
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "home"))
    file = tmp_path / "file"
    file.write_text("here before")
    nowhere = ["/proc/x.wav"] if Path("/proc").is_dir() else []
    for place in (*nowhere, tmp_path, file / "x.wav", tmp_path / ("x" * 300 + ".wav"), tmp_path / "a\0.wav"):
        assert main([*command, "-o", str(place), *(["--format", "wav"] if command[0] == "speak" else [])]) == job.TROUBLE
        told = capsys.readouterr().err
        assert told.startswith("hearth: ") and str(place).replace("\0", "?") in told and told.count("\n") == 1, told
    assert not (tmp_path / "home").exists(), "nothing was begun"
    assert file.read_text() == "here before" and [each.name for each in tmp_path.iterdir()] == ["file"]


def test_what_a_try_made_is_gone_again(tmp_path: Path) -> None:
    request = PictureRequest("a", batch=3)
    output_file.check_writable(tmp_path / "new" / "newer" / "x.png", request)
    assert not list(tmp_path.iterdir())
    (tmp_path / "x 2.png").mkdir()
    with pytest.raises(Trouble) as told:
        output_file.check_writable(tmp_path / "x.png", request)
    assert told.value.sentence.key == "output.not-writable" and len(list(tmp_path.iterdir())) == 1
    kept = tmp_path / "kept.png"
    kept.write_bytes(b"here before")
    output_file.check_writable(kept, PictureRequest("a"))
    assert kept.read_bytes() == b"here before"


@pytest.mark.skipif(sys.platform == "win32", reason="rights of another kind")
def test_a_place_without_rights_is_told(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o555)
    before = os.geteuid()
    with suppress(PermissionError):
        os.seteuid(65534)  # root may write anywhere
    try:
        for place in (shut / "x.png", shut / "new" / "x.png"):
            with pytest.raises(Trouble) as told:
                output_file.check_writable(place, PictureRequest("a"))
            assert "Permission denied" in str(told.value)
    finally:
        os.seteuid(before)


def test_a_disk_without_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = {"total": 10**9, "free": 2 << 20}
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(**left))
    output_file.check_writable(tmp_path / "x.png", PictureRequest("a"))
    output_file.check_writable(tmp_path / "x.wav", SpeechRequest("[S1] Hello."))
    for request in (PictureRequest("a", batch=16, upscale=4), SpeechRequest(SCRIPT * 200)):
        with pytest.raises(Trouble) as told:
            output_file.check_writable(tmp_path / "new" / "x", request)
        assert told.value.sentence.key == "output.full" and "only 2 MB are free" in str(told.value)
    left["total"] = left["free"] = 0  # a system that does not say
    output_file.check_writable(tmp_path / "x.png", PictureRequest("a", batch=16, upscale=4))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", [Path("/dev/full"), None] if Path("/dev/full").exists() else [None])
def test_a_place_that_fails_late_leaves_the_result_on_the_shelf(
    speak: Speak, place: Path | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk is full at the end, or the path has become a folder."""
    out = place or tmp_path / "out.wav"
    plan = () if place else ({"blocks": str(out)},)
    assert speak("-o", str(out), "--format", "wav", plan=plan) == job.UNWRITTEN
    told = capsys.readouterr()
    (made,) = (tmp_path / "home" / "creations").glob("*.wav")
    why = "No space left on device" if place else "directory"
    assert f"{out} could not be written" in told.err and why in told.err and str(made) in told.err
    assert not told.out and soundfile.info(made).frames and "Traceback" not in told.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    """A named one, and the shell's `-o >(program)`, which is a path of an open file."""
    made = tmp_path / "made.wav"
    made.write_bytes(os.urandom(300_000))
    os.mkfifo(tmp_path / "named.wav")
    reading, writing = os.pipe()
    for path, opened in (
        (tmp_path / "named.wav", lambda: (tmp_path / "named.wav").open("rb")),
        (Path(f"/dev/fd/{writing}"), lambda: os.fdopen(reading, "rb")),
    ):
        output_file.check_writable(path, SpeechRequest("[S1] Hello."))
        with ThreadPoolExecutor() as pool:
            heard = pool.submit(lambda opened=opened: opened().read(300_000))  # type: ignore[misc]
            output_file.write(made, path)
            assert heard.result(20) == made.read_bytes()
    os.close(writing)


@pytest.mark.parametrize("size", ["512", "512x", "x", "a x b", "²x²", "-5x5", "1.5x2"])
def test_what_is_no_size_gets_a_sentence(size: str) -> None:
    with pytest.raises(Trouble, match="is not a size"):
        parse_size(size)


@pytest.mark.parametrize(
    ("words", "times"),
    [
        (("--hires",), 1.5),
        (("--hires", "--upscale", "2"), 2),
        (("--hires", "--upscale", "2.25"), 2.25),
        (("--hires", "--image", __file__, "--mask", __file__), 1),  # where nothing is painted over
        ((), 1),
    ],
)
def test_hires_enlarges_by_itself(words: tuple[str, ...], times: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[PictureRequest]()

    def keep(request: PictureRequest, *_: Any) -> int:
        asked.append(request)
        return job.FINISHED

    monkeypatch.setattr(paint, "run_job", keep)
    assert main(["paint", "a boat", "--home", str(tmp_path / "home"), *words]) == job.FINISHED
    assert [(each.upscale, each.hires) for each in asked] == [(times, bool(words))]


def test_an_enlarger_may_be_named_by_a_path_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word alone is a name of the library's, unless a folder here is called so."""
    asked = list[str]()

    def keep(request: PictureRequest, *_: Any) -> int:
        asked.append(request.enlarger)
        return job.FINISHED

    monkeypatch.setattr(paint, "run_job", keep)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets" / "swin").mkdir(parents=True)
    (tmp_path / "sharp.safetensors").touch()
    for named in ("nets/swin", "nets", "./sharp.safetensors", "sharp.safetensors", "starter"):
        assert main(["paint", "a boat", "--home", str(tmp_path / "home"), "--upscale", "2", "--enlarger", named]) == job.FINISHED
    here = tmp_path.resolve()
    assert asked == [str(here / "nets" / "swin"), str(here / "nets"), str(here / "sharp.safetensors"), "sharp.safetensors", "starter"]


def test_a_home_that_cannot_be_used_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["speak", "[S1] a", "--home", str(tmp_path / "file" / "home")]) == job.TROUBLE
    assert "--home" in capsys.readouterr().err


def test_a_job_that_cannot_have_a_folder_ends_a_command(speak: Speak, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The keeper's thread used to die of it, and the command waited forever."""
    (tmp_path / "home" / "scratch").mkdir()
    (tmp_path / "home" / "scratch" / "jobs").write_text("in the way")
    assert speak() == job.FAILED
    assert "Jobs cannot run" in capsys.readouterr().err


def test_a_picture_is_not_named_what_it_is_not(tmp_path: Path) -> None:
    for name in ("x.jpg", "x.PNG.webp"):
        with pytest.raises(Trouble) as told:
            paint.require_png(tmp_path / name)
        assert told.value.sentence.key == "output.not-png" and ".png" in str(told.value)
    for name in ("x.PNG", "x"):
        paint.require_png(tmp_path / name)


def test_a_link_is_followed_and_a_file_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "made").write_bytes(b"made")
    (tmp_path / "file").write_bytes(b"here before")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    output_file.write(tmp_path / "made", tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"made"
    output_file.write(tmp_path / "made", tmp_path / "new" / "file")
    assert (tmp_path / "new" / "file").read_bytes() == b"made"


def test_the_help_names_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (TOP / "README.md").read_text("utf-8")
    for command in ("speak", "paint"):
        with suppress(SystemExit):
            main([command, "--help"])
        told = capsys.readouterr().out
        for code in (job.FINISHED, job.FAILED, job.TROUBLE, job.INCOMPLETE, job.UNWRITTEN, job.STOPPED):
            assert f"\n  {code} " in told and f"| {code} |" in readme, (command, code)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("paint", "a boat", "--model", "starter-voice"),
            "starter voice is a voice and cannot paint. Installed models that paint: starter-painter.",
        ),
        (
            ("speak", "[S1] Hi.", "--model", "starter-painter"),
            "starter painter paints and cannot speak. Installed models that speak: starter-voice.",
        ),
    ],
)
def test_the_wrong_model_is_a_sentence(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    light_engine.replace_engines(monkeypatch)
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "home"))
    assert main(words) == job.TROUBLE
    assert told.lower() in capsys.readouterr().err.lower()
    assert not list((tmp_path / "home" / "creations").iterdir()), "nothing was begun"


def test_an_unknown_model_is_impossible_as_asked(speak: Speak, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert speak("--model", "dia-9000") == job.TROUBLE
    assert "no model, file or folder named dia-9000" in capsys.readouterr().err
    assert not (tmp_path / "home" / "hearth.sqlite3").exists(), "nothing was started"


@pytest.mark.parametrize(("option", "told"), [(["--words"], "--subtitles"), (["--title", "Mine"], "-o NAME.m4b")])
def test_an_option_without_what_it_is_for_is_told(option: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each was ignored, and the speech made without it."""
    assert main(["speak", "[S1] Hello.", "-o", str(tmp_path / "hello.wav"), "--home", str(tmp_path / "home"), *option]) != 0
    assert told in capsys.readouterr().err and not (tmp_path / "hello.wav").exists()


@pytest.mark.slow
def test_subtitles_are_written_beside_a_result_with_its_words_where_a_recogniser_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a real engine with the starter voice, and a recogniser of random weights."""
    asked = ["speak", "[S1] Good morning. (pause 1s) [S1] Good night.", "--seed", "1", "--home", str(tmp_path / "home")]
    assert main([*asked, "--subtitles", str(tmp_path / "a.txt")]) == job.TROUBLE
    assert "srt" in capsys.readouterr().err
    asked += ["-o", str(tmp_path / "a.mp3"), "--subtitles", str(tmp_path / "words.vtt"), "--words"]
    assert main(asked) == job.TROUBLE
    assert "needs a recogniser" in capsys.readouterr().err and not (tmp_path / "words.vtt").exists()
    complete(save_whisper(place_for(paths.home(tmp_path / "home"), "whisper-tiny-en")))
    assert main(asked) == job.FINISHED
    assert re.search(r"\n<00:00:0\d\.\d{3}>Good <00:00:0\d\.\d{3}>night\.\n", (tmp_path / "words.vtt").read_text() + "\n")
    with closing(Idle(paths.home(tmp_path / "home"))) as keeper:
        write_subtitles(keeper, tmp_path / "a.mp3", tmp_path / "a.vtt", "vtt", words=False)
    head, first, second = (tmp_path / "a.vtt").read_text().strip().split("\n\n")
    assert (
        head == "WEBVTT"
        and first.startswith("00:00:00.000 --> ")
        and first.endswith("\nGood morning.")
        and second.endswith("\nGood night.")
    )


@pytest.mark.parametrize("name", ["Hall", "Mrs. Hall"])
def test_a_cast_names_somebody_of_a_book_by_either_name(name: str) -> None:
    book = Book((Chapter("", "“No,” said Mrs. Hall."), Chapter("", "“Yes,” said Hall.")))
    assert [each.partition(" [")[0] for each in tag_chapters(book, [name])] == [f"[{name}] “No,”", f"[{name}] “Yes,”"]


def test_two_of_a_cast_whose_names_are_alike_are_two() -> None:
    book = Book((Chapter("", "“No,” said Mrs. Hall."), Chapter("", "“Yes,” said Hall.")))
    tagged = tag_chapters(book, ["Hall", "Mrs. Hall"])
    assert [each.partition(" [")[0] for each in tagged] == ["[Mrs. Hall] “No,”", "[Hall] “Yes,”"]


@pytest.mark.skipif(find_spec("av") is None, reason="an extra")
def test_a_book_becomes_an_audiobook_and_what_is_finished_is_not_spoken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import av

    light_engine.replace_engines(monkeypatch)
    pages = {f"{name}.xhtml": f"<p>It rained in {name}.</p>" for name in ("May", "June", "July")}
    book = save_epub(tmp_path / "book.epub", pages, {page: page.removesuffix(".xhtml") for page in pages})
    asked = ["speak", str(book), "-o", str(tmp_path / "book.m4b"), "--home", str(tmp_path / "home")]

    def list_made() -> list[Creation]:
        with closing(Keeper(paths.home(tmp_path / "home"))) as keeper:
            return keeper.shelf.find(Search())

    assert main([*asked, "--title", "A Wet Summer"]) == job.FINISHED
    with av.open(str(tmp_path / "book.m4b")) as opened:
        assert opened.metadata["title"] == "A Wet Summer" and opened.metadata["artist"] == "A. Writer"
        assert [each["metadata"]["title"] for each in opened.chapters()] == ["May", "June", "July"]
    assert "Chapter 2 of 3: June" in capsys.readouterr().err
    made = list_made()
    assert len(made) == 3
    made[1].path.unlink()
    (tmp_path / "book.m4b").unlink()
    assert main(asked) == job.FINISHED
    assert len(list_made()) == 4, "June alone was spoken again"
    with av.open(str(tmp_path / "book.m4b")) as opened:
        assert opened.metadata["title"] == "The Ferry & the Fjord"
    cast = tmp_path / "cast.toml"
    cast.write_text("[Narrator]\npace = 0.9\n[June]\nvolume = 0.5\n[Ana]\npace = 1.2\n", "utf-8")
    said = save_epub(tmp_path / "said.epub", {"a.xhtml": "<p>“Come in,” said June. It rained.</p>", "b.xhtml": "<p>It blew.</p>"}, None)
    asked = ["speak", str(said), "-o", str(tmp_path / "said.m4b"), "--cast", str(cast), "--home", str(tmp_path / "home")]
    assert main(asked) == job.FINISHED and "nobody is called so: Ana" in capsys.readouterr().err
    last, first = list_made()[:2]
    assert "[June] “Come in,” [Narrator] said June." in first.settings["text"] and last.settings["text"] == "[Narrator] It blew."
    assert {each["name"] for each in first.settings["cast"]} == {"Narrator", "June", "Ana"}
    assert first.settings["seed"] == last.settings["seed"], "one narrator speaks all"
    assert main(asked) == job.FINISHED and len(list_made()) == 6, "it is found again"
    assert main(["speak", "[S1] No book.", "-o", str(tmp_path / "x.m4b"), "--home", str(tmp_path / "home")]) == job.TROUBLE
    assert "made of a book" in capsys.readouterr().err
