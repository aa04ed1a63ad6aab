"""How the words of a script sound, so that what was heard is compared by sounds: English by the starter voice's own table, other languages roughly, by a
few rules of how each is written. Chinese signs stand for themselves."""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Final

from app.base.paths import assets
from app.engine.speech.text.pronounce import read_letters

_ENGLISH: Final = re.compile(r"[a-z]+(?:'[a-z]+)*")
_SAID_ALIKE: Final = "他她它牠 的地得 你妳 那哪 做作 在再 像象 二两 零〇"
"""A recogniser cannot tell these signs apart by their sound, or they are said for the same figure."""
_ALIKE: Final = {sign: group[0] for group in _SAID_ALIKE.split() for sign in group}
_RULES: Final = {
    "de": r"tsch=c sch=S ch=h ck=k tz=ts dt$=t th=t ph=f qu=kv ie=i [ea][iy]=I eu=: äu=: ä=e ö=e ü=i (?<=[aeiouäöüy])h= ß=s d$=t b$=p g$=k"
          " z=ts v=f w=v j=y y=i c=k x=ks",
    "fr": r"(?<=[a-zé]{2})(?:ent|es|e|s|t|d|x|p)$= eaux?=o aux?=o ou=/ oi=wa (?:ai|ei|ay|er$|ez$|et$)=e œu?=e eu=e ch=S ph=f gn=ny qu=k"
          r" ge(?=[ao])=Z [gj](?=[eiyéè])=Z j=Z c(?=[eiyéè])=s ç=s (?:ain|ein|in|im|un)(?![aeiouyéèêh])=eN [ae][nm](?![aeiouyéèêhnm])=aN"
          r" o[nm](?![aeiouyéèêhnm])=oN (?<=i)ll=y (?<=[aeiouyéè])s(?=[aeiouyéè])=z h= c=k x=ks y=i",
    "es": r"ch=c ll=y rr=r ñ=ny qu=k gu(?=[eiéí])=g c(?=[eiéí])=s z=s g(?=[eiéí])=h j=h h= v=b x=ks ü=w c=k y$=i",
    "it": r"ch=k gh=g gli=li gn=ny sci?(?=[aeiouèò])=S ci(?=[aou])=c c(?=[eièéì])=c gi(?=[aou])=j g(?=[eièéì])=j qu=kw h= c=k z=ts j=y x=ks",
    "pt": r"ch=S lh=ly nh=ny ss=s rr=r qu(?=[eiéí])=k gu(?=[eiéí])=g ç=s ãos?$=aN ã=aN õ=oN c(?=[eiéí])=s g(?=[eiéí])=Z j=Z x=S h= z$=s c=k q=k y=i",
}  # fmt: skip
"""What is written leads to the sounds of `sounds.py` that it stands for; earlier rows go first. What has no row is said as it is written."""
_SAME: Final = re.compile(r"(.)\1+")


def spell(word: str, language: str = "en") -> str:
    """Return the sounds of a word in lower case, one character each."""
    if word in _ALIKE:
        return _ALIKE[word]
    if language in ("en", "zh", "ja"):
        return _spell_english(word) if _ENGLISH.fullmatch(word) else word
    return _spell_by_rules(word, language)


@functools.lru_cache(maxsize=20_000)
def _spell_english(word: str) -> str:
    return read_letters(assets() / "starter" / "voice" / "letters.bin").spell(word)


@functools.lru_cache(maxsize=20_000)
def _spell_by_rules(word: str, language: str) -> str:
    pattern, sounds = _read_rules(language)
    said = unicodedata.normalize("NFC", word).replace("'", "")
    if pattern is not None:
        said = pattern.sub(lambda found: sounds[found.lastindex or 0], said)
    plain = "".join(each for each in unicodedata.normalize("NFKD", said) if not unicodedata.combining(each))
    return _SAME.sub(r"\1", plain) or word


@functools.cache
def _read_rules(language: str) -> tuple[re.Pattern[str] | None, dict[int, str]]:
    rules = [row.rpartition("=") for row in _RULES.get(language, "").split()]  # what looks ahead or back has one before it
    sounds = {place: sound for place, (_, _, sound) in enumerate(rules, 1)}
    return (re.compile("|".join(f"({written})" for written, _, _ in rules)) if rules else None), sounds
