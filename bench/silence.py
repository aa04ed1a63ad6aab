"""Keep the libraries' progress bars and advice out of a bench's tables."""

from __future__ import annotations


def silence_libraries() -> None:
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # before diffusers, which imports what it advises about
    from diffusers.utils import logging as diffusers_logging

    diffusers_logging.set_verbosity_error()
    for each in (transformers_logging, diffusers_logging):
        each.disable_progress_bar()
