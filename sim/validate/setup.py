"""What was served on what, from the names that other people's files have, and the replica that stands for it.

Model: systems and hardware are mapped to nodes of the catalogue by a table; a model is the entry with the
longest name that its path contains. Weights of a model that is published in four bits are `native` whatever
the file calls them. KV is FP8 where weights have eight bits or fewer, as the recipes of these engines have
it, but bf16 for native weights where the GPU has no FP4.
Ignores: versions of engines; which of their options were set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from sim.base.errors import UnsupportedError
from sim.catalog.engine import Engine
from sim.catalog.load import load_catalog
from sim.timing.build import roofline
from sim.timing.memory import kv_capacity_tokens
from sim.timing.placement import Placement, Shard, place
from sim.validate.closedloop import ClosedLoop, Load, Replica, Rule, Seen, fits

NODES = {
    "a100_sxm": "dgx-a100",
    "h100_sxm": "dgx-h100",
    "h200_sxm": "hgx-h200",
    "b200_sxm": "dgx-b200",
    "b300_sxm": "dgx-b300",
    "gb200": "gb200-tray",
    "gb200_sxm": "gb200-tray",
    "gb300": "gb300-tray",
    "l40s": "g6e",
}
"""What systems are called in silicon samples, and the node of the catalogue."""

BACKENDS = ("trtllm", "vllm", "sglang")
"""Engines whose profile has the name that silicon samples give them."""

HALF_OF_ALL = ("", "bf16", "bfloat16", "fp16", "float16")
WEIGHTS = {"fp8": "fp8", "fp4": "fp4", "nvfp4": "fp4", "mxfp4": "mxfp4", **dict.fromkeys(HALF_OF_ALL, "bf16")}


@dataclass(frozen=True, slots=True)
class Setup:
    """One replica: node, model, precision of the weights as somebody wrote it, GPUs and engine."""

    node: str
    model: str
    precision: str
    tp: int
    backend: str

    @property
    def weights(self) -> str:
        """The weights as the catalogue calls them."""
        written = self.precision.casefold()
        if load_catalog().models[self.model].format("native") == "mxfp4":
            return "native"
        if written not in WEIGHTS:
            raise UnsupportedError(f"weights in {self.precision}", "fp8, fp4 or bf16")
        return WEIGHTS[written]

    @property
    def kv(self) -> str:
        """The precision of the KV cache."""
        if self.weights == "bf16":
            return "bf16"
        if self.weights == "native":
            catalog = load_catalog()
            has_fp4 = "fp4" in catalog.gpus[catalog.nodes[self.node].gpu].dense_flops
            return "fp8" if has_fp4 else "bf16"
        return "fp8"

    def placement(self) -> Placement:
        """Where it is put; refuses what cannot be split."""
        catalog = load_catalog()
        shard = Shard(catalog.models[self.model], self.weights, self.kv, self.tp)
        return place(catalog, shard, self.node, self.backend)


@cache
def replica(setup: Setup) -> Replica:
    """The replica of a setup; refuses one whose weights do not fit, or an engine that nobody described."""
    if setup.backend not in BACKENDS:
        raise UnsupportedError(f"engine {setup.backend}", ", ".join(BACKENDS))
    placement = setup.placement()
    engine = placement.engine
    return Replica(
        timing=roofline(placement),
        rule=rule_of(engine),
        kv_tokens=kv_capacity_tokens(placement),
        prefill_gap_ps=engine.prefill_gap_ps,
        step_gap_ps=engine.step_gap_ps,
        request_time_ps=engine.request_time_ps,
        prepares_ahead=engine.overlaps_host,
    )


def rule_of(engine: Engine) -> Rule:
    """How an engine fills its steps, by its profile."""
    return Rule(
        token_budget=engine.token_budget,
        max_sequences=engine.max_sequences,
        is_chunked=engine.batching in {"chunked", "chunked_apart"},
        mixes=engine.batching in {"chunked", "mixed"},
    )


@cache
def seen(setup: Setup, load: Load) -> Seen:
    """What users of a setup see under a load; equal questions are answered once."""
    server = replica(setup)
    check_fits(server, load)
    return ClosedLoop(server, load).run()


def check_fits(server: Replica, load: Load) -> None:
    """Refuse a load whose longest sequence does not fit."""
    if not fits(server, load):
        longest = load.input_tokens + load.output_tokens
        raise UnsupportedError(
            f"a sequence of {longest:,} tokens does not fit the {server.kv_tokens:,} of KV"
        )


def model_named(path: str) -> str:
    """The catalogue's name of a model that somebody else names; refuses one that is not there."""
    written = path.casefold().replace("_", "-")
    names = sorted(load_catalog().models, key=len, reverse=True)
    for name in names:
        if re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9.])", written):
            return name
    raise UnsupportedError(f"the catalogue has no model like {path}")


def node_named(system: str) -> str:
    """The node that stands for a system; refuses one that is not there."""
    if system not in NODES:
        raise UnsupportedError(f"no node stands for system {system}", ", ".join(NODES))
    return NODES[system]
