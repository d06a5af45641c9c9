"""How long an all-reduce among the GPUs of a replica takes, in one NVLink domain and across several.

Model, in a domain of n GPUs: the measured table of the link for n GPUs. Where n was not measured, the table
of the nearest number m that was, on this link or its predecessors: a fixed time t0 (that of its smallest
size) and what grows with the size S,

    t0 + hop x log2(n / m) + (t(S) - t0) x f(n) / f(m) x rate(measured) / rate(here),    f(n) = 2 (n - 1) / n

f being the part of S that each member of a ring sends. Where none of these links was measured, a ring by
NCCL's constants: kernel + 2 (n - 1) x hop + f(n) x S / rate.

Across d domains: hierarchical. GPUs reduce within their domain; those in the same place of each domain then
form a ring over their NICs, each for its own share of the vector; then they gather within their domain. NCCL
goes on chunk by chunk, so that of what grows with the size only the slower of both networks counts:

    t0 + start + 2 (d - 1) x (latency + step) + max(t(S) - t0, f(d) x S / rate of the NICs of one domain)

with NCCL's own times t(S) inside, since custom kernels do not cross domains, and latency and rate of the
topology. The NICs of a domain send f(d) x S bytes and receive as many, and are never asked for more than
they carry. Units: bytes, picoseconds.
Source: Thakur, Rabenseifner and Gropp (2005) for rings; tables as given in the catalogue; NCCL's constants
from its tuning.cc. Only START_PS is fitted. Held to published measurements (tests/unit/timing): between 36 %
too fast and 14 % too slow; on EFA 24 % (large) to 60 % (small) too fast.
Ignores: trees, SHARP in the switches and the protocols among which NCCL chooses by size, the detour through
host memory without GPUDirect, handoffs that keep a collective waiting at the NICs, and the switches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2

from sim.catalog import Catalog, Link
from sim.catalog.link import Point
from sim.timing.curve import Curve

PS_PER_S = 10**12

START_PS = 20_000_000
"""Fitted: 31 us of 8 KiB between two DGX Sparks of one GPU each (github.com/NVIDIA/dgx-spark-playbooks, pull
request 103), less two steps of 2.7 us RoCE and 2.7 us NCCL."""

STEP_PS = 2_700_000
"""NCCL's constant for a step of a ring over the network by LL: GPU, proxy and flags (its tuning.cc)."""

KERNEL_PS = 6_600_000
"""NCCL's constant for the start of a ring by LL inside a node (its tuning.cc)."""


@dataclass(frozen=True, slots=True)
class Wire:
    """What joins the NVLink domains of a replica.

    `bytes_per_s` is what the NICs of its GPUs in one domain carry, each way; `latency_ps` the longest
    between neighbours in the ring.
    """

    domains: int
    bytes_per_s: float
    latency_ps: int

    def crossing(self, size: float) -> float:
        """Bytes that leave each domain, and enter it, for an all-reduce of so many."""
        return ring_part(self.domains) * size


@dataclass(frozen=True, slots=True)
class Table:
    """Measured all-reduce times: on which link, among how many GPUs, and (bytes, ps)."""

    link: Link
    gpus: int
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Collective:
    """The all-reduce of a replica: `gpus` of it in each domain, the link between them, and the wire."""

    gpus: int
    link: Link
    table: Table | None
    wire: Wire | None = None

    @property
    def is_measured(self) -> bool:
        """Whether its times inside a domain were measured as they are."""
        table = self.table
        return self.gpus == 1 or (table is not None and (table.link, table.gpus) == (self.link, self.gpus))

    def curve(self) -> Curve:
        """Picoseconds for bytes."""
        inside = self._inside()
        if self.wire is None:
            return inside
        wire = self.wire
        steps = 2 * (wire.domains - 1)
        fixed = inside(0.0)
        grows = Curve(inside.starts, [value - fixed for value in inside.values], inside.slopes)
        sent = Curve.roof((0.0, wire.crossing(1.0) / wire.bytes_per_s * PS_PER_S))
        start = fixed + START_PS + steps * (wire.latency_ps + STEP_PS)
        return Curve.roof((start, 0.0)) + grows.highest(sent)

    def _inside(self) -> Curve:
        if self.gpus == 1:
            return Curve([0.0], [0.0], [0.0])
        table, rate = self.table, self.link.effective_bytes_per_s
        if table is None:
            start = KERNEL_PS + 2 * (self.gpus - 1) * self.link.latency_ps
            return Curve.roof((start, ring_part(self.gpus) / rate * PS_PER_S))
        if self.is_measured:
            return Curve.through(table.points)
        first = table.points[0][1]
        fixed = max(first + self.link.latency_ps * log2(self.gpus / table.gpus), self.link.latency_ps)
        factor = ring_part(self.gpus) / ring_part(table.gpus) * table.link.effective_bytes_per_s / rate
        return Curve.through([(size, fixed + (time - first) * factor) for size, time in table.points])


def ring_part(members: int) -> float:
    """The part of a vector that each of so many members of a ring sends in an all-reduce."""
    return 2 * (members - 1) / members


def collective(catalog: Catalog, link: Link, gpus: int, wire: Wire | None = None) -> Collective:
    """The all-reduce among GPUs joined by a link in each domain, timed by the nearest that was measured."""
    chain = list(_with_predecessors(catalog, link))
    table = None
    if wire is not None:
        table = _nearest(((each, each.nccl_all_reduce) for each in chain), gpus)
    return Collective(gpus, link, table or _nearest(((each, each.all_reduce) for each in chain), gpus), wire)


def _nearest(tables: Iterator[tuple[Link, Mapping[int, Sequence[Point]]]], gpus: int) -> Table | None:
    """The table of the number of GPUs nearest by ratio; of equally near ones the first."""
    found = [Table(link, measured, points) for link, many in tables for measured, points in many.items()]
    return min(found, key=lambda table: abs(log2(gpus / table.gpus)), default=None)


def _with_predecessors(catalog: Catalog, link: Link) -> Iterator[Link]:
    yield link
    while link.predecessor is not None:
        link = catalog.links[link.predecessor]
        yield link
