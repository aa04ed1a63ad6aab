"""Choose codes where few candidates are left."""

from __future__ import annotations

import pytest
import torch

from app.engine.speech.families.dia.sampling import Sampling, choose_codes

END, VOCABULARY = 16, 19


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("guidance", [1.0, 3.0])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_code_is_chosen_however_few_candidates_are_kept(most: int, guidance: float, temperature: float) -> None:
    """The candidates may all be codes that are never chosen: those above the end, and the end in all channels but the first."""
    logits = torch.zeros(2 if guidance > 1 else 1, 3, VOCABULARY)
    logits[:, :, END:] = 9.0
    logits[:, :, 5] = 5.0
    drawn = choose_codes(logits, Sampling(guidance, temperature, 1.0, most), END, torch.Generator().manual_seed(0))
    assert drawn[0] in (5, END) and drawn[1:].tolist() == [5, 5]
