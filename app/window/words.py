"""The words that the web view shows by itself: menus and file dialogs, by pywebview's names for them."""

from __future__ import annotations

from typing import Final

from app.base.sentence import Sentence, say

WORDS: Final[dict[str, Sentence]] = {
    "global.ok": say("window.ok", "OK"),
    "global.cancel": say("sure.no", "Cancel"),
    "global.quit": say("leave.quit", "Quit"),
    "global.saveFile": say("window.save", "Save file"),
    "cocoa.menu.about": say("window.about", "About"),
    "cocoa.menu.services": say("window.services", "Services"),
    "cocoa.menu.view": say("window.view", "View"),
    "cocoa.menu.edit": say("window.edit", "Edit"),
    "cocoa.menu.hide": say("window.hide", "Hide"),
    "cocoa.menu.hideOthers": say("window.hide-others", "Hide Others"),
    "cocoa.menu.showAll": say("window.show-all", "Show All"),
    "cocoa.menu.quit": say("window.quit", "Quit"),
    "cocoa.menu.fullscreen": say("window.fullscreen", "Enter Full Screen"),
    "cocoa.menu.cut": say("window.cut", "Cut"),
    "cocoa.menu.copy": say("window.copy", "Copy"),
    "cocoa.menu.paste": say("window.paste", "Paste"),
    "cocoa.menu.selectAll": say("window.select-all", "Select All"),
    "windows.fileFilter.allFiles": say("window.all-files", "All files"),
    "windows.fileFilter.otherFiles": say("window.other-files", "Other file types"),
    "linux.openFile": say("window.open-file", "Open file"),
    "linux.openFiles": say("window.open-files", "Open files"),
    "linux.openFolder": say("window.open-folder", "Open folder"),
}
