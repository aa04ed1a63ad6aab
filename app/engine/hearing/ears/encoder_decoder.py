"""Hear with an encoder and a decoder, Whisper or Moonshine: token by token, the likeliest; when, by what its cross attention looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import MoonshineForConditionalGeneration, WhisperFeatureExtractor, WhisperForConditionalGeneration

from app.base.bounded_json import read_json
from app.engine.hearing.alignment import Weights, align, find_loud, make_words
from app.engine.hearing.compare import MARKS, compare
from app.engine.hearing.heard import Meant, Word, is_wide, join_words
from app.engine.hearing.spelling import spell
from app.engine.hearing.word_places import list_said
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.speech.sound.sound import Samples

RATE: Final = 16_000
TOKENS_PER_S, TOKENS_LEAST = 10.0, 16
"""Nobody says more: a recogniser that goes on repeats itself."""
SEVERAL_LANGUAGES: Final = 51_865
"""Whisper has so many words, where they are not those of English alone."""
SILENT: Final = 0.6
"""Whisper must find it this likely that nobody speaks; then it makes words up."""
MISSING, AGAIN = -1.0, -9.0
"""A word that is less likely than the first may not be there. One may be said twice that is likelier than the second after itself, by how it begins."""
HEARD: Final = 1.0
"""A word that is no more likelier twice than where nothing is heard tells nothing: "Ming" comes soon after any "Ming"."""
NEVER: Final = -99.0
"""It stands for what was not weighed: nothing spoke for it."""
DOUBTS_MOST: Final = 8
AT_ONCE: Final = 4
"""So many texts are weighed at once: each token of each takes all the words there are in memory."""
STOPS: Final = ",;:.，；：。、"
PROMPT_MOST: Final = 4
"""Whisper begins with so many tokens: that it does, the language, what to write, and that it writes no times."""
PAD_S: Final = 0.2
"""So much silence is put around what Moonshine hears: it loses words at the very edge."""


@dataclass(frozen=True, slots=True)
class Family:
    model: Any
    places_per_s: float
    """The encoder's output has this many places for a second."""
    features: Callable[[Samples, Any], torch.Tensor]
    """It makes what the encoder hears, by the model's config."""
    pad_s: float
    """A stretch gets so much silence before and after it."""
    most: str
    """The config says under this name how many tokens a decoder writes at most."""


def make_mel(samples: Samples, config: Any) -> torch.Tensor:
    kind: Any = WhisperFeatureExtractor
    extract = kind(feature_size=config.num_mel_bins)
    found: torch.Tensor = extract(samples, sampling_rate=RATE, return_tensors="pt").input_features
    return found


FAMILIES: Final = {
    "whisper": Family(WhisperForConditionalGeneration, 50.0, make_mel, 0.0, "max_target_positions"),
    "moonshine": Family(
        MoonshineForConditionalGeneration, RATE / 384, lambda samples, _: torch.from_numpy(samples)[None], PAD_S, "max_position_embeddings"
    ),
}
"""The `model_type` of a folder's config.json finds its family."""


class EncoderDecoder:
    def __init__(self, family: Family, model: Any, tokenizer: Any, folder: Path, device: str) -> None:
        self._family, self._model, self._tokenizer, self._device = family, model, tokenizer, device
        self._begin, self._end = int(model.config.decoder_start_token_id), int(model.config.eos_token_id)
        self._orders = _Orders.find(tokenizer, model.config)
        self._heads = _read_heads(folder, model)
        self._nothing: Any = None
        """The encoder makes this of silence, once that was needed."""
        self._most = int(getattr(model.config, family.most)) - PROMPT_MOST - 1

    def hear(self, samples: Samples, text: str, language: str) -> tuple[list[Word], list[Meant], str]:
        with torch.inference_mode():
            encoded = self._encode(samples)
            prompt = self._choose_prompt(encoded, language)
            if not prompt:
                return [], [], ""
            tokens, sure = self._write(encoded, prompt, len(samples) / RATE)
            words: list[Word] = []
            if tokens:
                times_s = self._time(encoded, prompt, tokens, samples)
                words = make_words(tokens, lambda part: str(self._tokenizer.decode(list(part), skip_special_tokens=True)), times_s, sure)
            meant = self._weigh(encoded, prompt, list_said(text), samples, join_words([word.text for word in words]), language or "en")
            several = self._orders is not None and bool(self._orders.languages)
            return words, meant, self._tokenizer.id_to_token(prompt[1]).strip("<|>") if several else "en"

    def place(self, samples: Samples, words: list[str], language: str) -> list[Word]:
        with torch.inference_mode():
            encoded = self._encode(samples)
            prompt, tokens = self._choose_prompt(encoded, language), [self._read(word) for word in words]
            if not prompt or not words or sum(map(len, tokens)) > self._most:
                return []
            spans_s = self._place(encoded, prompt, tokens, samples)
            return [Word(word, begin_s, end_s, 1.0) for word, (begin_s, end_s) in zip(words, spans_s, strict=True)]

    def _choose_prompt(self, encoded: Any, spoken: str = "") -> list[int]:
        """Return what the decoder begins with; nothing where Whisper finds that nobody speaks. `spoken`: the language, where that is known."""
        orders = self._orders
        if orders is None:
            return [self._begin]
        told = self._model(encoder_outputs=encoded, decoder_input_ids=torch.tensor([[self._begin]], device=self._device), use_cache=False)
        likely = told.logits[0, -1].float().softmax(-1)
        if float(likely[orders.nobody]) > SILENT:
            return []
        if not orders.languages:
            return [self._begin, orders.plain]
        language = self._tokenizer.token_to_id(f"<|{spoken}|>")
        if language not in orders.languages:
            language = orders.languages[int(likely[list(orders.languages)].argmax())]
        return [self._begin, language, orders.transcribe, orders.plain]

    def _encode(self, samples: Samples) -> Any:
        padded = np.pad(samples, round(self._family.pad_s * RATE)).astype(np.float32)
        features = self._family.features(padded, self._model.config).to(self._device, self._model.dtype)
        return self._model.model.encoder(features)

    def _write(self, encoded: Any, prompt: list[int], seconds: float) -> tuple[list[int], list[float]]:
        """Return the likeliest tokens, and how likely each was."""
        tokens, sure, cache = list[int](), list[float](), None
        given = prompt
        for step in range(min(self._most, TOKENS_LEAST + int(TOKENS_PER_S * seconds))):
            told = self._model(
                encoder_outputs=encoded, decoder_input_ids=torch.tensor([given], device=self._device), cache=cache, use_cache=True
            )
            cache = told.cache
            likely = told.logits[0, -1].float().softmax(-1)
            if not bool(likely[0].isfinite()):
                raise NumbersBroke(step, "speech")
            if self._orders is not None:
                likely[self._end + 1 :] = 0.0
            best = int(likely.argmax())
            if best == self._end:
                break
            tokens.append(best)
            sure.append(float(likely[best]))
            given = [best]
        return tokens, sure

    def _time(self, encoded: Any, prompt: list[int], tokens: Sequence[int], samples: Samples) -> list[float]:
        """Write the tokens once more, all at once, and see where the decoder looks; return when each begins, and when the last one ends."""
        with self._watching() as looks:
            self._model(encoder_outputs=encoded, decoder_input_ids=torch.tensor([[*prompt, *tokens]], device=self._device), use_cache=False)
        per_s = self._family.places_per_s
        pad, loud = round(self._family.pad_s * per_s), find_loud(samples, RATE, per_s)
        looked = self._gather(looks)[:, len(prompt) - 1 :, pad : pad + len(loud)]
        return [min(float(at) / per_s, len(samples) / RATE) for at in align(looked, loud[: looked.shape[2]])]

    def _place(self, encoded: Any, prompt: list[int], tokens: Sequence[Sequence[int]], samples: Samples) -> list[tuple[float, float]]:
        """Return when each of several words, whose tokens these are, begins and ends."""
        times_s = self._time(encoded, prompt, [token for each in tokens for token in each], samples)
        ends = np.cumsum([len(each) for each in tokens])
        begins_s = [times_s[end - len(each)] for end, each in zip(ends, tokens, strict=True)]
        return [(begin_s, max(begin_s, times_s[end])) for begin_s, end in zip(begins_s, ends, strict=True)]

    def _weigh(self, encoded: Any, prompt: list[int], words: list[str], samples: Samples, wrote: str, language: str) -> list[Meant]:
        """Weigh a text that is meant against others: without a word that seems missing, with one twice that seems doubled, and with what was
        written in place of some."""
        if not words:
            return []
        bare, asks = words[-1].rstrip(STOPS), words[-1].endswith(("?", "!", "？", "！"))
        closing = words[-1] if asks or not bare else bare + ("。" if is_wide(bare[-1]) else ".")  # as a recogniser ends
        tokens = [self._read(word) for word in (*words[:-1], closing)]
        joined = [token for each in tokens for token in each]
        if len(joined) > self._most:
            return []
        told = self._tell(encoded, prompt, [joined])[0]
        whole = told.gather(1, torch.tensor([*joined, self._end], device=self._device)[:, None])[:, 0].cpu().numpy()
        ends = np.cumsum([len(each) for each in tokens])
        likely = [float(whole[end - len(each) : end].sum()) for end, each in zip(ends, tokens, strict=True)]
        begins_s, ends_s = zip(*self._place(encoded, prompt, tokens, samples), strict=True)
        more = [self._read(word.rstrip(MARKS) or word) for word in words]
        begins = [end - len(each) for end, each in zip(ends, tokens, strict=True)]
        again = [float(told[min(begin + len(each), end), each[0]]) for begin, each, end in zip(begins, more, ends, strict=True)]
        missing = list_doubted(likely)
        twice = [place for place in sorted(range(len(words)), key=again.__getitem__)[-DOUBTS_MOST:] if again[place] > AGAIN]
        other = [each for each in compare(words, wrote, spell, language) if each.kind == "wrong"][:DOUBTS_MOST]
        texts = [[*tokens[:first], *tokens[last:]] for first, last in missing]
        texts += [[*tokens[: each.first], self._read(each.heard), *tokens[each.last :]] for each in other]
        once = len(texts)
        texts += [[*tokens[:place], more[place], *tokens[place:]] for place in twice]
        rows = [[token for each in text for token in each][: self._most] for text in texts]
        gains = [float(each.sum() - whole.sum()) for each in self._score(encoded, prompt, rows)]
        found = [[NEVER] * len(words) for _ in range(3)]
        beyond = [gain - each for gain, each in zip(gains, self._expect(prompt, joined, rows), strict=True)]
        for (first, last), gain in zip(missing, beyond, strict=False):
            found[0][first:last] = [max(each, gain) for each in found[0][first:last]]
        for each, gain in zip(other, beyond[len(missing) : once], strict=True):
            found[2][each.first : each.last] = [gain] * (each.last - each.first)
        for place, gain, heard in zip(twice, gains[once:], beyond[once:], strict=True):
            found[1][place] = gain if heard > HEARD else NEVER
        return [Meant(*each) for each in zip(words, begins_s, ends_s, likely, *found, strict=True)]

    def _expect(self, prompt: list[int], text: Sequence[int], others: Sequence[Sequence[int]]) -> list[float]:
        """Return how much likelier other texts are where nothing is heard: a word that nobody expects, as an old one or a name, is never likely."""
        if not others:
            return []
        if self._nothing is None:
            self._nothing = self._encode(np.zeros(RATE, np.float32))
        usual, *found = (float(each.sum()) for each in self._score(self._nothing, prompt, [text, *others]))
        return [each - usual for each in found]

    def _read(self, words: str) -> list[int]:
        before = "" if is_wide(words[:1]) else " "
        tokens: list[int] = self._tokenizer.encode(f"{before}{words}", add_special_tokens=False).ids
        return tokens

    def _score(self, encoded: Any, prompt: list[int], texts: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """Return for each text how likely each of its tokens is after those before it, and its end after all, as logarithms."""
        scores: list[NDArray[np.float32]] = []
        for first in range(0, len(texts), AT_ONCE):
            some = texts[first : first + AT_ONCE]
            for text, likely in zip(some, self._tell(encoded, prompt, some), strict=True):
                asked = torch.tensor([*text, self._end], device=self._device)
                scores.append(likely[: len(asked)].gather(1, asked[:, None])[:, 0].cpu().numpy())
        return scores

    def _tell(self, encoded: Any, prompt: list[int], texts: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return how likely each token there is comes after each beginning of each text, as logarithms: (texts, places, tokens)."""
        longest = max(map(len, texts))
        given = torch.tensor([[*prompt, *text, *[self._end] * (longest - len(text))] for text in texts], device=self._device)
        many = type(encoded)(last_hidden_state=encoded.last_hidden_state.expand(len(texts), -1, -1))
        logits = self._model(encoder_outputs=many, decoder_input_ids=given, use_cache=False).logits[:, len(prompt) - 1 :].float()
        likely: torch.Tensor = logits
        for text in likely:  # one by one: their sum takes as much memory again
            text.sub_(text.logsumexp(1, keepdim=True))
        return likely

    @contextmanager
    def _watching(self) -> Iterator[dict[tuple[int, str], torch.Tensor]]:
        """Keep what each cross attention asks and is asked: attention itself returns no weights when it is quick."""
        kept: dict[tuple[int, str], torch.Tensor] = {}

        def keep(key: tuple[int, str]) -> Callable[..., None]:
            return lambda _module, _given, made: kept.__setitem__(key, made)

        layers = {layer for layer, _ in self._heads}
        hooks = [
            getattr(self._model.model.decoder.layers[layer].encoder_attn, name).register_forward_hook(keep((layer, name)))
            for layer in layers
            for name in ("q_proj", "k_proj")
        ]
        try:
            yield kept
        finally:
            for hook in hooks:
                hook.remove()

    def _gather(self, looks: dict[tuple[int, str], torch.Tensor]) -> Weights:
        made = []
        for layer, head in self._heads:
            attention = self._model.model.decoder.layers[layer].encoder_attn
            queries, keys = (
                looks[layer, name][0].float()[:, head * attention.head_dim :][:, : attention.head_dim] for name in ("q_proj", "k_proj")
            )
            made.append((queries @ keys.T * attention.head_dim**-0.5).softmax(-1).cpu().numpy())
        return np.stack(made)


def list_doubted(likely: Sequence[float]) -> list[tuple[int, int]]:
    """List the words that may be missing, each by itself, and rows of several as a whole; of many, as in a text that is another altogether, those that
    are least likely."""
    least = sorted(range(len(likely)), key=likely.__getitem__)[:DOUBTS_MOST]
    rows = [*_group([place in least and each < MISSING for place, each in enumerate(likely)])]
    alone = [(place, place + 1) for first, last in rows for place in range(first, last)]
    return [*alone, *(row for row in rows if row[1] - row[0] > 1)][:DOUBTS_MOST]


def _group(doubts: Sequence[bool]) -> Iterator[tuple[int, int]]:
    place = 0
    for doubted, row in groupby(doubts):
        last = place + sum(1 for _ in row)
        if doubted:
            yield place, last
        place = last


@dataclass(frozen=True, slots=True)
class _Orders:
    """Whisper's tokens that are no words."""

    nobody: int
    plain: int
    """It says that no times are written."""
    languages: tuple[int, ...]
    """One that hears several languages has these."""
    transcribe: int

    @classmethod
    def find(cls, tokenizer: Any, config: Any) -> _Orders | None:
        """Return those of a Whisper, older ones name some otherwise; None for another family."""
        plain, transcribe, translate = (tokenizer.token_to_id(f"<|{name}|>") for name in ("notimestamps", "transcribe", "translate"))
        nobody = next((id_ for name in ("nospeech", "nocaptions") if (id_ := tokenizer.token_to_id(f"<|{name}|>")) is not None), None)
        if config.model_type != "whisper":
            return None
        if plain is None or transcribe is None or translate is None or nobody is None:
            raise ValueError("tokenizer.json: not Whisper's")
        several = config.vocab_size >= SEVERAL_LANGUAGES
        languages = range(int(config.decoder_start_token_id) + 1, min(transcribe, translate)) if several else ()
        return cls(nobody, plain, tuple(languages), transcribe)


def _read_heads(folder: Path, model: Any) -> list[tuple[int, int]]:
    """Return the heads that look where a word is said, as the makers name them; else all of the later layers."""
    layers, heads = len(model.model.decoder.layers), _count_heads(model)
    named = read_json(folder / "generation_config.json").get("alignment_heads") if (folder / "generation_config.json").is_file() else None
    listed = [(each[0], each[1]) for each in named or () if isinstance(each, list) and len(each) == 2]
    right = [(layer, head) for layer, head in listed if layer in range(layers) and head in range(heads)]
    return right or [(layer, head) for layer in range(layers // 2, layers) for head in range(heads)]


def _count_heads(model: Any) -> int:
    attention = model.model.decoder.layers[0].encoder_attn
    return int(attention.k_proj.out_features // attention.head_dim)
