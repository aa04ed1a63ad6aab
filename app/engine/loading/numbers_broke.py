"""What can break while a model runs and is not the person's doing; the session's ladder catches these and tries a safer way."""

from __future__ import annotations

from app.compat.planning.types import Role


class NumbersBroke(RuntimeError):
    """The model's numbers are no longer numbers (NaN or infinite) at this step; `where` is the part of the model, if known."""

    def __init__(self, step: int, where: Role | None = None) -> None:
        super().__init__(f"the numbers broke at step {step}" + (f" in the {where} part" if where else ""))
        self.step = step
        self.where = where

    def __reduce__(self) -> tuple[object, ...]:
        return NumbersBroke, (self.step, self.where)
