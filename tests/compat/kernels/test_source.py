"""The kernels' own text, compiled for the processor with the words of Metal and of CUDA that it uses, against float64."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from app.compat.kernels.source import GROUP, STEP, Bits, Language, Numbers, count_threads, write_source

WORDS = Path(__file__).parent / "words"
COMPILER = shutil.which("g++") or shutil.which("clang++")
WIDE, HALF, BRAIN = Numbers("float32", "float16"), Numbers("float16", "float16"), Numbers("bfloat16", "bfloat16")
KERNELS: tuple[tuple[Numbers, int, Bits], ...] = tuple(
    (numbers, lines, bits) for bits in (16, 8, 4) for numbers, lines in ((WIDE, 1), (WIDE, 2), (HALF, 2), (BRAIN, 3), (HALF, 4))
)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
SHAPES = 200
USUAL_KERNELS = tuple(each for number, each in enumerate(KERNELS) if number % 4 == 0)
"""They hold at least one of each number of lines, each number format and each count of bits; to compile all takes three times as long."""
FOR_THE_PROCESSOR = {
    'extern "C" __global__': "__global__",
    'asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));': "wide = half_to_float(bits);",
    'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(number));': "bits = float_to_half(number);",
}
"""No header can stand for these: CUDA's text alone has each of them, once."""

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the kernels' text was not compiled: there is no g++ or clang++")


def put_together(language: Language, kernels: Sequence[tuple[Numbers, int, Bits]], fault: tuple[str, str] = ("", "")) -> str:
    """Return one program with all of these kernels. `fault`: what to change in their text."""
    parts = [f'#include "{"metal_stdlib" if language == "metal" else "cuda_words.h"}"\n']
    for number, (numbers, lines, bits) in enumerate(kernels):
        text = write_source(language, numbers, lines, bits)
        if fault[0]:
            assert fault[0] in text
            text = text.replace(*fault)
        for gpu, processor in FOR_THE_PROCESSOR.items():
            assert text.count(gpu) == (language == "cuda")
            text = text.replace(gpu, processor)
        undone = "".join(f"#undef {name}\n" for name in re.findall(r"^#define (\w+)", text, re.MULTILINE))
        parts.append(f"namespace kernel_{number} {{\n{text}\n}}\n{undone}")
    parts.append("typedef void Entry(const uint8_t *, const uint8_t *, const uint8_t *, uint8_t *, uint32_t, uint32_t, uint32_t);\n")
    call = {
        "metal": "kernel_{}::multiply(lines, weight, scales, made, rows, columns, index);",
        "cuda": "blockDim.x = 128, blockIdx.x = index / 128, threadIdx.x = index % 128; kernel_{}::multiply(lines, weight, scales, made, rows, columns);",
    }[language]
    given = (
        "const uint8_t *lines, const uint8_t *weight, const uint8_t *scales, uint8_t *made, uint32_t rows, uint32_t columns, uint32_t index"
    )
    entries = ", ".join(f"[]({given}) {{ {call.format(number)} }}" for number in range(len(kernels)))
    return "".join((*parts, f"Entry *entries[] = {{{entries}}};\n", '#include "main.h"\n'))


def build(source: str, program: Path, *options: str) -> Path:
    assert COMPILER is not None
    program.with_suffix(".cpp").write_text(source, "utf-8")
    command = [COMPILER, "-std=c++17", "-O1", "-w", "-I", str(WORDS), *options, "-o", str(program), str(program.with_suffix(".cpp"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return program


@dataclass
class Case:
    """A product: which kernel it asks, the bytes that the kernel gets, and what is right, within `most`."""

    entry: int
    numbers: Numbers
    lines: torch.Tensor
    weight: torch.Tensor
    scales: torch.Tensor
    right: NDArray[np.float64]
    most: NDArray[np.float64]

    @property
    def header(self) -> bytes:
        rows, columns = self.right.shape[1], self.lines.shape[1]
        size = self.right.size * self.lines.element_size()
        sizes = (self.lines.nbytes, self.weight.nbytes, self.scales.nbytes, size)
        return np.array([self.entry, rows, columns, count_threads(rows), *sizes], np.uint32).tobytes()

    def check(self, made: bytes) -> None:
        found = torch.frombuffer(bytearray(made), dtype=self.lines.dtype).view(self.right.shape).double().numpy()
        off = np.abs(found - self.right)
        assert (off <= self.most).all(), f"{self.numbers}, {self.right.shape}: off by {np.nanmax(off / self.most)} of what it may be"


def to_bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def draw(entry: int, kernel: tuple[Numbers, int, Bits], made: np.random.Generator) -> Case:
    """Draw a product of random size: rows of any number, columns of whole reads of a thread."""
    numbers, lines, bits = kernel
    unit = GROUP if bits == 4 else STEP
    rows, columns = int(made.integers(1, 40)), unit * int(made.integers(1, 80 if made.random() < 0.2 else 24 * STEP // unit + 2))
    stored: torch.dtype = getattr(torch, numbers.halves)
    given = torch.from_numpy(made.standard_normal((lines, columns)) * 10.0 ** made.integers(-2, 2)).to(getattr(torch, numbers.lines))
    if bits == 16:
        weight = torch.from_numpy(made.standard_normal((rows, columns)) * 10.0 ** made.integers(-6, 1)).to(stored)
        meant, scales = weight.double(), torch.zeros(1)
    elif bits == 8:
        weight = torch.from_numpy(made.integers(-128, 128, (rows, columns), np.int8))
        scales = torch.from_numpy(made.random(rows) + 0.1).to(stored)
        meant = weight * scales.double()[:, None]
    else:
        drawn = torch.from_numpy(made.integers(0, 16, (rows, columns), np.uint8))
        weight = drawn[:, ::2] << 4 | drawn[:, 1::2]
        scales = torch.from_numpy(made.standard_normal((columns // GROUP, rows, 2))).to(stored)
        step, eight = scales.double().transpose(0, 1).repeat_interleave(GROUP, 1).unbind(-1)
        meant = (drawn.double() - 8) * step + eight
    wide = given.double()
    right, size = wide @ meant.T, wide.abs() @ (meant.abs() + (8 * step.abs() if bits == 4 else 0)).T
    rounding = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}[numbers.lines]
    most = 1.01 * rounding * right.abs() + 12 * 2.0**-24 * size + (2.0**-24 if numbers.lines == "float16" else 0)
    right = right.masked_fill(right.abs() > torch.finfo(given.dtype).max, np.inf) if numbers.lines == "float16" else right
    return Case(entry, numbers, given, weight, scales, right.numpy(), most.numpy())


def ask(program: Path, cases: list[Case]) -> list[bytes]:
    asked = b"".join(each.header + b"".join(map(to_bytes, (each.lines, each.weight, each.scales))) for each in cases)
    done = subprocess.run([program], input=asked, capture_output=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[:4000]
    found, at = list[bytes](), 0
    for each in cases:
        size = each.right.size * each.lines.element_size()
        found.append(done.stdout[at : at + size])
        at += size
    assert at == len(done.stdout)
    return found


def draw_cases(kernels: Sequence[tuple[Numbers, int, Bits]], count: int) -> list[Case]:
    made: Any = np.random.default_rng(0)
    return [draw(number % len(kernels), kernels[number % len(kernels)], made) for number in range(count)]


@pytest.mark.long
@pytest.mark.parametrize("kernels", [USUAL_KERNELS, pytest.param(KERNELS, marks=pytest.mark.slow)], ids=["usual", "all"])
@pytest.mark.parametrize("language", ["metal", "cuda"])
def test_random_products_are_those_of_float64(language: Language, kernels: Sequence[tuple[Numbers, int, Bits]], tmp_path: Path) -> None:
    """And a sanitizer sees nothing read or written beside the numbers, and no undefined step."""
    cases = draw_cases(kernels, SHAPES)
    assert len({each.right.shape[1] % 16 for each in cases}) == 16 and len({each.lines.shape for each in cases}) > SHAPES / 3
    program = build(put_together(language, kernels), tmp_path / language, *SANITIZERS)
    for each, made in zip(cases, ask(program, cases), strict=True):
        each.check(made)


FAULTS: dict[str, tuple[Language, tuple[Numbers, int, Bits], tuple[str, str]]] = {
    "reads beyond the last row": ("metal", (HALF, 2, 16), ("? first + row : rows - 1", "? first + row : rows")),
    "reads beyond the last column": ("cuda", (WIDE, 1, 8), ("column : columns - STEP", "column : columns")),
    "leaves out every other read": ("metal", (WIDE, 2, 16), ("column += LANES * STEP", "column += 2 * LANES * STEP")),
    "gives all lines the first one": ("metal", (HALF, 4, 16), ("size_t(line) * columns + column", "column")),
    "exchanges the halves of a byte": ("cuda", (WIDE, 2, 4), ("(at ^ 1) * 4", "at * 4")),
    "takes another row's scale and zero": ("metal", (WIDE, 2, 4), ("size_t(rows) + its[row]) * 4", "size_t(rows) + its[0]) * 4")),
    "adds the zero of the first line": ("cuda", (BRAIN, 3, 4), ("total[line] * eight", "total[0] * eight")),
    "takes another row's scale": ("cuda", (HALF, 2, 8), ("scales + its[row] * 2", "scales + its[0] * 2")),
    "leaves out half of the lanes": ("cuda", (WIDE, 1, 16), ("far = 16", "far = 8")),
    "cuts off in place of rounding": ("metal", (BRAIN, 3, 8), ("bits + 0x7fff + (bits >> 16 & 1)", "bits")),
}


USUAL = ("reads beyond the last row", "takes another row's scale")
"""A sanitizer sees the first, and only numbers show the second; the others are `slow`, as each is compiled anew."""


@pytest.mark.parametrize("fault", [pytest.param(each, marks=() if each in USUAL else pytest.mark.slow) for each in FAULTS])
def test_a_fault_in_the_text_is_noticed(fault: str, tmp_path: Path) -> None:
    language, kernel, change = FAULTS[fault]
    cases = draw_cases([kernel], 20)
    program = build(put_together(language, [kernel], change), tmp_path / "faulty", *(SANITIZERS if "beyond" in fault else ()))
    with pytest.raises(AssertionError, match="heap-buffer-overflow" if "beyond" in fault else "off by"):
        for each, made in zip(cases, ask(program, cases), strict=True):
            each.check(made)
