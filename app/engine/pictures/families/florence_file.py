"""Say in words what a picture shows: transformers' Florence-2, asked as its makers ask it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import Tokenizer
from transformers import GenerationConfig
from transformers.models.florence2 import Florence2ForConditionalGeneration

from app.base import atomic_write
from app.base.foreign_formats import decode, open_picture
from app.base.sentence import Sentence
from app.compat.planning.types import Plan
from app.engine.jobs.tasks import Describe
from app.engine.models.loading.voice_parts import device_for, explaining, load_part, split_plan
from app.engine.models.tokenizer_facts import judge_tokenizer
from app.engine.pictures.families import seen_pixels

WORDS: Final = "words.txt"
SIDE: Final = 768
"""Pixels of the square that it sees, as in its training: a picture of another shape is squeezed into it."""
QUESTION: Final = "Describe in detail what is shown in the image."
TOKENS_MOST: Final = 96
BEAMS, REPEATED_MOST = 3, 3
"""As its makers set them: so many answers side by side, and no row of so many tokens twice in one."""
STRIDES: Final = 32
"""Pixels of one side behind a token of a picture; one more token stands for the whole."""
OPENINGS: Final = re.compile(
    r"(?:The|This) (?:image|picture) (?:shows|depicts|features|is of) |In this (?:image|picture),? (?:we can see|there is|there are) "
)
"""It begins so, which is nothing to paint."""


class Describer:
    def __init__(self, folder: Path, plan: Plan, notes: list[Sentence]) -> None:
        judge_tokenizer(folder)
        how, _ = split_plan(plan)
        self._model: Any = load_part(Florence2ForConditionalGeneration, folder, plan, how, notes)
        self._device = device_for(plan, how)
        with explaining(folder):
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    @torch.inference_mode()
    def answer(self, task: Describe, job: Path) -> Path:
        """Leave the words in the task's folder."""
        config = self._model.config.text_config
        asked = self._tokenizer.encode(QUESTION, add_special_tokens=False).ids
        picture = [self._model.config.image_token_id] * ((SIDE // STRIDES) ** 2 + 1)
        given = torch.tensor([[*picture, config.bos_token_id, *asked, config.eos_token_id]], device=self._device)
        kind: Any = GenerationConfig
        how = kind(
            max_new_tokens=TOKENS_MOST,
            num_beams=BEAMS,
            no_repeat_ngram_size=REPEATED_MOST,
            forced_bos_token_id=config.bos_token_id,
            decoder_start_token_id=config.decoder_start_token_id,
            eos_token_id=config.eos_token_id,
            pad_token_id=config.pad_token_id,
        )
        made = self._model.generate(
            input_ids=given, attention_mask=torch.ones_like(given), pixel_values=self._see(task), generation_config=how
        )
        words = self._tokenizer.decode(made[0].tolist(), skip_special_tokens=True)
        atomic_write.write_text(job / WORDS, clean(words))
        return job / WORDS

    def _see(self, task: Describe) -> torch.Tensor:
        with open_picture(Path(task.picture), ("PNG",)) as opened:
            whole = decode(opened, "RGB")
        return seen_pixels.scale(whole, (SIDE, SIDE), seen_pixels.IMAGENET).to(self._device, self._model.dtype)


def clean(words: str) -> str:
    """Leave out how it begins, and what it had no room to end."""
    whole = " ".join(words.split())
    bare = OPENINGS.sub("", whole, count=1) if OPENINGS.match(whole) else whole
    ended = bare[: bare.rfind(".") + 1] or bare
    return ended[:1].upper() + ended[1:]
