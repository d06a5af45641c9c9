"""Parts of the catalogue in words: a table of GPUs, one part with its sources, and how two parts differ.

Each screen is made of the plain figures that `--json` writes. Rates are per direction, compute is dense.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from sim.base.units import rounded
from sim.base.units import show as shown
from sim.report.text import WIDTH, Line
from sim.results.words import NOTHING, WEAK, aligned, count_short, number, whole

Figures = Mapping[str, Any]
VALUE_FROM = 20
"""The column at which values begin, or further where a title is longer."""
HEADINGS: Mapping[str, str] = {
    "gpu": "kernels of its architecture reach",
    "node": "which makes",
}
SHORT = 16
"""Columns of a value before its provenance; a longer one takes a line of its own."""
TITLES: Mapping[str, str] = {
    "memory_bandwidth": "bandwidth",
    "tdp": "power",
    "pcie": "to host",
    "nvlink": "NVLink",
    "nics": "NICs",
    "nic_link": "NIC",
    "gpu": "GPU",
    "gpus": "GPUs",
    "dram": "host memory",
    "dram_bandwidth": "its bandwidth",
    "dram_rdma": "its RDMA",
    "nvme": "NVMe",
    "nvme_bandwidth": "its reading",
    "nvme_write": "its writing",
    "endpoint_latency": "at the ends",
    "gemm_compute": "GEMM",
    "kv": "KV",
}
FORMAT = re.compile(r"(bf|fp|mxfp|int)\d+")
COLUMNS: tuple[tuple[str, str, tuple[str, ...], str, float], ...] = (
    # heading, its unit, facts of which the first there is taken, key of the leaf, size of the unit
    ("memory", "GiB", ("memory",), "memory", 2**30),
    ("rate", "GB/s", ("bandwidth",), "memory_bandwidth", 1e9),
    ("BF16", "TFLOPS", ("dense BF16", "dense FP16"), "dense.bf16", 1e12),
    ("FP8", "TFLOPS", ("dense FP8",), "dense.fp8", 1e12),
    ("FP4", "TFLOPS", ("dense FP4",), "dense.fp4", 1e12),
    ("NVLink", "GB/s", ("NVLink",), "nvlink", 1e9),
    ("power", "W", ("power",), "tdp", 1),
    ("price", "USD/h", ("price",), "price", 1),
)


def amount(value: float | None, dimension: str) -> str:
    """A value for people: memory in powers of two, and operations on whole numbers are not FLOPS."""
    if value is None:
        return NOTHING
    if dimension == "memory":
        return f"{_short(value / 2**30)} GiB"
    if dimension == "operations":
        return shown(value, "compute").replace("FLOPS", "OPS")
    return shown(value, dimension)


def _short(value: float) -> str:
    """A number of three digits, without zeros that say nothing."""
    return whole(round(value)) if value >= 100 else rounded(value, 3)


def gpu_table(rows: Sequence[Figures]) -> list[Line]:
    """All GPUs, one a line."""
    head = [["", *(heading for heading, *_ in COLUMNS)], ["", *(unit for _, unit, *_ in COLUMNS)]]
    body = [_gpu_row(row) for row in rows]
    lines = _closely([*head, *body])
    return [
        *([(line.rstrip(), "dim")] for line in lines[:2]),
        *([(line.rstrip(), "")] for line in lines[2:]),
        [],
        [("dense, FP32 accumulation; NVLink a direction; BF16 is FP16 on the T4", "dim")],
        [(f"{WEAK} from memory or assumed    sim show gpu NAME   has every source", "dim")],
    ]


def _closely(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with columns that line up, one space apart beside the stars."""
    widths = [max(len(row[i].rstrip(WEAK)) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for name, *cells in rows:
        starred = [cell if cell.endswith(WEAK) else f"{cell} " for cell in cells]
        padded = [f"{cell:>{width + 1}}" for cell, width in zip(starred, widths[1:], strict=True)]
        lines.append(" ".join([f"{name:<{widths[0]}}", *padded]))
    return lines


def _gpu_row(row: Figures) -> list[str]:
    values = {what: value for what, value, _ in row["facts"]}
    cells = [row["name"]]
    for _, unit, facts, key, size in COLUMNS:
        value = next((values[fact] for fact in facts if values.get(fact) is not None), None)
        if value is None:
            cells.append(NOTHING)
        else:
            text = f"{value:.2f}" if unit == "USD/h" else _short(value / size)
            cells.append(text + (WEAK if key in row["not_read"] else ""))
    return cells


def part_screen(figures: Figures) -> list[Line]:
    """One part: its values with their provenance, what follows, and its sources."""
    after = f"   after {figures['predecessor']}" if figures["predecessor"] else ""
    lines: list[Line] = [[(figures["name"], "bold"), (f": {figures['title']}", ""), (after, "dim")], []]
    shown_values = [value for value in figures["values"] if not value["key"].startswith("all_reduce.")]
    titles = [title_of(value["key"]) for value in shown_values]
    start = max(VALUE_FROM, *(len(title) + 4 for title in titles))
    for title, value in zip(titles, shown_values, strict=True):
        lines.extend(_value(title, value, start))
    if figures.get("all_reduce"):
        lines += [[], *_all_reduce(figures)]
    if figures["follows"]:
        lines += [[], [(HEADINGS[figures["kind"]], "dim")]]
        rows = [
            [f"  {what.strip()}", amount(value, dimension)] for what, value, dimension in figures["follows"]
        ]
        lines += [[(line.rstrip(), "")] for line in aligned(rows, left=1)]
    if "nodes" in figures:
        lines += [[], [(f"  {'in nodes':<{start - 2}}{', '.join(figures['nodes'])}", "")]]
    return [*lines, [], *_sources(figures["sources"])]


def title_of(key: str) -> str:
    """What a value of the catalogue is called on screen."""
    *path, last = key.split(".")
    if not path:
        return TITLES.get(last, last.replace("_", " "))
    place = " ".join(TITLES.get(word, word.replace("_", " ")) for word in path)
    return f"{place} {last.upper() if FORMAT.fullmatch(last) else last.replace('_', ' ')}"


def _value(title: str, value: Figures, start: int) -> Iterator[Line]:
    text, mark, source = value["value"], value["verified"], value["source"]
    said = f"[{mark}]" if mark == source else f"[{mark}: {source}]"
    first, *more = wrap(text, WIDTH - start) or [""]
    if more or len(first) >= SHORT:
        yield from (
            [(f"  {'' if i else title:<{start - 2}}{part}", "")] for i, part in enumerate([first, *more])
        )
        yield [(" " * (start + SHORT) + said, "dim")]
    else:
        yield [(f"  {title:<{start - 2}}{first:<{SHORT}}", ""), (said, "dim")]
    for more_said in (value["derived"], value["note"]):
        for line in wrap(more_said or "", WIDTH - start - 2):
            yield [(" " * (start + 2) + line, "dim")]


def _all_reduce(figures: Figures) -> Iterator[Line]:
    """Measured times by size and number of GPUs."""
    tables = {gpus: dict(map(tuple, points)) for gpus, points in figures["all_reduce"].items()}
    sizes = sorted({size for points in tables.values() for size in points})
    rows = [["  all-reduce", *(f"{gpus} GPUs" for gpus in tables)]]
    for size in sizes:
        times = [shown(points[size], "time") if size in points else NOTHING for points in tables.values()]
        rows.append([f"  {_binary(size)}", *times])
    for i, line in enumerate(aligned(rows, left=1)):
        yield [(line.rstrip(), "dim" if i == 0 else "")]
    said = {
        f"{value['verified']}: {value['source']}, {value['note']}": None
        for value in figures["values"]
        if value["key"].startswith("all_reduce.")
    }
    for text in said:
        for line in wrap(text, WIDTH - 4):
            yield [(f"    {line}", "dim")]


def _binary(size: float) -> str:
    """A size in powers of two."""
    for unit, bytes_ in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= bytes_:
            return f"{_short(size / bytes_)} {unit}"
    return f"{_short(size)} B"


def _sources(sources: Sequence[Figures]) -> Iterator[Line]:
    yield [("sources", "dim")]
    for source in sources:
        about = ", ".join(part for part in (source["title"], source["date"]) if part)
        lines = wrap(about, WIDTH - VALUE_FROM - 2) or [""]
        yield [(f"  {source['name']:<{VALUE_FROM}}", ""), (lines[0], "dim")]
        yield from ([(" " * (VALUE_FROM + 2) + line, "dim")] for line in lines[1:])
        if source["url"]:
            yield [(" " * (VALUE_FROM + 2) + source["url"], "dim")]


def difference_screen(figures: Figures) -> list[Line]:
    """How two parts differ, and what that does to serving."""
    old, new = figures["names"]
    lines: list[Line] = [[(f"{old} → {new}", "bold")], [(f"  {' → '.join(figures['titles'])}", "dim")], []]
    rows = [["", old, new, ""]]
    for fact in figures["facts"]:
        cells = [amount(fact[side], fact["dimension"]) for side in ("before", "after")]
        rows.append([f"  {fact['what'].strip()}", *cells, _ratio(fact)])
    lines += _table(rows)
    for block in figures.get("serving", ()):
        lines += [[], *_served(figures, block)]
    said = _in_words(figures)
    return [*lines, *([[], *said] if said else [])]


def _table(rows: Sequence[Sequence[str]]) -> Iterator[Line]:
    for i, line in enumerate(aligned(rows, left=1)):
        yield [(line.rstrip(), "dim" if i == 0 else "")]


def _ratio(fact: Figures) -> str:
    if fact["ratio"] is not None:
        return f"×{number(fact['ratio'])}"
    return "new" if fact["before"] is None else "gone"


def _served(figures: Figures, block: Figures) -> Iterator[Line]:
    """Times of both with a model, and by how much the second is faster."""
    old, new = figures["names"]
    yield [(f"{figures['model']} in {block['weights']} on one GPU, by the roofline", "dim")]
    context, batch = whole(block["context_tokens"]), block["batch"]
    rows = [["", old, new, ""]]
    for title, key in (
        (f"prefill of {whole(block['prompt_tokens'])}", "prefill_ps"),
        (f"decode, 1 x {context}", "step_ps"),
        (f"decode, {batch} x {context}", "batch_step_ps"),
    ):
        times = [block[side][key] for side in ("before", "after")]
        faster = f"×{number(times[0] / times[1])} as fast" if None not in times else ""
        rows.append([f"  {title}", *(shown(time, "time") for time in times), faster])
    tokens = [block[side]["kv_tokens"] for side in ("before", "after")]
    more = f"×{number(tokens[1] / tokens[0])}" if None not in tokens else ""
    rows.append(["  KV a GPU, tokens", *(count_short(each) for each in tokens), more])
    yield from _table(rows)
    for name, side in ((old, "before"), (new, "after")):
        missing = block[side]["missing_bytes"]
        if missing is not None:
            yield [(f"  the weights do not fit {name}: {shown(missing, 'size')} missing", "yellow")]


def _in_words(figures: Figures) -> list[Line]:
    """The change in one sentence, in the first format in which both serve."""
    for block in figures.get("serving", ()):
        ratios = {}
        for key in ("prefill_ps", "batch_step_ps", "step_ps"):
            if None not in (block["before"][key], block["after"][key]):
                ratios[key] = number(block["before"][key] / block["after"][key])
        if "step_ps" not in ratios:
            continue
        together = "batch_step_ps" in ratios
        text = (
            f"In words: {figures['names'][1]} prefills {ratios['prefill_ps']} times as fast, gives tokens to"
            f" {block['batch'] if together else 1} at once"
            f" {ratios['batch_step_ps' if together else 'step_ps']} times as fast, and holds"
            f" {number(block['after']['kv_tokens'] / block['before']['kv_tokens'])} times the KV"
            f" ({block['weights']})."
        )
        return [[(line, "")] for line in wrap(text, WIDTH)]
    return []
