"""hearth open: its options. The window itself stands in app/ui."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.cli.job import common
from app.paths import home
from app.ui.launch import KEY_VARIABLE, PASSWORD_VARIABLE, LaunchOptions, launch


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, help="by default the first free one from 7860")
    parser.add_argument("--no-browser", action="store_true", help="do not open the page")
    parser.add_argument("--lang", choices=("en", "zh"), help="by default what the browser prefers")
    parser.add_argument("--share", type=float, nargs="?", const=1.0, metavar="HOURS", help="let others speak and paint here through a link with a password, for an hour if not said otherwise")  # fmt: skip
    parser.add_argument("--listen", metavar="HOST", default="127.0.0.1", help=f"be reached from the network, with a login; the password is made up, or taken from ${PASSWORD_VARIABLE}; programs need the key in ${KEY_VARIABLE}")  # fmt: skip
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="for https with --listen, in PEM")
    parser.add_argument("--key", type=Path, metavar="FILE", help="the certificate's private key, in PEM")
    parser.add_argument(
        "--mcp", action="store_true", help="let assistants speak and paint here by MCP (needs hearth[mcp])"
    )
    common(parser)


def main(args: argparse.Namespace) -> int:
    return launch(
        LaunchOptions(
            place=home(args.home),
            pretend=args.pretend,
            host=args.listen,
            port=args.port,
            browser=not args.no_browser,
            language=args.lang,
            share_hours=args.share,
            certificate=args.certificate,
            key=args.key,
            assistants=args.mcp,
        )
    )
