"""What links, replicas and the KV pool did over a run: the rows behind "busiest links" and "utilisation"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.base.errors import Advice


@dataclass(frozen=True, slots=True)
class Ends:
    """What a link joins, by number in the topology, in the order in which nodes and switches were built.

    NICs have their node, its rails, and the leaves that these are cabled to (none between nodes without a
    switch). A link between switches has those of both tiers, and stands for all cables between them, or
    for one where each is a link of its own. What is inside a node has that node, and rails if it is theirs.
    """

    nodes: tuple[int, ...] = ()
    rails: tuple[int, ...] = ()
    leaves: tuple[int, ...] = ()
    spines: tuple[int, ...] = ()
    cores: tuple[int, ...] = ()


NOWHERE = Ends()


@dataclass(frozen=True, slots=True)
class LinkUse:
    """One link of the flow network over the measured window.

    `id` is its number, by which requests name it; `ends` are what it joins. `capacity_bytes_per_s` is what
    it can carry (efficiency included), `carried_bytes` what it did. `peak_fraction` is the largest load over
    capacity of any sampling interval, `waited_s` what all transfers together waited because they shared it.
    """

    id: int
    name: str
    kind: str
    capacity_bytes_per_s: float
    carried_bytes: float
    peak_fraction: float
    waited_s: float
    ends: Ends = NOWHERE


@dataclass(frozen=True, slots=True)
class ReplicaUse:
    """One replica over the measured window: `busy_ps` is time with work in the engine, `gpu` its kind.

    Of a replica that decodes, `steps` gave `step_tokens` to `decoded` sequences, one to each if none were
    drafted; `preempted` counts sequences put aside for want
    of memory, `swapped` those of them that went to host memory, `shortages` the boundaries of steps at which
    that happened. `tokens` are prompt tokens computed, tokens put out, or both where it is colocated; then
    `decoding_ps` of its time went to steps without prompts.
    """

    id: int
    name: str
    pool: str
    role: str
    gpus: int
    busy_ps: int
    requests: int
    tokens: int
    gpu: str = ""
    steps: int = 0
    decoded: int = 0
    preempted: int = 0
    decoding_ps: int = 0
    shortages: int = 0
    swapped: int = 0
    step_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TierUse:
    """What all nodes lend of one tier: blocks when the window ended, bytes over the window."""

    name: str
    capacity_blocks: int
    cached_blocks: int
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True)
class HotBlocks:
    """Blocks that follow one another in a prompt, from id `first` on.

    `reads` is how often they were fetched, `copies` on how many places they are.
    """

    first: int
    blocks: int
    reads: int
    copies: int


@dataclass(frozen=True, slots=True)
class KvPoolUse:
    """The pool of KV blocks over the measured window.

    `read_over` and `written_over` are the bytes that fetches and writes put on each kind of link, counted at
    each that they cross. `counts` are events: copies made, writes that found no room, moves broken off.
    `hottest` are those most read, from the start of the run, of what is there when the window ends.
    """

    block_bytes: int
    tiers: tuple[TierUse, ...]
    read_over: Mapping[str, int]
    written_over: Mapping[str, int]
    counts: Mapping[str, int]
    hottest: tuple[HotBlocks, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a simulation leaves behind beside the rows in its sink.

    `window_ps` is the measured window (from, to) in workload time; arrivals in it are measured.
    `simulated_ps` is the span of the clock that was simulated, drain included. `interrupted` marks a run
    that the user broke off: its rows are valid but incomplete. `doubts` are those of the parts themselves.
    `kv_pool` is None where no node lends. `gpu_kinds` counts all GPUs of the cluster by their name.
    """

    window_ps: tuple[int, int]
    simulated_ps: int
    gpus: int
    replicas: tuple[ReplicaUse, ...]
    links: tuple[LinkUse, ...]
    rejected_reasons: dict[str, int]
    events: int
    cpu_s: float
    interrupted: bool = False
    skipped_rows: int = 0
    doubts: tuple[Advice, ...] = ()
    kv_pool: KvPoolUse | None = None
    gpu_kinds: Mapping[str, int] = field(default_factory=dict)
