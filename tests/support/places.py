"""Where the checkout lies."""

from pathlib import Path

TOP = Path(__file__).parents[2]
