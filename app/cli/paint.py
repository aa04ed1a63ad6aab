"""hearth paint "a lighthouse at dusk" -o dusk.png"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Final

from app.base import paths
from app.base.languages import word_help
from app.base.path_checks import find_path
from app.base.sentence import say
from app.base.trouble import Trouble
from app.cli.job import add_job_options, read_settings, read_text, run_job
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.jobs.settings import HIRES_TIMES, PICTURES
from app.engine.models.model import ModelSettings
from app.engine.models.on_disk import find_model

ENDINGS: Final = ("", ".png")
NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("control", "guide_as", "guide_strength", "guide_from", "guide_to"), ("guide",)),
    **dict.fromkeys(("adapter", "reference_strength"), ("reference",)),
    **dict.fromkeys(("masked_only", "masked_padding", "mask_blur"), ("mask",)),
    "strength": ("image",), "hires_strength": ("hires",), "enlarger": ("upscale", "hires"),
}  # fmt: skip
"""Each of these options does nothing without one of those."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "prompt", nargs="?", help=word_help(say("usage.paint-prompt", "what the picture shows; '-' or none reads it from standard input"))
    )
    parser.add_argument("-f", "--file", type=Path, help=word_help(say("usage.paint-file", "read the prompt from this file")))
    parser.add_argument("--negative", default="", help=word_help(say("usage.paint-negative", "what the picture should not show")))
    parser.add_argument("--size", metavar="WIDTHxHEIGHT", help=word_help(say("usage.paint-size", "in pixels, such as 512x768")))
    parser.add_argument("--image", type=Path, help=word_help(say("usage.paint-image", "the picture to start from")))
    parser.add_argument(
        "--mask", type=Path, help=word_help(say("usage.paint-mask", "a picture that is white where the start picture is repainted"))
    )
    parser.add_argument(
        "--guide", type=Path, help=word_help(say("usage.paint-guide", "a picture that guides where things are, by the model of --control"))
    )
    parser.add_argument(
        "--reference",
        type=Path,
        help=word_help(say("usage.paint-reference", "a picture that it is painted like, by the IP-Adapter of --adapter")),
    )
    parser.add_argument(
        "--lora",
        action="append",
        default=[],
        metavar="LORA[:WEIGHT]",
        help=word_help(say("usage.paint-lora", "a LoRA: its file, or its name in the library; may be given several times")),
    )
    add_job_options(parser, PICTURES)


def main(args: argparse.Namespace) -> int:
    refuse_unused(args)
    width, height = parse_size(args.size)
    if args.control is not None:
        args.control = find_whole_path(args.control)
    if args.adapter is not None:
        args.adapter = find_whole_path(args.adapter)
    if args.enlarger and (PurePath(args.enlarger).name != args.enlarger or Path(args.enlarger).is_dir()):
        args.enlarger = find_whole_path(args.enlarger)
    if args.prompt not in (None, "-") and args.file is not None:
        raise Trouble(say("paint.prompt-and-file", "There is a prompt and a file of one. Give either the prompt or --file."))
    request = PictureRequest(
        read_text(args.prompt, args.file).strip(),
        args.model,
        args.negative,
        width,
        height,
        image=resolve(args.image),
        mask=resolve(args.mask),
        guide=resolve(args.guide),
        reference=resolve(args.reference),
        loras=tuple(map(parse_lora, args.lora)),
        **({"upscale": HIRES_TIMES} if args.hires and not args.mask else {}) | read_settings(args, PICTURES),
    )
    if args.output is not None:
        require_png(args.output)
    require_size(request, find_model(paths.home(args.home), request).settings)
    return run_job(request, args)


def refuse_unused(args: argparse.Namespace) -> None:
    """Raise a Trouble for an option without what it is for."""
    given = vars(args) | {"upscale": (args.upscale or 1) > 1}
    for option, needed in NEEDS.items():
        if given[option] is not None and not any(given[each] for each in needed):
            raise Trouble(
                say(
                    "paint.option-alone",
                    "{option} does nothing without {needed}. Give {needed} too, or leave {option} out.",
                    option=_name_option(option),
                    needed=_name_option(needed[0]),
                )
            )


def _name_option(name: str) -> str:
    return "--" + name.replace("_", "-")


def require_size(request: PictureRequest, settings: ModelSettings) -> None:
    """Raise a Trouble for a size other than the only one that a model paints."""
    own = settings.width, settings.height
    if settings.least == settings.most and (request.width or own[0], request.height or own[1]) != own:
        raise Trouble(
            say(
                "paint.only-size",
                "This model paints {width} x {height} only. Leave out --size; --upscale 2 or 4 makes the picture larger.",
                width=own[0],
                height=own[1],
            )
        )


def require_png(output: Path) -> None:
    if output.suffix.lower() not in ENDINGS:
        raise Trouble(
            say(
                "output.not-png",
                "Hearth saves pictures as PNG, with their settings inside; {path} has another ending. Use {example}.",
                path=str(output),
                example=str(output.with_suffix(".png")),
            )
        )


def resolve(path: Path | None) -> str | None:
    return str(path.resolve()) if path is not None else None


def parse_size(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise Trouble(say("paint.bad-size", '"{size}" is not a size. Write width and height like 512x768.', size=text))
    return int(width), int(height)


def parse_lora(text: str) -> Lora:
    """Parse a file or a name of the library, with a weight behind a colon."""
    named, colon, weight = text.rpartition(":")
    try:
        return Lora(find_whole_path(named), float(weight)) if colon else Lora(find_whole_path(text))
    except ValueError:
        return Lora(find_whole_path(text))


def find_whole_path(named: str) -> str:
    """Return the whole path of a file or folder that is there; any other word as it is, which may be a name of the library's."""
    return str(find_path(named) or named)
