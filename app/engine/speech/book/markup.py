"""Take marked-up text apart, as that of EPUB and Word: tags and the words between them. Linear in its length, and no entity grows."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final

_TAG: Final = re.compile(r"""<(/?)([A-Za-z_][\w.:-]*+)((?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+)>""")
"""No "<" stands within a tag, so that each search ends before the next one."""
_ATTRIBUTE: Final = re.compile(r"""(?<![\w.:-])([A-Za-z_][\w.:-]*+)\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>]++)""")
_DECLARED: Final = re.compile(
    rb"""<\?xml[^>]{0,60}?encoding\s*=\s*["']((?:iso-?8859-|windows-|cp|koi8-|gb|big5|shift_jis|euc-)[a-z0-9-]{0,10})["']""", re.IGNORECASE
)
"""Books are written in these, beside Unicode."""
_ENDS: Final = {"<!--": "-->", "<![CDATA[": "]]>", "<!": ">", "<?": "?>"}


@dataclass(frozen=True, slots=True)
class Tag:
    name: str
    """Names are in small letters, without what stands before a colon."""
    attributes: str = ""
    opens: bool = True
    closes: bool = False
    """`<br/>` both opens and closes an element."""

    def get(self, wanted: str) -> str:
        """Return an attribute by its name without what stands before a colon; "" if it is not there."""
        for name, value in _ATTRIBUTE.findall(self.attributes):
            if name.rpartition(":")[2].lower() == wanted:
                return unescape(value.strip("\"'"))
        return ""


def list_tokens(text: str) -> Iterator[Tag | str]:
    """Yield tags and the words between them; comments, declarations and instructions are left out."""
    at = 0
    while at < len(text):
        begin = text.find("<", at)
        if begin != at:
            yield unescape(text[at : begin if begin >= 0 else len(text)])
            if begin < 0:
                return
        if tag := _TAG.match(text, begin):
            closing, name, rest = tag.groups()
            yield Tag(name.rpartition(":")[2].lower(), rest, not closing, bool(closing) or rest.endswith("/"))
            at = tag.end()
        elif opening := next((each for each in _ENDS if text.startswith(each, begin)), ""):
            end = text.find(_ENDS[opening], begin + len(opening))
            if end < 0:
                return
            if opening == "<![CDATA[":
                yield text[begin + len(opening) : end]
            at = end + len(_ENDS[opening])
        else:
            yield "<"
            at = begin + 1


def decode_markup(data: bytes) -> str:
    """Decode by its mark or its declaration, else as UTF-8; what does not decode becomes a question mark."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    declared = _DECLARED.match(data)
    try:
        return data.decode(declared[1].decode() if declared else "utf-8-sig", "replace")
    except LookupError:
        return data.decode("utf-8-sig", "replace")
