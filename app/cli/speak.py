"""hearth speak "[S1] Hello. [S2] Hi." -o hello.wav"""

from __future__ import annotations

import argparse
from pathlib import Path

from app.cli.job import add_job_options, read_text, run_job
from app.engine.jobs.request import FORMATS, SpeechRequest, VoicePrompt
from app.sentence import Trouble, say


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", help="the script; '-' or nothing reads standard input")
    parser.add_argument("-f", "--file", type=Path, help="read the script from this file")
    parser.add_argument("--voice", type=Path, help="a clip of the voice to speak with")
    parser.add_argument("--transcript", help="the exact words of that clip")
    parser.add_argument("--guidance", type=float)
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--top-p", type=float)
    parser.add_argument("--speed", type=float, default=1.0, help="faster or slower, at the same pitch")
    parser.add_argument("--format", choices=FORMATS, help="by default what the output's name says, or wav")
    add_job_options(parser)


def main(args: argparse.Namespace) -> int:
    if (args.voice is None) != (args.transcript is None):
        raise Trouble(
            say("speak.voice-alone", "A voice needs both the clip (--voice) and its exact words (--transcript).")
        )
    voice = VoicePrompt(str(args.voice.resolve()), args.transcript) if args.voice else None
    suffix = args.output.suffix.lstrip(".").lower() if args.output else ""
    return run_job(
        SpeechRequest(
            read_text(args.text, args.file), args.model, voice, args.seed, guidance=args.guidance, temperature=args.temperature,
            top_p=args.top_p, speed=args.speed, format=args.format or suffix or "wav",
        ),
        args,
    )  # fmt: skip
