"""Define the error for NaN or infinite values in a running model; the session catches it and tries a safer plan."""

from __future__ import annotations

from app.compat.planning.types import Role


class NumbersBroke(RuntimeError):
    """A model's values became NaN or infinite at this step; `where` is the part of the model, if known."""

    def __init__(self, step: int, where: Role | None = None) -> None:
        super().__init__(f"the numbers broke at step {step}" + (f" in the {where} part" if where else ""))
        self.step = step
        self.where = where

    def __reduce__(self) -> tuple[object, ...]:
        return NumbersBroke, (self.step, self.where)
