"""The card of the painter that the scripts pack: what it offers as examples is read as it is written."""

from __future__ import annotations

import json

import pytest

from app.engine.pictures.scenes.match import understand
from app.engine.pictures.scenes.tables import make_tables
from training.pictures.pack import EXAMPLES, describe


@pytest.mark.slow
def test_the_cards_examples_are_read_as_they_are_written() -> None:
    card = json.loads(json.dumps(describe({})))  # as the file has it
    tables = make_tables(card["grammar"])
    assert card["examples"] == EXAMPLES
    for each in EXAMPLES:
        assert understand(each, "", tables).literal, each
