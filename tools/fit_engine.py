"""Fit what an engine's host adds to runs at a fixed concurrency, on half of the rows, and ask the other half.

    python tools/fit_engine.py vllm

Model: `sim.validate.silicon`, on a grid of `layer_time`, `step_gap`, `prefill_gap` and `request_time`. The
best point has the least sum of the median errors of TPOT and, by half as much, of TTFT, on every other run on
B200 and H200; printed are its errors on these and on the others, and the same the other way round. What the
engine profile has is printed beside. Takes some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import median
from typing import Any

from sim.base.errors import UnsupportedError
from sim.catalog import load_catalog
from sim.timing.build import roofline
from sim.timing.memory import kv_capacity_tokens
from sim.timing.placement import Placement
from sim.validate.closedloop import ClosedLoop, Load, Replica, fits
from sim.validate.rows import rows_of
from sim.validate.sets import DATA
from sim.validate.setup import rule_of
from sim.validate.silicon import NEEDED, load_of, setup_of

SYSTEMS = ("b200_sxm", "h200_sxm")
US, MS = 10**6, 10**9
Case = tuple[Placement, Load, float, float]
GRID = {
    "layer_time_ps": [8 * US, 12 * US, 16 * US, 20 * US, 24 * US],
    "step_gap_ps": [MS // 5, MS * 2 // 5, MS * 4 // 5],
    "prefill_gap_ps": [0, 5 * MS],
    "request_time_ps": [25 * MS],
}


def cases(engine: str) -> Iterator[Case]:
    """Placement, load and what was measured, of each run that can be simulated."""
    for row in rows_of(DATA / "silicon.csv", NEEDED):
        if row.text("backend") != engine or row.text("system") not in SYSTEMS:
            continue
        try:
            placement = setup_of(row).placement()
        except UnsupportedError:
            continue
        yield placement, load_of(row), row.number("silicon_ttft_ms"), row.number("silicon_tpot_ms")


def errors(chosen: Sequence[Case], point: Mapping[str, Any]) -> tuple[float, float]:
    """Median absolute errors of TTFT and TPOT at a point of the grid."""
    ttft, tpot = [], []
    for placement, load, ttft_ms, tpot_ms in chosen:
        engine = replace(placement.engine, **point)
        replica = Replica(
            timing=roofline(replace(placement, engine=engine)),
            rule=rule_of(engine),
            kv_tokens=kv_capacity_tokens(placement),
            prefill_gap_ps=engine.prefill_gap_ps,
            step_gap_ps=engine.step_gap_ps,
            request_time_ps=engine.request_time_ps,
            prepares_ahead=engine.overlaps_host,
        )
        if fits(replica, load):
            seen = ClosedLoop(replica, load).run()
            ttft.append(abs(seen.ttft_ps / MS / ttft_ms - 1))
            tpot.append(abs(seen.tpot_ps / MS / tpot_ms - 1))
    return median(ttft), median(tpot)


def score(ttft: float, tpot: float) -> float:
    """What is made least."""
    return tpot + ttft / 2


def told(found: tuple[float, float]) -> str:
    """Errors in words."""
    return f"TTFT {found[0]:.1%}, TPOT {found[1]:.1%}"


def main(name: str) -> None:
    """Fit on each half."""
    rows = list(cases(name))
    points = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    for first, other in ((rows[::2], rows[1::2]), (rows[1::2], rows[::2])):
        best = min(points, key=lambda point: score(*errors(first, point)))
        words = ", ".join(f"{key.removesuffix('_ps')} {value / MS:g} ms" for key, value in best.items())
        own, asked = told(errors(first, best)), told(errors(other, best))
        sys.stdout.write(f"{words}: on its own half {own}; on the other {asked}\n")
    engine = load_catalog().engines[name]
    sys.stdout.write(f"{name} as it is: {told(errors(rows, {key: getattr(engine, key) for key in GRID}))}\n")


if __name__ == "__main__":
    main(sys.argv[1])
