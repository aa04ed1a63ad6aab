"""Break folders and files of models as somebody else could have made them: numbers, nesting, encodings, links, pipes, sockets, classes, indexes,
headers, words, pickles, sizes."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import random
import shutil
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from app.engine.models.config_facts import FACTS
from app.engine.models.judged_files import SETTINGS
from tests.support.nasty import RAW, nest

HUGE_DIGITS: Final = "9" * 4250
NUMBERS: Final = (
    "0", "-1", "-5", "1", "2", "3", "0.5", "1e300", "1e308", "-1e300", "1e4000", "NaN", "Infinity", "-Infinity", "1e-320", "9" * 30, "9" * 400, HUGE_DIGITS,
    "9" * 6000, "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "true", "false", "null", '"8"', '""', '"nan"', "[]",
    "{}", "[0]", "[1e4000]", f"[{HUGE_DIGITS}]", "[[]]", "[[1]]",
    "[null]", "[true]", '["a"]', '{"a": 1}', "[" + "1," * 1099 + "1]", "[" + "1," * 15_000 + "1]", "[" * 300 + "]" * 300, '"' + "x" * 9000 + '"',
    '"\\u001b[2J\\u202e"', "1000000", "65536", "131072", "16", "64", "128", "7",
)  # fmt: skip
"""JSON may have each of these as a single value."""
EXTREME: Final = 23
"""So many of them, the first, are numbers, most of them out of any range."""
DEEP: Final = 70
DEEPEST: Final = 100_000
SHARDS_MOST: Final = 1_000_000
HEADER_BYTES: Final = 400
"""A tiny GGUF says there what it holds."""
SMALL_BYTES: Final = 64 << 20
MARK: Final = "@@broken@@"
CLASSES: Final[tuple[Any, ...]] = (
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


BACKTRACKING: Final = "(a|aa|b|.)+$^"
"""This pattern tries for ever."""
LOOPS: Final = "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}"
TEMPLATES: Final = (
    LOOPS,
    "{{ 'x' * 10**11 }}",
    "{% include '/etc/passwd' %}",
    "{{ ''.__class__.__mro__ }}",
    "{{",
    "",
    "{{ raise_exception('no') }}",
)
DOUBLING: Final = {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 40}
ADDED: Final = {"single_word": False, "lstrip": True, "rstrip": True, "normalized": True, "special": False}
WORDS: Final[tuple[tuple[str, Any], ...]] = (
    ("pre_tokenizer", {"type": "Split", "pattern": {"Regex": BACKTRACKING}, "behavior": "Isolated", "invert": False}),
    ("normalizer", {"type": "Replace", "pattern": {"Regex": BACKTRACKING}, "content": "b"}),
    ("normalizer", DOUBLING),
    ("normalizer", nest(None, 400)),
    ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
    ("post_processor", {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}}),
    (
        "padding",
        {"strategy": {"Fixed": 1 << 40}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "x"},
    ),
    ("truncation", {"direction": "Right", "max_length": 1 << 62, "strategy": "LongestFirst", "stride": 1 << 61}),
    ("added_tokens", [{"id": 1 << 31, "content": "a", **ADDED}]),
    ("added_tokens", [{"id": index, "content": f"<{index}>", **ADDED} for index in range(3000)]),
    ("model", {"type": "BPE", "vocab": {}, "merges": []}),
    ("model", {"type": "BPE", "vocab": {"a": 1 << 31}, "merges": ["a a"]}),
    ("model", {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}),
    ("model", {"type": "Unigram", "vocab": [["a", -1e308]], "unk_id": 1 << 40}),
    ("model", None),
    ("version", "9" * 5000),
    ("decoder", {"type": "x" * 9000}),
)
"""A tokenizer.json may have these parts."""


class _Bomb:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Callable[..., None], tuple[str]]:
        return os.mkdir, (str(self._mark),)


def find_marks(outside: Path) -> list[str]:
    """Return, and take away, the marks of pickles that ran."""
    found = sorted(outside.glob("ran-*"))
    for each in found:
        each.rmdir()
    return [each.name for each in found]


def save_outside(folder: Path) -> Path:
    """Save what nothing may read: settings and weights beside the model."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "dia", "block_out_channels": [16, 16]}')
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    (folder / "letters.bin").write_bytes(b"secret")
    return folder


def release_pipes(model: Path) -> None:
    """Let go whoever waits for the other end of a pipe."""
    for path in (each for each in model.rglob("*") if each.is_fifo() and not each.is_symlink()):
        with contextlib.suppress(OSError):  # nobody waits
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


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
        ways = FOLDER_WAYS if model.is_dir() else GGUF_WAYS if model.suffix == ".gguf" else FILE_WAYS
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


def _list_settings(model: Path) -> list[Path]:
    return [
        each
        for each in sorted(model.rglob("*.json"))
        if each.is_file() and each.stat().st_size < 100_000 and each.name not in ("vocab.json", "tokenizer.json")
    ]


def _settings(chance: random.Random, model: Path) -> tuple[Path, Any] | None:
    found = _list_settings(model)
    return _parse(chance.choice(found)) if found else None


def _parse(path: Path) -> tuple[Path, Any] | None:
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
    """Change, or add, a value whose name Hearth knows, in what it judges; a number mostly to one that no model has."""
    files = [
        each for each in map(_parse, _list_settings(model)) if each is not None and each[0].name in SETTINGS and isinstance(each[1], dict)
    ]
    there = [(*file, keys) for file in files for keys in _leaves(file[1]) if keys[-1] in FACTS and FACTS[keys[-1]].kind is not str]
    if not files:
        return ""
    path, values, keys = chance.choice(there) if there and chance.random() < 0.8 else (*chance.choice(files), (chance.choice(list(FACTS)),))
    return _put(path, values, keys, chance.choice(NUMBERS[:EXTREME] if chance.random() < 0.7 else NUMBERS))


def change_nesting(chance: random.Random, model: Path, outside: Path) -> str:
    if (found := _settings(chance, model)) is None:
        return ""
    depth, (begin, end) = chance.choice((5, 17, 63, 65, 500, DEEPEST)), chance.choice((("[", "]"), ('{"a":', "}")))
    _write(found[0], begin * depth + json.dumps(found[1]) + end * depth)
    return f"{found[0].name} {depth} deep"


def change_twice(chance: random.Random, model: Path, outside: Path) -> str:
    if (found := _settings(chance, model)) is None or not isinstance(found[1], dict) or not found[1]:
        return ""
    key = chance.choice(list(found[1]))
    _write(found[0], json.dumps(found[1])[:-1] + f", {json.dumps(key)}: {chance.choice(NUMBERS)}}}")
    return f"{found[0].name} {key} twice"


def change_encoding(chance: random.Random, model: Path, outside: Path) -> str:
    if (path := _pick(chance, model, "*.json")) is None:
        return ""
    encoding = chance.choice(("utf-8-sig", "utf-16", "utf-16-be", "utf-32"))
    _write(path, _read(path).decode("utf-8", "replace").encode(encoding))
    return f"{path.relative_to(model)} in {encoding}"


def change_words(chance: random.Random, model: Path, outside: Path) -> str:
    """Change what a tokenizer does with words, and a template that makes a prompt of them."""
    places = sorted({each.parent for each in model.rglob("tokenizer*.json") if each.is_file()})
    if not places:
        return ""
    place, name = chance.choice(places), chance.choice(("tokenizer.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"))
    if name == "chat_template.jinja":
        template = chance.choice(TEMPLATES)
        _write(place / name, template)
        return f"{place.name}/{name} {template[:40]}"
    try:
        values = json.loads(_read(place / name))
        key, value = chance.choice(WORDS) if name == "tokenizer.json" else ("chat_template", chance.choice(TEMPLATES))
        values[key] = value
    except (ValueError, TypeError, RecursionError):
        return ""
    _write(place / name, json.dumps(values))
    return f"{place.name}/{name} {key} {json.dumps(value)[:60]}"


def change_pickle(chance: random.Random, model: Path, outside: Path) -> str:
    """Put a pickle that leaves a mark beside the weights or in their place, under a name that libraries look for."""
    if (weights := _pick(chance, model, "*.safetensors")) is None:
        return ""
    stem = weights.name.removesuffix(".safetensors").replace("model", chance.choice(("model", "pytorch_model")))
    name = chance.choice(
        ("pytorch_model.bin", "diffusion_pytorch_model.bin", f"{stem}.bin", "model.pt", "pytorch_model.fp16.bin", weights.name)
    )
    _write(weights.parent / name, pickle.dumps({"x": _Bomb(outside / f"ran-{chance.randrange(10**6)}")}, chance.choice((2, 0, 4))))
    if chance.random() < 0.4:
        _write(weights.parent / f"{name}.index.json", json.dumps({"metadata": {}, "weight_map": {"x": name}}))
    if chance.random() < 0.7 and name != weights.name:
        weights.unlink()
    return f"{weights.parent.name}/{name}"


def change_case(chance: random.Random, model: Path, outside: Path) -> str:
    """Put a second file beside one, with a name that some disks take for the same."""
    if (path := _pick(chance, model, "*")) is None:
        return ""
    name = chance.choice((path.name.upper(), path.name.capitalize(), path.name + " ", path.name + "."))
    _write(path.with_name(name), chance.choice((*RAW, b"{}")))
    return f"{path.relative_to(model)} also as {name!r}"


def change_raw(chance: random.Random, model: Path, outside: Path) -> str:
    if (path := _pick(chance, model, chance.choice(("*.json", "*.json", "*.safetensors", "*.txt", "*")))) is None:
        return ""
    _write(path, chance.choice((*RAW, b"\x80\x02pickle", b"PK\x03\x04", bytes(range(256)) * 8)))
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
    target = chance.choice(
        (
            path,
            Path("loop"),
            outside,
            outside / path.name,
            outside / "config.json",
            outside / "model.safetensors",
            Path("/etc/passwd"),
            Path("/dev/zero"),
            Path("/dev/full"),
            Path("/proc/self/mem"),
            Path("/"),
            model,
            Path("nowhere"),
            Path("../" * 12) / "etc" / "passwd",
            _pick(chance, model, "*") or outside,
        )
    )
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    return f"{path.relative_to(model)} -> {target}"


def change_kind(chance: random.Random, model: Path, outside: Path) -> str:
    """Put a pipe, a socket, a folder, or nothing in the place of a file."""
    if (path := _pick(chance, model, chance.choice(("*", "*", "config.json", "*.safetensors")))) is None:
        return ""
    path.unlink()
    made = chance.choice(("pipe", "pipe", "socket", "folder", "nothing"))
    if made == "pipe":
        os.mkfifo(path)
    elif made == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
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
    files: tuple[Any, ...] = (
        "../x.safetensors",
        os.path.relpath(outside / "model.safetensors", weights.parent),
        str(outside / "model.safetensors"),
        "..\\x.safetensors",
        "a/b.safetensors",
        "x" * 5000 + ".safetensors",
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
    one = chance.choice(files)  # one bad name among good ones, or all bad ones
    few = (weights.name, one) if chance.random() < 0.5 else files
    count = SHARDS_MOST if chance.random() < 0.03 else chance.choice((1, 1, 3, 2000))
    listed: Any = {f"tensor.{index}": f"{index}.safetensors" if count == SHARDS_MOST else chance.choice(few) for index in range(count)}
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
    if chance.random() < 0.3:  # an index is followed only where no weights have the usual name, and some are there
        weights.rename(weights.with_name(f"other-{weights.name}"))
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
        (
            "shape",
            "shape",
            "dtype",
            "offsets",
            "length",
            "cut",
            "more",
            "many",
            "twice",
            "metadata",
            "metadata",
            "deep",
            "name",
            "row",
            "values",
            "fit",
        )
    )
    said, text = kind, ""
    if kind == "values":  # whole, but no number is one
        rest = chance.choice((b"\xff", b"\x7f", b"\x00")) * len(rest)
        text = json.dumps(table)
    elif kind == "fit":  # whole, but of another shape
        table[name] = (
            {**row, "shape": [*reversed(row["shape"]), *chance.choice(((), (1,), (1, 1, 1)))]}
            if isinstance(row.get("shape"), list)
            else row
        )
        text = json.dumps(table)
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
        steering = {"lora_adapter_metadata": json.dumps({f"{part}.rank_pattern": {BACKTRACKING: 4} for part in ("unet", "transformer")})}
        text = json.dumps({**table, "__metadata__": chance.choice((*CLASSES, steering, steering))})
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


def change_gguf(chance: random.Random, model: Path, outside: Path) -> str:
    """Change the counts, lengths, types and names in the header of a GGUF file."""
    raw = bytearray(_read(model))
    if len(raw) < HEADER_BYTES:
        return ""
    kind = chance.choice(("count", "word", "word", "byte", "version", "cut", "more"))
    at = {"count": chance.choice((8, 16)), "version": 4}.get(kind, chance.randrange(24, HEADER_BYTES - 8))
    if kind in ("count", "word"):
        raw[at : at + 8] = chance.choice((0, 1, 2, 255, 1 << 20, 1 << 31, 1 << 40, 1 << 62, 2**64 - 1)).to_bytes(8, "little")
    elif kind == "version":
        raw[at : at + 4] = chance.choice((0, 1, 2, 4, 1 << 24, 2**32 - 1)).to_bytes(4, "little")
    elif kind == "byte":
        raw[at] = chance.randrange(256)
    _write(model, bytes(raw[: chance.randrange(len(raw))] if kind == "cut" else raw + bytes(9) if kind == "more" else raw))
    return f"{model.name} {kind} at {at}"


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
    ("header", change_header), ("size", change_size), ("encoding", change_encoding), ("words", change_words), ("words", change_words),
    ("pickle", change_pickle), ("case", change_case),
)  # fmt: skip
FILE_WAYS: Final = (("header", change_header), ("header", change_header), ("header", change_header), ("size", change_size))
GGUF_WAYS: Final = (("gguf", change_gguf), ("gguf", change_gguf), ("gguf", change_gguf), ("size", change_size))
