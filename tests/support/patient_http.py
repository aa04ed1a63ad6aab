"""httpx for tests: it waits a minute for an answer, where by itself it gives up after five seconds, which a busy machine may need."""

from __future__ import annotations

from functools import partial
from typing import Final

import httpx

ANSWER_S: Final = 60.0

get, post, options = partial(httpx.get, timeout=ANSWER_S), partial(httpx.post, timeout=ANSWER_S), partial(httpx.options, timeout=ANSWER_S)
Client = partial(httpx.Client, timeout=ANSWER_S)
