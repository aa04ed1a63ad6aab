"""Break folders and files of models as somebody else could have made them: numbers, nesting, links, pipes, classes, indexes, headers, sizes."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from app.engine.files.config_facts import FACTS
from tests.support.nasty import RAW, nest

HUGE_DIGITS: Final = "9" * 4250
NUMBERS: Final = (
    "0", "-1", "-5", "1", "2", "3", "0.5", "1e300", "-1e300", "1e4000", "NaN", "Infinity", "-Infinity", "1e-320", "9" * 30, "9" * 400, HUGE_DIGITS, "9" * 6000,
    "4294967296", "9223372036854775807", "true", "false", "null", '"8"', '""', '"nan"', "[]", "{}", "[0]", "[1e4000]", f"[{HUGE_DIGITS}]", "[[]]", "[[1]]",
    "[null]", "[true]", '["a"]', '{"a": 1}', "[" + "1," * 1099 + "1]", "[" + "1," * 15_000 + "1]", "[" * 300 + "]" * 300, '"' + "x" * 9000 + '"',
    '"\\u001b[2J\\u202e"', "1000000", "65536", "131072", "16", "64", "128", "7",
)  # fmt: skip
"""JSON for a single value."""
DEEP: Final = 70
SMALL_BYTES: Final = 64 << 20
MARK: Final = "@@broken@@"
CLASSES: Final = (
    ["transformers", "DPTForDepthEstimation"], ["diffusers", "AutoencoderKL"], ["os", "system"], ["pipeline", "Own"], ["transformers", "../x"], [None, None],
    [], [[]], ["diffusers"], "diffusers", 5, None, True, {"a": 1}, ["transformers", None], [5, 5], ["\x1b[2J", "\u202eevil"], ["x" * 9000, "y"],
)  # fmt: skip
NAMES: Final = (
    "../outside",
    "/etc",
    "..",
    ".",
    "",
    "a/b",
    "a\\b",
    "__class__",
    "x" * 300,
    "\x1b]0;title\x07",
    "_class_name",
    "unet",
    "transformer",
    "vae",
    "safety_checker",
)


def save_outside(folder: Path) -> Path:
    """Save what nothing may read: settings and weights beside the model."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "dia", "block_out_channels": [16, 16]}')
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    (folder / "letters.bin").write_bytes(b"secret")
    return folder


def copy(good: Path, target: Path) -> None:
    """Copy by hard links: what is broken is written anew."""
    target.parent.mkdir(parents=True)
    if good.is_dir():
        shutil.copytree(good, target, copy_function=os.link)
    else:
        os.link(good, target)


def mutate(chance: random.Random, model: Path, outside: Path) -> list[str]:
    """Break a model in one to three ways; return what was done."""
    told = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        ways = FOLDER_WAYS if model.is_dir() else FILE_WAYS
        name, way = chance.choice(ways)
        if said := way(chance, model, outside):
            told.append(f"{name} {said}")
    return told


def _write(path: Path, content: bytes | str) -> None:
    path.unlink(missing_ok=True)  # a link to the good one
    path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)


def _read(path: Path) -> bytes:
    """Return a file's content; nothing of one that an earlier way made huge, a link or something else."""
    return path.read_bytes() if path.is_file() and not path.is_symlink() and path.stat().st_size < SMALL_BYTES else b""


def _pick(chance: random.Random, model: Path, pattern: str) -> Path | None:
    found = sorted(each for each in model.rglob(pattern) if each.is_file() and not each.is_symlink())
    return chance.choice(found) if found else None


def _settings(chance: random.Random, model: Path) -> tuple[Path, Any] | None:
    found = [
        each
        for each in sorted(model.rglob("*.json"))
        if each.is_file() and each.stat().st_size < 100_000 and each.name not in ("vocab.json", "tokenizer.json")
    ]
    if not found:
        return None
    path = chance.choice(found)
    try:
        return path, json.loads(_read(path))
    except (ValueError, OSError, RecursionError):
        return None


def _leaves(value: Any, keys: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if len(keys) > DEEP:  # an earlier way nested it
        return [keys]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [keys] * bool(keys) + [leaf for key, each in inner for leaf in _leaves(each, (*keys, key))]


def _put(path: Path, values: Any, keys: tuple[Any, ...], raw: str) -> str:
    inner = values
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = MARK
    _write(path, json.dumps(values).replace(f'"{MARK}"', raw))
    return f"{path.parent.name}/{path.name} {'.'.join(map(str, keys))} = {raw[:40]}"


def change_number(chance: random.Random, model: Path, outside: Path) -> str:
    """Change any value of any settings."""
    if (found := _settings(chance, model)) is None or not (leaves := _leaves(found[1])):
        return ""
    return _put(*found, chance.choice(leaves), chance.choice(NUMBERS))


def change_fact(chance: random.Random, model: Path, outside: Path) -> str:
    """Change, or add, a value whose name Hearth knows."""
    if (found := _settings(chance, model)) is None or not isinstance(found[1], dict):
        return ""
    there = [keys for keys in _leaves(found[1]) if keys[-1] in FACTS]
    return _put(*found, chance.choice(there) if there and chance.random() < 0.8 else (chance.choice(list(FACTS)),), chance.choice(NUMBERS))


def change_nesting(chance: random.Random, model: Path, outside: Path) -> str:
    if (found := _settings(chance, model)) is None:
        return ""
    depth, by = chance.choice((5, 17, 63, 65, 500)), chance.choice(("list", "dict"))
    _write(found[0], json.dumps(nest(found[1], depth, by)))
    return f"{found[0].name} {depth} deep"


def change_twice(chance: random.Random, model: Path, outside: Path) -> str:
    if (found := _settings(chance, model)) is None or not isinstance(found[1], dict) or not found[1]:
        return ""
    key = chance.choice(list(found[1]))
    _write(found[0], json.dumps(found[1])[:-1] + f", {json.dumps(key)}: {chance.choice(NUMBERS)}}}")
    return f"{found[0].name} {key} twice"


def change_raw(chance: random.Random, model: Path, outside: Path) -> str:
    if (path := _pick(chance, model, chance.choice(("*.json", "*.json", "*.safetensors", "*.bin", "*.txt")))) is None:
        return ""
    _write(path, chance.choice((*RAW, b"\x80\x02pickle", b"PK\x03\x04", os.urandom(0) + bytes(range(256)) * 8)))
    return path.name


def change_link(chance: random.Random, model: Path, outside: Path) -> str:
    """Put a link in the place of a file or a folder: into the model, out of it, in a circle, to a device."""
    path = (
        _pick(chance, model, "*")
        if chance.random() < 0.75
        else chance.choice([each for each in sorted(model.iterdir()) if each.is_dir()] or [model / "x"])
    )
    if path is None:
        return ""
    target = chance.choice((
        path, Path("loop"), outside, outside / path.name, outside / "config.json", outside / "model.safetensors", Path("/etc/passwd"), Path("/dev/zero"),
        Path("/dev/full"), Path("/proc/self/mem"), Path("/"), model, Path("nowhere"), Path("../" * 12) / "etc" / "passwd", _pick(chance, model, "*") or outside,
    ))  # fmt: skip
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    return f"{path.relative_to(model)} -> {target}"


def change_kind(chance: random.Random, model: Path, outside: Path) -> str:
    """Put a pipe, a folder, or nothing in the place of a file."""
    if (path := _pick(chance, model, chance.choice(("*", "*", "config.json", "*.safetensors")))) is None:
        return ""
    path.unlink()
    made = chance.choice(("pipe", "pipe", "folder", "nothing"))
    if made == "pipe":
        os.mkfifo(path)
    elif made == "folder":
        path.mkdir()
    return f"{path.relative_to(model)} is a {made}"


def change_class(chance: random.Random, model: Path, outside: Path) -> str:
    path = model / ("model_index.json" if (model / "model_index.json").is_file() else "config.json")
    try:
        values = json.loads(_read(path))
    except (OSError, ValueError, RecursionError):
        return ""
    if not isinstance(values, dict):
        return ""
    key = chance.choice((*values, *NAMES, "auto_map", "_class_name", "model_type", "quantization_config", "attn_implementation"))
    values[key] = chance.choice((*CLASSES, "dia", {"quant_method": "awq"}, {"AutoModel": "evil--x.Y"}))
    _write(path, json.dumps(values))
    return f"{path.name} {key[:30]!r}: {str(values[key])[:60]!r}"


def change_index(chance: random.Random, model: Path, outside: Path) -> str:
    weights = _pick(chance, model, "*.safetensors")
    if weights is None:
        return ""
    files = (
        "../x.safetensors",
        "../../outside/model.safetensors",
        str(outside / "model.safetensors"),
        "x.bin",
        "pytorch_model.bin",
        weights.name,
        "",
        "..",
        5,
        None,
        [],
        "a\x00b",
    )
    listed: Any = {f"tensor.{index}": chance.choice(files) for index in range(chance.choice((0, 1, 3, 2000)))}
    whole: Any = chance.choice(
        (
            {"weight_map": listed},
            {"weight_map": listed, "metadata": {"total_size": 10**400}},
            {"weight_map": chance.choice(CLASSES)},
            [],
            {},
        )
    )
    name = chance.choice((f"{weights.name}.index.json", "model.safetensors.index.json", "diffusion_pytorch_model.safetensors.index.json"))
    _write(weights.parent / name, json.dumps(whole))
    if chance.random() < 0.3:
        weights.unlink()
    return f"{weights.parent.name}/{name}"


def change_header(chance: random.Random, model: Path, outside: Path) -> str:
    path = model if model.is_file() else _pick(chance, model, "*.safetensors")
    if path is None:
        return ""
    raw = _read(path)
    length = struct.unpack("<Q", raw[:8])[0] if len(raw) > 8 else 0
    try:
        table = json.loads(raw[8 : 8 + length])
        name = chance.choice([each for each in table if each != "__metadata__"])
        rest, row = raw[8 + length :], dict(table[name])
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return ""
    kind = chance.choice(
        ("shape", "shape", "dtype", "offsets", "length", "cut", "more", "many", "twice", "metadata", "deep", "name", "row")
    )
    said, text = kind, ""
    if kind in ("shape", "dtype", "offsets", "row"):
        field = {"shape": "shape", "dtype": "dtype", "offsets": "data_offsets"}.get(kind)
        value = chance.choice(NUMBERS)
        if kind == "shape" and chance.random() < 0.6:
            value = f"[{', '.join(chance.choice(NUMBERS[:20]) for _ in range(chance.choice((1, 2, 4, 9, 400))))}]"
        if kind == "offsets" and chance.random() < 0.6:
            value = f"[{chance.choice(NUMBERS[:20])}, {chance.choice(NUMBERS[:20])}]"
        table[name] = MARK if field is None else {**row, field: MARK}
        text, said = json.dumps(table).replace(f'"{MARK}"', value), f"{kind} {value[:40]}"
    elif kind == "many":
        text = json.dumps(
            {
                **table,
                **{f"t{index}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for index in range(chance.choice((1000, 30_000)))},
            }
        )
    elif kind == "twice":
        text = json.dumps(table)[:-1] + f", {json.dumps(name)}: {json.dumps(row)}}}"
    elif kind == "metadata":
        text = json.dumps({**table, "__metadata__": chance.choice(CLASSES)})
    elif kind == "deep":
        text = json.dumps({**table, "deep": nest(1, chance.choice((7, 9, 400)), "dict")})
    elif kind == "name":
        text = json.dumps({**table, chance.choice((*NAMES, "x" * 100_000, "\ud800")): row})
    if text:
        header = text.encode("utf-8", "surrogatepass")
        _write(path, struct.pack("<Q", len(header)) + header + rest)
    elif kind == "length":
        _write(path, struct.pack("<Q", chance.choice((0, 1, 2, length - 1, length + 1, 16 << 20, 1 << 40, 2**64 - 1))) + raw[8:])
    else:
        _write(path, raw[: chance.randrange(len(raw))] if kind == "cut" else raw + bytes(chance.choice((1, 9, 5000))))
    return f"{path.name} {said}"


def change_size(chance: random.Random, model: Path, outside: Path) -> str:
    """Make a file huge, without taking room; or many of them."""
    path = model if model.is_file() else _pick(chance, model, chance.choice(("*.json", "*.safetensors", "*")))
    if path is None:
        return ""
    if model.is_dir() and chance.random() < 0.2:
        for index in range(chance.choice((300, 1500))):
            os.link(path, path.with_name(f"{index}{path.suffix}"))
        return f"many of {path.name}"
    content, size = _read(path) if chance.random() < 0.5 else b"", chance.choice((3 << 20, 1 << 30, 1 << 40))
    _write(path, content)
    os.truncate(path, size)
    return f"{path.name} of {size} bytes"


FOLDER_WAYS: Final[tuple[tuple[str, Callable[[random.Random, Path, Path], str]], ...]] = (
    ("number", change_number), ("fact", change_fact), ("fact", change_fact), ("nesting", change_nesting), ("twice", change_twice), ("raw", change_raw),
    ("link", change_link), ("link", change_link), ("kind", change_kind), ("class", change_class), ("index", change_index), ("header", change_header),
    ("header", change_header), ("size", change_size),
)  # fmt: skip
FILE_WAYS: Final = (("header", change_header), ("header", change_header), ("header", change_header), ("size", change_size))
