"""Tables of docs/validation.md, from the rows in docs/data.

    python tools/validation_tables.py

What stands between `<!-- table: NAME -->` and `<!-- end -->` is written anew; the text around it stays.
The figures of the paper are those of Qin et al., *Mooncake*, USENIX FAST 2025, as its figures print them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.base.registry import Registry

ROOT = Path(__file__).parents[1]
DATA = tuple(ROOT / "docs" / "data" / f"{name}.json" for name in ("mooncake-fast25", "measured-h200"))
PAGE = ROOT / "docs" / "validation.md"
MARKED = re.compile(r"(<!-- table: (?P<name>\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
QUANTILES = ("p50", "p90", "p99")
TRACES = ("conversation", "synthetic")
PRINTED_TOKENS = 3_000_000

PAPER: Mapping[str, Mapping[str, float]] = {
    "prefill time, none over pool": {"conversation": 1.56, "synthetic": 2.76},
    "prefill time, HBM over pool": {"conversation": 1.43, "synthetic": 2.59},
    "hit rate, pooled over local": {"conversation": 2.22, "synthetic": 2.36},
    "prefill time, pooled over local": {"conversation": 0.76, "synthetic": 0.52},
    "share of the most at 3 M tokens": {"conversation": 0.41, "synthetic": 0.46},
    "blocks seen before": {"conversation": 0.40, "synthetic": 0.66},
}

EFFECTIVE_GAINS: Mapping[str, Mapping[int, int]] = {
    "conversation": {100: 498, 200: 157, 300: 59},
    "synthetic": {100: 62, 200: 40, 300: 28},
}
"""By how many percent more requests meet 30 s of TTFT and so many ms of TBT (Fig. 1 and 7)."""

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]
table: Registry[Callable[[Rows], list[str]]] = Registry("table")


def the(rows: Sequence[Row], **wanted: object) -> Row:
    """The one row with these values."""
    (found,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return found


def markdown(*lines: Sequence[str]) -> list[str]:
    """A table: the first line is its head."""
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return [f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:])]


def percent(fraction: float, digits: int = 0) -> str:
    """A fraction in percent."""
    return f"{100 * fraction:.{digits}f} %"


def change(ratio: float) -> str:
    """By how many percent a ratio is not one."""
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−")


def compared(name: str, ours: Mapping[str, float]) -> list[list[str]]:
    """Lines of ours beside the paper's, with the difference."""
    return [
        [
            f"{trace}: {name}",
            f"{PAPER[name][trace]:.2f}",
            f"{ours[trace]:.2f}",
            f"{100 * (ours[trace] / PAPER[name][trace] - 1):+.0f} %".replace("-", "−"),
        ]
        for trace in TRACES
    ]


@table("reuse")
def reuse(rows: Rows) -> list[str]:
    """Fig. 8."""
    found = {
        (trace, kind): the(rows["reuse"], trace=trace, kind=kind)["prefill_s"]
        for trace in TRACES
        for kind in ("pool", "hbm", "none")
    }
    none, hbm = (
        {trace: found[trace, kind] / found[trace, "pool"] for trace in TRACES} for kind in ("none", "hbm")
    )
    return markdown(
        ["", "paper", "ours", "difference"],
        *compared("prefill time, none over pool", none),
        *compared("prefill time, HBM over pool", hbm),
    )


def at_printed_size(rows: Rows, trace: str, policy: str, router: str) -> Row:
    """Ten nodes, each with what the paper prints."""
    return the(rows["capacity"], trace=trace, policy=policy, router=router, tokens_per_node=PRINTED_TOKENS)


@table("pooled")
def pooled(rows: Rows) -> list[str]:
    """Fig. 10."""
    lines = [["", "paper", "ours, blind", "ours, conductor"]]
    for name, key in (("hit rate", "hit_fraction"), ("prefill time", "prefill_s")):
        for trace in TRACES:
            pool = at_printed_size(rows, trace, "pooled", "conductor")[key]
            blind = at_printed_size(rows, trace, "local", "least_loaded")[key]
            aware = at_printed_size(rows, trace, "local", "conductor")[key]
            printed = PAPER[f"{name}, pooled over local"][trace]
            lines.append(
                [
                    f"{trace}: {name}, pooled over local",
                    *(f"{ratio:.2f}" for ratio in (printed, pool / blind, pool / aware)),
                ]
            )
    return markdown(*lines)


@table("routing")
def routing(rows: Rows) -> list[str]:
    """What routing does to the ratios of Fig. 10."""
    lines = [
        [
            "prompts routed by the caches",
            *(
                f"{trace}: {what}"
                for trace in TRACES
                for what in ("hits", "pooled over local", "prefill time")
            ),
        ]
    ]
    for share in dict.fromkeys(row["aware_fraction"] for row in rows["routing"]):
        line = [percent(share)]
        for trace in TRACES:
            local = the(rows["routing"], trace=trace, aware_fraction=share)
            pool = at_printed_size(rows, trace, "pooled", "conductor")
            line.append(percent(local["hit_fraction"], 1))
            line.append(f"{pool['hit_fraction'] / local['hit_fraction']:.2f}")
            line.append(f"{pool['prefill_s'] / local['prefill_s']:.2f}")
        lines.append(line)
    return markdown(*lines)


@table("load")
def load(rows: Rows) -> list[str]:
    """What load does to the ratios of Fig. 10."""
    lines = [
        ["trace played", *(f"{trace}: {what}" for trace in TRACES for what in ("hit rate", "prefill time"))]
    ]
    for speed in dict.fromkeys(row["speed"] for row in rows["load"]):
        line = ["as it is" if speed == 1 else f"{speed} times as fast"]
        for trace in TRACES:
            pool, local = (
                the(rows["load"], trace=trace, speed=speed, policy=policy) for policy in ("pooled", "local")
            )
            line.extend(f"{pool[key] / local[key]:.2f}" for key in ("hit_fraction", "prefill_s"))
        lines.append(line)
    return markdown(*lines)


@table("cache")
def cache(rows: Rows) -> list[str]:
    """One cache that sees everything: the LRU curve."""
    lines = [
        [
            "tokens",
            *(f"{trace}: {what}" for trace in TRACES for what in ("blocks found", "of all", "of the most")),
        ]
    ]
    for tokens in dict.fromkeys(row["tokens"] for row in rows["cache"]):
        line = ["unlimited" if tokens is None else f"{tokens / 1e6:g} M"]
        for trace in TRACES:
            row = the(rows["cache"], trace=trace, tokens=tokens)
            most = the(rows["cache"], trace=trace, tokens=None)["block_hits"]
            line.extend(
                [
                    f"{row['block_hits']:,}",
                    f"{row['block_hits'] / row['blocks']:.4f}",
                    percent(row["block_hits"] / most),
                ]
            )
        lines.append(line)
    return markdown(*lines)


@table("most")
def most(rows: Rows) -> list[str]:
    """Fig. 9 and Table 2."""
    at, whole, blocks = ({}, {}, {})
    for trace in TRACES:
        at[trace] = the(rows["cache"], trace=trace, tokens=PRINTED_TOKENS)["block_hits"]
        row = the(rows["cache"], trace=trace, tokens=None)
        whole[trace], blocks[trace] = row["block_hits"], row["blocks"]
    return markdown(
        ["", "paper", "ours", "difference"],
        *compared("share of the most at 3 M tokens", {trace: at[trace] / whole[trace] for trace in TRACES}),
        *compared("blocks seen before", {trace: whole[trace] / blocks[trace] for trace in TRACES}),
    )


@table("scheduling")
def scheduling(rows: Rows) -> list[str]:
    """Fig. 5."""
    lines = [["mean TTFT with fetches from other nodes", "paper", "ours"]]
    for trace, printed in (("conversation", "−14 %"), ("synthetic", "not printed")):
        pool, local = (
            the(rows["scheduling"], trace=trace, policy=policy)["ttft_mean_s"]
            for policy in ("pooled", "local")
        )
        lines.append(
            [f"{trace}: {local:.2f} s → {pool:.2f} s", printed, f"−{100 * (1 - pool / local):.0f} %"]
        )
    return markdown(*lines)


@table("prefix")
def prefix(rows: Rows) -> list[str]:
    """Fig. 14."""
    lines = [["95 % of 128 Ki tokens cached", "prefill time", "TTFT"], ["paper", "−92 %", "−86 %"]]
    for holder in ("this node", "another node"):
        for overlap, way in (("true", "layer by layer"), ("false", "before computing")):
            hit, miss = [
                row for row in rows["prefix"] if (row["cached_on"], row["overlap_fetch"]) == (holder, overlap)
            ]
            cuts = (1 - hit[key] / miss[key] for key in ("phase_prefill_s", "ttft_s"))
            lines.append([f"ours, on {holder}, fetched {way}", *(f"−{100 * cut:.1f} %" for cut in cuts)])
    return markdown(*lines)


@table("network")
def network(rows: Rows) -> list[str]:
    """Fig. 13."""
    lines = [["NICs of a node together", "mean TTFT", "mean time to the second token", "hits"]]
    chosen = [row for row in rows["network"] if row["fetch"] == "estimate"]
    lines += [
        [
            f"{row['node_gbit_per_s']} Gb/s",
            f"{row['ttft_mean_s']:.2f} s",
            f"{row['second_token_mean_s']:.2f} s",
            percent(row["hit_fraction"], 1),
        ]
        for row in chosen
    ]
    return markdown(*lines)


@table("split")
def split(rows: Rows) -> list[str]:
    """Fig. 15."""
    lines = [["prefill and decode nodes"]]
    for times in dict.fromkeys(row["speed"] for row in rows["split"]):
        way = "" if times == 1 else f", {times} × as fast"
        lines[0] += [f"within both limits{way}", "mean TTFT", "mean TPOT"]
    for nodes in dict.fromkeys(row["prefill_nodes"] for row in rows["split"]):
        line = [f"{nodes} and {16 - nodes}"]
        for row in rows["split"]:
            if row["prefill_nodes"] == nodes:
                line.append(percent(row["effective_fraction"], 1))
                line.append(f"{row['ttft_mean_s']:.2f} s")
                line.append(f"{1000 * row['tpot_mean_s']:.0f} ms")
        lines.append(line)
    return markdown(*lines)


@table("effective")
def effective(rows: Rows) -> list[str]:
    """Fig. 1 and 7."""
    kinds = {"whole": "prompts first", "whole, hbm": "with prefixes in HBM", "chunked": "in chunks"}
    lines = [["", "paper", "the pool", *(f"{name}" for name in kinds.values())]]
    for trace, printed in EFFECTIVE_GAINS.items():
        for tbt, gain in printed.items():
            best = {
                kind: max(
                    row[f"tbt_{tbt}_ms"]
                    for row in rows["effective"]
                    if (row["trace"], row["kind"]) == (trace, kind)
                )
                for kind in ("pool", *kinds)
            }
            gains = (f"{best[kind]:.1f} /s, +{100 * (best['pool'] / best[kind] - 1):.0f} %" for kind in kinds)
            lines.append([f"{trace}, {tbt} ms", f"+{gain} %", f"{best['pool']:.1f} /s", *gains])
    return markdown(*lines)


@table("measured_pool")
def measured_pool(rows: Rows) -> list[str]:
    """Hits, and times to the first token."""
    lines = [["TTFT", "measured", "simulated", "difference"]]
    for row in rows["measured_pool"]:
        for name, took, ours in zip(QUANTILES, row["measured_ttft_s"], row["simulated_ttft_s"], strict=True):
            times = [f"{1000 * took:.1f} ms", f"{1000 * ours:.1f} ms", change(ours / took)]
            lines.append([f"{row['pool']} a pool, {name}", *times])
    found = rows["measured_pool"][-1]
    blocks = [f"{found[f'{kind}_blocks']:,}" for kind in ("measured", "simulated")]
    return markdown(
        *lines, ["blocks found", *blocks, change(found["simulated_blocks"] / found["measured_blocks"])]
    )


@table("measured_engine")
def measured_engine(rows: Rows) -> list[str]:
    """Simulated over measured."""
    lines = [
        [
            "simulated over measured",
            *(f"{name} {fraction}" for name in ("TTFT", "TPOT", "end to end") for fraction in QUANTILES),
        ]
    ]
    for run in dict.fromkeys(row["run"] for row in rows["measured_engine"]):
        own = [row for row in rows["measured_engine"] if row["run"] == run]
        ratios = [
            ours / took
            for row in own
            for took, ours in zip(row["measured_s"], row["simulated_s"], strict=True)
        ]
        lines.append([f"{run}, {own[0]['requests']} requests", *map(change, ratios)])
    return markdown(*lines)


def filled(text: str, rows: Rows) -> str:
    """A page with its tables written anew."""
    return MARKED.sub(lambda found: found[1] + "\n".join(table[found["name"]](rows)) + "\n", text)


def stored_rows() -> Rows:
    """The rows of each experiment, as the tools that play them left them."""
    experiments: dict[str, Any] = {}
    for path in DATA:
        experiments |= json.loads(path.read_text())["experiments"]
    return {name: experiments[name]["rows"] for name in experiments}


def main() -> None:
    """Write the tables."""
    PAGE.write_text(filled(PAGE.read_text(), stored_rows()))


if __name__ == "__main__":
    main()
