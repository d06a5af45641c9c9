"""A synthetic run, made without the engine: rows that look like what the simulator records."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.config.scenario import Scenario
from sim.tables.recorder import MemorySink
from sim.tables.schema import PHASES, REQUEST_COLUMNS, SEGMENT_COLUMNS
from sim.tables.uses import Ends, LinkUse, Outcome, ReplicaUse

MS = 10**9
S = 10**12


def request_columns(n: int, seed: int = 7, window_s: float = 60.0) -> dict[str, Any]:
    """Finished requests with lognormal phases, arriving evenly at random over the window."""
    rng = np.random.default_rng(seed)
    arrived = np.sort(rng.integers(0, int(window_s * S), n))
    scale = {
        "route": 0,
        "queue": 20,
        "kv_fetch": 0,
        "prefill": 130,
        "reserve": 4,
        "transfer": 35,
        "decode_queue": 9,
        "decode": 6000,
    }
    phases = {
        name: (rng.lognormal(0, 0.6, n) * scale.get(name, 0) * MS).astype(np.int64)
        if scale.get(name)
        else np.zeros(n, np.int64)
        for name in PHASES
    }
    output = rng.integers(2, 400, n)
    first = arrived + phases["queue"] + phases["prefill"]
    finished = arrived + sum(phases.values())
    gap = phases["reserve"] + phases["transfer"] + phases["decode_queue"] + 20 * MS
    columns = {
        "request_id": np.arange(n),
        "measured": np.ones(n),
        "arrived_ps": arrived,
        "input_tokens": rng.integers(100, 20_000, n),
        "output_tokens": output,
        "cached_tokens": np.zeros(n),
        "first_token_ps": first,
        "second_token_ps": first + gap,
        "finished_ps": finished,
        "prefill_replica": rng.integers(0, 8, n),
        "decode_replica": rng.integers(8, 12, n),
        "transfer_link": np.arange(n) % 5,
        "transfer_waited_ps": phases["transfer"] // 3,
        "status": np.zeros(n),
        **{f"phase_{name}_ps": value for name, value in phases.items()},
    }
    columns["cached_tokens"] = columns["hbm_tokens"] = columns["input_tokens"] // 3
    columns["fetch_link"] = np.full(n, -1)
    nothing = np.zeros(n)
    return {name: np.array(columns.get(name, nothing), dtype=np.int64) for name in REQUEST_COLUMNS}


def segment_columns(n: int, seed: int = 8) -> dict[str, Any]:
    """Decode segments of a few steps that grow slowly."""
    rng = np.random.default_rng(seed)
    measured = rng.integers(0, 60, n)
    columns = {
        "replica": rng.integers(8, 12, n),
        "started_ps": np.arange(n) * 40 * MS,
        "steps": rng.integers(1, 40, n),
        "first_step_ps": (rng.lognormal(0, 0.15, n) * 24 * MS).astype(np.int64),
        "step_growth_ps": rng.integers(0, 3, n) * 1000,
        "batch": measured + rng.integers(1, 4, n),
        "measured": measured,
        "joined": np.minimum(rng.integers(0, 3, n), measured),
    }
    return {name: np.ascontiguousarray(columns[name], dtype=np.int64) for name in SEGMENT_COLUMNS}


def sink(n: int = 2000) -> MemorySink:
    """A sink that holds n requests, and segments."""
    filled = MemorySink()
    fill(filled, n)
    return filled


def fill(filled: Any, n: int = 2000) -> None:
    """Put n requests and some segments and samples into any sink."""
    columns = request_columns(n)
    filled.requests(columns, [[i, i + 1] for i in range(n)])
    filled.segments(segment_columns(n))
    filled.samples([(S, "pool", "prefill", "queued", 12.0), *link_samples()])
    filled.links(outcome().links)


def link_samples() -> list[tuple[int, str, str, str, float]]:
    """Thirty readings of two kinds of link, one of which gets busier and busier."""
    return [
        (second * S, "links", kind, metric, value)
        for second in range(30)
        for kind, share in (("nic_tx", 0.05), ("leaf_up", second / 30))
        for metric, value in (("used_fraction", share), ("busiest_fraction", min(2 * share, 1.0)))
    ]


def outcome(**changes: Any) -> Outcome:
    """An outcome with two pools and a few links."""
    values: dict[str, Any] = {
        "window_ps": (0, 60 * S),
        "simulated_ps": 80 * S,
        "gpus": 96,
        "replicas": tuple(
            ReplicaUse(
                i,
                f"r{i}",
                "prefill" if i < 8 else "decode",
                "prefill" if i < 8 else "decode",
                8,
                (40 + 2 * i) * S,
                100,
                10_000,
            )
            for i in range(12)
        ),
        "links": tuple(
            LinkUse(
                i,
                f"leaf{i} up",
                "leaf_up",
                capacity_bytes_per_s=5e10,
                carried_bytes=(9 - i) * 2e11,
                peak_fraction=0.9 - i / 20,
                waited_s=i / 4,
                ends=Ends(leaves=(i,), spines=(0, 1)),
            )
            for i in range(5)
        ),
        "rejected_reasons": {},
        "events": 123_456,
        "cpu_s": 3.21,
    }
    return Outcome(**{**values, **changes})


def scenario(**changes: Any) -> Scenario:
    """A scenario that could have given these rows."""
    values: dict[str, Any] = {
        "sim": 1,
        "name": "chat-12-nodes",
        "topology": "none.yaml",
        "model": {"name": "llama-3.1-70b"},
        "pools": [
            {"name": "prefill", "role": "prefill", "replicas": 8},
            {"name": "decode", "role": "decode", "replicas": 4},
        ],
        "workload": {"generator": "mooncake-conversation", "rate": "33 req/s"},
        "run": {"duration": "1 min"},
        "slo": ["ttft p90 < 500 ms", "itl p99 <= 30 ms"],
    }
    return Scenario.model_validate({**values, **changes})
