"""The one function that dask calls on a helper. Its name travels and is allowed there by that, so it stays where it is for machines that were
paired before; all that it knows comes as text."""

from __future__ import annotations


def run_task(task: str, body: str) -> bool:
    """Carry out a task in the helper's engine; its files and its end travel by themselves."""
    from distributed import get_worker

    worker = get_worker()
    worker.errands.carry_out(worker, task, body)
    return True
