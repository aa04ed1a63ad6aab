"""Attention calls that a voice makes, as its published config has them: idle time measures these and no others."""

from __future__ import annotations

from app.compat.planning.attention_calls import DIA
from app.compat.planning.quickest_way import Shape


def test_dia_reads_texts_and_clips_and_steps_over_a_growing_cache() -> None:
    """Its encoder has 16 heads of 128 over 1024 bytes, its decoder 16 over 4. Guidance's second row asks nothing of the text."""
    text = [(16, 16, rows, rows, False) for rows in (256, 1024)]
    clips = [each for rows in (128, 512) for each in ((16, 4, rows, rows, True), (16, 16, rows, 1024, False))]
    steps = [(16, 4, 1, keys, False) for keys in (64, 256, 1024, 3072)] + [(16, 16, 1, keys, False) for keys in (256, 1024)]
    assert [(each.heads, each.kv_heads, each.queries, each.keys, each.causal) for each in DIA] == [*text, *clips, *steps]
    assert {(each.batch, each.kv_heads, each.head_dim, each.masked) for each in DIA} == {(1, 16, 128, False), (2, 4, 128, False)}


def test_a_call_has_a_shape_in_each_dtype() -> None:
    assert DIA[3].shape("bfloat16") == Shape(1, 16, 16, 128, 1024, 128, False, False, "bfloat16")
