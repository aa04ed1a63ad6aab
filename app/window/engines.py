"""What the systems' web views do differently, or leave to whoever uses them. pywebview is imported here, in the window's own process."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.window.geometry import Geometry, Screen

GTK, QT, MAC, WINDOWS = "gtkwebkit2", "qtwebengine", "wkwebview", "edgechromium"
MODERN: Final = frozenset({GTK, QT, MAC, WINDOWS})
"""These engines can show the page; the others are Internet Explorer's and Qt's from before 2016."""
NAME: Final = "hearth"
"""A Linux desktop finds the icon of a window by this name, which the desktop entry has."""
QT_WANTED: Final = frozenset({"MediaAudioCapture", "Notifications", "ClipboardReadWrite"})
"""Hearth's page may ask Qt for these, by its names."""
COLOUR: Final = re.compile(r"rgb\((\d+), (\d+), (\d+)\)")


def prepare_system() -> None:
    """Set what an engine reads when it is loaded."""
    if sys.platform.startswith("linux"):
        # GTK and Qt are bound to Python by packages of the system, which an environment does not see; its own packages come first.
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        folders = ("/usr/lib/python3/dist-packages", f"/usr/lib64/{version}/site-packages", f"/usr/lib/{version}/site-packages")
        sys.path += [each for each in folders if Path(each).is_dir()]
        # Windows stay blank on many cards of NVIDIA's: https://bugs.webkit.org/show_bug.cgi?id=262607
        os.environ.setdefault("WEBKIT_DISABLE_DMABUF_RENDERER", "1")
    elif sys.platform == "win32":
        import ctypes

        ctypes.windll.shell32.SetCurrentProcessExplicitAppUserModelID("Hearth")  # else the taskbar shows Python's icon


@dataclass(frozen=True, slots=True)
class Engine:
    """A loaded engine by pywebview's name for it, and the screens there are, as pywebview has them."""

    kind: str
    screens: list[Any]


def find_engine() -> Engine | None:
    """Load the engine; None where there is none or no display."""
    logging.getLogger("pywebview").propagate = False
    try:
        import webview
        from webview.guilib import initialize

        webview.settings["ALLOW_DOWNLOADS"] = True
        webview.settings["ALLOW_FILE_URLS"] = False
        found = initialize()
        if found.renderer not in MODERN:
            return None
        if found.renderer == GTK:
            name_for_desktop()
        elif found.renderer == QT:
            name_for_qt()
        elif found.renderer == MAC:
            name_for_mac()
        return Engine(found.renderer, list(found.get_screens()))
    except Exception:  # Each engine has its own errors for what is missing.
        logging.getLogger("hearth").exception("no window of its own")
        return None


def name_for_desktop() -> None:
    from gi.repository import GLib

    GLib.set_prgname(NAME)
    GLib.set_application_name("Hearth")


def name_for_qt() -> None:
    """Before its application is made; it would be "-c", as Python was called."""
    from qtpy.QtGui import QGuiApplication

    QGuiApplication.setApplicationName(NAME)
    QGuiApplication.setDesktopFileName(NAME)


def name_for_mac() -> None:
    """Name the app in the menu bar, where Python would stand."""
    from Foundation import NSBundle

    about = NSBundle.mainBundle().localizedInfoDictionary() or NSBundle.mainBundle().infoDictionary()
    about["CFBundleName"] = "Hearth"


def run(kind: str, listen: Callable[[], None], icon: str, storage: str, words: dict[str, str]) -> None:
    """Show the window until it is closed, with `listen` in a thread of its own."""
    import threading

    import webview

    if kind == QT:
        from webview.platforms import qt

        qt._profile_storage_path = storage  # pywebview 6.2 reads its own setting as it is imported, which was before this

    threading.Thread(target=listen, name="orders", daemon=True).start()
    webview.start(private_mode=False, storage_path=storage, icon=icon, localization=words)


def place_on(kind: str, screen: Screen | None, geometry: Geometry) -> tuple[int | None, int | None]:
    """Return the place as the engine wants it: within the desktop on Windows, else within the screen."""
    if screen is None or geometry.x is None or geometry.y is None:
        return None, None
    return (geometry.x, geometry.y) if kind == WINDOWS else (geometry.x - screen.x, geometry.y - screen.y)


def find_place(kind: str, window: Any, moved: tuple[int, int] | None) -> tuple[int, int]:
    """Return the place of the window's frame within the desktop. Qt's own answer leaves out the title bar."""
    x, y = moved if moved is not None and kind == QT else (window.x, window.y)
    return int(x), int(y)


def read_colour(said: str) -> str:
    """Return a colour that a page computed as pywebview wants it; "" for one that is none, or transparent."""
    found = COLOUR.fullmatch(said)
    return "#" + "".join(f"{int(each):02x}" for each in found.groups()) if found else ""


def bring_to_front(kind: str, window: Any) -> None:
    """Show the window above others, as far as the system lets a program do so."""
    if kind == GTK:
        from gi.repository import GLib

        GLib.idle_add(window.native.present)
    elif kind == QT:

        def raise_window() -> None:
            window.native.raise_()
            window.native.activateWindow()

        window.native.create_window_trigger.emit(raise_window)  # runs it on Qt's own thread
    else:
        window.show()


def set_badge(kind: str, badge: str) -> None:
    """Write onto the Dock's icon; elsewhere the title tells it."""
    if kind == MAC:
        from AppKit import NSApp
        from PyObjCTools import AppHelper

        AppHelper.callAfter(NSApp().dockTile().setBadgeLabel_, badge)


def prepare(kind: str, window: Any, address: str) -> None:
    """Complete what pywebview leaves out, before the page is loaded."""
    if kind == GTK:
        prepare_gtk(window, address)
    elif kind == QT:
        prepare_qt(window, address)


def prepare_gtk(window: Any, address: str) -> None:
    """Answer the page's requests for the microphone and for notifications: WebKit denies what nobody answers."""
    from gi.repository import WebKit2
    from webview.platforms.gtk import BrowserView

    wanted = (WebKit2.UserMediaPermissionRequest, WebKit2.NotificationPermissionRequest, WebKit2.DeviceInfoPermissionRequest)

    def answer(view: Any, request: Any) -> bool:
        own = (view.get_uri() or "").startswith(address)
        (request.allow if own and isinstance(request, wanted) else request.deny)()
        return True

    BrowserView.instances[window.uid].webview.connect("permission-request", answer)


def prepare_qt(window: Any, address: str) -> None:
    """Save downloads and answer the page's requests for the microphone, notifications and the clipboard the way of Qt 6: pywebview 6.2
    calls what Qt 5 had, which ends the process."""
    from qtpy.QtWebEngineCore import QWebEnginePage
    from qtpy.QtWidgets import QFileDialog

    def save(download: Any) -> None:
        wanted = Path(download.downloadDirectory()) / download.downloadFileName()
        path, _ = QFileDialog.getSaveFileName(window.native, window.localization["global.saveFile"], str(wanted))
        if path:
            download.setDownloadDirectory(str(Path(path).parent))
            download.setDownloadFileName(Path(path).name)
            download.accept()
        else:
            download.cancel()

    page, policy = window.native.webview.page(), QWebEnginePage.PermissionPolicy

    def answer(origin: Any, feature: Any) -> None:
        wanted = origin.toString().startswith(address) and feature.name in QT_WANTED
        page.setFeaturePermission(origin, feature, policy.PermissionGrantedByUser if wanted else policy.PermissionDeniedByUser)

    for signal, done in ((page.profile().downloadRequested, save), (page.featurePermissionRequested, answer)):
        signal.disconnect()
        signal.connect(done)
