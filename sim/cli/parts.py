"""`sim show` and `sim diff` of parts of the catalogue: plain figures, as JSON or as a screen."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sim.base.errors import UnknownNameError, UnsupportedError, listed
from sim.catalog import Catalog, Efficiency, Gpu, Link, Node, load_catalog
from sim.catalog.entry import Entry
from sim.report import parts as words
from sim.report.text import Line, show

Figures = dict[str, Any]
Fact = tuple[str, float | None, str]
"""What is said, its value in inner units, and the dimension to show it in; memory is shown in GiB."""

SHELF_OF: dict[str, str] = {
    "gpu": "gpus",
    "node": "nodes",
    "link": "links",
    "model": "models",
    "engine": "engines",
    "architecture": "efficiencies",
}
"""Kinds of parts, by the word for one of them, with the shelf that holds them."""
MODEL = "llama-3.1-8b"
SIZES: tuple[tuple[str, int], ...] = (("8 KiB", 2**13), ("2 MiB", 2**21), ("512 MiB", 2**29))
"""Sizes of all-reduces that links are compared by, as they were measured."""


def show_part(kind: str, name: str, as_json: bool) -> None:
    """One entry: its values with their sources, and what follows; a model has a screen of its own."""
    if kind == "model":
        from sim.cli.modelcard import show_model  # noqa: PLC0415 - slow to import

        show_model(name, as_json)
        return
    catalog = load_catalog()
    entry: Entry = getattr(catalog, SHELF_OF[kind])[name]
    _answer(described(catalog, kind, entry), words.part_screen, as_json)


def list_gpus() -> None:
    """All GPUs as a table."""
    catalog = load_catalog()
    rows = [
        {
            "name": gpu.name,
            "facts": [list(fact) for fact in gpu_facts(gpu)],
            "not_read": sorted(
                key for key, leaf in gpu.provenance.items() if leaf.verified in ("memory", "assumption")
            ),
        }
        for gpu in catalog.gpus.values()
    ]
    show(words.gpu_table(rows), sys.stdout)


def described(catalog: Catalog, kind: str, entry: Entry) -> Figures:
    """The figures of an entry, as JSON has them."""
    used = {leaf.source: catalog.sources[leaf.source] for leaf in entry.provenance.values()}
    figures: Figures = {
        "kind": kind,
        "name": entry.name,
        "title": entry.title,
        "predecessor": entry.predecessor,
        "values": [{"key": key} | _leaf(asdict(leaf)) for key, leaf in entry.provenance.items()],
        "sources": [
            {"name": name, "title": source.title, "url": source.url, "date": source.date}
            for name, source in used.items()
        ],
    }
    figures["follows"] = [list(fact) for fact in _follows(catalog, entry)]
    if isinstance(entry, Gpu):
        figures["nodes"] = [node.name for node in catalog.nodes.values() if node.gpu == entry.name]
    if isinstance(entry, Link):
        tables = entry.all_reduce.items()
        figures["all_reduce"] = {gpus: [list(point) for point in points] for gpus, points in tables}
    return figures


def _follows(catalog: Catalog, entry: Entry) -> list[Fact]:
    """What follows from the values of an entry."""
    if isinstance(entry, Gpu):
        return list(reached(entry, catalog.efficiencies[entry.architecture]))
    if isinstance(entry, Node):
        return _node(catalog, entry)
    return []


def _leaf(leaf: dict[str, Any]) -> Figures:
    text = leaf["value"] if isinstance(leaf["value"], str) else ", ".join(leaf["value"])
    return {key: value for key, value in leaf.items() if key != "line"} | {"value": text}


def show_difference(kind: str, names: Sequence[str], model: str | None, as_json: bool) -> None:
    """How two parts differ, as ratios; and for GPUs what that does to serving."""
    catalog, facts = load_catalog(), FACTS_OF.get(kind)
    if facts is None:
        remedy = f"sim show {kind} {names[-1]}; {listed([f'{known}s' for known in FACTS_OF])} can be compared"
        raise UnsupportedError(f"{kind}s are not compared", remedy)
    old, new = _pair(kind, getattr(catalog, SHELF_OF[kind]), names)
    figures: Figures = {
        "kind": kind,
        "names": [old.name, new.name],
        "titles": [old.title, new.title],
        "facts": list(_compared(facts(catalog, old), facts(catalog, new))),
    }
    if kind == "gpu":
        figures["model"] = catalog.models[model or MODEL].name
        figures["serving"] = list(_serving(catalog, (old.name, new.name), figures["model"]))
    _answer(figures, words.difference_screen, as_json)


def _pair(kind: str, shelf: Mapping[str, Entry], names: Sequence[str]) -> tuple[Entry, Entry]:
    """Two entries; one name alone is compared to its predecessor."""
    if len(names) > 2:
        raise UnsupportedError(f"{len(names)} parts at once", "two, or one and its predecessor")
    if len(names) == 2:
        return shelf[names[0]], shelf[names[1]]
    entry = shelf[names[0]]
    if entry.predecessor is None:
        raise UnsupportedError(
            f"{entry.name} has no predecessor in the catalogue", f"sim diff {kind} OTHER {entry.name}"
        )
    return shelf[entry.predecessor], entry


def gpu_facts(gpu: Gpu) -> Iterator[Fact]:
    """What a GPU has, nominally."""
    yield "memory", gpu.memory_bytes, "memory"
    yield "usable", gpu.usable_memory_bytes, "memory"
    yield "bandwidth", gpu.memory_bytes_per_s, "rate"
    for precision, rate in gpu.dense_flops.items():
        yield f"dense {precision.upper()}", rate, "operations" if precision.startswith("int") else "compute"
    yield "NVLink", gpu.nvlink_bytes_per_s, "rate"
    yield "to host", gpu.pcie_bytes_per_s, "rate"
    yield "power", gpu.tdp_w, "power"
    yield "price", gpu.price_usd_per_h, "price"


def reached(gpu: Gpu, part: Efficiency) -> Iterator[Fact]:
    """What kernels reach on a GPU."""
    for precision, rate in gpu.dense_flops.items():
        dimension = "operations" if precision.startswith("int") else "compute"
        yield f"GEMMs {precision.upper()}", rate * part.gemm(precision), dimension
    yield "attention", gpu.flops("fp16") * part.attention("tuned"), "compute"
    yield "reading weights", gpu.memory_bytes_per_s * part.gemm_memory, "rate"
    yield "reading KV", gpu.memory_bytes_per_s * part.attention_memory, "rate"


def _gpu(catalog: Catalog, gpu: Gpu) -> list[Fact]:
    return [*gpu_facts(gpu), *reached(gpu, catalog.efficiencies[gpu.architecture])]


def _node(catalog: Catalog, node: Node) -> list[Fact]:
    gpu, nic = catalog.gpus[node.gpu], catalog.links[node.nic_link]
    return [
        ("GPUs", node.gpus, "count"),
        ("GPU memory", node.gpus * gpu.memory_bytes, "memory"),
        ("GPU bandwidth", node.gpus * gpu.memory_bytes_per_s, "rate"),
        ("dense, 16 bits", node.gpus * gpu.flops("fp16"), "compute"),
        ("NVLink a GPU", gpu.nvlink_bytes_per_s, "rate"),
        ("NICs", node.nics, "count"),
        ("NICs a GPU", node.nics * nic.bytes_per_s / node.gpus, "rate"),
        ("host memory", node.dram_bytes, "memory"),
        ("its bandwidth", node.dram_bytes_per_s, "rate"),
        ("NVMe", node.nvme_bytes, "size"),
        ("its bandwidth ", node.nvme_bytes_per_s, "rate"),
        ("power", node.power_w, "power"),
        ("power a GPU", node.power_w / node.gpus, "power"),
    ]


def _link(_: Catalog, link: Link) -> list[Fact]:
    facts: list[Fact] = [
        ("bandwidth", link.bytes_per_s, "rate"),
        ("reached", link.effective_bytes_per_s, "rate"),
        ("latency a hop", link.latency_ps, "time"),
        ("at the ends", link.endpoint_latency_ps, "time"),
    ]
    for gpus, points in link.all_reduce.items():
        times = dict(points)
        facts += [(f"{size} among {gpus}", times.get(number), "time") for size, number in SIZES]
    return facts


FACTS_OF: Mapping[str, Any] = {"gpu": _gpu, "node": _node, "link": _link}


def _compared(one: Sequence[Fact], other: Sequence[Fact]) -> Iterator[Figures]:
    """Facts of both, those of the second in its order, then what only the first has."""
    before, after = ({what: (value, dimension) for what, value, dimension in facts} for facts in (one, other))
    for what in [*after, *(what for what in before if what not in after)]:
        dimension = (after.get(what) or before[what])[1]
        values = [(facts.get(what) or (None, ""))[0] for facts in (before, after)]
        if values == [None, None]:
            continue
        ratio = values[1] / values[0] if values[0] and values[1] is not None else None
        yield {"what": what, "dimension": dimension, "before": values[0], "after": values[1], "ratio": ratio}


def _serving(catalog: Catalog, gpus: tuple[str, str], model: str) -> Iterator[Figures]:
    """What two GPUs do with a model, in each format that both compute in."""
    from sim.timing.outlook import BATCH, CONTEXT_TOKENS, PROMPT_TOKENS, outlook  # noqa: PLC0415 - slow to import

    shapes = {"prompt_tokens": PROMPT_TOKENS, "context_tokens": CONTEXT_TOKENS, "batch": BATCH}
    for bits, formats in (("16 bits", ("bf16", "fp16")), ("FP8", ("fp8",)), ("FP4", ("fp4",))):
        names = [
            next((name for name in formats if name in catalog.gpus[gpu].dense_flops), None) for gpu in gpus
        ]
        if None not in names:
            both = [
                asdict(outlook(catalog, gpu, catalog.models[model], str(name)))
                for gpu, name in zip(gpus, names, strict=True)
            ]
            yield {"weights": bits, "before": both[0], "after": both[1]} | shapes


def known_kind(word: str) -> str | None:
    """The kind of part that a word means, in singular or plural; None where it means none."""
    if word in SHELF_OF:
        return word
    return next((kind for kind, shelf in SHELF_OF.items() if word in (shelf, f"{kind}s")), None)


def kind_of(word: str) -> str:
    """As `known_kind`, or a refusal."""
    kind = known_kind(word)
    if kind is None:
        raise UnknownNameError("kind of part", word, SHELF_OF)
    return kind


def _answer(figures: Figures, screen: Any, as_json: bool) -> None:
    if as_json:
        from sim.results.store import json_text  # noqa: PLC0415 - slow to import

        sys.stdout.write(json_text(figures))
        return
    lines: list[Line] = screen(figures)
    show(lines, sys.stdout)
