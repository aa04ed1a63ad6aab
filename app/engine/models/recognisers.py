"""List the recognisers of speech that Hearth knows, rows like the catalog's. They make nothing, so no job names them. No torch, no network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.base.sentence import say
from app.compat.planning.types import ModelPart
from app.engine.models.model import Attention, Model, Source

_MB: Final = 1_000_000
_FILES: Final = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def _make_whisper(size: str, title: str, parameters: int, width: int, download_mb: int) -> Model:
    """Whisper hears 30 s at a time, 1500 places of them in each layer of its encoder."""
    return Model(
        f"whisper-{size.replace('.', '-')}",
        "hearing",
        "whisper",
        title,
        parts=(ModelPart("model", "speech", parameters),),
        attention=Attention(width // 64, width // 64, 64, text_tokens=1500, keys=1500, causal=False),
        source=Source(f"openai/whisper-{size}", _FILES, download_mb * _MB),
        licence="Apache-2.0",
        cache_bytes=width * 24_000,
        note=say("catalog.whisper-english", "Hears English, and when each word is said.")
        if size.endswith(".en")
        else say("catalog.whisper", "Hears nearly a hundred languages, and when each word is said."),
    )


def _make_moonshine(size: str, title: str, parameters: int, width: int, download_mb: int) -> Model:
    """Moonshine's work follows the length of what it hears; a part of 30 s has 1250 places."""
    return Model(
        f"moonshine-{size}",
        "hearing",
        "moonshine",
        title,
        parts=(ModelPart("model", "speech", parameters),),
        attention=Attention(8, 8, width // 8, text_tokens=1250, keys=1250, causal=False),
        source=Source(f"UsefulSensors/moonshine-{size}", _FILES, download_mb * _MB),
        licence="MIT",
        cache_bytes=width * 24_000,
        note=say(
            "catalog.moonshine", "Hears English. Quick with short sounds, but it tells less exactly than Whisper when each word is said."
        ),
    )


RECOGNISERS: Final[tuple[Model, ...]] = (
    _make_whisper("base.en", "Whisper base (English)", 72_593_408, 512, 293),
    _make_whisper("tiny.en", "Whisper tiny (English)", 37_760_256, 384, 154),
    _make_whisper("small", "Whisper small", 241_734_912, 768, 970),
    _make_moonshine("base", "Moonshine base", 61_513_920, 416, 248),
    _make_moonshine("tiny", "Moonshine tiny", 27_092_736, 288, 111),
)

OFFERED: Final = "whisper-base-en"
"""It is offered where none is installed: it hears well enough to judge a voice, and is not large."""
OF_MANY_LANGUAGES: Final = "whisper-small"
"""It is offered for any language other than English; the others hear that alone."""
LANGUAGES: Final[Mapping[str, str]] = {
    "en": "english", "zh": "chinese", "de": "german", "es": "spanish", "ru": "russian", "ko": "korean", "fr": "french", "ja": "japanese",
    "pt": "portuguese", "tr": "turkish", "pl": "polish", "ca": "catalan", "nl": "dutch", "ar": "arabic", "sv": "swedish", "it": "italian",
    "id": "indonesian", "hi": "hindi", "fi": "finnish", "vi": "vietnamese", "he": "hebrew", "uk": "ukrainian", "el": "greek", "ms": "malay",
    "cs": "czech", "ro": "romanian", "da": "danish", "hu": "hungarian", "ta": "tamil", "no": "norwegian", "th": "thai", "ur": "urdu",
    "hr": "croatian", "bg": "bulgarian", "lt": "lithuanian", "la": "latin", "mi": "maori", "ml": "malayalam", "cy": "welsh", "sk": "slovak",
    "te": "telugu", "fa": "persian", "lv": "latvian", "bn": "bengali", "sr": "serbian", "az": "azerbaijani", "sl": "slovenian", "kn": "kannada",
    "et": "estonian", "mk": "macedonian", "br": "breton", "eu": "basque", "is": "icelandic", "hy": "armenian", "ne": "nepali", "mn": "mongolian",
    "bs": "bosnian", "kk": "kazakh", "sq": "albanian", "sw": "swahili", "gl": "galician", "mr": "marathi", "pa": "punjabi", "si": "sinhala",
    "km": "khmer", "sn": "shona", "yo": "yoruba", "so": "somali", "af": "afrikaans", "oc": "occitan", "ka": "georgian", "be": "belarusian",
    "tg": "tajik", "sd": "sindhi", "gu": "gujarati", "am": "amharic", "yi": "yiddish", "lo": "lao", "uz": "uzbek", "fo": "faroese",
    "ht": "haitian creole", "ps": "pashto", "tk": "turkmen", "nn": "nynorsk", "mt": "maltese", "sa": "sanskrit", "lb": "luxembourgish",
    "my": "myanmar", "bo": "tibetan", "tl": "tagalog", "mg": "malagasy", "as": "assamese", "tt": "tatar", "haw": "hawaiian", "ln": "lingala",
    "ha": "hausa", "ba": "bashkir", "jw": "javanese", "su": "sundanese",
}  # fmt: skip
"""Whisper hears these languages: by ISO 639-1 codes, where there are some, the names that OpenAI's API has for them."""
BEST: Final = ("whisper-small", "whisper-base-en", "moonshine-base", "whisper-tiny-en", "moonshine-tiny")
"""If none is named, the first installed one of these is used."""


def can_hear(model: str, language: str) -> bool:
    """Tell whether a recogniser hears this language; an empty one is not known."""
    return language in ("", "en") or model == OF_MANY_LANGUAGES
