"""Token counts of prompts and outputs, drawn in chunks: fixed, lognormal, or from a file of lengths."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sim.base.errors import ValueProblem
from sim.workload.rows import tokens
from sim.workload.source import TraceFile

if TYPE_CHECKING:
    from sim.config.scenario import Lengths

Counts = npt.NDArray[np.int64]
Draw = Callable[[int], Counts]


def length_draw(form: Lengths, random: np.random.Generator) -> Draw:
    """Return what draws the next n token counts."""
    if form.kind == "fixed":
        fixed = form.tokens or 1
        return lambda count: np.full(count, fixed, dtype=np.int64)
    if form.kind == "lognormal":
        return lambda count: _lognormal(form, random, count)
    known = lengths_of_file(Path(form.file or ""))
    return lambda count: random.choice(known, count)


def mean_tokens(form: Lengths) -> float | None:
    """The mean of a distribution where it has a closed form (a cut lognormal counts as uncut)."""
    if form.kind == "fixed":
        return float(form.tokens) if form.tokens else None
    if form.kind == "lognormal" and form.median_tokens and form.sigma:
        return form.median_tokens * exp(form.sigma**2 / 2)
    return None


def _lognormal(form: Lengths, random: np.random.Generator, count: int) -> Counts:
    """Draw whole counts of at least 1; draws above `max_tokens` are cut to it."""
    drawn = random.lognormal(np.log(form.median_tokens or 1), form.sigma or 1.0, count)
    most = form.max_tokens or 2**31
    return np.clip(np.rint(drawn), 1, most).astype(np.int64)


def lengths_of_file(path: Path) -> Counts:
    """Read a text file with one token count a line."""
    source = TraceFile(path)
    counts = []
    for line, text in enumerate(source.lines(), 1):
        if text.strip():
            try:
                counts.append(tokens(text.strip(), "the length"))
            except ValueProblem as bad:
                raise source.error(line, bad.problem, "write one whole number a line") from None
    if not counts:
        raise source.error(None, "holds no lengths", "write one whole number a line")
    return np.array(counts, dtype=np.int64)
