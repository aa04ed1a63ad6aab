"""Word an error for other programs in the shape that their API has: OpenAI's below /v1, A1111's below /sdapi."""

from __future__ import annotations

from typing import Any, Final

A1111: Final = "/sdapi/"
API_PREFIXES: Final = ("/v1/", A1111)


def shape_error(path: str, words: str, status: int, code: str, field: str = "") -> dict[str, Any]:
    """Return the body of an answer that refuses. `code`: what programs tell it by; `field`: what of the request it is about."""
    if path.startswith(A1111):
        return {"error": code, "detail": words, "body": "", "errors": words}
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": words, "type": kind, "code": code, "param": field or None}, "detail": words}
