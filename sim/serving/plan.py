"""A scenario with every name resolved: what the serving model needs to know, in plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sim.network.fabric import Port
from sim.serving.speculation import Speculation
from sim.timing.timing import Timing


@dataclass(frozen=True)
class Seat:
    """Where a replica sits: the port of each of its tensor-parallel ranks, in order."""

    ports: tuple[Port, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.ports)

    @cached_property
    def places(self) -> tuple[Port, ...]:
        """The ports it is on, each once, in order."""
        return tuple(dict.fromkeys(self.ports))

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """For each rank, which of `places` it is at."""
        return tuple(self.places.index(port) for port in self.ports)

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """The nodes it is on, in order."""
        return tuple(dict.fromkeys(port.node for port in self.ports))


@dataclass(frozen=True, slots=True)
class Collectives:
    """What the collectives of a replica send out of each of its NVLink domains, and receive there, in bytes.

    `token_bytes` are for a prompt token; `step_bytes[b]` for a decode step of b sequences (index 0 unused).
    """

    token_bytes: float
    step_bytes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class HostTimes:
    """What the host does between the steps of a replica, which no time of a step holds; picoseconds.

    `prefill_ps` comes before each step with prompts, `step_ps` before each decode step, `change_ps` before
    the first one after the members of the batch have changed, and `send_ps` after each batch of prompts whose
    KV is sent elsewhere, with `send_token_ps` for each of their tokens.
    """

    prefill_ps: int = 0
    step_ps: int = 0
    change_ps: int = 0
    send_ps: int = 0
    send_token_ps: float = 0.0


NO_HOST = HostTimes()


@dataclass(frozen=True, slots=True)
class SwapPlan:
    """Host memory for sequences that give way: `pages` for each replica; each rank moves its part of one."""

    pages: int
    rank_page_bytes: int


@dataclass(frozen=True, slots=True)
class BatchingPlan:
    """How a colocated replica fills its steps and its memory.

    `rule` and `order` are names (sim.serving.batching, sim.serving.order). `chunk_tokens` bounds what a step
    computes of one prompt. `reserves_whole`: memory is taken for prompt and output when a prompt is let in,
    else page by page. `spare_tokens` stay free when prompts are let in. Sequences that give way are computed
    anew, or wait in host memory where there is a `swap`.
    """

    rule: str
    order: str = "fcfs"
    chunk_tokens: int = 1 << 62
    reserves_whole: bool = True
    spare_tokens: int = 0
    swap: SwapPlan | None = None


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """A pool of equal replicas.

    `kv_tokens` is the KV memory of one replica. `max_batch_tokens` bounds a prefill batch, `max_sequences`
    a decode batch. `first_length_ps` is what the first prompt of a length costs extra, `host` what the host
    does between steps. `collectives` is None where replicas do not leave their NVLink domain. `units` has the
    fabric unit of each replica, `domains` its NVLink domain; where they are empty all are in one. `gpus` has
    the kind of GPU of each. `batching` is that of colocated pools.
    """

    name: str
    role: str
    seats: tuple[Seat, ...]
    gpus_per_replica: int
    timing: Timing
    kv_tokens: int
    max_batch_tokens: int
    max_sequences: int
    collectives: Collectives | None = None
    first_length_ps: int = 0
    units: tuple[int, ...] = ()
    domains: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    host: HostTimes = NO_HOST
    batching: BatchingPlan | None = None


@dataclass(frozen=True, slots=True)
class LostPart:
    """A node whose part of the pool is lost, and when."""

    at_ps: int
    node: int


@dataclass(frozen=True, slots=True)
class KvPlan:
    """The pool of KV blocks and how it is used; as it stands nothing is lent and nothing overlaps.

    `lent[tier][node]` is what a node lends, in blocks. `hbm` says whether prefill replicas keep blocks in
    their own memory, `is_shared` whether others see what a node has. `fetch_bytes_per_s` and
    `save_bytes_per_s` cap each fetch and each write of a replica where the engine stages them.
    """

    lent: tuple[Mapping[int, int], ...] = ()
    is_shared: bool = False
    hbm: bool = True
    keeps_partial: bool = True
    eviction: str = "lru"
    ttl_ps: int | None = None
    write: str = "through"
    replicate: str = "never"
    max_copies: int | None = None
    rebalance_ps: int | None = None
    fetch: str = "estimate"
    overlaps: bool = False
    streams: bool = False
    gpudirect_storage: bool = True
    stale_ps: int = 0
    lost: tuple[LostPart, ...] = ()
    rank_block_bytes: int = 0
    layers: int = 1
    fetch_start_ps: int = 0
    fetch_bytes_per_s: float | None = None
    save_bytes_per_s: float | None = None

    @property
    def is_active(self) -> bool:
        """Whether anything moves to or from a prefill replica beside handoffs of computed prompts."""
        return bool(self.lent) or self.streams


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """Router policies for prefill and decode, by name or what makes their chooser, and the weights of load.

    Requests are turned away when they arrive if a time is estimated to be above `reject_..._ps`. Loads are
    seen `stale_ps` late. With `decode_first` the decode replica is chosen when a request arrives, before the
    prefill replica. Lots follow from `seed`. Where there are colocated pools beside others, prompts of at
    most `colocated_tokens` go there.
    """

    policy: str | Callable[[], Any]
    decode_policy: str | Callable[[], Any]
    load_weight: float
    reject_ttft_ps: int | None = None
    reject_tbt_ps: int | None = None
    decode_load_weight: float = 1.0
    stale_ps: int = 0
    decode_first: bool = False
    seed: int = 0
    colocated_tokens: int | None = None

    @property
    def rejects(self) -> bool:
        """Whether any request that could be served is turned away."""
        return self.reject_ttft_ps is not None or self.reject_tbt_ps is not None


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """Everything the serving model is built from.

    `kv_bytes_per_token` is what one copy of a token's KV takes, dealt out by its `kv_heads`. Layers that look
    back a limited number of tokens stop to grow at it: `kv_limits` has each limit with its part of those
    bytes; `kv_state_bytes` come with every sequence, however long it is. `page_tokens` is the unit in which
    decode memory is taken, `block_tokens` that of hashed blocks and of prefill memory.
    Users give a request up after `timeout_ps`; some take theirs back if it `cancels`.
    `first_token_by_prefill` says who emits the first token. A pool that a scenario has not got has no seats,
    or is None if it is the `colocated` one. `handoff_start_ps`, and `handoff_token_ps` for each token, are
    what a handoff takes besides its bytes; where it `reserves_first`, a prompt waits for decode memory before
    it is computed. Requests take `request_time_ps` to get in. Times in picoseconds of workload time.
    Where there is a `speculation`, decode steps give a sequence more than one token.
    """

    prefill: PoolPlan
    decode: PoolPlan
    router: RouterPlan
    reuse: bool
    kv_bytes_per_token: int
    kv_heads: int
    block_tokens: int
    page_tokens: int
    first_token_by_prefill: bool
    measured_from_ps: int
    measured_until_ps: int
    kv_limits: tuple[tuple[int, int], ...] = ()
    kv_state_bytes: int = 0
    kv: KvPlan = KvPlan()
    colocated: PoolPlan | None = None
    handoff_start_ps: int = 0
    handoff_token_ps: float = 0.0
    reserves_first: bool = False
    timeout_ps: int | None = None
    cancels: bool = False
    request_time_ps: int = 0
    speculation: Speculation | None = None

    def kv_bytes(self, tokens: int) -> int:
        """What one copy of a sequence's KV takes."""
        size = tokens * self.kv_bytes_per_token + self.kv_state_bytes
        for limit, part in self.kv_limits:
            if tokens > limit:
                size -= (tokens - limit) * part
        return size

    def kv_pages(self, tokens: int) -> int:
        """Pages that a sequence takes; what a sequence does not keep is room for others."""
        if self.kv_limits or self.kv_state_bytes:
            tokens = -(-self.kv_bytes(tokens) // self.kv_bytes_per_token)
        return -(-tokens // self.page_tokens)
