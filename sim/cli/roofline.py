"""`sim roofline GPU MODEL`: the roofline of a GPU with a model's operators on it, and the table behind it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.base.errors import ConfigError, ConfigErrors, UnsupportedError
from sim.catalog import Gpu, load_catalog
from sim.catalog.precision import HALF, HALVES, KV_PRECISIONS, Precision, precision
from sim.cli.modelcard import found
from sim.report.roofchart import roofline_screen, save_roofline
from sim.report.text import show
from sim.timing.placement import Placement, Shard, place
from sim.timing.rates import MICROSCALED, NARROW_INPUTS, Rates
from sim.timing.works import Work, works_of_prompt, works_of_step

PROMPT_TOKENS = 8192
CONTEXT_TOKENS = 4096
BATCHES = (1, 32, 256)
ENDINGS = (".png", ".svg")


@dataclass(frozen=True, slots=True)
class Wish:
    """What to draw: a GPU, a model by name or file, the precision of its weights, its GPUs, and where to."""

    gpu: str
    model: str
    weights: str
    tp: int
    path: Path


def draw_roofline(wish: Wish) -> None:
    """Draw it, and show the table behind it."""
    if wish.path.suffix not in ENDINGS:
        problem, hint = f"'{wish.path}' is neither .png nor .svg", f"--out {wish.path.stem}.png"
        raise ConfigErrors([ConfigError("--out", None, None, problem=problem, hint=hint)])
    figures = roofline_figures(wish)
    save_roofline(figures, wish.path)
    show([*roofline_screen(figures), [], [(f"drawn: {wish.path}", "")]], sys.stdout)


def roofline_figures(wish: Wish) -> dict[str, Any]:
    """All that is drawn."""
    placement = _placement(wish)
    gpu, part, shard = placement.gpu, placement.efficiency, placement.shard
    names = list(dict.fromkeys(_computed(rate, gpu) for rate in Rates.of(placement).products))
    weights = shard.model.format(shard.weights).upper()
    split = f"over {shard.tp} GPUs" if shard.tp > 1 else "on one GPU"
    return {
        "title": f"What holds back {shard.model.title} on {gpu.title}",
        "subtitle": f"weights in {weights}, KV in {shard.kv.upper()}, {split}; a point is one "
        "operator on one GPU, its fixed time included",
        "caption": "Thin: as printed. Thick: what kernels of this architecture reach, of which points are "
        "made; they are predicted,\nnot measured. Left of a ridge memory decides, right of it arithmetic.",
        "memory": {"nominal": gpu.memory_bytes_per_s, "reached": gpu.memory_bytes_per_s * part.gemm_memory},
        "roofs": [
            {"name": name, "nominal": gpu.flops(name), "reached": gpu.flops(name) * part.gemm(name)}
            for name in names
        ],
        "works": _numbered(placement),
    }


def _computed(weights: Precision, gpu: Gpu) -> str:
    """The precision in which a product of these weights is computed."""
    if weights.compute != HALF:
        return weights.compute
    is_narrow = weights == precision(MICROSCALED) and "fp4" in gpu.dense_flops
    return NARROW_INPUTS if is_narrow else next(name for name in HALVES if name in gpu.dense_flops)


def _numbered(placement: Placement) -> list[dict[str, Any]]:
    """The operators of each phase; equal names have equal numbers."""
    phases: list[tuple[str, list[Work]]] = [
        (f"prefill of {PROMPT_TOKENS:,} tokens", works_of_prompt(placement, PROMPT_TOKENS))
    ]
    for batch in BATCHES:
        name = f"decode step of {batch:,} x {CONTEXT_TOKENS:,} tokens"
        phases.append((name, works_of_step(placement, batch, CONTEXT_TOKENS)))
    numbers: dict[str, int] = {}
    return [
        {
            "phase": phase,
            "number": numbers.setdefault(work.name, len(numbers) + 1),
            "name": work.name,
            "flops": work.flops,
            "moved_bytes": work.moved_bytes,
            "intensity": work.intensity,
            "flops_per_s": work.flops_per_s,
            "time_s": work.time_ps / 1e12,
        }
        for phase, works in phases
        for work in works
    ]


def _placement(wish: Wish) -> Placement:
    """The model on GPUs of a node that has this GPU, and enough of them if any has."""
    catalog = load_catalog()
    gpu = catalog.gpus[wish.gpu]
    nodes = [node for node in catalog.nodes.values() if node.gpu == gpu.name]
    if not nodes:
        raise UnsupportedError(f"no node of the catalogue has {gpu.title}", "a GPU of sim list nodes")
    node = next((node for node in nodes if node.gpus >= wish.tp), nodes[0])
    kv = wish.weights if wish.weights in KV_PRECISIONS else "fp8"
    return place(catalog, Shard(found(catalog, wish.model), wish.weights, kv, wish.tp), node.name)
