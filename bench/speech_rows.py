"""Time rows of a voice: Hearth's decode loop and plain generate(), both with as many rows behind them as asked."""

from __future__ import annotations

from typing import Any, Final

import torch
from transformers import DynamicCache, EncoderDecoderCache
from transformers.generation.streamers import BaseStreamer

from app.compat.attention.seam import applied
from app.compat.planning.types import Plan
from app.engine.speech.families.dia.decoder import Decoding, PartInput
from app.engine.speech.families.dia.sampling import Sampling
from bench.clocks import Took, read_clocks, since

TEXT_BYTES: Final = 200
"""The script has so many: a part of 14 seconds."""
SETTINGS: Final = Sampling()
FIRST: Final = 1
"""So many rows of each turn do not count: generate() encodes the text in the first, and caches grow cold between turns."""


def make_text() -> torch.Tensor:
    return torch.randint(32, 120, (TEXT_BYTES,), generator=torch.Generator().manual_seed(0))


def make_codes(model: Any, rows: int) -> torch.Tensor:
    """Return the codes of sound that comes before."""
    channels, codes = model.config.decoder_config.num_channels, model.config.decoder_config.eos_token_id
    return torch.randint(0, codes, (rows, channels), generator=torch.Generator().manual_seed(0))


def draw_cache(model: Any, rows: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return one layer's keys and values of so many rows, random: what they hold does not change the time."""
    config = model.config.decoder_config
    shape = (2, config.num_key_value_heads, rows, config.head_dim)
    return torch.empty(shape, dtype=dtype).normal_(), torch.empty(shape, dtype=dtype).normal_()


class HearthRows:
    """Hearth's own loop, which goes on where it stopped at each turn."""

    def __init__(self, model: Any, device: str, plan: Plan, behind: int, most: int) -> None:
        self._plan = plan
        with applied(plan):
            self._decoding = Decoding(model, device, PartInput(make_text(), make_codes(model, behind), SETTINGS, 1, most), row=plan.row)
            self._decoding.layers.pretend(behind)

    def time_rows(self, rows: int) -> list[Took]:
        took: list[Took] = []
        with applied(self._plan):
            for _ in range(rows + FIRST):
                began = read_clocks()
                self._decoding.step()
                took.append(since(began, read_clocks()))
        return took[FIRST:]


class PlainRows:
    """transformers' generate() with a cache that is already filled, as it is after as many rows; nothing else differs from a usual call."""

    def __init__(self, model: Any, device: str, behind: int, dtype: torch.dtype) -> None:
        self._model, self._device, self._behind, self._dtype = model, device, behind, dtype

    def time_rows(self, rows: int) -> list[Took]:
        model, config = self._model, self._model.config.decoder_config
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        for layer in range(config.num_hidden_layers):
            keys, values = draw_cache(model, self._behind, self._dtype)
            cache.self_attention_cache.update(keys.to(self._device), values.to(self._device), layer)
        delay = max(model.config.delay_pattern)
        given = torch.full((1, self._behind + 1 + delay, config.num_channels), config.pad_token_id)
        given[0, : self._behind + 1] = make_codes(model, self._behind + 1)
        prepare, clock = type(model).prepare_inputs_for_generation, _Clock()

        def take_last_row(*given: Any, is_first_iteration: bool = False, **others: Any) -> Any:
            return prepare(model, *given, is_first_iteration=False, **others)

        def put_cache(_config: Any, model_kwargs: dict[str, Any], *_others: Any) -> None:
            model_kwargs["cache"] = cache

        model.prepare_inputs_for_generation, model._prepare_cache_for_generation = take_last_row, put_cache
        try:
            generate(model, self._device, given, rows + FIRST + 1, SETTINGS, clock)
        finally:
            del model.prepare_inputs_for_generation, model._prepare_cache_for_generation
        times = list(map(since, clock.at, clock.at[1:]))
        return times[FIRST + 1 :]  # the first of all is the time before any row


class _Clock(BaseStreamer):
    """Note when generate() hands over each row."""

    def __init__(self) -> None:
        self.at: list[Took] = []

    def put(self, value: object) -> None:
        self.at.append(read_clocks())

    def end(self) -> None: ...


def generate(model: Any, device: str, before: torch.Tensor, rows: int, how: Sampling, clock: BaseStreamer | None = None) -> torch.Tensor:
    """Call plain generate() as its documentation does; return its rows."""
    config, text = model.config.decoder_config, make_text().to(device)[None]
    drawn = {"do_sample": True, "temperature": how.temperature, "top_p": how.top_p} if how.temperature else {"do_sample": False}
    found: torch.Tensor = model.generate(
        input_ids=text,
        attention_mask=torch.ones_like(text),
        decoder_input_ids=before.to(device),
        decoder_attention_mask=torch.ones(1, before.shape[1], dtype=torch.long, device=device),
        max_new_tokens=rows,
        streamer=clock,
        guidance_scale=how.guidance,
        top_k=how.cfg_filter,
        eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
        bos_token_id=config.bos_token_id,
        **drawn,
    )
    return found[0]


def count_same_rows(model: Any, device: str, plan: Plan, rows: int) -> int:
    """Count how many of the first rows are the same by both ways, when each takes the most likely tokens."""
    greedy = Sampling(SETTINGS.guidance, 0.0, SETTINGS.top_p, SETTINGS.cfg_filter)
    config, delays = model.config, model.config.delay_pattern
    before = torch.full((1, 1 + max(delays), len(delays)), config.decoder_config.pad_token_id)
    for channel, delay in enumerate(delays):
        before[0, : delay + 1, channel] = config.decoder_config.bos_token_id
    with applied(plan):
        decoding = Decoding(model, device, PartInput(make_text(), None, greedy, 1, rows))
        while not decoding.done and decoding.made < rows:
            decoding.step()
    wanted = generate(model, device, before, rows, greedy).cpu()[: rows + 1]
    found = decoding.rows[: len(wanted)]
    same = (found == wanted[: len(found)]).all(-1).long().cumprod(0)
    return int(same.sum()) - 1
