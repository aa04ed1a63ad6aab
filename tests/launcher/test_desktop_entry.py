"""Hearth among a person's apps: what is written on each system, checked file by file, and the launchers that it leads to."""

from __future__ import annotations

import base64
import configparser
import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from app import __version__
from app.__main__ import main
from app.base import extras
from app.base.paths import assets, home
from app.base.start_command import name_command
from app.base.system_notice import find_powershell
from app.base.trouble import Trouble
from app.launcher import desktop_entry
from tests.support.places import TOP

AWKWARD = '/home/O\'Neil/a b/ü $HOME `x` 100% "q" \\/hearth.sh'
PYTHON = shlex.quote(sys.executable)
TOOLS = ("bash", "dirname", "uname", "mkdir", "cut", "cat", "tail", "sleep", "nohup", "tar", "rm", "sha256sum", "chmod", "cp", "gzip")
LAUNCHERS = ("hearth.sh", "Hearth.command", ".ci/run")


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "hearth"))
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="a Mac's bundle starts a shell script")
def test_the_bundle_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "it's logs" / "app.log"
    icon = (assets() / "icons" / "hearth.icns").read_bytes()
    desktop_entry.write_files(tmp_path / "Hearth.app", desktop_entry.mac_bundle(["/bin/echo", 'ü it\'s "in" $HOME'], icon, log))
    contents = tmp_path / "Hearth.app" / "Contents"
    about = plistlib.loads((contents / "Info.plist").read_bytes())
    assert about["CFBundleShortVersionString"] == __version__ and about["LSArchitecturePriority"] == ["arm64"]
    assert (contents / "Resources" / about["CFBundleIconFile"]).read_bytes() == icon
    script = contents / "MacOS" / about["CFBundleExecutable"]
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)
    done = subprocess.run([script], cwd="/", env={"HOME": str(tmp_path), "PATH": os.defpath}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert log.read_text() == 'ü it\'s "in" $HOME\n', "the words arrive as they are"


@pytest.mark.skipif(sys.platform == "win32", reason="a Mac's bundle starts a shell script")
def test_a_bundle_that_fails_shows_what_was_said(tmp_path: Path) -> None:
    for tool in ("osascript", "open"):
        (tmp_path / tool).write_text(f'#!/bin/sh\nfor word; do last=$word; done\necho "{tool}: $last"\n')
        (tmp_path / tool).chmod(0o755)
    log = tmp_path / "app.log"
    desktop_entry.write_files(tmp_path / "a.app", desktop_entry.mac_bundle(["/bin/sh", "-c", "echo no torch; exit 3"], b"", log))
    env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.defpath}"}
    done = subprocess.run([tmp_path / "a.app/Contents/MacOS/Hearth"], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == f"osascript: no torch\nopen: {log}\n"


def parsed(entry: str) -> tuple[dict[str, str], list[str]]:
    """By the specification: the string's escapes first, then the quoting of Exec, then its field codes."""
    file = configparser.RawConfigParser(interpolation=None)
    file.optionxform = str  # type: ignore[assignment, method-assign]
    file.read_string(entry)
    fields = dict(file["Desktop Entry"])
    quoted = re.findall(r'"((?:\\.|[^"\\])*)"', fields["Exec"].replace("\\\\", "\\"))
    return fields, [re.sub(r"\\(.)", r"\1", word).replace("%%", "%") for word in quoted]


def size(icon: str | Path) -> tuple[int, int]:
    with Image.open(icon) as image:
        return image.size


def test_the_desktop_entry_leads_back_to_the_launcher() -> None:
    fields, command = parsed(desktop_entry.desktop_entry([AWKWARD, "100%"], Path("/i/hearth.png")))
    assert command == [AWKWARD, "100%"] and "%" not in fields["Exec"].replace("%%", ""), "a lone % is a field code"
    assert fields["Type"] == "Application" and fields["Icon"] == "/i/hearth.png"


@pytest.mark.skipif(sys.platform != "linux", reason="what Linux desktops read")
def test_installed_and_removed_on_linux(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install-app"]) == 0
    written = own_home / "data" / "applications" / "hearth.desktop"
    assert str(written) in capsys.readouterr().out
    fields, command = parsed(written.read_text("utf-8"))
    assert command == [str(TOP / "hearth.sh")] and size(fields["Icon"]) == (512, 512)
    if shutil.which("desktop-file-validate"):
        checked = subprocess.run(["desktop-file-validate", written], capture_output=True, text=True)
        assert checked.returncode == 0 and not checked.stdout, checked.stdout
    sizes = {size(icon)[0] for icon in (own_home / "data" / "icons").rglob("hearth.png")}
    assert sizes == set(desktop_entry.SIZES_PX)

    keep = home().create().creations / "keep.png"
    keep.touch()
    assert main(["remove-app"]) == 0
    said = capsys.readouterr().out
    assert not [*(own_home / "data").rglob("hearth.*")] and keep.exists()
    assert str(home().root) in said and str(home().models) in said and str(TOP) in said
    assert main(["remove-app", "--delete-creations"]) == 0 and not keep.exists()


def test_a_person_is_asked_before_creations_go(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = home().create().root
    monkeypatch.setattr(desktop_entry, "installed_paths", lambda system: [])
    monkeypatch.setattr(desktop_entry, "run", lambda command: None)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    for answer, there in (("", True), ("y", True), ("n", False)):
        monkeypatch.setattr("builtins.input", lambda question, answer=answer: answer if str(root) in question else "?")
        assert main(["remove-app"]) == 0 and root.exists() is there


def test_windows_shortcuts() -> None:
    script = desktop_entry.windows_shortcuts([r"C:\Users\O'Neil ü\hearth\Hearth.bat"], Path(r"C:\Users\O'Neil ü\hearth.ico"))
    assert r"TargetPath = 'C:\Users\O''Neil ü\hearth\Hearth.bat'" in script
    assert "IconLocation = 'C:\\Users\\O''Neil ü\\hearth.ico,0'" in script
    assert "'Programs', 'Desktop'" in script and script.count("Save()") == 1
    assert script.count("{") == script.count("}") and script.replace("''", "").count("'") % 2 == 0
    command = desktop_entry.powershell_command(script)
    assert script in base64.b64decode(command[-1]).decode("utf-16-le") and " ".join(command).isascii()
    assert command[0] == find_powershell(), "not one in the working folder"
    assert len(" ".join(command)) < 32000, "the longest command line that Windows takes"


@pytest.mark.parametrize("script", ["", desktop_entry.NO_SHORTCUTS, desktop_entry.windows_shortcuts(["a"], Path("b"))])
def test_windows_ends_well_unless_something_failed_and_then_says_what(script: str) -> None:
    """PowerShell's own exit code is 1 where its last command met nothing to remove, and its stderr is XML when it is encoded."""
    whole = base64.b64decode(desktop_entry.powershell_command(script)[-1]).decode("utf-16-le")
    good, _, bad = whole.partition("} catch {\n")
    assert good == f"try {{\n{script}exit 0\n" and bad.endswith("  exit 1\n}\n") and whole.count("{") == whole.count("}")
    told = [sys.executable, "-c", "import sys; sys.stdout.buffer.write('拒绝访问。\\n'.encode()); sys.exit('#< CLIXML')"]
    with pytest.raises(Trouble, match=r"Windows says: 拒绝访问。$"):
        desktop_entry.run(told)


def test_what_is_in_use_is_not_called_deleted(own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    root = home().create().root
    monkeypatch.setattr(desktop_entry, "remove", lambda system: None)
    monkeypatch.setattr(shutil, "rmtree", lambda folder, ignore_errors: None)
    assert main(["remove-app", "--delete-creations"]) == 0
    said = capsys.readouterr().out
    assert f"delete the rest: {root}" in said and f"Deleted: {root}" not in said


def test_icons_have_every_size() -> None:
    icons = assets() / "icons"
    for path in icons.glob("icon-*.png"):
        with Image.open(path) as image:
            assert image.size == (int(path.stem[5:]),) * 2 and image.mode == "RGBA"
            assert image.getpixel((0, 0))[3] < 8, "round corners"  # type: ignore[index]
    with Image.open(icons / "hearth.ico") as ico:
        assert {(16, 16), (32, 32), (48, 48), (256, 256)} <= set(ico.info["sizes"])
    with Image.open(icons / "hearth.icns") as icns:
        assert {(512, 512, 2), (128, 128, 1)} <= set(icns.info["sizes"])


@pytest.mark.skipif(sys.platform == "win32", reason="its bash is that of another system, and no file is a program by a mark")
@pytest.mark.parametrize("name", LAUNCHERS)
def test_launchers_are_right_shell(name: str) -> None:
    assert os.access(TOP / name, os.X_OK) and b"\r" not in (TOP / name).read_bytes()
    subprocess.run(["bash", "-n", TOP / name], check=True)
    kept = subprocess.run(["git", "check-attr", "eol", name], cwd=TOP, capture_output=True, text=True)
    assert kept.stdout == f"{name}: eol: lf\n", "a clone on Windows would end its lines otherwise"
    if shutil.which("shellcheck"):
        checked = subprocess.run(["shellcheck", TOP / name], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout


def test_launchers_pin_the_same_uv_and_pythons() -> None:
    shell, batch = (TOP / "hearth.sh").read_text(), (TOP / "Hearth.bat").read_text()
    pins = [re.search(r"UV=([\d.]+)", text)[1] for text in (shell, batch)]  # type: ignore[index]
    assert pins[0] == pins[1]
    sums = re.findall(r"\b[0-9a-f]{64}\b", shell + batch)
    assert len(set(sums)) == 4 and all(sum_ in shell + batch for sum_ in sums)
    assert all("(3, 11) <= sys.version_info[:2] <= (3, 14)" in text for text in (shell, batch))


class Desk:
    """hearth.sh with tools of our own on its PATH, a stand-in of start.py, and an awkward place."""

    def __init__(self, folder: Path) -> None:
        self.top, self.tools, self.home = folder / "it's ü neu", folder / "bin", folder / "home"
        for each in (self.top, self.tools, self.home):
            each.mkdir()
        shutil.copy(TOP / "hearth.sh", self.top)
        (self.top / "start.py").write_text("import sys; print('started with', sys.argv[1:])")
        for tool in TOOLS:
            (self.tools / tool).symlink_to(shutil.which(tool) or "/bin/false")

    def tool(self, name: str, script: str) -> None:
        (self.tools / name).unlink(missing_ok=True)  # a link to the machine's own, which must not be written to
        (self.tools / name).write_text(f"#!/bin/bash\n{script}\n")
        (self.tools / name).chmod(0o755)

    def run(self, *words: str, lang: str = "") -> subprocess.CompletedProcess[str]:
        env = {"PATH": str(self.tools), "HOME": str(self.home), "LANG": lang}
        return subprocess.run(
            [self.top / "hearth.sh", *words], cwd="/", env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )

    @property
    def data(self) -> Path:
        return self.home / ".local/share/Hearth"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    if sys.platform != "linux" or any(Path(p, "python3").exists() for p in ("/usr/local/bin", "/opt/homebrew/bin")):
        pytest.skip("needs a Linux whose only Python is on the PATH")
    return Desk(tmp_path)


def test_the_launcher_takes_the_python_that_fits(desk: Desk) -> None:
    desk.tool("python3.13", "exit 1")  # there, but cannot make environments
    desk.tool("python3.12", f'exec {PYTHON} "$@"')
    done = desk.run("speak", "a b")
    assert done.stdout == "started with ['speak', 'a b']\n", done.stderr


def test_on_apple_silicon_a_python_for_intel_makes_way(desk: Desk) -> None:
    """Even in a terminal that runs as an Intel program itself."""
    desk.tool("uname", '[ "$1" = -s ] && echo Darwin || echo x86_64')
    desk.tool("sysctl", "echo 1")

    def python(machine: str) -> str:
        asked = f"import platform; platform.machine = lambda: '{machine}'\n"
        return f'[ "$1" = -c ] && exec {PYTHON} -c "{asked}$2" "$3"\necho {machine}; exec {PYTHON} "$@"'

    desk.tool("python3.13", python("x86_64"))
    desk.tool("python3.12", python("arm64"))
    done = desk.run("doctor")
    assert done.stdout == "arm64\nstarted with ['doctor']\n", done.stdout + done.stderr
    desk.tool("sysctl", "exit 1")
    assert desk.run("doctor").stdout.startswith("x86_64\n"), "an Intel Mac, of which start.py says what it needs"


def test_macos_13_is_told_before_a_python_is_downloaded(desk: Desk) -> None:
    desk.tool("uname", '[ "$1" = -s ] && echo Darwin || echo arm64')
    desk.tool("sysctl", "echo 1")
    desk.tool("curl", 'echo curl was run >&2; while [ "$1" != -o ]; do shift; done; echo not uv >"$2"')
    for version, told, downloads in (("13.6.4", "runs macOS 13.6.4, and torch", False), ("14.0", "wrong checksum", True)):
        desk.tool("sw_vers", f"echo {version}")
        done = desk.run("doctor")
        assert done.returncode == 1 and told in done.stderr and ("curl was run" in done.stderr) is downloads, done.stderr


def test_the_window_that_closes_is_known_by_its_terminal() -> None:
    script = (TOP / "Hearth.command").read_text()
    assert "contains" not in script and '"$(tty)"' in script, "AppleScript's contains takes whoever has the word in a name"


def test_opened_without_words_it_lets_hearth_go_on_by_itself(desk: Desk) -> None:
    (desk.top / ".venv").mkdir()
    (desk.top / ".venv/current").touch()
    desk.tool("python3", f'exec {PYTHON} "$@"')
    # Its first second ends with the Hearth that it began: it looks six times, and a busy machine takes longer to start a Python.
    desk.tool("sleep", f'until [ "$(</proc/$PPID/task/$PPID/children)" = "$$ " ]; do {shutil.which("sleep")} 0.1; done')
    done = desk.run()
    assert done.returncode == 0 and done.stdout == "started with ['--version']\n"
    assert (desk.data / "logs/launcher.log").read_text().endswith("started with []\n")
    (desk.top / "start.py").write_text("import sys; sys.exit(0 if sys.argv[1:] else 'broken pipe organ')")
    done = desk.run()
    assert done.returncode == 1 and "broken pipe organ" in done.stderr and "hearth.sh repair" in done.stderr


def test_what_nobody_reads_is_said_by_a_page(desk: Desk) -> None:
    """Opened from a menu, with no window to talk in: start.py, asked to open, shows what went wrong."""
    desk.tool("python3", f'exec {PYTHON} "$@"')
    (desk.top / "start.py").write_text("import sys; print('opens', sys.argv[1:]); sys.exit(3)")
    done = desk.run()
    assert done.returncode == 3 and done.stdout == "opens ['--version']\nopens []\n"


def test_what_has_another_checksum_is_thrown_away_and_never_run(desk: Desk) -> None:
    desk.tool("curl", 'while [ "$1" != -o ]; do shift; done; echo not uv >"$2"')
    done = desk.run("doctor")
    assert done.returncode == 1 and "was deleted and not run" in done.stderr
    assert not [*desk.data.glob("uv-*/*")] and "started" not in done.stdout


@pytest.mark.parametrize(
    ("lang", "told"),
    [
        ("de_AT.UTF-8", "Das Herunterladen ist gescheitert."), ("zh_CN.utf8", "下载失败。"), ("ja_JP.UTF-8", "ダウンロードに失敗しました。"),
        ("de_DE", "The download failed."), ("fr_FR.UTF-8", "The download failed."),
    ],
)  # fmt: skip
def test_the_launcher_speaks_the_systems_language_where_it_can_be_shown(desk: Desk, lang: str, told: str) -> None:
    desk.tool("curl", "exit 1")
    assert told in desk.run("doctor", lang=lang).stderr


def test_without_a_network_it_says_what_to_do(desk: Desk) -> None:
    desk.tool("curl", "exit 6")
    done = desk.run("doctor")
    assert done.returncode == 1 and "install Python from python.org" in done.stderr


def test_the_right_uv_brings_a_python(desk: Desk, tmp_path: Path) -> None:
    """With this test's own archive and its checksum in the place of the real ones."""
    packed = tmp_path / "uv-x"
    packed.mkdir()
    brought = '"$UV_PYTHON_INSTALL_DIR"/cpython-3.12/bin'
    (packed / "uv").write_text(
        f'#!/bin/bash\necho "uv $*" >&2\nmkdir -p {brought}\n'
        f"cat >{brought}/python3 <<'end'\n#!/bin/bash\nexec {PYTHON} \"$@\"\nend\nchmod +x {brought}/python3\n"
    )
    (packed / "uv").chmod(0o755)
    archive = tmp_path / "uv.tar.gz"
    subprocess.run(["tar", "-czf", archive, "-C", tmp_path, "uv-x"], check=True)
    sum_ = subprocess.run(["sha256sum", archive], check=True, capture_output=True, text=True).stdout.split()[0]
    launcher = desk.top / "hearth.sh"
    launcher.write_text(re.sub(r"\b[0-9a-f]{64}\b", sum_, launcher.read_text()))
    desk.tool("curl", f'while [ "$1" != -o ]; do shift; done; cp "{archive}" "$2"')
    done = desk.run("doctor")
    assert done.stdout == "started with ['doctor']\n" and "uv --no-config python install" in done.stderr, done.stderr
    desk.tool("curl", "exit 6")
    assert desk.run("doctor").stdout == "started with ['doctor']\n", "the next time it is there"


@pytest.mark.slow
@pytest.mark.long
def test_a_wheel_holds_everything(tmp_path: Path) -> None:
    """The checkout's files as git lists them, built as pip builds them, without a network."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if (TOP / name).is_file():
            (tmp_path / "c" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, tmp_path / "c" / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path / "w"), "."]
    done = subprocess.run(command, cwd=tmp_path / "c", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    with zipfile.ZipFile(next((tmp_path / "w").glob("hearth-*.whl"))) as wheel:
        inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
        wheel.extractall(tmp_path / "site")
        metadata = wheel.read(f"hearth-{__version__}.dist-info/METADATA").decode()
    wanted = {
        name if name.startswith("app/") else f"app/{name}" for name in listed.stdout.splitlines() if name.startswith(("app/", "assets/"))
    }
    ours = {name for name in wanted if re.match(r"app/assets/(make_\w+\.py$|screenshots/)", name)}
    assert ours and inside == wanted - ours
    assert "Requires-Dist: gradio" in metadata and "Requires-Python: >=3.11" in metadata
    code = "import app.base.paths, io; print((app.base.paths.assets() / 'icons/icon-64.png').read_bytes()[:4])"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "site", capture_output=True, text=True)
    assert "PNG" in run.stdout, run.stderr
    version = subprocess.run([sys.executable, "-m", "app", "--version"], cwd=tmp_path / "site", capture_output=True, text=True)
    assert version.stdout == f"hearth {__version__}\n", version.stderr
    update = subprocess.run([sys.executable, "-m", "app", "update"], cwd=tmp_path / "site", capture_output=True, text=True)
    assert update.returncode == 2 and "pip install --upgrade hearth" in update.stderr


def test_an_extra_is_added_the_way_in_which_hearth_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert extras.install_command("aac") == f'"{sys.executable}" -m pip install "hearth[aac]"', "not start.py's environment"
    (tmp_path / "hearth.json").write_text("{}")
    assert extras.install_command("aac") == f"{name_command()} add aac"
    monkeypatch.setattr(extras, "START", tmp_path / "no start.py")
    assert "pip install" in extras.install_command("aac"), "a wheel has none"
