"""What one GPU does with a model: a long prompt, decode steps, and the room that is left for KV.

Model: the roofline of one GPU under the reference engine, in a node that has it; which node makes no
difference, since nothing leaves the GPU. Where the weights do not fit there are no times, only what is
missing.
Units: picoseconds, tokens, bytes. Ignores: what sharing a model among GPUs adds or saves.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.catalog import Catalog, Model
from sim.catalog.precision import KV_PRECISIONS
from sim.timing.build import roofline
from sim.timing.memory import plan_memory
from sim.timing.placement import Shard, place

PROMPT_TOKENS = 8192
CONTEXT_TOKENS = 4096
BATCH = 32


@dataclass(frozen=True, slots=True)
class Outlook:
    """Times of a GPU with a model, None where they cannot be.

    `prefill_ps` is one prompt of PROMPT_TOKENS; `step_ps` and `batch_step_ps` are decode steps of one and of
    BATCH sequences of CONTEXT_TOKENS each. `missing_bytes` is what the weights lack, None where they fit.
    """

    prefill_ps: int | None
    step_ps: int | None
    batch_step_ps: int | None
    kv_tokens: int | None
    missing_bytes: int | None


def outlook(catalog: Catalog, gpu: str, model: Model, weights: str) -> Outlook:
    """What a GPU does with a model whose weights and KV cache are in the given precisions."""
    kv = weights if weights in KV_PRECISIONS else "fp8"
    node = next(node.name for node in catalog.nodes.values() if node.gpu == gpu)
    placement = place(catalog, Shard(model, weights, kv, 1), node)
    plan = plan_memory(placement)
    if not plan.fits:
        return Outlook(None, None, None, None, -plan.kv_bytes)
    timing = roofline(placement)
    steps = timing.decode_table(BATCH)
    together = BATCH * CONTEXT_TOKENS
    return Outlook(
        prefill_ps=timing.prefill_ps([(PROMPT_TOKENS, 0)]),
        step_ps=steps.step_ps(1, CONTEXT_TOKENS) if plan.kv_tokens >= CONTEXT_TOKENS else None,
        batch_step_ps=steps.step_ps(BATCH, together) if plan.kv_tokens >= together else None,
        kv_tokens=plan.kv_tokens,
        missing_bytes=None,
    )
