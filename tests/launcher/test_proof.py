"""The small run after an install, on stand-ins for torch whose product or convolution fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.base.start_command import name_command
from app.launcher import console, proof
from tests.support.checkout import TORCH

CARD = """
version = SimpleNamespace(hip={hip!r})
cuda = SimpleNamespace(is_available=lambda: True, get_device_name=lambda: "the card", get_device_capability=lambda: {capability})
class Cudnn:
    asked, enabled = 0, True
    def version(self):
        self.asked += 1
        if self.asked == 1: raise RuntimeError("cuDNN version is not compatible with devices with SM < 7.5.")
        return {cudnn}
backends.cudnn = Cudnn()
def fail(fault):
    def there(x, w):
        if x.device == "cuda" and isinstance(fault, str): raise RuntimeError(fault)
        return Tensor([0]) if x.device == "cuda" else x
    return there
"""
NO_ENGINE = "GET was unable to find an engine to execute this computation"
OPENED = """
import mmap
file = open({file!r}, "r+b")
opened = mmap.mmap(file.fileno(), 0)
"""


def prove(folder: Path, monkeypatch: pytest.MonkeyPatch, torch: str) -> dict[str, str]:
    (folder / "torch.py").write_text(TORCH + torch)
    monkeypatch.setattr(proof, "PROOF", f"import sys; sys.path.insert(0, {str(folder)!r})\n{proof.PROOF}")
    monkeypatch.setattr(proof, "python_of", lambda slot: Path(sys.executable))
    return proof.prove_torch(folder)


def card(capability: tuple[int, int] = (6, 1), cudnn: int = 91002, hip: str | None = None) -> str:
    return CARD.format(capability=capability, cudnn=cudnn, hip=hip)


def test_a_card_that_computes_right_is_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = prove(tmp_path, monkeypatch, card())
    assert (said["kind"], said["name"], said["trouble"]) == ("cuda", "the card", "")


@pytest.mark.parametrize(
    ("torch", "step", "trouble"),
    [
        (card() + f"nn.functional.conv2d = fail({NO_ENGINE!r})", "convolution", f"convolutions fail: {NO_ENGINE}"),
        (card() + "nn.functional.conv2d = fail(None)", "convolution", "convolutions fail: the result is wrong"),
        (card((6, 1), 91100, "7.2") + f"nn.functional.conv2d = fail({NO_ENGINE!r})", "convolution", f"convolutions fail: {NO_ENGINE}"),
        (card((7, 5), 91300) + f"nn.functional.conv2d = fail({NO_ENGINE!r})", "convolution", f"convolutions fail: {NO_ENGINE}"),
        (card() + "Tensor.__matmul__ = fail('no kernel image is available.\\nmore')", "product", "no kernel image is available"),
    ],
    ids=["an error", "a wrong result", "ROCm", "a card that a new cuDNN drives", "a product"],
)
def test_what_fails_on_the_card_is_worded(torch: str, step: str, trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = prove(tmp_path, monkeypatch, torch)
    assert said["step"] == step and str(proof.describe_trouble(said)) == trouble


@pytest.mark.parametrize(("capability", "cudnn"), [((6, 1), 91300), ((7, 0), 91100), ((5, 0), 92500)])
def test_a_foreign_cudnn_is_named_with_its_file(
    capability: tuple[int, int], cudnn: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cuDNN 9.11 dropped cards before 7.5; torch brings an older one, unless a path of the system puts another before it."""
    library = tmp_path / "the system's" / "libcudnn.so.9"
    library.parent.mkdir()
    library.write_bytes(b"cuDNN")
    failing = card(capability, cudnn) + f"nn.functional.conv2d = fail({NO_ENGINE!r})"
    if sys.platform == "linux":
        failing += OPENED.format(file=str(library))
    told = str(proof.describe_trouble(prove(tmp_path, monkeypatch, failing)))
    assert (
        f"cuDNN 9.{cudnn // 100 % 100} was loaded" in told and f"out of LD_LIBRARY_PATH or PATH, then run {name_command()} repair" in told
    )
    assert (str(library) in told) is (sys.platform == "linux")


WITHOUT_CUDNN = """
def conv2d(x, w):
    if x.device == "cuda" and backends.cudnn.enabled: raise RuntimeError("no engine")
    return {result}
nn.functional.conv2d = conv2d
"""


def test_a_card_computes_without_a_foreign_cudnn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch has convolutions of its own, so the card need not stay idle."""
    said = prove(tmp_path, monkeypatch, card((6, 1), 91300) + WITHOUT_CUDNN.format(result="x"))
    assert (said["kind"], said["trouble"]) == ("cuda", "")
    told = str(proof.describe_remark(said))
    assert told.startswith(
        "cuDNN 9.13 was loaded (not torch's own), which has no convolutions for this card, so torch computes them itself"
    )
    assert proof.describe_remark({"trouble": "", "kind": "cuda"}) is None


@pytest.mark.parametrize(
    ("torch", "why"),
    [
        (card((6, 1), 91300) + WITHOUT_CUDNN.format(result="Tensor([0]) if x.device == 'cuda' else x"), "wrong without cuDNN too"),
        (card((7, 5), 91300) + WITHOUT_CUDNN.format(result="x"), "a card that this cuDNN drives: nothing tells the engine to leave it off"),
    ],
)
def test_a_card_that_no_plan_would_save_stays_refused(torch: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = prove(tmp_path, monkeypatch, torch)
    assert said["trouble"] and proof.describe_remark(said) is None, why


def test_a_card_that_hangs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "PROOF_S", 0.2)
    with pytest.raises(console.Refused, match="its test did not end within"):
        prove(tmp_path, monkeypatch, "import time; time.sleep(60)")
