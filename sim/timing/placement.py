"""A replica before it runs: a shard of a model on each of so many GPUs of a node, under an engine."""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.errors import UnsupportedError, listed
from sim.catalog import Catalog, Efficiency, Engine, Gpu, Link, Model, Node


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
class Placement:
    """A shard with everything that decides how long it takes; made by `place`."""

    shard: Shard
    node: Node
    gpu: Gpu
    nvlink: Link | None
    engine: Engine
    efficiency: Efficiency


def place(catalog: Catalog, shard: Shard, node: str, engine: str = "reference") -> Placement:
    """Put a shard on the GPUs of a node of the catalogue; refuse what cannot be split or timed."""
    chassis = catalog.nodes[node]
    gpu = catalog.gpus[chassis.gpu]
    nvlink = catalog.links[chassis.nvlink] if chassis.nvlink is not None else None
    _check_split(shard, chassis, nvlink)
    return Placement(
        shard, chassis, gpu, nvlink, catalog.engines[engine], catalog.efficiencies[gpu.architecture]
    )


def _check_split(shard: Shard, node: Node, nvlink: Link | None) -> None:
    model, tp = shard.model, shard.tp
    if tp > node.gpus:
        raise UnsupportedError(
            f"tp {tp} on {node.title} with its {node.gpus} GPUs", f"tp {node.gpus} or less"
        )
    if model.heads % tp or model.intermediate % tp:
        raise UnsupportedError(
            f"tp {tp} does not divide the {model.heads} heads of {model.title}", "a power of two"
        )
    measured = [1, *(nvlink.all_reduce if nvlink is not None else ())]
    if tp not in measured:
        nearest = f"tp {listed([str(size) for size in measured], 'or')}"
        raise UnsupportedError(f"no all-reduce among {tp} GPUs was measured on {node.title}", nearest)
