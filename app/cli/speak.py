"""hearth speak "[S1] Hello. [S2] Hi." -o hello.wav"""

from __future__ import annotations

import argparse
from pathlib import Path

from app.cli.job import add_job_options, read_text, run_job
from app.engine.jobs.request import FORMATS, SpeechRequest, VoicePrompt
from app.sentence import Trouble, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", help="the script; '-' or none reads it from standard input")
    parser.add_argument("-f", "--file", type=Path, help="read the script from this file")
    parser.add_argument("--voice", type=Path, help="a recording of the voice to speak with")
    parser.add_argument("--transcript", help="the exact words of the recording")
    parser.add_argument("--guidance", type=float, help="how closely the speech follows the script")
    parser.add_argument("--temperature", type=float, help="how varied the speech is")
    parser.add_argument("--top-p", type=float, help="how unlikely a sound may be chosen, 0 to 1")
    parser.add_argument("--speed", type=float, default=1.0, help="speaking speed at the same pitch; 1.0 is normal")
    parser.add_argument("--format", choices=FORMATS, help="by default taken from the output's name, else wav")
    add_job_options(parser)


def main(args: argparse.Namespace) -> int:
    if (args.voice is None) != (args.transcript is None):
        raise Trouble(say("speak.voice-alone", "--voice and --transcript go together: give the recording and its exact words."))
    voice = VoicePrompt(str(args.voice.resolve()), args.transcript) if args.voice else None
    suffix = args.output.suffix.lstrip(".").lower() if args.output else ""
    return run_job(
        SpeechRequest(
            read_text(args.text, args.file), args.model, voice, args.seed, guidance=args.guidance, temperature=args.temperature,
            top_p=args.top_p, speed=args.speed, format=args.format or suffix or "wav",
        ),
        args,
    )  # fmt: skip
