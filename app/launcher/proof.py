"""Prove that an installed torch computes right on the card: a product of matrices and a convolution, against the processor."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from app.base.duration import word_duration
from app.base.sentence import Sentence, Value, say
from app.launcher.console import Halted, Refused
from app.launcher.slots import python_of

CUDNN_ENDS = 91100  # cuDNN 9.11 dropped cards before compute capability 7.5 (pytorch #162574)
PROOF = """
import json, torch
def product(device):
    x = torch.arange(4096, dtype=torch.float32).reshape(64, 64) / 4096
    y = x.to(device)
    return (y @ y.T).softmax(-1).cpu()
def convolution(device):
    x = torch.arange(3072, dtype=torch.float32).reshape(1, 3, 32, 32) / 3072
    w = torch.arange(216, dtype=torch.float32).reshape(8, 3, 3, 3) / 216
    return torch.nn.functional.conv2d(x.to(device), w.to(device)).cpu()
def cudnn():
    if kind != "cuda" or torch.version.hip:
        return ""
    try:
        return str(torch.backends.cudnn.version())
    except Exception:
        return str(torch.backends.cudnn.version())  # it refuses once, then answers
def cudnn_file():
    try:
        return next((line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "libcudnn." in line), "")
    except OSError:
        return ""
kind = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
said = {"kind": kind, "name": kind, "torch": torch.__version__, "trouble": "", "step": ""}
try:
    if kind == "cuda":
        said["name"] = torch.cuda.get_device_name()
    # convolutions in TensorFloat-32, which newer cards take by themselves, are right to three digits
    for step, tolerance in ((product, 1e-4), (convolution, 0.05)):
        said["step"] = step.__name__
        if not torch.allclose(step(kind), step("cpu"), atol=tolerance):
            said["trouble"] = "the result is wrong"
            break
except Exception as fault:
    said["trouble"] = (str(fault).strip().splitlines() or [type(fault).__name__])[0]
if said["trouble"] and said["step"] == "convolution" and kind == "cuda":
    try:
        capability = torch.cuda.get_device_capability()
        said.update(cudnn=cudnn(), cudnn_file=cudnn_file(), capability=".".join(map(str, capability)))
        if said["cudnn"].isdigit() and int(said["cudnn"]) >= {CUDNN_ENDS} and capability < (7, 5):
            torch.backends.cudnn.enabled = False
            if torch.allclose(convolution(kind), convolution("cpu"), atol=0.05):
                said["trouble"] = ""
    except Exception:
        pass
print(json.dumps(said))
""".replace("{CUDNN_ENDS}", str(CUDNN_ENDS))
PROOF_S = 600  # the first convolution on a Radeon is compiled, which takes a while


def prove_torch(slot: Path) -> dict[str, str]:
    try:
        done = subprocess.run([python_of(slot), "-I", "-c", PROOF], capture_output=True, text=True, timeout=PROOF_S)
    except subprocess.TimeoutExpired:
        raise Refused(
            say("start.hangs", "torch was installed, but its test did not end within {time}.", time=word_duration(PROOF_S))
        ) from None
    if done.returncode and "Visual C++ Redistributable" in done.stdout:
        raise Halted(
            say(
                "start.redistributable",
                "torch was installed but cannot be loaded, because Microsoft's Visual C++ Redistributable is missing. "
                "Install it from {link} and start again.",
                link="https://aka.ms/vs/17/release/vc_redist.x64.exe",
            )
        )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [str(done.returncode)])[-1]
        raise Refused(say("start.no-torch", "torch was installed but cannot be loaded: {why}", why=why))
    said: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    return said


def describe_remark(proof: Mapping[str, str]) -> Sentence | None:
    """Word what a card that passed does without, and how to get it back."""
    if proof["trouble"] or not proof.get("cudnn"):
        return None
    return say(
        "proof.without-cudnn",
        "cuDNN {version} was loaded ({file}), which has no convolutions for this card, so torch computes them itself, which is slower. torch "
        "brings the right one: take the other one's folder out of LD_LIBRARY_PATH or PATH, then run {hearth} repair.",
        **_name_cudnn(proof),
    )


def _name_cudnn(proof: Mapping[str, str]) -> dict[str, Value]:
    number = int(proof["cudnn"])
    return {
        "version": f"{number // 10000}.{number // 100 % 100}",
        "file": proof.get("cudnn_file") or say("proof.elsewhere", "not torch's own"),
    }


def describe_trouble(proof: Mapping[str, str]) -> str | Sentence:
    """Word what failed in the proof, and what stands in its way where that is known."""
    fault, cudnn = proof["trouble"].rstrip("."), proof.get("cudnn", "")
    if cudnn.isdigit() and int(cudnn) >= CUDNN_ENDS and tuple(map(int, proof["capability"].split("."))) < (7, 5):
        return say(
            "proof.cudnn",
            "convolutions fail, because cuDNN {version} was loaded ({file}) and this card needs 9.10 or older. torch brings the right one: "
            "take the other one's folder out of LD_LIBRARY_PATH or PATH, then run {hearth} repair",
            **_name_cudnn(proof),
        )
    if proof.get("step") == "convolution":
        return say("proof.convolution", "convolutions fail: {fault}", fault=fault)
    return fault
