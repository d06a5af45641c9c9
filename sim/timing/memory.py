"""What fits the memory of a GPU: weights, a reserve for activations, and KV cache in what is left.

Model: KV bytes = usable memory x the engine's fraction - weights - reserve, on each GPU; tokens come in whole
pages. Ignores: fragmentation, and that the reserve depends on the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.errors import UnsupportedError
from sim.base.units import show
from sim.timing.placement import Placement


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """How the memory of each GPU of a replica is spent, in bytes."""

    title: str
    usable_bytes: int
    budget_bytes: int
    weight_bytes: int
    activation_bytes: int
    kv_bytes_per_token: int
    page_tokens: int

    @property
    def kv_bytes(self) -> int:
        """What is left for KV; negative by what is missing."""
        return self.budget_bytes - self.weight_bytes - self.activation_bytes

    @property
    def kv_tokens(self) -> int:
        """Tokens of context that a replica holds, in whole pages; 0 where the weights do not fit."""
        return max(0, self.kv_bytes) // (self.kv_bytes_per_token * self.page_tokens) * self.page_tokens

    @property
    def fits(self) -> bool:
        """Whether there is room for the weights and at least one page."""
        return self.kv_tokens > 0

    @property
    def breakdown(self) -> str:
        """The plan as one line for people."""
        parts = (
            f"{show(self.budget_bytes, 'size')} of {show(self.usable_bytes, 'size')} to use",
            f"weights {show(self.weight_bytes, 'size')}",
            f"activations {show(self.activation_bytes, 'size')}",
        )
        left = f"{show(abs(self.kv_bytes), 'size')} {'left for KV' if self.kv_bytes >= 0 else 'missing'}"
        return f"{self.title}: {', '.join(parts)}: {left}"


def plan_memory(placement: Placement) -> MemoryPlan:
    """How a placement spends the memory of each GPU; says so also where it does not fit."""
    shard, engine, usable = placement.shard, placement.engine, placement.gpu.usable_memory_bytes
    return MemoryPlan(
        title=f"{shard.model.title} {shard.weights.upper()} at tp {shard.tp} on {placement.gpu.title}",
        usable_bytes=usable,
        budget_bytes=int(usable * engine.memory_fraction),
        weight_bytes=shard.weight_bytes_per_gpu,
        activation_bytes=engine.activation_reserve_bytes,
        kv_bytes_per_token=shard.kv_bytes_per_token_per_gpu,
        page_tokens=engine.page_tokens,
    )


def kv_capacity_tokens(placement: Placement) -> int:
    """Tokens of context that a replica holds; refuses a placement whose weights do not fit."""
    plan = plan_memory(placement)
    if not plan.fits:
        raise UnsupportedError(
            f"the weights do not fit. {plan.breakdown}", "a larger tp, or weights of fewer bits"
        )
    return plan.kv_tokens
