"""Answer assistants (MCP) with what they can show and play: pictures and sound as such, and facts as JSON without paths of this computer."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import gradio as gr

MEDIA: Final = {".png": ("image", "image/png"), ".wav": ("audio", "audio/wav"), ".flac": ("audio", "audio/flac"), ".mp3": ("audio", "audio/mpeg"),
                ".ogg": ("audio", "audio/ogg"), ".opus": ("audio", "audio/ogg")}  # fmt: skip
PATH: Final = "gradio_api/mcp/"
"""Gradio's server for assistants has this path."""
BYTES_MOST: Final = 8 << 20
"""A longer file is fetched by its link, since an assistant reads all that is in an answer."""


def answer_in_content(window: gr.Blocks) -> None:
    """Have the assistants' server, if it was started, answer so: Gradio by itself writes a dictionary as Python does."""
    server = window.mcp_server_obj
    if server is not None:
        server.postprocess_output_data = list_content  # type: ignore[method-assign]


def list_content(data: Sequence[Any], root_url: str) -> list[Any]:
    return [content for output in data for content in describe(output, root_url)]


def describe(output: Any, root_url: str) -> list[Any]:
    from mcp import types

    if not isinstance(output, Mapping) or "files" not in output:
        return [types.TextContent(type="text", text=json.dumps(output, ensure_ascii=False))]
    told = {name: value for name, value in output.items() if name != "files"}
    told["urls"] = [f"{root_url}/{each}" for each in output.get("urls", ())]
    content: list[Any] = [types.TextContent(type="text", text=json.dumps(told, ensure_ascii=False))]
    for path in map(Path, output["files"]):
        kind, media = MEDIA.get(path.suffix.lower(), ("", ""))
        if not kind or not path.is_file() or path.stat().st_size > BYTES_MOST:
            continue
        text = base64.b64encode(path.read_bytes()).decode()
        if kind == "image":
            content.append(types.ImageContent(type="image", data=text, mimeType=media))
        else:
            content.append(types.AudioContent(type="audio", data=text, mimeType=media))
    return content
