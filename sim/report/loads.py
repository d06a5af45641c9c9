"""How busy the links of a topology were in a run: every cable that a drawing shows, and each tier as a whole.

Model: utilisation is what a link carried over the measured window over what it could have; of the two
directions of a cable the busier one counts. A link that stands for many cables (rails that move together,
uplinks that packets are sprayed over) gives each of them its own utilisation. A tier has the mean over its
links, as far as a transfer ever crossed them, the busiest of them, and the highest peak.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any

from sim.report.shapes import Joint
from sim.results.run import Run

LOWER_TIER: Mapping[str, str] = MappingProxyType(
    {"nic": "node", "leaf": "leaf", "spine": "spine", "nvlink": "nvlink"}
)
"""The tier below the links of a kind, by the first word of the kind."""


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the links above a tier were: on average, the busiest, and the busiest for one interval."""

    mean_fraction: float
    busiest_fraction: float
    peak_fraction: float


@dataclass(frozen=True)
class Loads:
    """`tiers` by the lower tier of links (`node`, `leaf`, `spine`, `nvlink`), `joints` by what is joined."""

    tiers: Mapping[str, Load] = field(default_factory=dict)
    joints: Mapping[Joint, float] = field(default_factory=dict)

    def of(self, joint: Joint | None, kind: str) -> float:
        """The utilisation of the cables of a joint, or without one of the tier that the kind begins with."""
        if joint is not None:
            return self.joints.get(joint, 0.0)
        tier = self.tiers.get(kind.split(maxsplit=1)[0])
        return tier.mean_fraction if tier else 0.0


def loads_of(run: Run) -> Loads:
    """The loads of a run."""
    window_s = run.figures["window_s"]
    joints: dict[Joint, float] = {}
    kinds: dict[str, list[tuple[float, float, float]]] = {}
    for link in run.links.to_dict("records"):
        could = link["capacity_bytes_per_s"] * window_s
        kinds.setdefault(link["kind"], []).append((link["carried_bytes"], could, link["peak_fraction"]))
        used = link["carried_bytes"] / could if could else 0.0
        for joint in joined(link):
            joints[joint] = max(joints.get(joint, 0.0), used)
    tiers: dict[str, Load] = {}
    for kind, rows in kinds.items():
        tier = LOWER_TIER.get(kind.partition("_")[0])
        if tier is not None:
            tiers[tier] = _busier(tiers.get(tier), rows)
    return Loads(tiers, joints)


def joined(link: Mapping[Any, Any]) -> Iterator[Joint]:
    """Everything that a row of the links joins: two vertices of the graph by tier and number each."""
    kind = link["kind"].partition("_")[0]
    if kind == "nvlink":
        yield from ((("node", int(node)), ("nvlink", 0)) for node in link["nodes"])
        return
    for lower, upper in (("nodes", "leaves"), ("leaves", "spines"), ("spines", "cores")):
        yield from _pairs(_SINGULAR[lower], link[lower], _SINGULAR[upper], link[upper])
    if kind == "nic" and not len(link["leaves"]):
        yield from _pairs("node", link["nodes"], "rail", link["rails"])


_SINGULAR = {"nodes": "node", "leaves": "leaf", "spines": "spine", "cores": "core"}


def _pairs(one: str, ones: Sequence[int], other: str, others: Sequence[int]) -> Iterator[Joint]:
    for low, high in product(ones, others):
        yield (one, int(low)), (other, int(high))


def _busier(known: Load | None, rows: Sequence[tuple[float, float, float]]) -> Load:
    """The load of one direction of a tier, or what is known of the other where that is busier."""
    carried, could = (sum(row[i] for row in rows) for i in (0, 1))
    mean = carried / could if could else 0.0
    busiest = max(did / might if might else 0.0 for did, might, _ in rows)
    peak = max(row[2] for row in rows)
    if known is None:
        return Load(mean, busiest, peak)
    return Load(
        max(known.mean_fraction, mean),
        max(known.busiest_fraction, busiest),
        max(known.peak_fraction, peak),
    )
