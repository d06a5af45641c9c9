"""The form of a scenario's `kv_pool`: where computed KV blocks are kept, and how they move.

What nodes lend is the topology's; how it is used is written here.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from sim.base.errors import ValueProblem
from sim.config.form import Form
from sim.config.quantities import Duration, PositiveDuration, Size, as_written


class LostNode(Form):
    """A node whose part of the pool is lost."""

    node: Annotated[int, Field(ge=0)] = Field(description="the number of the node")
    at: Duration = Field(description="when, in simulated time from the start of the window")


class KvPool(Form):
    """Where computed KV blocks may be found again, and how they get there."""

    policy: Literal["none", "local", "pooled"] = Field(
        "local",
        description="none: no reuse; local: each node reuses what it still holds itself (HBM, and the "
        "host memory and NVMe that it lends); pooled: each reuses what any node lends",
    )
    hbm: bool = Field(True, description="whether prefill replicas keep blocks in HBM for later prompts")
    blocks: PositiveInt | None = Field(
        None, description="blocks of host memory that each node lends, in place of what the topology says"
    )
    dram: Size | None = Field(
        None, description="host memory that each lending node lends, in place of what the topology says"
    )
    nvme: Size | None = Field(
        None, description="NVMe that each lending node lends, in place of what the topology says"
    )
    partial_blocks: bool = Field(
        True, description="whether the last block of a prompt is kept too where it is not full"
    )
    eviction: str = Field("lru", description="what goes first, see `sim list evictions`")
    ttl: PositiveDuration | None = Field(None, description="eviction ttl: how long an untouched block stays")
    write: Literal["through", "back", "second_use"] = Field(
        "through",
        description="when new blocks are written to host memory: through: once they are computed; back: when "
        "HBM evicts them; second_use: when they are used for the second time",
    )
    replicate: Literal["bottleneck", "always", "never"] = Field(
        "bottleneck",
        description="whether a replica's node keeps what came from another node too: bottleneck: when a NIC "
        "held the fetch back",
    )
    max_copies: PositiveInt | None = Field(
        None, description="blocks that lie on so many places are not replicated"
    )
    rebalance: PositiveDuration | None = Field(
        None, description="how often the most read blocks of the busiest node go to the idlest one too"
    )
    fetch: Literal["estimate", "always", "never"] = Field(
        "estimate",
        description="fetch what is cached elsewhere; estimate: where that is faster than computing",
    )
    overlap_fetch: bool | None = Field(
        None,
        description="whether a prompt is computed layer by layer while its cached blocks arrive, or after; "
        "absent: as the engine does it",
    )
    stream_out: bool | None = Field(
        None,
        description="whether KV leaves layer by layer while its prompt is computed, or after; absent: as the "
        "engine does it",
    )
    gpudirect_storage: bool = Field(
        True, description="whether NVMe is read straight into GPU memory, or through host memory"
    )
    stale: Duration = Field(
        as_written("0 s"), description="router conductor: how old its view of the queues is"
    )
    lost: list[LostNode] = Field([], description="nodes whose part of the pool is lost during the run")

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.blocks is not None and self.dram is not None:
            raise ValueProblem(
                "blocks and dram both say how much host memory is lent",
                "keep one of them",
                ["blocks", "dram"],
            )
        if self.eviction == "ttl" and self.ttl is None:
            raise ValueProblem("eviction ttl needs a time", "add ttl: 10 min", ["eviction"])
        if self.ttl is not None and self.eviction != "ttl":
            raise ValueProblem("a ttl means nothing to this eviction", "write eviction: ttl", ["ttl"])
        return self

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        if self.rebalance is not None and self.policy != "pooled":
            raise ValueProblem(
                f"nodes copy nothing to each other with policy: {self.policy}",
                "write policy: pooled, or rebalance: null",
                ["rebalance"],
            )
        if self.policy != "none" and not self.hbm and self.write != "through":
            which = "HBM evicts" if self.write == "back" else "were seen before in HBM"
            raise ValueProblem(
                f"write: {self.write} writes blocks that {which}, and hbm: false keeps none there",
                "write hbm: true, or write: through",
                ["write", "hbm"],
            )
        return self
