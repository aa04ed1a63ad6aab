"""hearth open"""

from __future__ import annotations

import argparse
from pathlib import Path

from app.base import paths
from app.base.languages import languages, word_help
from app.base.sentence import say
from app.cli.machine_options import add_common_options, read_pretended
from app.ui.launch import KEY_VARIABLE, PASSWORD_VARIABLE, LaunchOptions, launch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, help=word_help(say("usage.open-port", "by default the first free one from 7860 on")))
    shows = parser.add_mutually_exclusive_group()
    shows.add_argument(
        "--browser",
        action="store_true",
        help=word_help(say("usage.open-browser", "open the page in the browser rather than in a window of its own")),
    )
    shows.add_argument(
        "--no-browser", action="store_true", help=word_help(say("usage.open-no-browser", "open neither a window nor a browser"))
    )
    parser.add_argument("--lang", choices=list(languages()), help=word_help(say("usage.open-lang", "by default the browser's language")))
    parser.add_argument(
        "--share",
        type=float,
        nargs="?",
        const=1.0,
        metavar="HOURS",
        help=word_help(
            say(
                "usage.open-share",
                "share a link with a password, so that others can speak and paint on this computer; by default for one hour",
            )
        ),
    )
    parser.add_argument(
        "--listen",
        metavar="HOST",
        default="127.0.0.1",
        help=word_help(
            say(
                "usage.open-listen",
                "accept connections from the network, with a login; the password is generated, or taken from ${password}; "
                "programs need the key in ${key}",
                password=PASSWORD_VARIABLE,
                key=KEY_VARIABLE,
            )
        ),
    )
    parser.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help=word_help(say("usage.open-certificate", "certificate for HTTPS with --listen, in PEM format")),
    )
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help=word_help(say("usage.open-key", "private key of the certificate, in PEM format"))
    )
    parser.add_argument(
        "--mcp",
        action="store_true",
        help=word_help(say("usage.open-mcp", "let assistants speak and paint through MCP (needs the extra mcp)")),
    )
    add_common_options(parser)


def main(args: argparse.Namespace) -> int:
    return launch(
        LaunchOptions(
            home=paths.home(args.home),
            pretend=read_pretended(args),
            host=args.listen,
            port=args.port,
            browser=not args.no_browser,
            own_window=not args.browser,
            language=args.lang,
            share_hours=args.share,
            certificate=args.certificate,
            key=args.key,
            assistants=args.mcp,
        )
    )
