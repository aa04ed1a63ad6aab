"""What the ways of multiplying few lines take, what they leave to torch, and what happens where a kernel cannot be compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from app.base import notices
from app.compat.kernels import cuda, few_lines
from app.compat.kernels.few_lines import KernelRefused, candidates, choose_way, multiply
from app.compat.kernels.source import MOST_LINES, Numbers, write_source
from app.compat.machine.pretended import MACHINES
from tests.support import refused, stand_in_kernels

asked_anew = refused.asked_anew
HALF, WIDE = torch.float16, torch.float32
real: Callable[..., Any] = few_lines.find_kernel


def draw(*size: int) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(sum(size)))


@pytest.fixture
def forgotten() -> Iterator[None]:
    few_lines._compile.cache_clear()
    yield
    few_lines._compile.cache_clear()


@pytest.mark.parametrize("count", range(1, MOST_LINES + 1))
@pytest.mark.parametrize("dtype", [WIDE, HALF])
def test_lines_may_lie_anywhere_and_be_of_any_shape(dtype: torch.dtype, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins = stand_in_kernels.put(monkeypatch)
    weight, wide = draw(40, 64).to(HALF)[8:], draw(count, 3, 128).to(dtype)
    for lines in (wide[:, 1, 64:], wide[:, 2:, :64], wide[:, 1, ::2]):
        made = choose_way("kernel", "half")(lines, weight, None)
        assert made is not None and made.dtype == dtype and made.shape == (*lines.shape[:-1], 32)
        torch.testing.assert_close(made.double(), lines.double() @ weight.double().T, rtol=2e-3 if dtype == HALF else 1e-5, atol=1e-2)
    assert stand_ins.launched == {(16, count): 3}


def test_what_a_kernel_does_not_take_is_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins = stand_in_kernels.put(monkeypatch)
    weight, flat = draw(32, 64).to(HALF), draw(65).to(HALF)
    left: dict[str, tuple[Tensor, Tensor]] = {
        "more lines than it is written for": (draw(MOST_LINES + 1, 64).to(HALF), weight),
        "no line": (draw(0, 64).to(HALF), weight),
        "columns that are no whole reads": (draw(2, 60).to(HALF), draw(32, 60).to(HALF)),
        "lines that begin between two reads": (flat[1:].view(1, 64), weight),
        "a weight that begins between two reads": (draw(2, 32).to(HALF), flat[1:33].view(1, 32)),
        "a weight that lies in stripes": (draw(2, 32).to(HALF), weight[:, ::2]),
        "a weight in float32": (draw(2, 64), draw(32, 64)),
        "dtypes that do not meet": (draw(2, 64).to(torch.bfloat16), weight),
    }
    for why, (lines, its) in left.items():
        assert choose_way("kernel", "half")(lines, its, None) is None, why
    assert not stand_ins.compiled
    assert choose_way("torch", "half")(draw(2, 64).to(HALF), weight, None) is None
    packed = torch.zeros(32, 24, dtype=torch.uint8)
    assert multiply(4, draw(2, 48), packed, torch.zeros(1, 32, 2, dtype=HALF)) is None, "48 columns are no whole groups"


def test_line_by_line_is_what_torch_makes_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, linear = list[int](), torch.nn.functional.linear

    def count(lines: Tensor, weight: Tensor) -> Tensor:
        counted.append(len(lines))
        return linear(lines, weight)

    monkeypatch.setattr(torch.nn.functional, "linear", count)
    lines, weight = draw(2, 1, 64), draw(32, 64)
    made = choose_way("lines", "half")(lines, weight, None)
    assert made is not None and torch.equal(made[:, 0], torch.cat([linear(each, weight) for each in lines])) and counted == [1, 1]
    for given in (draw(1, 64), draw(MOST_LINES + 1, 64), lines.to(HALF)):
        assert choose_way("lines", "half")(given, weight, None) is None


def test_which_ways_a_machine_has_stands_in_the_table() -> None:
    found = {
        (name, dtype, weights): candidates(machine, dtype, weights, 2048)
        for name, machine in MACHINES.items()
        for dtype in ("float32", "float16", "bfloat16")
        for weights in ("half", "int8", "int4")
    }
    assert found["gtx-1060", "float32", "int8"] == found["t4", "float16", "half"] == found["rtx-3060", "bfloat16", "int4"] == ("kernel",)
    assert found["gtx-1060", "bfloat16", "int8"] == (), "an old card computes nothing in it"
    assert found["m3-max-64gb", "float16", "half"] == ("kernel", "lines") and found["m3-max-64gb", "float16", "int8"] == ("kernel",)
    assert found["m1-8gb", "float16", "half"] == ("lines",) and found["m1-8gb", "float16", "int8"] == (), "its torch 2.6 compiles no shader"
    assert not any(ways for (name, *_), ways in found.items() if name == "cpu")
    assert candidates(replace(MACHINES["t4"], kind="rocm"), "float16", "half", 2048) == ()
    assert candidates(MACHINES["t4"], "float16", "half", 2044) == candidates(MACHINES["t4"], "float16", "int4", 2056) == ()
    assert candidates(MACHINES["m3-max-64gb"], "float16", "half", 2044) == ("lines",)


def test_a_kernel_that_does_not_compile_is_tried_once_and_told_once(
    asked_anew: None, forgotten: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tried = list[str]()

    def compile_kernel(source: str, name: str) -> None:
        tried.append(name)
        raise RuntimeError("CUDA error: nvrtcCompileProgram gave hearth.cu(3): error: nothing\nand more")

    monkeypatch.setattr(cuda, "compile_kernel", compile_kernel)
    numbers = Numbers("float32", "float16")
    monkeypatch.setattr(few_lines, "find_kernel", lambda _, *given: real("cuda", *given))
    lines, weight = draw(2, 64), draw(32, 64).to(HALF)
    for _ in range(3):
        assert choose_way("kernel", "half")(lines, weight, None) is None
    (told,) = notices.take_all()
    assert told.key == "product.refused" and "error: nothing" in str(told) and "and more" not in str(told)
    with pytest.raises(KernelRefused, match="and more"):
        real("cuda", numbers, 2, 16)
    assert tried == ["multiply"]
    with pytest.raises(KernelRefused, match="no kernel is written for xpu"):
        real("xpu", numbers, 2, 16)


def test_a_lack_of_memory_is_no_refusal(forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_kernel(source: str, name: str) -> None:
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(cuda, "compile_kernel", compile_kernel)
    with pytest.raises(RuntimeError, match="out of memory") as told:
        real("cuda", Numbers("float32", "float16"), 2, 16)
    assert not isinstance(told.value, KernelRefused)


def test_metal_gets_whole_groups_of_threads_and_numbers_of_four_bytes(forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    launched = list[tuple[tuple[Any, ...], dict[str, Any]]]()

    class Library:
        def multiply(self, *given: Any, **how: Any) -> None:
            launched.append((given, how))
            given[3].fill_(7)

    sources = list[str]()
    monkeypatch.setattr(torch.mps, "compile_shader", lambda source: sources.append(source) or Library())
    monkeypatch.setattr(few_lines, "find_kernel", lambda _, *given: real("mps", *given))
    lines, weight = draw(2, 64).to(HALF), draw(33, 64).to(HALF)
    made = choose_way("kernel", "half")(lines, weight, None)
    assert made is not None and (made == 7).all() and sources == [write_source("metal", Numbers("float16", "float16"), 2, 16)]
    ((given, how),) = launched
    assert given[4:] == (33, 64) and how == {"threads": 3 * 128, "group_size": 128, "arg_casts": "int32"}
    few_lines._compile.cache_clear()
    monkeypatch.delattr(torch.mps, "compile_shader")
    with pytest.raises(KernelRefused, match="compile_shader"):
        real("mps", Numbers("float16", "float16"), 2, 16)


class Driver:
    """The card's driver as ctypes gives it; notes what it is asked to launch."""

    def __init__(self) -> None:
        self.launched = list[tuple[Any, ...]]()
        self.fault = 0

    def cuModuleLoadData(self, module: Any, code: bytes) -> int:
        return int(code != b"code")

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        return int(name != b"multiply")

    def cuLaunchKernel(self, function: Any, *given: Any) -> int:
        *sizes, stream, places, _ = given
        pointers = [ctypes.cast(places[at], ctypes.POINTER(ctypes.c_void_p))[0] for at in range(4)]
        numbers = [ctypes.cast(places[at], ctypes.POINTER(ctypes.c_uint))[0] for at in (4, 5)]
        self.launched.append((sizes, stream.value, pointers, numbers))
        return self.fault


@pytest.mark.parametrize("private", [True, False])
def test_a_card_gets_places_and_sizes_in_torchs_stream(private: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        cuda_stream = 77

        def synchronize(self) -> None: ...

    driver = Driver()
    monkeypatch.setattr(cuda, "_load_driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda *_: Stream())
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    if private:
        monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 88 + device, raising=False)
    launch, tensors = cuda.Launch(b"code", "multiply"), [draw(2, 64), draw(33, 64).to(HALF), draw(33).to(HALF), draw(2, 33)]
    for given in (tensors, tensors[::-1]):
        launch(*given, 33, 64)
        assert driver.launched[-1] == ([3, 1, 1, 128, 1, 1, 0], 88 if private else 77, [each.data_ptr() for each in given], [33, 64])
    driver.fault = 700
    with pytest.raises(RuntimeError, match="CUDA error: cuLaunchKernel gave 700"):
        launch(*tensors, 33, 64)


class Nvrtc:
    """NVRTC's functions as ctypes gives them."""

    def __init__(self, fault: int) -> None:
        self._fault, self.options, self.ended = fault, list[bytes](), 0

    def nvrtcCreateProgram(self, program: Any, source: bytes, *_: Any) -> int:
        return 0 if b"KERNEL(multiply)" in source else 1

    def nvrtcCompileProgram(self, program: Any, count: int, options: Any) -> int:
        self.options = [options[at] for at in range(count)]
        return self._fault

    def __getattr__(self, name: str) -> Callable[..., int]:
        words = {"CUBIN": b"\x7fELF\0code", "ProgramLog": b"hearth.cu(9): error: identifier\0"}[
            name.removeprefix("nvrtcGet").removesuffix("Size")
        ]

        def answer(program: Any, place: Any) -> int:
            if name.endswith("Size"):
                ctypes.cast(place, ctypes.POINTER(ctypes.c_size_t))[0] = len(words)
            else:
                ctypes.memmove(place, words, len(words))
            return 0

        return answer

    def nvrtcDestroyProgram(self, program: Any) -> int:
        self.ended += 1
        return 0


@pytest.mark.parametrize("fault", [0, 6])
def test_nvrtc_compiles_for_the_card_that_is_there(fault: int, monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc, loaded = Nvrtc(fault), list[tuple[bytes, str]]()
    monkeypatch.setattr(cuda, "_load_nvrtc", lambda: nvrtc)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (6, 1))
    monkeypatch.setattr(cuda, "Launch", lambda code, name: loaded.append((code, name)))
    source = write_source("cuda", Numbers("float32", "float16"), 2, 8)
    if fault:
        with pytest.raises(RuntimeError, match=r"nvrtcCompileProgram gave hearth.cu\(9\): error: identifier$"):
            cuda.compile_kernel(source, "multiply")
    else:
        cuda.compile_kernel(source, "multiply")
        assert loaded == [(b"\x7fELF\0code", "multiply")]
    assert nvrtc.options == [b"--gpu-architecture=sm_61"] and nvrtc.ended == 1
