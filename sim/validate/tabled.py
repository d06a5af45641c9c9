"""Steps by a table that has not seen them: the provider is given every other row and asked for the rest.

Model: rows are kept in order of size; the first, the last and every second between stay in the table, so that
what is asked lies inside of it. For decode it is contexts of each batch that are left out; batches all stay.
Units: microseconds. Ignores: batches that no table has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from sim.config.device import DecodeStep, PrefillStep, Steps
from sim.timing.build import roofline
from sim.timing.measured import Measured
from sim.timing.placement import Placement

Case = tuple[str, str, float, float]
T = TypeVar("T")
FEWEST = 3
"""Rows of a line below which none is left out."""


def tabled(steps: Steps, placement: Placement) -> Iterator[Case]:
    """The rows that are left out, asked of the others."""
    kept_prefills, asked_prefills = _split(sorted(_plain(steps.prefill), key=lambda row: row.new))
    kept_steps: list[DecodeStep] = []
    asked_steps: list[DecodeStep] = []
    for batch in sorted({row.batch for row in steps.decode}):
        line = sorted((row for row in steps.decode if row.batch == batch), key=lambda row: row.context)
        kept, asked = _split(line)
        kept_steps += kept
        asked_steps += asked
    if not kept_prefills or not kept_steps:
        return
    others = [row for row in steps.prefill if row.prompts > 1 or row.cached]
    half = steps.model_copy(update={"prefill": [*kept_prefills, *others], "decode": kept_steps})
    table = Measured("half of the rows", half, placement, roofline)
    for prompt in asked_prefills:
        name = f"{steps.name}/prefill/1x{prompt.new}+0/table"
        yield (
            name,
            f"prefill {steps.weights}, table",
            table.prefill_ps([(prompt.new, 0)]) / 1e6,
            prompt.median_us,
        )
    for step in asked_steps:
        name = f"{steps.name}/decode/b{step.batch}-c{step.context}/table"
        predicted = table.step_ps([step.context] * step.batch) / 1e6
        yield name, f"decode steps {steps.weights}, table", predicted, step.median_us


def _plain(rows: Sequence[PrefillStep]) -> list[PrefillStep]:
    """Single prompts without a prefix."""
    return [row for row in rows if row.prompts == 1 and not row.cached]


def _split(rows: Sequence[T]) -> tuple[list[T], list[T]]:
    """What stays and what is asked."""
    if len(rows) < FEWEST:
        return list(rows), []
    asked = list(rows[1:-1:2])
    return [row for row in rows if not any(row is other for other in asked)], asked
