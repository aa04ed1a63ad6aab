"""Headers of GGUF files and LoRAs whose numbers lie: each is refused by file and number, at once and in little memory."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.base.trouble import Trouble
from app.engine.models import gguf_header
from app.engine.models.gguf_header import read_gguf
from app.engine.models.lora_header import SETTINGS, judge_lora
from app.engine.models.safetensors import Entry, read_header

SECONDS, BYTES = 0.1, 4 << 20


def refused(judge: Callable[[Path], object], path: Path) -> str:
    """Return the sentence; hold the time of this thread alone, and the memory."""
    with pytest.raises(Trouble):
        judge(path)  # what the first call imports and compiles is not the file's
    tracemalloc.start()
    begun_s = time.thread_time()
    with pytest.raises(Trouble) as told:
        judge(path)
    took_s, peak = time.thread_time() - begun_s, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert took_s < SECONDS and peak < BYTES, (took_s, peak)
    assert path.name in str(told.value)
    return str(told.value)


def text(words: bytes) -> bytes:
    return struct.pack("<Q", len(words)) + words


def tensor(name: bytes = b"x", axes: tuple[int, ...] = (32,), kind: int = 0, begin: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(axes)}QIQ", len(axes), *axes, kind, begin)


def gguf(
    *tensors: bytes, settings: bytes = b"", count: int = 0, tensor_count: int | None = None, version: int = 3, data: int = 4096
) -> bytes:
    there = len(tensors) if tensor_count is None else tensor_count
    return b"GGUF" + struct.pack("<IQQ", version, there, count) + settings + b"".join(tensors) + bytes(data)


def listed(inner: int, count: int, values: bytes = b"") -> bytes:
    return text(b"k") + struct.pack("<IIQ", 9, inner, count) + values


HOSTILE = {
    "2^60 tensors": (gguf(tensor_count=1 << 60), 1 << 60),
    "2^60 settings": (gguf(tensor(), count=1 << 60), 1 << 60),
    "no tensor": (gguf(), 0),
    "version 2^24": (gguf(tensor(), version=1 << 24 | 3), 1 << 24 | 3),
    "a key of 2^63": (gguf(tensor(), count=1, settings=struct.pack("<Q", 1 << 63)), 1 << 63),
    "a text of 2^40": (gguf(tensor(), count=1, settings=text(b"k") + struct.pack("<IQ", 8, 1 << 40)), 1 << 40),
    "a list of 2^50": (gguf(tensor(), count=1, settings=listed(0, 1 << 50)), 1 << 50),
    "many lists": (gguf(tensor(), count=3, settings=3 * listed(0, 10_000, bytes(10_000))), 30_000),
    "lists in lists": (gguf(tensor(), count=1, settings=listed(9, 1, struct.pack("<IQ", 9, 1) * 2000)), 9),
    "a setting of type 99": (gguf(tensor(), count=1, settings=text(b"k") + struct.pack("<I", 99)), 99),
    "alignment 2^31": (gguf(tensor(), count=1, settings=text(b"general.alignment") + struct.pack("<II", 4, 1 << 31)), 1 << 31),
    "alignment 0": (gguf(tensor(), count=1, settings=text(b"general.alignment") + struct.pack("<II", 4, 0)), 0),
    "a tensor's name of 2^63": (gguf(struct.pack("<Q", 1 << 63)), 1 << 63),
    "2^31 axes": (gguf(text(b"x") + struct.pack("<I", 1 << 31)), 1 << 31),
    "an axis of 2^63": (gguf(tensor(axes=(1 << 63,))), 1 << 63),
    "axes whose product overflows": (gguf(tensor(axes=(1 << 32, 1 << 32))), 1 << 66),
    "an axis of 0": (gguf(tensor(axes=(32, 0))), 0),
    "a type that is none": (gguf(tensor(kind=77)), 77),
    "half a block": (gguf(tensor(axes=(33,), kind=2)), 33),
    "beyond the end": (gguf(tensor(begin=1 << 40)), (1 << 40) + 128),
    "on top of each other": (gguf(tensor(), tensor(b"y", begin=64)), 64),
    "one name twice": (gguf(tensor(), tensor(begin=128)), 2),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_gguf_header_that_lies_is_refused_by_its_number(what: str, tmp_path: Path) -> None:
    content, number = HOSTILE[what]
    path = tmp_path / "denoiser.gguf"
    path.write_bytes(content)
    assert f" {number}" in refused(read_gguf, path)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"<html>", gguf(tensor())[:40]])
def test_what_is_no_gguf_is_told(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "denoiser.gguf"
    path.write_bytes(content)
    assert "not a valid .gguf file" in refused(read_gguf, path)


def test_a_header_of_many_texts_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "denoiser.gguf"
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 1, 40))
        for _ in range(40):
            file.write(text(b"k") + struct.pack("<IQ", 8, 1 << 20))
            file.seek(1 << 20, 1)
        file.truncate()
    assert "length of its header" in refused(read_gguf, path)


def test_what_the_library_writes_is_taken(tmp_path: Path) -> None:
    """Two packings, a list of texts, another alignment, a scalar setting of each kind: as converters write them."""
    gguf_library = pytest.importorskip("gguf", reason="one of the extras")
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "denoiser.gguf"
    writer = gguf_library.GGUFWriter(path, "flux")
    writer.add_custom_alignment(64)
    writer.add_quantization_version(2)
    writer.add_array("general.tags", ["text-to-image", "image"])
    writer.add_array("comfy.gguf.orig_shape.x", [64, 3, 3])
    writer.add_float32("flux.guidance", 3.5)
    writer.add_bool("flux.guided", True)
    writer.add_tensor("x", numpy.ones((8, 64), numpy.float32))
    packed = gguf_library.quants.quantize(numpy.ones((4, 256), numpy.float32), gguf_library.GGMLQuantizationType.Q4_0)
    writer.add_tensor("y", packed, raw_dtype=gguf_library.GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert read_gguf(path) == {"x": Entry("F32", (8, 64)), "y": Entry("Q4_0", (4, 256))}
    assert len(gguf_library.GGUFReader(path).tensors) == 2
    path.write_bytes(path.read_bytes()[:-200])
    assert "end of a tensor" in refused(read_gguf, path)


def test_the_blocks_are_the_librarys() -> None:
    gguf_library = pytest.importorskip("gguf", reason="one of the extras")
    assert {int(kind): sizes for kind, sizes in gguf_library.GGML_QUANT_SIZES.items()} == gguf_header.BLOCKS


def safetensors(rows: dict[str, Any], data: bytes = b"", words: dict[str, str] | None = None) -> bytes:
    header = json.dumps(rows | ({"__metadata__": words} if words is not None else {})).encode()
    return struct.pack("<Q", len(header)) + header + data


def row(shape: list[Any], begin: Any, end: Any, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


LYING = {
    "negative offsets": ({"x": row([1], -4, 0)}, "-4"),
    "an offset of 2^64": ({"x": row([1], 1 << 64, (1 << 64) + 4)}, str(1 << 64)),
    "an offset of 1e300": ({"x": row([1], 0, 1e300)}, "1e+300"),
    "a shape of 10^400": ({"x": row([10**400], 0, 4)}, "x: shape 1000"),
    "a product that overflows": ({"x": row([1 << 32, 1 << 32], 0, 4)}, "4294967296, 4294967296"),
    "shapes beyond their bytes": ({"x": row([9, 9], 0, 4)}, "[9, 9]"),
    "a negative axis": ({"x": row([-1, -1], 0, 4)}, "-1"),
    "a hundred axes": ({"x": row([1] * 100, 0, 4)}, "number of axes 100"),
}


@pytest.mark.parametrize("what", LYING)
def test_a_safetensors_header_that_lies_is_refused_by_its_number(what: str, tmp_path: Path) -> None:
    rows, number = LYING[what]
    path = tmp_path / "lora.safetensors"
    path.write_bytes(safetensors(rows, bytes(4)))
    for judge in (read_header, judge_lora):
        assert number in refused(judge, path)


def test_offsets_beyond_the_file_or_on_top_of_each_other_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "lora.safetensors"
    path.write_bytes(safetensors({"x": row([1], 1 << 40, (1 << 40) + 4)}, bytes(4)))
    assert "instead of" in refused(judge_lora, path)
    path.write_bytes(safetensors({"x": row([2], 0, 8), "y": row([1], 4, 8)}, bytes(8)))
    assert "not a valid" in refused(judge_lora, path)


def test_a_header_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "lora.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 10**9))
        file.truncate(2 * 10**9)  # no byte of it lies on the disk
    assert "length of its header 1000000000" in refused(judge_lora, path)


WEIGHT = {"unet.x.lora_A.weight": row([1, 1], 0, 4)}
WORDS = {
    "a rank of 2^40": {"ss_network_dim": str(1 << 40)},
    "a rank of 0": {"ss_network_dim": "0"},
    "no number": {"ss_network_alpha": "nan"},
    "an endless scale": {"ss_network_alpha": "inf"},
    "a rank to build": {SETTINGS: json.dumps({"unet.r": 1 << 40})},
    "a rank that is no number": {SETTINGS: json.dumps({"unet.r": "64"})},
    "a rank by layer": {SETTINGS: json.dumps({"unet.rank_pattern": {"x": 1 << 40}})},
    "a scale by layer": {SETTINGS: json.dumps({"unet.alpha_pattern": {"x": 1e300}})},
    "lists in lists": {SETTINGS: "[" * 100_000},
    "a list": {SETTINGS: "[]" * 1},
}


@pytest.mark.parametrize("what", WORDS)
def test_a_lora_that_lies_about_itself_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "lora.safetensors"
    path.write_bytes(safetensors(WEIGHT, bytes(4), {"format": "pt", **WORDS[what]}))
    told = refused(judge_lora, path)
    assert "which no LoRA has" in told


@pytest.mark.parametrize(
    ("dtype", "data"), [("F32", struct.pack("<f", float("nan"))), ("F32", struct.pack("<f", 1e30)), ("BF16", b"\x80\x7f")]
)
def test_the_scale_of_a_layer_is_judged(dtype: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lora.safetensors"
    path.write_bytes(safetensors({"lora_unet_x.alpha": row([], 0, len(data), dtype)}, data))
    assert "lora_unet_x.alpha" in refused(judge_lora, path)


@pytest.mark.parametrize(
    "words",
    [
        {"ss_network_dim": "Dynamic", "ss_network_alpha": "None"},
        {"ss_network_dim": "128", "ss_network_alpha": "1e-05", "ss_tag_frequency": json.dumps({"a": {"b c": 12}})},
        {SETTINGS: json.dumps({"transformer.r": 16, "transformer.lora_alpha": 16, "transformer.rank_pattern": {"^blocks.0.attn.to_q": 8},
            "transformer.target_modules": ["to_k", "attn.to_out.0"], "transformer.lora_dropout": 0.0, "transformer.layers_to_transform": None,
            "text_encoder.target_modules": r".*attn.*?(to_q|to_k)$", "transformer.megatron_core": "megatron.core",
            "transformer.runtime_config": {"ephemeral_gpu_offload": False}, "transformer.use_dora": False})},
    ],
)  # fmt: skip
def test_what_trainers_write_is_taken(words: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "lora.safetensors"
    rows = {**WEIGHT, "lora_unet_x.alpha": row([], 4, 6, "F16"), "lora_unet_y.alpha": row([1], 6, 8, "BF16")}
    path.write_bytes(safetensors(rows, bytes(4) + struct.pack("<e", 16) + b"\x80\x3f", words))
    judge_lora(path)
