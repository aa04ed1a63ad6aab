"""hearth speak "[S1] Hello. [S2] Hi." -o hello.wav"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from app.base import paths
from app.base.disk_faults import word_fault
from app.base.languages import word_help
from app.base.path_checks import is_file
from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.cli import output_file
from app.cli.job import (
    FINISHED,
    STDIN,
    UNWRITTEN,
    add_job_options,
    choose_show,
    print_sentence,
    print_written,
    read_settings,
    read_text,
    run_job,
    run_jobs,
    write_result,
)
from app.engine.jobs.events import Note
from app.engine.jobs.request import FORMATS, Actor, SpeechRequest, VoicePrompt
from app.engine.jobs.settings import SEED_LIMIT, SPEECH
from app.engine.keeper.keeper import Keeper
from app.engine.kinds import KINDS
from app.engine.models import catalog
from app.engine.models.on_disk import find_limits
from app.engine.models.voice_limits import DIA, VoiceLimits
from app.engine.speech.book.book import TITLE_MOST, Book
from app.engine.speech.book.read_book import read_book
from app.engine.speech.sound.audiobook import Labels, Spoken, write_audiobook
from app.engine.speech.sound.stream_encoding import require_available
from app.engine.speech.text import cast_table, named_speakers, subtitles
from app.engine.speech.text.cast_script import parse_request
from app.engine.speech.text.cast_tags import NARRATOR, find_tags
from app.engine.speech.text.likely_language import choose_language
from app.engine.speech.text.pronunciations import Rows, keep_used, read_csv_file
from app.engine.speech.text.said_by import count_quotes, tag_chapter
from app.engine.speech.text.script import require_no_fault
from app.engine.speech.text.voices import find_named, list_offered_voices
from app.engine.speech.text.written_out import say_out
from app.ui.state.hearing_desk import HearingDesk, name_store, require_recogniser

BOOKS: Final = (".epub", ".docx", ".pdf", ".md", ".markdown", ".txt", ".srt", ".vtt")
_BEGINS: Final = re.compile(r"(?:~|\.{0,2}|[A-Za-z]:)[/\\]\S")
"""A path begins so; "24/7" and "and/or" are words."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text",
        nargs="?",
        help=word_help(say("usage.speak-text", "the script, or the file of a book; '-' or none reads it from standard input")),
    )
    parser.add_argument(
        "-f",
        "--file",
        type=Path,
        help=word_help(
            say("usage.speak-file", "read the script from this file: a text, a Markdown file, subtitles, an EPUB, a DOCX or a PDF")
        ),
    )
    parser.add_argument(
        "--voice", help=word_help(say("usage.speak-voice", "the name of a ready or saved voice, or a recording of the voice to speak with"))
    )
    parser.add_argument("--transcript", help=word_help(say("usage.speak-transcript", "the exact words of the recording")))
    parser.add_argument(
        "--cast",
        type=Path,
        metavar="FILE",
        help=word_help(say("usage.speak-cast", "a TOML file with the voice of each name in the script (docs/cast.md)")),
    )
    parser.add_argument(
        "--pronunciations",
        type=Path,
        metavar="FILE",
        help=word_help(
            say("usage.speak-pronunciations", "a CSV file of words and how each is spelt to be spoken, beside those of the window")
        ),
    )
    parser.add_argument(
        "--subtitles",
        type=Path,
        metavar="FILE",
        help=word_help(say("usage.speak-subtitles", "write when each sentence is said to this .srt or .vtt")),
    )
    parser.add_argument(
        "--title", help=word_help(say("usage.speak-title", "the title of an audiobook, -o NAME.m4b; without it, the book's own"))
    )
    parser.add_argument(
        "--words",
        action="store_true",
        help=word_help(say("usage.speak-words", "with --subtitles: say when each word is said, too; needs a recogniser")),
    )
    parser.add_argument(
        "--show-text",
        action="store_true",
        help=word_help(say("usage.speak-show-text", "print the script in the words that would be spoken, and speak nothing")),
    )
    add_job_options(parser, SPEECH)


def main(args: argparse.Namespace) -> int:
    home = paths.home(args.home)
    _refuse_unused(args)
    voice = find_voice(args.voice, args.transcript, home, find_limits(home, args.model) if args.voice else DIA)
    suffix = args.output.suffix.lstrip(".").lower() if args.output else ""
    if suffix == "aac":
        require_available("aac")
    asked: dict[str, Any] = {"format": "flac" if suffix == "aac" else suffix or "wav"} | read_settings(args, SPEECH)
    asked["cast"] = read_cast(args.cast, args.model, home)
    listed = tuple(read_csv_file(args.pronunciations).items()) if args.pronunciations is not None else ()
    if args.show_text:
        script = read_script(args.text, args.file)
        return show_text(home, SpeechRequest(script, args.model, voice, **asked, pronunciations=keep_used(script, listed)), args.json)
    if suffix == "m4b":
        return speak_book(args, voice, asked["cast"], listed)
    script = read_script(args.text, args.file)
    request = SpeechRequest(script, args.model, voice, **asked, pronunciations=keep_used(script, listed))
    for sentence in word_unvoiced(home, request):
        choose_show(args)(Note(sentence))
    if args.subtitles is None:
        return run_job(request, args)
    wanted = next((each for each in subtitles.FORMATS if args.subtitles.suffix.lower() == f".{each}"), None)
    if wanted is None:
        raise Trouble(say("speak.subtitles", "{path} is no name of subtitles. End it with .srt or .vtt.", path=str(args.subtitles)))
    output_file.check_writable(args.subtitles, request)
    language = choose_language(script, find_limits(home, args.model).languages)
    if args.words:
        require_recogniser(home, [language])  # before an hour of speech, not after it
    return run_job(request, args, lambda keeper, file: write_subtitles(keeper, file, args.subtitles, wanted, args.words, language))


def word_unvoiced(home: Home, request: SpeechRequest) -> list[Sentence]:
    """Say who speaks in a script, as a play has it, and is no speaker of it; the window offers tags for them."""
    known = {each.name.casefold() for each in parse_request(request, lambda model: find_limits(home, model)).actors}
    names = [name for name in dict.fromkeys(each.name for each in named_speakers.find_named(request.text)) if name.casefold() not in known]
    if not names:
        return []
    cure = say(
        "speak.named", "To give each a voice, write [{first}] in place of {first}:, or name their voices with --cast.", first=names[0]
    )
    return [*named_speakers.word_named(names, find_limits(home, request.model)), cure]


def show_text(home: Home, request: SpeechRequest, as_json: bool) -> int:
    """Print each turn as its voice is given it: numbers, dates and abbreviations in words, and what is said differently."""
    parsed = require_no_fault(parse_request(KINDS["speech"].complete(home, request), lambda model: find_limits(home, model)))
    for part in parsed.parts:
        language = find_limits(home, part.model or request.model).figures
        for turn in part.turns:
            said = say_out(turn.text, language) if language else turn.text
            name = turn.name or f"S{turn.speaker}"
            print(json.dumps({"event": "text", "speaker": name, "text": said}) if as_json else f"[{name}] {said}")
    return FINISHED


def _refuse_unused(args: argparse.Namespace) -> None:
    """Raise a Trouble for an option without what it is for."""
    if args.words and args.subtitles is None:
        raise Trouble(say("speak.words-alone", "--words is for subtitles. Name their file with --subtitles, or leave it out."))
    if args.show_text and (args.output is not None or args.subtitles is not None):
        raise Trouble(
            say("speak.show-alone", "--show-text speaks nothing, so that there is nothing to write to a file. Leave out the file.")
        )
    if args.text not in (None, "-") and args.file is not None:
        raise Trouble(say("speak.text-and-file", "There is a script and a file of one. Give either the text or --file."))
    ending = args.output.suffix.lstrip(".").lower() if args.output else ""
    if ending and ending not in (endings := (*FORMATS, "aac", "m4b")):
        raise Trouble(
            say(
                "output.not-sound",
                "Hearth saves speech as {endings}; {path} has another ending. Use {example}.",
                endings=endings,
                path=str(args.output),
                example=str(args.output.with_name(args.output.name.partition(".")[0] + ".wav")),
            )
        )
    if args.format and ending and ending != args.format:
        raise Trouble(
            say(
                "speak.two-formats",
                "-o {path} and --format {format} name two formats. Leave one out.",
                path=str(args.output),
                format=args.format,
            )
        )
    if args.subtitles is not None and ending == "m4b":
        raise Trouble(
            say(
                "speak.book-subtitles",
                "Subtitles cannot be written beside an audiobook. Leave out --subtitles, or save the book as one sound: -o {example}.",
                example=str(args.output.with_suffix(".mp3")),
            )
        )
    if args.title and (args.output is None or args.output.suffix.lower() != ".m4b"):
        raise Trouble(say("speak.title-alone", "--title is for an audiobook. Name it -o NAME.m4b, or leave it out."))


def read_cast(file: Path | None, model: str, home: Home) -> tuple[Actor, ...]:
    if file is None:
        return ()
    table = cast_table.read_file(file)
    return cast_table.read_table(
        table, model, lambda name: catalog.find(name).id, lambda id_: list_offered_voices(home, find_limits(home, id_)), file.parent
    )


def write_subtitles(keeper: Keeper, file: Path, path: Path, wanted: subtitles.Format, words: bool, language: str = "") -> None:
    """Write when each sentence of a result is said, or each word."""
    with tempfile.TemporaryDirectory(prefix="hearth-") as folder:
        made = Path(folder, path.name)
        cues = HearingDesk(keeper).place_words(file, name_store(made), language) if words else subtitles.read_cues(file)
        made.write_text(subtitles.write(cues, wanted), "utf-8")
        write_result(made, path)


def read_script(given: str | None, file: Path | None) -> str:
    """Return the text given, or that of the file, a book's with all its chapters, or standard input."""
    if (path := find_book(given, file)) is None:
        return read_text(given, None)
    return "\n\n".join(chapter.script for chapter in open_book(path).chapters)


def find_book(given: str | None, file: Path | None) -> Path | None:
    """Return the file to read: the one that is named as such, or a book named in place of a script. What looks like a path in two
    ways of three is no script, whether there is such a file or not."""
    if given is None or given == "-":
        return None if file == STDIN else file
    begins, is_one, ends = _BEGINS.match(given) is not None, given.split() == [given], given.lower().endswith(BOOKS)
    return Path(given) if begins + is_one + ends > 1 or (ends and is_file(Path(given))) else None


def open_book(path: Path) -> Book:
    try:
        book = read_book(BytesIO(path.read_bytes()), path.name)  # a pipe is a file, too
    except OSError as fault:
        raise Trouble(
            say("speak.file", "{file} cannot be opened ({fault}). Check its name.", file=str(path), fault=word_fault(fault))
        ) from fault
    if book.note is not None:
        print_sentence(book.note)
    return book


def speak_book(args: argparse.Namespace, voice: VoicePrompt | None, cast: tuple[Actor, ...], listed: Rows = ()) -> int:
    """Speak a book's chapters one after another, and join them to an audiobook. Those that the same command finished before are taken over."""
    require_available("aac")
    path = find_book(args.text, args.file)
    if path is None:
        raise Trouble(say("speak.no-book", "An audiobook is made of a book. Name its file, such as book.epub."))
    book, settings = open_book(path), {"format": "flac", "cast": cast} | read_settings(args, SPEECH)
    if settings.get("seed") is None:  # the same one each time, so that what was finished is found again
        settings["seed"] = zlib.crc32("\n".join(each.text for each in book.chapters).encode()) % SEED_LIMIT
    names = [each.name for each in cast]
    scripts = tag_chapters(book, names) if names else [each.script for each in book.chapters]
    if unused := set(names) - {NARRATOR} - {tag.name for script in scripts for tag in find_tags(script, names)}:
        print_sentence(
            say(
                "speak.cast-unused",
                "In this book nobody is called so: {names}. These rows of the cast are not used.",
                names=tuple(sorted(unused)),
            )
        )
    requests = [SpeechRequest(script, args.model, voice, **settings, pronunciations=keep_used(script, listed)) for script in scripts]
    files, code = run_jobs(requests, args, [each.title or each.text[:TITLE_MOST] for each in book.chapters])
    if code != FINISHED:
        return code
    chapters = [
        Spoken(each.title or each.text.partition("\n")[0][:TITLE_MOST], file) for each, file in zip(book.chapters, files, strict=True)
    ]
    credit = catalog.list_credits({"model": args.model, "cast": [asdict(each) for each in cast]})
    with tempfile.TemporaryDirectory(prefix="hearth-") as folder:
        write_audiobook(chapters, Labels(args.title or book.title or path.stem, book.author, credit, book.cover), Path(folder, "book.m4b"))
        written = write_result(Path(folder, "book.m4b"), args.output)
    print_written([written] if written is not None else [], args)
    return FINISHED if written is not None else UNWRITTEN


def tag_chapters(book: Book, names: Sequence[str]) -> list[str]:
    """Return a book's chapters with the tags of these names; whoever is called otherwise there, as "Okonkwo" for "Dr. Okonkwo", is the one of the cast,
    but for names that both stand in it."""
    speakers, same = count_quotes(each.text for each in book.chapters)
    own = {same.get(name, name): name for name in names if same.get(name, name) not in names}
    same = own | {short: own.get(full, full) for short, full in same.items() if short not in names}
    return [tag_chapter(each.script, names, same, speakers) for each in book.chapters]


def find_voice(given: str | None, transcript: str | None, home: Home, limits: VoiceLimits = DIA) -> VoicePrompt | None:
    """Return the recording with its words, or without words the voice of that name; a recording alone where the model needs no words."""
    if given is None and transcript is None:
        return None
    if given is not None and transcript is not None:
        if not is_file(Path(given)):
            raise Trouble(say("speak.no-recording", "There is no recording at {path}. Check its name.", path=given))
        return VoicePrompt(str(Path(given).resolve()), transcript)
    known = list_offered_voices(home, limits)
    if given is not None and (found := find_named(given, known)) is not None:
        return found.prompt
    if given is not None and not limits.needs_transcript and is_file(Path(given)):
        return VoicePrompt(str(Path(given).resolve()), "")
    raise Trouble(
        say(
            "speak.voice-alone",
            "--voice takes the name of a voice ({names}), or a recording together with --transcript, its exact words.",
            names=tuple(each.name for each in known),
        )
    )
