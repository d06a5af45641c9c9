"""Figures over the size of the pool: what a sweep over `kv_pool.dram` says about how much memory to buy.

One row for each size, in gigabytes (10^9 bytes) of each node that lends: means over seeds, and beside each
the half-width of its 95 % interval. The knee of a figure is that of its means (see sim.results.knee). The
cheapest size is that at which a million output tokens of requests within the SLO cost least, among those that
meet the SLO with every seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from sim.base.units import parse
from sim.results.intervals import interval
from sim.results.knee import knee
from sim.results.memorycost import GB, MemoryPrice, usd_per_million
from sim.results.words import number, percent, seconds

SIZE_KEY = "kv_pool.dram"
COST = "usd_per_million_tokens"
FIGURES: tuple[str, ...] = ("hit_fraction", "ttft_p90_s", "goodput_fraction", COST)


@dataclass(frozen=True)
class PoolSizes:
    """`table` by `dram_gb`; `knees` holds the size at the knee of each figure that has one."""

    table: pd.DataFrame
    knees: Mapping[str, float]
    cheapest_gb: float | None

    def at(self, size_gb: float, name: str) -> float:
        """A figure at a size."""
        return float(self.table[name].to_dict()[size_gb])

    def answer(self) -> str:
        """The answer in a few sentences."""
        sizes = [float(size) for size in self.table.index]
        found = self.knees.get("hit_fraction")
        if found is None:
            span = f"From {number(sizes[0])} to {number(sizes[-1])} GB a node"
            return f"{span} the hit rate has no knee: look further."
        said = (
            f"The hit rate has its knee at {number(found)} GB a node: up to there it goes "
            f"{self._change(sizes[0], found)}; from there to {number(sizes[-1])} GB "
            f"{self._change(found, sizes[-1])}."
        )
        return f"{said} {self._cheapest()}"

    def _cheapest(self) -> str:
        if self.cheapest_gb is None:
            return "No size meets the SLO with every seed."
        cost = number(self.at(self.cheapest_gb, COST))
        size = number(self.cheapest_gb)
        million = "a million output tokens of requests within it"
        return f"Of the sizes that meet the SLO {size} GB is the cheapest: {cost} USD for {million}."

    def _change(self, from_gb: float, to_gb: float) -> str:
        old, new = (percent(round(self.at(size, "hit_fraction"), 2)) for size in (from_gb, to_gb))
        slow, fast = (seconds(self.at(size, "ttft_p90_s")) for size in (from_gb, to_gb))
        return f"from {old} to {new}, and TTFT p90 from {slow} to {fast}"


def pool_sizes(sweep: pd.DataFrame, price: MemoryPrice) -> PoolSizes:
    """Read a sweep over `kv_pool.dram`; paid are the rent of the GPUs and the memory of the pool."""
    good = sweep[sweep["status"] == "ok"]
    if good.empty:
        raise ValueError("no trial of the sweep succeeded")
    paid = good["rent_usd_per_h"].astype(float) + good["pool_dram_bytes"].map(price.usd_per_h)
    costs = [
        usd_per_million(usd_per_h, tokens_per_s)
        for usd_per_h, tokens_per_s in zip(paid, good["good_output_tokens_per_s"], strict=True)
    ]
    sized = good.assign(
        dram_gb=[parse(str(label), "size") / GB for label in good[SIZE_KEY]],
        **{COST: [float("nan") if cost is None else cost for cost in costs]},
    )
    rows = {size: _row(of_size) for size, of_size in sized.groupby("dram_gb")}
    table = pd.DataFrame(list(rows.values()), index=pd.Index(list(rows), name="dram_gb"))
    meets = table[table["slo_met"]][COST].dropna()
    costs_of = [(float(cost), size) for cost, size in zip(meets, meets.index.tolist(), strict=True)]
    return PoolSizes(table, _knees(table), min(costs_of)[1] if costs_of else None)


def _row(of_size: pd.DataFrame) -> dict[str, float | bool]:
    """Means of one size with the half-widths of their intervals, and whether every seed met the SLO."""
    row: dict[str, float | bool] = {"seeds": len(of_size), "slo_met": all(of_size["slo_met"].tolist())}
    for name in FIGURES:
        found = interval(of_size[name].astype(float).tolist())
        row |= {name: found.mean, f"{name}_half": found.half}
    return row


def _knees(table: pd.DataFrame) -> dict[str, float]:
    sizes = [float(size) for size in table.index]
    places = {name: knee(sizes, [float(value) for value in table[name]]) for name in FIGURES if name != COST}
    return {name: sizes[place] for name, place in places.items() if place is not None}
