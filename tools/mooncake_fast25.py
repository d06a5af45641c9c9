"""Mooncake's experiments of FAST 2025 on its testbed, with its traces: our figures, as JSON.

    python tools/mooncake_fast25.py TRACES
    python tools/mooncake_fast25.py TRACES --only network prefix

The rows go to docs/data/mooncake-fast25.json, from which tools/validation_tables.py makes tables; with --only
those of the other experiments stay as they are.

TRACES is a folder with conversation_trace.jsonl, synthetic_trace.jsonl and, if at hand,
toolagent_trace.jsonl, with or without `mooncake_` before and `.gz` behind (`sim trace get` fetches the first
two). Everything is scenarios/mooncake-fast25.yaml with other settings. A row is one simulation. Nothing is
fitted here.

Units: seconds; tokens; fractions of 1. `prefill_s` is how long prefill nodes worked, for each request.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from longest_gaps import longest_gaps_s

from sim import api
from sim.base.registry import Registry
from sim.config.scenario import Scenario
from sim.kvpool.pool import DRAM, KvPool, Place
from sim.resolve import Resolved, resolve
from sim.results.run import Run
from sim.tables.recorder import MemorySink, Recorder
from sim.workload.source import TraceFile

ROOT = Path(__file__).parents[1]
SCENARIO = ROOT / "scenarios" / "mooncake-fast25.yaml"
PARTLY_AWARE = f"{ROOT / 'tools' / 'partly_aware.py'}:choose"
OUT = ROOT / "docs" / "data" / "mooncake-fast25.json"
TICKS = {"conversation": "3 s", "toolagent": None, "synthetic": None}
"""The traces of the paper, and the length of the ticks in which their arrivals come."""

BLOCK_TOKENS = 512
PRINTED_TOKENS = 3_000_000
"""What a node caches in the paper."""
POOL_TOKENS = (300_000, 1_000_000, PRINTED_TOKENS, 10_000_000, 30_000_000)
CACHE_TOKENS = (100_000, 300_000, 1_000_000, PRINTED_TOKENS, 10_000_000, 30_000_000, 50_000_000, None)
AWARE_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
SPEEDS = (1, 2)
NETWORK_GBITS = (24, 50, 100, 200, 400, 800)
PREFILL_NODES = (5, 6, 7, 8, 9, 10, 11)
NICS = 4
LONG_BLOCKS = 256
LONG_CACHED_BLOCKS = 243
"""95 % of a prompt of 128 Ki tokens, in whole blocks."""
EFFECTIVE_TTFT_S, EFFECTIVE_TBT_S = 10.0, 0.1
EFFECTIVE_BEGUN_S, TBTS_MS = 30.0, (100, 200, 300)
EFFECTIVE_SPEEDS = (1, 1.25, 1.5, 2, 2.5)

Row = dict[str, Any]
experiment: Registry[Callable[[Traces], Iterator[Row]]] = Registry("experiment")


@dataclass(frozen=True)
class Traces:
    """The traces that are at hand, and a folder for changed ones."""

    paths: dict[str, Path]
    made: Path

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """The requests of a trace as they are written."""
        return map(json.loads, TraceFile(self.paths[name]).lines())

    def prompts(self, name: str) -> list[tuple[int, ...]]:
        """The block ids of its prompts."""
        return [tuple(row["hash_ids"]) for row in self.rows(name)]

    def sets(self, name: str) -> list[str]:
        """What makes a scenario replay a trace to its end."""
        tick = TICKS[name]
        return [*replaying(self.paths[name]), *([f"workload.tick={tick}"] if tick else [])]

    def faster(self, name: str, times: float) -> list[str]:
        """The same with all gaps a number of times shorter."""
        path = self.made / f"{name}-{times}.jsonl"
        rows = (row | {"timestamp": row["timestamp"] / times} for row in self.rows(name))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        tick = TICKS[name]
        seconds = float(tick.split()[0]) / times if tick else None
        return [*replaying(path), *([f"workload.tick={seconds} s"] if seconds else [])]


def replaying(path: Path) -> list[str]:
    """What makes a scenario replay a file to its end."""
    return [
        "workload.generator=null",
        "workload.rate=null",
        "run.duration=null",
        "slo=null",
        f"workload.trace={path}",
    ]


def loaded(sets: Iterable[str], variant: str | None = None) -> Scenario:
    """The scenario with settings."""
    return api.load(SCENARIO, list(sets), variant)


def outcome(run: Run) -> Row:
    """What the paper says of a run."""
    requests = run.requests
    assert run.outcome is not None
    busy_ps = sum(use.busy_ps for use in run.outcome.replicas if use.role == "prefill")
    return {
        "requests": len(requests),
        "hit_fraction": float(requests["cached_tokens"].sum() / requests["input_tokens"].sum()),
        "prefill_s": busy_ps / 1e12 / len(requests),
        "ttft_mean_s": float(requests["ttft_s"].mean()),
    }


@experiment("cache")
def cache(traces: Traces) -> Iterator[Row]:
    """One cache that sees all prompts in their order, without time (Sec. 5.3.1, Fig. 9; Table 2)."""
    for name in traces.paths:
        prompts = traces.prompts(name)
        blocks = sum(map(len, prompts))
        for tokens in CACHE_TOKENS:
            hits = block_hits(prompts, 1 << 40 if tokens is None else tokens // BLOCK_TOKENS)
            yield {"trace": name, "tokens": tokens, "block_hits": hits, "blocks": blocks}


def block_hits(prompts: Sequence[tuple[int, ...]], capacity_blocks: int) -> int:
    """How many blocks a pool of one node finds; of a prompt larger than it the head is kept."""
    pool = KvPool([{0: capacity_blocks}, {}])
    cache = pool.cache(Place(DRAM, 0))
    assert cache is not None
    hits = 0
    for blocks in prompts:
        hits += pool.here(pool.match(blocks), 0)[0]
        cache.keep(blocks[:capacity_blocks])
    return hits


@experiment("capacity")
def capacity(traces: Traces) -> Iterator[Row]:
    """Ten prefill nodes: one pool or a cache on each, by how much a node lends (Sec. 5.3.2, Fig. 10)."""
    kinds = (("pooled", "conductor"), ("local", "conductor"), ("local", "least_loaded"))
    for name in traces.paths:
        for tokens in POOL_TOKENS:
            for policy, choice in kinds:
                sets = [
                    f"kv_pool.policy={policy}",
                    f"router.policy={choice}",
                    f"kv_pool.blocks={tokens // BLOCK_TOKENS}",
                ]
                run = api.run(loaded([*traces.sets(name), *sets]))
                yield {
                    "trace": name,
                    "policy": policy,
                    "router": choice,
                    "tokens_per_node": tokens,
                    **outcome(run),
                }


@experiment("routing")
def routing(traces: Traces) -> Iterator[Row]:
    """The same at the printed size, where only a share of prompts is routed with a look at the caches."""
    for name in traces.paths:
        for share in AWARE_SHARES:
            sets = ["kv_pool.policy=local", f"router.policy={PARTLY_AWARE}", f"router.load_weight={share}"]
            run = api.run(loaded([*traces.sets(name), *sets]))
            yield {"trace": name, "policy": "local", "aware_fraction": share, **outcome(run)}


@experiment("load")
def load(traces: Traces) -> Iterator[Row]:
    """The same with the trace played faster: the fuller the nodes, the less often the best one is free."""
    for name in traces.paths:
        for times in SPEEDS:
            for policy in ("pooled", "local"):
                run = api.run(loaded([*traces.faster(name, times), f"kv_pool.policy={policy}"]))
                yield {"trace": name, "policy": policy, "speed": times, **outcome(run)}


@experiment("reuse")
def reuse(traces: Traces) -> Iterator[Row]:
    """Time in prefill with the pool, with prefixes in HBM only, and with none (Sec. 5.2.3, Fig. 8)."""
    alone = ["pools.prefill.replicas=16", "router.policy=least_loaded"]
    hbm = ["kv_pool.policy=local", "kv_pool.hbm=true", "kv_pool.dram=0 GB"]
    for name in traces.paths:
        for kind, variant, sets in (
            ("pool", "sixteen", []),
            ("hbm", None, [*alone, *hbm]),
            ("none", None, [*alone, "kv_pool.policy=none"]),
        ):
            run = api.run(loaded([*traces.sets(name), *sets], variant))
            yield {"trace": name, "kind": kind, **outcome(run)}


@experiment("scheduling")
def scheduling(traces: Traces) -> Iterator[Row]:
    """TTFT where the conductor may fetch from other nodes, and where it may not (Sec. 4.2, Fig. 5)."""
    for name in traces.paths:
        for policy in ("pooled", "local"):
            run = api.run(loaded([*traces.sets(name), f"kv_pool.policy={policy}"], "sixteen"))
            yield {"trace": name, "policy": policy, **outcome(run)}


@experiment("network")
def network(traces: Traces) -> Iterator[Row]:
    """TTFT over the rate of the four NICs of a node together (Sec. 5.4.2, Fig. 13)."""
    for fetch in ("estimate", "always"):
        for gbits in NETWORK_GBITS:
            scenario = loaded([*traces.sets("synthetic"), f"kv_pool.fetch={fetch}"], "sixteen")
            run = played(scenario, throttled(resolve(scenario), gbits))
            requests = run.requests
            yield {
                "trace": "synthetic",
                "fetch": fetch,
                "node_gbit_per_s": gbits,
                "second_token_mean_s": float((requests["ttft_s"] + requests["first_gap_s"]).mean()),
                **outcome(run),
            }


def throttled(resolved: Resolved, node_gbits: float) -> Resolved:
    """The same cluster with NICs that carry less."""
    cluster = resolved.cluster
    assert cluster.link is not None
    link = replace(cluster.link, bytes_per_s=node_gbits * 1e9 / 8 / NICS)
    return replace(resolved, cluster=replace(cluster, link=link))


def played(scenario: Scenario, resolved: Resolved) -> Run:
    """Simulate a scenario that was changed after it was resolved."""
    sink = MemorySink()
    found = api.Simulation(resolved, Recorder(sink)).play(api.Silent())
    sink.links(found.links)
    return Run.from_sink(sink, found, scenario)


@experiment("prefix")
def prefix(traces: Traces) -> Iterator[Row]:
    """Two prompts of 128 Ki tokens, the first with 95 % of it cached (Sec. 5.4.3, Fig. 14)."""
    known, other = range(LONG_BLOCKS), range(LONG_BLOCKS, 2 * LONG_BLOCKS)
    path = traces.made / "long.jsonl"
    with path.open("w") as file:
        for number, blocks in enumerate((known[:LONG_CACHED_BLOCKS], known, other)):
            tokens = len(blocks) * BLOCK_TOKENS
            row = {"timestamp": 600_000 * number, "input_length": tokens, "output_length": 1}
            file.write(json.dumps(row | {"hash_ids": list(blocks)}) + "\n")
    columns = ["input_tokens", "cached_tokens", "phase_prefill_s", "phase_kv_fetch_s", "ttft_s"]
    for holder, replicas in (("this node", 1), ("another node", 2)):  # in turn, so another one has it
        for overlaps in ("true", "false"):
            sets = [f"pools.prefill.replicas={replicas}", f"kv_pool.overlap_fetch={overlaps}"]
            run = api.run(loaded([*replaying(path), *sets, "router.policy=round_robin"]))
            for figures in run.requests.iloc[1:][columns].to_dict("records"):
                named = {str(name): value for name, value in figures.items()}
                yield {"cached_on": holder, "overlap_fetch": overlaps, **named}


@experiment("split")
def split(traces: Traces) -> Iterator[Row]:
    """Sixteen nodes, of which so many prefill and the others decode (Sec. 5.5, Fig. 15)."""
    for times in SPEEDS:
        for nodes in PREFILL_NODES:
            sets = [f"pools.prefill.replicas={nodes}", f"pools.decode.replicas={16 - nodes}"]
            run = api.run(loaded([*traces.faster("synthetic", times), *sets], "sixteen"))
            requests = run.requests
            is_fast = (requests["ttft_s"] <= EFFECTIVE_TTFT_S) & ~(requests["tpot_s"] > EFFECTIVE_TBT_S)
            yield {
                "trace": "synthetic",
                "speed": times,
                "prefill_nodes": nodes,
                "effective_fraction": float(is_fast.mean()),
                "tpot_mean_s": float(requests["tpot_s"].mean()),
                **outcome(run),
            }


@experiment("effective")
def effective(traces: Traces) -> Iterator[Row]:
    """Requests a second within 30 s of TTFT and a TBT, by the speed of the trace (Sec. 5.2, Fig. 1 and 7).

    TBT is the mean of the longest tenth of a request's gaps. Against 8 + 8 nodes with the pool stand 16 that
    compute and decode: prompts first, the same with prefixes in HBM, and prompts in chunks beside decode.
    """
    both = ["pools=[{name: prefill, role: colocated, replicas: 16, tp: 8}]", "router.policy=least_loaded"]
    whole = [*both, "pools.prefill.batching=prefill_first"]
    hbm = ["kv_pool.policy=local", "kv_pool.hbm=true", "kv_pool.dram=0 GB"]
    kinds: tuple[tuple[str, str | None, list[str]], ...] = (
        ("pool", "sixteen", []),
        ("whole", None, [*whole, "kv_pool.policy=none"]),
        ("whole, hbm", None, [*whole, *hbm]),
        ("chunked", None, [*both, "kv_pool.policy=none"]),
    )
    for name in traces.paths:
        for times in EFFECTIVE_SPEEDS:
            for kind, variant, sets in kinds:
                sink = MemorySink()
                run = api.run(loaded([*traces.faster(name, times), *sets], variant), sink)
                span_s = run.requests["arrived_at_s"].max()
                is_begun, gap_s = run.requests["ttft_s"] <= EFFECTIVE_BEGUN_S, longest_gaps_s(sink)
                yield {
                    "trace": name,
                    "kind": kind,
                    "speed": times,
                    "offered_per_s": float(len(gap_s) / span_s),
                    **{
                        f"tbt_{tbt}_ms": float((is_begun & ~(gap_s > tbt / 1000)).sum() / span_s)
                        for tbt in TBTS_MS
                    },
                }


def found_in(folder: Path) -> dict[str, Path]:
    """The traces of the paper that a folder has."""
    paths = {}
    for name in TICKS:
        files = [f"{front}{name}_trace.jsonl{end}" for front in ("mooncake_", "") for end in (".gz", "")]
        there = [folder / file for file in files if (folder / file).is_file()]
        if there:
            paths[name] = there[0]
    return paths


def sha256_of(path: Path) -> str:
    """The hash of a trace as it was published, unpacked."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def rounded(row: Row) -> Row:
    """Five digits of each measured number."""
    return {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in row.items()}


def main() -> None:
    """Play the experiments and print their rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("traces", type=Path, help="folder of the traces")
    parser.add_argument("--only", nargs="+", choices=list(experiment), default=list(experiment))
    asked = parser.parse_args()
    paths = found_in(asked.traces)
    if not {"conversation", "synthetic"} <= set(paths):
        parser.error(
            f"{asked.traces} lacks a trace: it has {', '.join(paths) or 'none'}; try `sim trace get`"
        )
    with TemporaryDirectory() as made:
        for name in asked.only:
            rows = []
            for row in experiment[name](Traces(paths, Path(made))):
                rows.append(rounded(row))
                sys.stderr.write(f"{name} {json.dumps(rows[-1])}\n")
            note(name, rows, paths)


def note(name: str, rows: list[Row], paths: dict[str, Path]) -> None:
    """Put the rows of an experiment in the place of those that were there."""
    known = json.loads(OUT.read_text())["experiments"] if OUT.exists() else {}
    known[name] = {"about": experiment.summary(name), "rows": rows}
    source = {
        "made_by": "tools/mooncake_fast25.py",
        "scenario": "scenarios/mooncake-fast25.yaml",
        "traces": {trace: {"sha256": sha256_of(path)} for trace, path in paths.items()},
        "licence_of_the_traces": "Apache-2.0, github.com/kvcache-ai/Mooncake, FAST25-release",
    }
    ordered = {each: known[each] for each in sorted(known)}
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({"source": source, "experiments": ordered}, indent=1) + "\n")


if __name__ == "__main__":
    main()
