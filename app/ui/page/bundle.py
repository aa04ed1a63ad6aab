"""Bundle the page's scripts and its styles into one file each: a request costs more than the bytes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

from app.base.languages import languages
from app.base.palette import PALETTE

STATIC: Final = Path(__file__).parent / "static"
FOLDERS: Final = {".js": STATIC / "js", ".css": STATIC / "css"}
FIRST: Final = STATIC / "early.js"
"""This script stands in the page itself, as it must run before anything is drawn."""
STYLES_FIRST: Final = ("hearth", "gradio", "rooms")
"""These styles come first, as the others override them."""
IMPORT: Final = re.compile(r'^import (?:\{ (.+?) \} from )?"\./(\w+)\.js";\n', re.MULTILINE)
EXPORT: Final = re.compile(r"^export (?=(?:const|class|(?:async )?function) (\w+))", re.MULTILINE)
SCRIPT_SENTENCE: Final = re.compile(r"""\bt\(\s*"([^"]+)",\s*"((?:[^"\\]|\\.)*)\"""")


@dataclass(frozen=True, slots=True)
class Bundle:
    name: str
    """It holds a hash of the content, so that browsers may cache it forever."""
    content: bytes


@cache
def bundle(suffix: str) -> Bundle:
    """Join all scripts, or all styles, one after the other."""
    sources = {file.stem: file.read_text("utf-8") for file in sorted(FOLDERS[suffix].glob(f"*{suffix}"))}
    joined = _join_modules(sources) if suffix == ".js" else "\n".join({name: sources[name] for name in (*STYLES_FIRST, *sources)}.values())
    content = joined.encode()
    return Bundle(f"all-{hashlib.sha256(content).hexdigest()[:12]}{suffix}", content)


def _join_modules(sources: Mapping[str, str]) -> str:
    """Make one module of many, each after those that it imports: a function each, which returns what it exports."""
    needed = {name: [module for _, module in IMPORT.findall(source)] for name, source in sources.items()}
    return "".join(_enclose(name, sources[name]) for name in TopologicalSorter(needed).static_order())


def _enclose(name: str, source: str) -> str:
    body = EXPORT.sub("", IMPORT.sub(lambda found: f"const {{ {found[1]} }} = ${found[2]};\n" if found[1] else "", source))
    return f"const ${name} = (() => {{\n{body}return {{ {', '.join(EXPORT.findall(source))} }};\n}})();\n"


def head(variables: str) -> str:
    """Return what goes to the top of the page's head, before Gradio's own: of two manifests browsers take the first."""
    tags = json.dumps({code: each.tags[0] for code, each in languages().items()})
    return (
        '<title>Hearth</title><link rel="manifest" href="hearth/manifest" crossorigin="use-credentials">'
        '<link rel="apple-touch-icon" href="hearth/static/icon-180.png">'
        f'<meta name="theme-color" media="(prefers-color-scheme: light)" content="{PALETTE["ground"][0]}">'
        f'<meta name="theme-color" media="(prefers-color-scheme: dark)" content="{PALETTE["ground"][1]}">'
        f'<style>{variables}</style><link rel="stylesheet" href="hearth/static/{bundle(".css").name}">'
        f"<script data-languages='{tags}'>{FIRST.read_text('utf-8')}</script>"
        f'<script type="module" src="hearth/static/{bundle(".js").name}"></script>'
    )


def list_script_sentences() -> dict[str, str]:
    """Collect every t("key", "English") of the scripts."""
    scripts = (file.read_text("utf-8") for file in sorted(STATIC.rglob("*.js")))
    return {key: english for source in scripts for key, english in SCRIPT_SENTENCE.findall(source)}
