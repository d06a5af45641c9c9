"""What a GPU costs and draws: as the scenario says, else as the catalogue does, with the source of each.

Ignores: discounts, spot markets and the price of a whole node, where it is not that of its GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.errors import UnknownNameError
from sim.base.units import show
from sim.catalog import Gpu, load_catalog
from sim.config.scenario import Cost

OURS = "the scenario"
BOUND = "TDP, an upper bound"


@dataclass(frozen=True, slots=True)
class Power:
    """Watts of a GPU with nothing to do, and while it computes prompts, or generates tokens.

    `is_bound` says that one of the latter is its TDP, which is an upper bound.
    """

    idle_w: float
    prefill_w: float
    decode_w: float
    sources: tuple[str, ...]
    is_bound: bool

    def busy_w(self, role: str) -> float:
        """Watts while a replica of a role has work."""
        return self.decode_w if role == "decode" else self.prefill_w


def price_of(gpu: str, cost: Cost) -> tuple[float, str] | None:
    """USD for an hour of a GPU, and where that is from; None where nobody says."""
    if cost.gpu_price is not None:
        return cost.gpu_price, OURS
    part = _part(gpu)
    if part is None or part.price_usd_per_h is None:
        return None
    return part.price_usd_per_h, source_of(part, "price")


def power_of(gpu: str, cost: Cost) -> Power | None:
    """Watts of a GPU; None where nobody says what it draws idle.

    Where nobody has measured what it draws at work, that is its TDP, which is more than it draws.
    """
    part = _part(gpu)
    idle_w = cost.idle_power
    sources = [f"idle {show(idle_w, 'power')}: {OURS}"] if idle_w is not None else []
    if idle_w is None and part is not None and part.idle_w is not None:
        idle_w = part.idle_w
        sources.append(f"idle {show(idle_w, 'power')}: {source_of(part, 'idle_power')}")
    if idle_w is None:
        return None
    busy = []
    for role in ("prefill", "decode"):
        found = _busy_w(part, role, cost)
        if found is None:
            return None
        busy.append(found[0])
        sources.append(f"{role} {show(found[0], 'power')}: {found[1]}")
    return Power(idle_w, busy[0], busy[1], tuple(sources), any(BOUND in source for source in sources))


def _busy_w(part: Gpu | None, role: str, cost: Cost) -> tuple[float, str] | None:
    if cost.busy_power is not None:
        return cost.busy_power, OURS
    if part is None:
        return None
    measured_w = part.decode_w if role == "decode" else part.prefill_w
    if measured_w is not None:
        return measured_w, source_of(part, f"{role}_power")
    return part.tdp_w, f"{BOUND} ({source_of(part, 'tdp')})"


def source_of(part: Gpu, key: str) -> str:
    """Where a value of the catalogue was read."""
    leaf = part.provenance[key]
    return f"{leaf.source}, {leaf.verified}"


def _part(gpu: str) -> Gpu | None:
    try:
        return load_catalog().gpus[gpu]
    except UnknownNameError:
        return None
