"""On which nodes a model fits: for each precision of its weights, the fewest GPUs and the KV that they hold.

Model: the memory plan of the reference engine (sim.timing.memory) on 1, 2, 4 and so on GPUs of one node.
Ignores: replicas over several nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sim.base.errors import UnsupportedError
from sim.catalog import Catalog, Model, Node
from sim.catalog.precision import HALF, HALVES, precision
from sim.timing.memory import plan_memory
from sim.timing.placement import Shard, place

SEQUENCE_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Fit:
    """The fewest GPUs of a node that hold a model, and the tokens that they have room for.

    Tokens come in sequences of SEQUENCE_TOKENS, which matters where layers keep a window only. Both are None
    where not even the whole node holds it.
    """

    node: str
    weights: str
    tp: int | None
    kv_tokens: int | None


def fits(catalog: Catalog, model: Model, precisions: Sequence[str], kv: str) -> Iterator[Fit]:
    """Every node with every precision that its GPUs compute in."""
    for node in catalog.nodes.values():
        for weights in precisions:
            if _computes(catalog, node, model.format(weights)):
                yield _fewest(catalog, model, node, weights, kv)


def _computes(catalog: Catalog, node: Node, name: str) -> bool:
    """Whether the GPUs of a node have a rate for weights of a precision; bf16 stands for any 16 bits."""
    rates, compute = catalog.gpus[node.gpu].dense_flops, precision(name).compute
    return any(half in rates for half in HALVES) if compute == HALF else compute in rates


def _fewest(catalog: Catalog, model: Model, node: Node, weights: str, kv: str) -> Fit:
    for tp in (degree for degree in range(1, node.gpus + 1) if node.gpus % degree == 0):
        try:
            plan = plan_memory(place(catalog, Shard(model, weights, kv, tp), node.name))
        except UnsupportedError:
            continue  # the model cannot be split so, or nothing joins the GPUs
        if plan.fits:
            held = model.kv_bytes(SEQUENCE_TOKENS, kv)
            whole = SEQUENCE_TOKENS * model.kv_bytes_per_token(kv)
            return Fit(node.name, weights, tp, plan.kv_tokens * whole // held)
    return Fit(node.name, weights, None, None)
