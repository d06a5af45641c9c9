"""A link: what bytes cross, at which rate and latency, and how long an all-reduce takes over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sim.base.units import show
from sim.catalog.entry import Entry
from sim.catalog.fields import Fields

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Link(Entry):
    """A kind of link. `bytes_per_s` is nominal, per direction; a large transfer gets `efficiency` of it.

    `latency_ps` is paid per hop, `endpoint_latency_ps` once per transfer. `all_reduce` holds, by number of
    GPUs, measured points (bytes, ps) in rising order; it is empty where collectives do not use the link.
    `nccl_all_reduce` is the same by NCCL alone, where that was measured. `queue_pair_bytes_per_s` is the most
    that one queue pair of a NIC gets, `copy_engine_bytes_per_s` the most that one copy between a GPU and its
    host gets; None where the link is all that limits them.
    """

    bytes_per_s: float
    efficiency: float
    latency_ps: int
    endpoint_latency_ps: int
    all_reduce: Mapping[int, Sequence[Point]]
    nccl_all_reduce: Mapping[int, Sequence[Point]] = field(default_factory=dict)
    queue_pair_bytes_per_s: float | None = None
    copy_engine_bytes_per_s: float | None = None

    @classmethod
    def read(cls, fields: Fields) -> Link:
        """Read an entry of links.yaml."""
        custom, nccl = _all_reduce(fields)
        return cls(
            **fields.identity(),
            bytes_per_s=fields.quantity("bandwidth", "rate"),
            efficiency=fields.quantity("efficiency", "fraction"),
            latency_ps=fields.whole_quantity("latency", "time"),
            endpoint_latency_ps=fields.whole_quantity("endpoint_latency", "time"),
            all_reduce=custom,
            nccl_all_reduce=nccl,
            queue_pair_bytes_per_s=_rate(fields, "queue_pair_rate"),
            copy_engine_bytes_per_s=_rate(fields, "copy_engine_rate"),
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


def _rate(fields: Fields, key: str) -> float | None:
    return fields.quantity(key, "rate") if fields.has(key) else None


def _all_reduce(fields: Fields) -> tuple[dict[int, list[Point]], dict[int, list[Point]]]:
    """Points by number of GPUs: as engines do it, with a kernel of their own for small sizes; and by NCCL."""
    custom: dict[int, list[Point]] = {}
    nccl: dict[int, list[Point]] = {}
    for item in fields.sections("all_reduce") if fields.has("all_reduce") else ():
        gpus = item.label_count("gpus")
        small, by_nccl, large = (
            item.curve(key, "size", "time") if item.has(key) else [] for key in ("small", "nccl", "large")
        )
        custom[gpus] = [*small, *large]
        if by_nccl:
            nccl[gpus] = [*by_nccl, *large]
        item.close()
    return custom, nccl
