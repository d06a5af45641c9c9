"""The form of a pool: equal replicas, what they do, where they sit, and how they fill their steps."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from sim.base.errors import ValueProblem
from sim.config.form import Form, Name, NamedForm
from sim.config.place import Place
from sim.config.quantities import Fraction, Size, TableSource, as_written

Role = Literal["prefill", "decode", "colocated"]
COLOCATED_ONLY = (
    "batching",
    "chunk_tokens",
    "order",
    "reserve",
    "watermark",
    "preemption",
    "swap_space",
)
"""Fields that mean nothing where a pool only prefills or only decodes."""


class Timing(Form):
    """Where the times of a replica come from."""

    kind: Literal["roofline", "measured", "silicon"] = Field(
        "roofline",
        description="roofline: computed from the model's operators; measured: interpolated in a table; "
        "silicon: in a table of what aiconfigurator-core says, where that is installed",
    )
    table: TableSource | None = Field(
        None,
        description="measured: a device file as of `sim calibrate`, or a name of `sim list measurements`",
    )

    @model_validator(mode="after")
    def _table_where_measured(self) -> Timing:
        if (self.kind == "measured") != (self.table is not None):
            raise ValueProblem(
                f"kind: {self.kind} {'needs a table' if self.table is None else 'takes no table'}",
                "write {kind: measured, table: FILE}, {kind: roofline} or {kind: silicon}",
                ["table", "kind"],
            )
        return self


class Pool(NamedForm):
    """A set of equal replicas that do the same work."""

    name: Name = Field(description="your name for the pool; --set finds it by this name")
    role: Role = Field(description="what its replicas do: prefill, decode, or colocated: both")
    replicas: PositiveInt = Field(description="number of replicas (copies of the model)")
    tp: PositiveInt = Field(
        8, description="tensor-parallel GPUs of one replica: an equal part of a node, or whole nodes"
    )
    place: Place = Field(
        as_written("packed"),
        description="packed: one node after the other; spread: evenly over those with room; "
        "per-domain P:D: so many prefill and decode replicas in each NVLink domain; nodes 0-99,120: on these",
    )
    max_batch_tokens: PositiveInt | None = Field(
        None,
        description="prefill: new tokens in one batch, a longer prompt runs alone; colocated: the token "
        "budget of a step; absent: as the engine does it",
    )
    max_sequences: PositiveInt | None = Field(
        None,
        description="decode and colocated: sequences that run at once in a replica; absent: as the engine "
        "does it",
    )
    batching: str | None = Field(
        None,
        description="colocated: how steps are filled, see `sim list batchings`; absent: as the engine "
        "does it",
    )
    chunk_tokens: PositiveInt | None = Field(
        None,
        description="colocated: tokens of one prompt in a step at most, where the batching rule cuts "
        "prompts; absent: as the engine does it",
    )
    order: str | None = Field(
        None, description="colocated: who is let in first, see `sim list orders`; absent: fcfs"
    )
    reserve: Literal["whole", "grow"] | None = Field(
        None,
        description="colocated: whether KV memory is taken for prompt and output at once, or page by page; "
        "absent: as the engine does it",
    )
    watermark: Fraction | None = Field(
        None,
        description="colocated, grow: share of KV memory that stays free when prompts are let in, such as "
        "`1 %`; absent: as the engine does it",
    )
    preemption: Literal["recompute", "swap"] | None = Field(
        None,
        description="colocated, grow: what becomes of a sequence that finds no page: it is computed anew, or "
        "waits in host memory; absent: as the engine does it",
    )
    swap_space: Size | None = Field(
        None,
        description="colocated, swap: host memory for each GPU, such as `4 GiB`; absent: as the engine does "
        "it",
    )
    timing: Timing | None = Field(
        None, description="where the times of these replicas come from; else as the scenario says"
    )

    @model_validator(mode="after")
    def _own_fields(self) -> Self:
        given = [key for key in COLOCATED_ONLY if getattr(self, key) is not None]
        if given and self.role != "colocated":
            raise ValueProblem(
                f"{given[0]} means nothing to a pool with role {self.role}",
                "take it out, or write role: colocated for a pool that does both",
                given,
            )
        if self.watermark is not None and self.reserve == "whole":
            raise ValueProblem(
                "nothing grows where memory is reserved whole, so a watermark keeps nothing free",
                "write reserve: grow, or take the watermark out",
                ["watermark"],
            )
        if self.swap_space is not None and self.preemption == "recompute":
            raise ValueProblem(
                "nothing waits in host memory where sequences are computed anew",
                "write preemption: swap, or take swap_space out",
                ["swap_space"],
            )
        return self
