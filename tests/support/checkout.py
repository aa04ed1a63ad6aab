"""A checkout and packages small enough for start.py to make an environment in seconds, under an awkward path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from app.base.languages import FOLDER
from app.launcher import console, slots
from tests.support.places import TOP

TORCH = '''
"""A stand-in with the few operations of the proof."""
import os
from types import SimpleNamespace
__version__ = "0.0.1"
float32 = None
class Tensor(list):
    device = "cpu"
    reshape = lambda self, *_: self
    def to(self, device):
        moved = Tensor(self)
        moved.device = device
        return moved
    __truediv__ = __matmul__ = lambda self, other: self
    softmax = lambda self, axis: self
    cpu = lambda self: self
    T = property(lambda self: self)
def arange(count, dtype): return Tensor(range(count))
def allclose(one, other, atol): return one == other
cuda = SimpleNamespace(is_available=lambda: False)
nn = SimpleNamespace(functional=SimpleNamespace(conv2d=lambda x, w: x))
backends = SimpleNamespace(mps=SimpleNamespace(is_available=lambda: False))
'''
MAIN = """
import json, os, sys
if "--crash" in sys.argv: sys.exit(7)
if "--hold" in sys.argv:
    from app.launcher import slot_lock
    slot_lock.hold()
    print("open", flush=True)
    sys.exit(sys.stdin.read())
if sys.argv[1:] == ["doctor", "--selftest"]: sys.exit(os.environ.get("BROKEN") == "1")
print(json.dumps({"words": sys.argv[1:], "at": os.getcwd(), "prefix": sys.prefix, "file": __file__, "utf8": sys.flags.utf8_mode}))
"""
PYTEST = "import json, os, sys\nprint(json.dumps({'words': sys.argv[1:], 'at': os.getcwd()}))\nsys.exit(5)\n"


def wheel(folder: Path, name: str, version: str, needs: str = "", **files: str) -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as packed:
        for path, text in files.items():
            packed.writestr(f"{name}/{path}.py", text)
        packed.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        packed.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: here\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{info}/RECORD", "")


NEEDED = (
    "start.py",
    "app/__init__.py",
    "app/base/__init__.py",
    "app/base/clean_words.py",
    "app/base/commands.py",
    "app/base/start_command.py",
    "app/base/terminal_lines.py",
    "app/base/duration.py",
    "app/base/sentence.py",
    "app/base/trouble.py",
    "app/base/graphics_cards.py",
    "app/base/languages.py",
    "app/base/macos_version.py",
    "app/base/palette.py",
    "app/base/private_words.py",
    *(
        f"app/launcher/{name}.py"
        for name in (
            "__init__",
            "broken_pull",
            "checks",
            "command",
            "console",
            "ed25519",
            "failure",
            "install",
            "new_environment",
            "pip_command",
            "machine_facts",
            "proof",
            "release_archive",
            "releases",
            "repair_page",
            "slot_lock",
            "slots",
            "supervisor",
            "torch_build",
            "update",
        )
    ),
    "app/launcher/release_keys.txt",
    *(path.relative_to(TOP).as_posix() for path in sorted(FOLDER.glob("*.json"))),
)
"""start.py has these at hand before there is an environment."""


class Checkout:
    """A small one under an awkward path, with its own packages, home and environment variables."""

    def __init__(self, folder: Path) -> None:
        self.top = folder / "it's ü neu" / "hearth"
        self.wheels = folder / "wheels"
        self.elsewhere = folder / "else where"
        for room in ("launcher", "base/locale"):
            (self.top / "app" / room).mkdir(parents=True)
        self.wheels.mkdir()
        (self.elsewhere / "app").mkdir(parents=True)  # must not be taken for Hearth's own
        (self.elsewhere / "app" / "__init__.py").write_text("raise SystemExit('the wrong app')")
        for name in NEEDED:
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, self.top / name)
        (self.top / "app" / "__main__.py").write_text(MAIN)
        self.told: list[tuple[tuple[str, str], int]] = []
        self.wants("small==1.0")
        wheel(self.wheels, "torch", "0.0.1", __init__=TORCH)
        wheel(self.wheels, "pytest", "1.0", __init__="", __main__=PYTEST)
        for name in ("bell", "tone"):
            wheel(self.wheels, name, "1.0", __init__="")
        for version in ("1.0", "2.0"):
            wheel(self.wheels, "small", version, __init__="")
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("HEARTH", "PIP_", "PYTHON"))}
        self.env = {
            **keep,
            "HOME": str(folder / "home"),
            "XDG_DATA_HOME": str(folder / "home" / "data"),
            "LOCALAPPDATA": str(folder / "home" / "data"),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_USER": "1",
            "PYTHONPATH": str(self.elsewhere),
            "PATH": os.environ["PATH"] if console.WINDOWS else os.defpath,  # on Windows the latter has no git
            "GIT_CONFIG_GLOBAL": os.devnull,
        }

    def wants(self, pin: str) -> None:
        name = pin.split("==")[0]
        (self.top / "pyproject.toml").write_text(
            f'[project]\ndependencies = ["torch", "{name}"]\n'
            '[project.optional-dependencies]\ntest = ["pytest"]\nbell = ["bell"]\ntone = ["tone"]\nvoid = ["void"] # which nobody has\n'
        )
        (self.top / "constraints.txt").write_text(f"torch==0.0.1\n{pin}\n")

    def begin(self, *words: str, **env: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(self.top / "start.py"), *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.elsewhere, env={**self.env, **env}, stdout=pipe, stderr=pipe, text=True)

    def start(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        child = self.begin(*words, **env)
        out, err = child.communicate(timeout=200)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def git(self, *words: str, at: Path | None = None) -> str:
        named = ["git", "-c", "user.name=one", "-c", "user.email=one@example.org", *words]
        return subprocess.run(named, cwd=at or self.top, env=self.env, check=True, capture_output=True, text=True).stdout.strip()

    @property
    def packages(self) -> Path:
        return next(self.slot.glob("Lib/site-packages" if console.WINDOWS else "lib/python*/site-packages"))

    @property
    def slot(self) -> Path:
        return slots.current_slot(self.top / ".venv")
