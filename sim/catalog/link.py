"""A link: what bytes cross, at which rate and latency, and how long an all-reduce takes over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sim.base.units import show
from sim.catalog.entry import Entry
from sim.catalog.fields import Fields

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Link(Entry):
    """A kind of link. `bytes_per_s` is nominal, per direction; a large transfer gets `efficiency` of it.

    `latency_ps` is paid per hop, `endpoint_latency_ps` once per transfer. `all_reduce` holds, by number of
    GPUs, measured points (bytes, ps) in rising order; it is empty where collectives do not use the link.
    """

    bytes_per_s: float
    efficiency: float
    latency_ps: int
    endpoint_latency_ps: int
    all_reduce: Mapping[int, Sequence[Point]]

    @classmethod
    def read(cls, fields: Fields) -> Link:
        """Read an entry of links.yaml."""
        return cls(
            **fields.identity(),
            bytes_per_s=fields.quantity("bandwidth", "rate"),
            efficiency=fields.quantity("efficiency", "fraction"),
            latency_ps=fields.whole_quantity("latency", "time"),
            endpoint_latency_ps=fields.whole_quantity("endpoint_latency", "time"),
            all_reduce=_all_reduce(fields),
        )

    @property
    def effective_bytes_per_s(self) -> float:
        """What a large transfer gets, per direction."""
        return self.bytes_per_s * self.efficiency

    @property
    def summary(self) -> str:
        """Title, nominal rate, efficiency and latency per hop."""
        rate, latency = show(self.bytes_per_s, "rate"), show(self.latency_ps, "time")
        reached = show(self.efficiency, "fraction")
        return f"{self.title}, {rate} per direction, {reached} reached, {latency} per hop"


def _all_reduce(fields: Fields) -> dict[int, list[Point]]:
    """Points by number of GPUs: those of a kernel for small sizes, then those of one for large sizes."""
    curves: dict[int, list[Point]] = {}
    for item in fields.sections("all_reduce") if fields.has("all_reduce") else ():
        points = [
            point for key in ("small", "large") if item.has(key) for point in item.curve(key, "size", "time")
        ]
        curves[item.label_count("gpus")] = points
        item.close()
    return curves
