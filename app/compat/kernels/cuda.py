"""Compile kernels by NVRTC, which every torch for NVIDIA cards brings along, and launch them in torch's stream.

torch.cuda._compile_kernel does the same only where a whole toolkit is installed (CUDA_HOME), and looks for the library where its own wheels do not put it."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from app.compat.kernels.source import THREADS, count_threads


class Launch:
    """A compiled kernel, for the one thread that owns the device: its arguments have their places once and for all, which takes half of the time."""

    def __init__(self, code: bytes, name: str) -> None:
        self._function, module = ctypes.c_void_p(), ctypes.c_void_p()
        torch.cuda.current_stream().synchronize()  # whatever thread this is, the card's context is current in it from here on
        _check("cuModuleLoadData", _load_driver().cuModuleLoadData(ctypes.byref(module), code))
        _check("cuModuleGetFunction", _load_driver().cuModuleGetFunction(ctypes.byref(self._function), module, name.encode()))
        self._launch = _load_driver().cuLaunchKernel
        self._given: tuple[Any, ...] = (*(ctypes.c_void_p() for _ in range(4)), ctypes.c_uint(), ctypes.c_uint())
        self._places = (ctypes.c_void_p * len(self._given))(*map(ctypes.addressof, self._given))

    def __call__(self, *given: Tensor | int) -> None:
        """Launch it with lines, weight, scales, the place of the products, rows and columns."""
        for place, each in zip(self._given, given, strict=True):
            place.value = each.data_ptr() if isinstance(each, Tensor) else each
        stream = ctypes.c_void_p(_find_stream(torch.cuda.current_device()))
        blocks = count_threads(self._given[4].value) // THREADS
        _check("cuLaunchKernel", self._launch(self._function, blocks, 1, 1, THREADS, 1, 1, 0, stream, self._places, None))


def compile_kernel(source: str, name: str) -> Launch:
    """Raise RuntimeError or OSError where it cannot be compiled for this card."""
    nvrtc, program = _load_nvrtc(), ctypes.c_void_p()
    major, minor = torch.cuda.get_device_capability()
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{major}{minor}".encode())
    _check("nvrtcCreateProgram", nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"hearth.cu", 0, None, None))
    try:
        fault = nvrtc.nvrtcCompileProgram(program, len(options), options)
        _check("nvrtcCompileProgram", fault, _read(nvrtc, "ProgramLog", program) if fault else b"")
        return Launch(_read(nvrtc, "CUBIN", program), name)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _read(nvrtc: Any, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(f"nvrtcGet{what}Size", getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    found = ctypes.create_string_buffer(size.value)
    _check(f"nvrtcGet{what}", getattr(nvrtc, f"nvrtcGet{what}")(program, found))
    return found.raw


def _find_stream(device: int) -> int:
    """Return torch's stream, by its private function where it has that: the public one takes a third of a launch."""
    private = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return int(torch.cuda.current_stream(device).cuda_stream if private is None else private(device))


def _check(call: str, fault: int, words: bytes = b"") -> None:
    if fault:
        raise RuntimeError(f"CUDA error: {call} gave {words.decode(errors='replace').strip(chr(0)) or fault}")


@cache
def _load_driver() -> Any:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@cache
def _load_nvrtc() -> Any:
    """Load it from where torch's wheels put it, or from where the system finds it."""
    major = str(torch.version.cuda).partition(".")[0]
    name = f"nvrtc64_{major}0_0.dll" if sys.platform == "win32" else f"libnvrtc.so.{major}"
    torchs = Path(torch.__file__).parent
    found = [*torchs.parent.glob(f"nvidia/*/lib/{name}"), torchs / "lib" / name]
    return ctypes.CDLL(str(next((each for each in found if each.is_file()), name)))
