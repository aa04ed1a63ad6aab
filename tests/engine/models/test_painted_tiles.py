"""Test that tiles cover a picture, overlap everywhere, and are about as large as what a model was trained on."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.engine.models.painted_tiles import CELL, OVERLAP_SHARE, ROOM, cut


@pytest.mark.parametrize("own", [256, 512, 1024])
def test_tiles_cover_every_side_and_overlap(own: int) -> None:
    for side in range(own // 2, 8 * own, 8):
        spans = cut(side, own)
        assert spans[0][0] == 0 and spans[-1][1] == side
        lengths = {end - begin for begin, end in spans}
        assert len(lengths) == 1 and max(lengths) <= own * ROOM
        for (_, end), (begin, _) in pairwise(spans):
            assert end - begin >= own * OVERLAP_SHARE / 2, (side, spans)
        assert all(begin % CELL == 0 for begin, _ in spans[:-1])
        assert len(spans) > 1 or side <= own * ROOM


def test_no_more_tiles_than_it_takes() -> None:
    assert cut(1024, 512) == ((0, 576), (448, 1024))
    assert len(cut(2048, 512)) == 4 and len(cut(2048, 1024)) == 2
