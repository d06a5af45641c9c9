"""A replica before it runs: a shard of a model on each of its GPUs, under an engine."""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.errors import UnsupportedError
from sim.catalog import Catalog, Efficiency, Engine, Gpu, Model, Node
from sim.timing.collective import Collective, Wire, collective

EXPECTED_TOKENS = 4096
"""Context of a sequence where nothing is known about it."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A model, the precisions of its weights and of its KV cache, and the GPUs that share a layer."""

    model: Model
    weights: str
    kv: str
    tp: int

    @property
    def weight_bytes_per_gpu(self) -> int:
        """Bytes of weights on each GPU."""
        return -(-self.model.weight_bytes(self.weights, self.tp) // self.tp)

    @property
    def kv_bytes_per_token_per_gpu(self) -> int:
        """Bytes of KV cache that a token takes on each GPU."""
        return self.model.kv_bytes_per_token_per_gpu(self.kv, self.tp)


@dataclass(frozen=True, slots=True)
class Span:
    """How far a replica reaches: its GPUs in each NVLink domain, and what joins the domains if several."""

    gpus: int
    wire: Wire | None = None

    @property
    def tp(self) -> int:
        """All its GPUs."""
        return self.gpus * (self.wire.domains if self.wire is not None else 1)


@dataclass(frozen=True, slots=True)
class Placement:
    """A shard with everything that decides how long it takes; made by `place`.

    `collective` is the all-reduce among its GPUs, None for one GPU. `context_tokens` is how long sequences
    are expected to be: decode steps are linear in context, and layers with a window are so below it or beyond
    it.
    """

    shard: Shard
    node: Node
    gpu: Gpu
    collective: Collective | None
    engine: Engine
    efficiency: Efficiency
    context_tokens: int = EXPECTED_TOKENS


def place(
    catalog: Catalog, shard: Shard, node: str, engine: str = "reference", span: Span | None = None
) -> Placement:
    """Put a shard on GPUs of a kind of node; refuse what cannot be split.

    Without a span it stays on one node.
    """
    chassis = catalog.nodes[node]
    gpu = catalog.gpus[chassis.gpu]
    _check_split(shard, chassis, span)
    together = None
    if shard.tp > 1:
        link = catalog.links[chassis.nvlink or chassis.pcie]
        reach = span or Span(shard.tp)
        together = collective(catalog, link, reach.gpus, reach.wire)
    return Placement(
        shard, chassis, gpu, together, catalog.engines[engine], catalog.efficiencies[gpu.architecture]
    )


def _check_split(shard: Shard, node: Node, span: Span | None) -> None:
    model, tp = shard.model, shard.tp
    assert span is None or span.tp == tp
    if span is None and tp > node.gpus:
        has = f"its {node.gpus} GPUs" if node.gpus > 1 else "its one GPU"
        raise UnsupportedError(
            f"tp {tp} on {node.title} with {has}", f"tp {node.gpus} or less" if node.gpus > 1 else "tp 1"
        )
    for number, what in model.splits:
        if number % tp:
            raise UnsupportedError(
                f"tp {tp} does not divide the {number:,} {what} of {model.title}", _nearest(model, tp)
            )


def _nearest(model: Model, tp: int) -> str:
    """The largest smaller number of GPUs that a model can be split over."""
    fits = [size for size in range(1, tp) if all(number % size == 0 for number, _ in model.splits)]
    return f"tp {fits[-1]}"
