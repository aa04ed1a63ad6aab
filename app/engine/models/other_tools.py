"""Where other programs keep picture models on this computer: their usual places by home and environment alone, then what of it is there.

Reads a program's own settings that name further folders. Writes nothing there, and opens no weights: found_files.py lists them."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from app.base.bounded_json import parse_json, read_json
from app.base.path_checks import is_file, size_bytes
from app.base.regular_file import open_regular

Role = Literal["model", "lora", "part", "embedding", "control", "adapter", "enlarger"]
"""A program keeps this in a folder; a part is a VAE or a text encoder, a control a ControlNet, an adapter an IP-Adapter."""
Layout = Mapping[str, Role]
"""It maps folders below a program's own, with `/`."""

_COMFY: Final[Layout] = {
    "models/checkpoints": "model", "models/diffusion_models": "model", "models/unet": "model", "models/diffusers": "model",
    "models/loras": "lora", "models/vae": "part", "models/text_encoders": "part", "models/clip": "part", "models/embeddings": "embedding",
    "models/controlnet": "control", "models/model_patches": "control", "models/ipadapter": "adapter", "models/upscale_models": "enlarger",
}  # fmt: skip
_A1111: Final[Layout] = {
    "models/Stable-diffusion": "model", "models/Lora": "lora", "models/LyCORIS": "lora", "models/VAE": "part",
    "models/text_encoder": "part", "embeddings": "embedding", "models/ControlNet": "control", "extensions/sd-webui-controlnet/models": "control",
    "models/ESRGAN": "enlarger", "models/RealESRGAN": "enlarger",
}  # fmt: skip
LAYOUTS: Final[Mapping[str, Layout]] = {
    "ComfyUI": _COMFY,
    "AUTOMATIC1111": _A1111,
    "Forge": _A1111,
    "SD.Next": {
        "models/Stable-diffusion": "model", "models/Diffusers": "model", "models/UNET": "model", "models/Lora": "lora",
        "models/VAE": "part", "models/Text-encoder": "part", "models/embeddings": "embedding", "models/control/controlnet": "control",
        "models/ESRGAN": "enlarger", "models/RealESRGAN": "enlarger",
    },
    "Stability Matrix": {
        "Models/StableDiffusion": "model", "Models/DiffusionModels": "model", "Models/Unet": "model", "Models/Diffusers": "model",
        "Models/Lora": "lora", "Models/LyCORIS": "lora", "Models/VAE": "part", "Models/TextEncoders": "part", "Models/CLIP": "part",
        "Models/Embeddings": "embedding", "Models/ControlNet": "control", "Models/ESRGAN": "enlarger", "Models/RealESRGAN": "enlarger",
    },
    "SwarmUI": {
        "Models/Stable-Diffusion": "model", "Models/diffusion_models": "model", "Models/unet": "model", "Models/Lora": "lora",
        "Models/VAE": "part", "Models/clip": "part", "Models/text_encoders": "part", "Models/Embeddings": "embedding", "Models/controlnet": "control",
        "Models/upscale_models": "enlarger",
    },
    "Fooocus": {
        "models/checkpoints": "model", "models/loras": "lora", "models/vae": "part", "models/embeddings": "embedding", "models/controlnet": "control",
        "models/upscale_models": "enlarger",
    },
    "InvokeAI": {},
    "Draw Things": {".": "model"},
    "Hugging Face": {},
}  # fmt: skip
"""InvokeAI's folders have no meaning, its database has; the hub's cache has a folder for each repository."""
_CLONED: Final = {
    "ComfyUI": ("ComfyUI", "comfyui", "ComfyUI_windows_portable/ComfyUI", "ComfyUI_windows_portable_nvidia/ComfyUI_windows_portable/ComfyUI"),
    "AUTOMATIC1111": ("stable-diffusion-webui", "sd.webui/webui"),
    "Forge": (
        "stable-diffusion-webui-forge", "sd-webui-forge-neo", "stable-diffusion-webui-reForge", "webui_forge_cu121_torch231/webui", "webui_forge/webui",
    ),
    "SD.Next": ("automatic", "sdnext"),
    "Stability Matrix": (
        "StabilityMatrix", "StabilityMatrix/Data", "StabilityMatrix-win-x64/Data", "StabilityMatrix-linux-x64/Data", "StabilityMatrix-macos-arm64/Data",
    ),
    "SwarmUI": ("SwarmUI", "StableSwarmUI"),
    "Fooocus": ("Fooocus", "Fooocus_win64_2-5-0/Fooocus"),
    "InvokeAI": ("invokeai", "InvokeAI"),
}  # fmt: skip
"""People have these programs under these names."""
_BASES: Final = ("", "Documents", "Desktop", "Downloads", "AI", "ai", "git", "src", "Projects", "projects", "Apps", "apps", "Programs")
"""People put them here in a home."""
_DRIVES: Final = ("C:/", "D:/", "E:/")
SETTINGS_MOST_BYTES: Final = 64 << 10
"""Another program's settings may have so many bytes."""
DATABASE_MOST_BYTES: Final = 256 << 20
ROWS_MOST: Final = 20_000
REVISIONS_MOST: Final = 50
"""So many revisions of one repository are looked at."""
_STEPS_MOST: Final = 50
"""A query ends after so many times 100,000 of SQLite's steps: a database may hold a view that never ends."""
_INVOKE_ROLES: Final[Mapping[object, Role]] = {
    "main": "model", "lora": "lora", "vae": "part", "t5_encoder": "part", "clip_embed": "part", "qwen3_encoder": "part", "embedding": "embedding",
    "controlnet": "control", "spandrel_image_to_image": "enlarger",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that is there."""

    name: str
    root: Path
    folders: tuple[tuple[Role, Path], ...]
    named: tuple[tuple[Role, Path, str], ...] = ()
    """Its own list names these single models, with their titles."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look, in the order of the tools' table; nothing of it has to be there."""

    roots: tuple[tuple[str, Path], ...]
    settings: tuple[tuple[str, Path], ...] = ()
    """These files name the root of a program."""
    hub: Path | None = None


def list_places(system: str, home: Path, environment: Mapping[str, str]) -> Places:
    """List the usual places by `sys.platform`'s name for the system; touches no disk."""
    bases = [home / each for each in _BASES]
    if system == "win32":
        bases += [Path(drive) / each for drive in _DRIVES for each in ("", "AI")]
        kept = [Path(environment.get("APPDATA") or home / "AppData/Roaming")]
    elif system == "darwin":
        kept = [home / "Library/Application Support", home / ".config"]
    else:
        bases.append(Path("/opt"))
        kept = [Path(environment.get("XDG_CONFIG_HOME") or home / ".config")]
    roots = [(tool, base / name) for tool, names in _CLONED.items() for base in bases for name in names]
    if environment.get("INVOKEAI_ROOT"):
        roots.insert(0, ("InvokeAI", Path(environment["INVOKEAI_ROOT"])))
    if system == "darwin":
        roots.append(("Draw Things", home / "Library/Containers/com.liuliu.draw-things/Data/Documents/Models"))
    hub = environment.get("HF_HUB_CACHE") or Path(environment.get("HF_HOME") or home / ".cache/huggingface") / "hub"
    settings = [("ComfyUI", each / "ComfyUI/extra_models_config.yaml") for each in kept]
    settings += [("Stability Matrix", each / "StabilityMatrix/library.json") for each in kept]
    return Places(tuple(roots), tuple(settings), Path(hub))


def find_tools(places: Places | None = None) -> tuple[Tool, ...]:
    """Find the programs that are there, each root once."""
    places = places or list_places(sys.platform, Path.home(), os.environ)
    roots = [*places.roots, *((tool, root) for tool, file in places.settings for root in _read_roots(tool, file))]
    found: dict[Path, Tool] = {}
    for name, root in roots:
        if (own := _resolve(root)) is not None and own not in found and (tool := _look_at(name, own)) is not None:
            found[own] = tool
    for file in (each for name, each in places.settings if name == "ComfyUI"):
        known = {folder for tool in found.values() for _, folder in tool.folders}
        if further := tuple(each for each in _read_extra_paths(file) if each[1] not in known):
            found.setdefault(file.parent, Tool("ComfyUI", file.parent, further))
    if places.hub is not None and (models := _list_snapshots(places.hub)):
        found[places.hub] = Tool("Hugging Face", places.hub, (), tuple(models))
    order = list(LAYOUTS)
    return tuple(sorted(found.values(), key=lambda each: order.index(each.name)))


def _resolve(path: Path) -> Path | None:
    try:
        return path.resolve() if path.is_dir() else None
    except (OSError, ValueError, RuntimeError):  # a name that is not allowed, links in a circle
        return None


def _look_at(name: str, root: Path) -> Tool | None:
    named = tuple(_read_invoke(root)) if name == "InvokeAI" else ()
    folders = [(role, folder) for each, role in LAYOUTS[name].items() if (folder := _resolve(root / each)) is not None]
    if name == "ComfyUI":
        folders += _read_extra_paths(root / "extra_model_paths.yaml")
    unique = {folder: (role, folder) for role, folder in reversed(folders)}
    return Tool(name, root, tuple(reversed(unique.values())), named) if folders or named else None


def _read_roots(tool: str, file: Path) -> Iterator[Path]:
    """Yield the roots that a program's own settings name."""
    if tool == "Stability Matrix":
        with suppress(OSError, ValueError):
            kept = read_json(file)
            for key, value in kept.items() if isinstance(kept, dict) else ():
                if key.lower() == "librarypath" and isinstance(value, str):
                    yield Path(value)
    elif tool == "ComfyUI":
        yield from (Path(section["base_path"]) for section in _read_sections(file).values() if section.get("base_path"))


def _read_extra_paths(file: Path) -> list[tuple[Role, Path]]:
    """Return the folders that ComfyUI's extra_model_paths.yaml names and that are there."""
    roles = {each.rpartition("/")[2]: role for each, role in _COMFY.items()}
    found = []
    for section in _read_sections(file).values():
        base = Path(file.parent, os.path.expandvars(section.get("base_path", "")))
        with suppress(RuntimeError):  # ~ of an unknown user
            base = base.expanduser()
        for key, value in section.items():
            folders = (_resolve(base / each.strip()) for each in value.splitlines() if each.strip()) if key in roles else ()
            found += [(roles[key], folder) for folder in folders if folder is not None]
    return found


def _read_sections(file: Path) -> dict[str, dict[str, str]]:
    """Read the shapes of YAML that this file has: sections, in each a key with a value or with indented lines. What else is there is left out."""
    sections: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    block, deep = "", 0
    for line in _read_lines(file):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if not text or text.startswith("#"):
            continue
        if block and indent > deep:
            section[block] += f"\n{_unquote(text)}"
            continue
        block = ""
        key, colon, value = text.partition(":")
        if not colon:
            continue
        if indent == 0:
            section = sections.setdefault(_unquote(key), {})
        elif value.strip() in ("|", "|-", "|+", ">", ">-", ""):
            block, deep = _unquote(key), indent
            section[block] = ""
        else:
            section[_unquote(key)] = _unquote(value.partition(" #")[0])
    return sections


def _unquote(text: str) -> str:
    return text.strip().strip("\"'").removeprefix("- ")


def _read_invoke(root: Path) -> Iterator[tuple[Role, Path, str]]:
    """Yield the models that InvokeAI's database names. It is opened as it lies there, without a lock, and nothing of its schema is trusted."""
    file = root / "databases/invokeai.db"
    if not is_file(file) or size_bytes(file) > DATABASE_MOST_BYTES:
        return
    models = _find_invoke_models(root)
    steps = 0

    def is_long() -> bool:
        nonlocal steps
        steps += 1
        return steps > _STEPS_MOST

    with (
        suppress(sqlite3.Error, ValueError),
        closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database,
    ):
        database.set_progress_handler(is_long, 100_000)
        for statement in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON"):
            database.execute(f"PRAGMA {statement}")
        for (words,) in database.execute("SELECT config FROM models LIMIT ?", (ROWS_MOST,)):
            with suppress(OSError, ValueError, TypeError, RecursionError):
                row = parse_json(words)
                role, path = _INVOKE_ROLES.get(row.get("type")), models / row["path"]
                if role is not None and path.exists():
                    yield role, path.resolve(), str(row.get("name") or path.stem)[:200]


def _find_invoke_models(root: Path) -> Path:
    for line in _read_lines(root / "invokeai.yaml"):
        key, _, value = line.partition(":")
        if key.strip() == "models_dir" and value.strip():
            return root / _unquote(value.partition(" #")[0])
    return root / "models"


def _read_lines(file: Path) -> list[str]:
    try:
        with open_regular(file) as opened:
            return opened.read(SETTINGS_MOST_BYTES).decode("utf-8-sig").splitlines()
    except (OSError, ValueError):
        return []


def _list_snapshots(hub: Path) -> list[tuple[Role, Path, str]]:
    """List the pipelines of the hub's cache, each in its newest revision."""
    found: list[tuple[Role, Path, str]] = []
    with suppress(OSError):
        for folder in sorted(each for each in hub.iterdir() if each.name.startswith("models--"))[:ROWS_MOST]:
            snapshot = find_snapshot(folder)
            if snapshot is not None and is_file(snapshot / "model_index.json"):
                found.append(("model", snapshot, name_repo(folder)))
    return found


def find_snapshot(folder: Path) -> Path | None:
    """Return the newest revision in a repository's folder of the hub's cache, or its only one, if it was fetched by another name; None for
    any other folder."""
    snapshots = folder / "snapshots"
    with suppress(OSError, ValueError):
        with open_regular(folder / "refs/main") as opened:
            revision = opened.read(100).decode("ascii").strip()
        if revision.isalnum() and (snapshots / revision).is_dir():
            return snapshots / revision
    with suppress(OSError):
        found = (
            [each for each in islice(snapshots.iterdir(), REVISIONS_MOST) if each.is_dir()] if folder.name.startswith("models--") else []
        )
        return found[0] if len(found) == 1 else None
    return None


def name_repo(folder: Path) -> str:
    return folder.name.removeprefix("models--").replace("--", "/")
