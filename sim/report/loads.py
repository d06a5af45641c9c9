"""How busy the links of a topology were in a run, by tier, read from the samples of the run.

Model: of the two directions of a tier the busier one counts: its mean over the run and all its links, and
what the busiest link reached in one sampling interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sim.results.run import Run

LOWER_TIER: Mapping[str, str] = MappingProxyType(
    {"nic": "node", "leaf": "leaf", "spine": "spine", "nvlink": "nvlink"}
)
"""The tier below the links of a kind, by the first word of the kind."""


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the links above a tier were: on average over all, and the busiest for an interval."""

    mean_fraction: float
    busiest_fraction: float


Loads = Mapping[str, Load]
"""Loads by the lower tier of the links: `node`, `leaf` and `spine`, and `nvlink`."""


def loads_of(run: Run) -> Loads:
    """The loads of a run by tier."""
    samples = run.samples
    samples = samples[samples["kind"] == "links"]
    loads: dict[str, Load] = {}
    for name, of_kind in samples.groupby("name", observed=True):
        tier = LOWER_TIER.get(str(name).partition("_")[0])
        if tier is None:
            continue
        used = float(of_kind.loc[of_kind["metric"] == "used_fraction", "value"].mean())
        busiest = float(of_kind.loc[of_kind["metric"] == "busiest_fraction", "value"].max())
        known = loads.get(tier, Load(0.0, 0.0))
        loads[tier] = Load(max(known.mean_fraction, used), max(known.busiest_fraction, busiest))
    return loads
