"""A scenario with every name resolved: what the serving model needs to know, in plain values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sim.network.fabric import Port
from sim.timing.timing import Timing


@dataclass(frozen=True)
class Seat:
    """Where a replica sits: the port of each of its tensor-parallel ranks, in order."""

    ports: tuple[Port, ...]

    @cached_property
    def places(self) -> tuple[Port, ...]:
        """The ports it is on, each once, in order."""
        return tuple(dict.fromkeys(self.ports))

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """For each rank, which of `places` it is at."""
        return tuple(self.places.index(port) for port in self.ports)

    @property
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
class PoolPlan:
    """A pool of equal replicas.

    `kv_tokens` is the KV memory of one replica. `max_batch_tokens` bounds a prefill batch, `max_sequences`
    a decode batch. `collectives` is None where replicas do not leave their NVLink domain.
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


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """Router policies by name, for prefill and decode, and the weight of load against cached tokens."""

    policy: str
    decode_policy: str
    load_weight: float


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """Everything the serving model is built from.

    `kv_bytes_per_token` is what one copy of a token's KV takes, dealt out by its `kv_heads`. Layers that look
    back a limited number of tokens stop to grow at it: `kv_limits` has each limit with its part of those
    bytes; `kv_state_bytes` come with every sequence, however long it is. `page_tokens` is the unit in which
    decode memory is taken, `block_tokens` that of hashed blocks and of prefill memory.
    `first_token_by_prefill` says who emits the first token. Times in picoseconds of workload time.
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
    sample_every_ps: int
    kv_limits: tuple[tuple[int, int], ...] = ()
    kv_state_bytes: int = 0

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
