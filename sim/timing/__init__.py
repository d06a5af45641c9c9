"""How long a replica takes: providers of prefill and decode times, and what fits its memory."""

from sim.timing.build import roofline
from sim.timing.fixed import FixedTiming
from sim.timing.memory import MemoryPlan, kv_capacity_tokens, plan_memory
from sim.timing.placement import Placement, Shard, place
from sim.timing.timing import Chunk, DecodeTable, Timing

__all__ = [
    "Chunk",
    "DecodeTable",
    "FixedTiming",
    "MemoryPlan",
    "Placement",
    "Shard",
    "Timing",
    "kv_capacity_tokens",
    "place",
    "plan_memory",
    "roofline",
]
