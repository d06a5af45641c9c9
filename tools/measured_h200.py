"""The measured runs of our engine on H200 against their simulation, as JSON.

    python tools/measured_h200.py

The rows go to docs/data/measured-h200.json. What was measured is in tests/data/measured; the constants of the
engine profile were fitted on these runs. Units: seconds, blocks.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sim import api
from sim.results.run import Run

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "data" / "measured-h200.json"
BLOCK_TOKENS = 512
FRACTIONS = (0.5, 0.9, 0.99)
ENGINES = (
    ("h200-colocated-light", "h200-colocated.yaml", None),
    ("h200-colocated-long", "h200-colocated.yaml", "long"),
    ("h200-disagg-light", "h200-disagg.yaml", None),
)
POOLS = (("without", "kv_pool.policy=none"), ("with", "kv_pool.blocks=500"))

Row = dict[str, Any]
Columns = dict[str, npt.NDArray[np.float64]]


def measured(name: str) -> Columns:
    """What was measured, by column."""
    lines = (ROOT / "tests" / "data" / "measured" / f"{name}.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return {column: np.array([float(row[column]) for row in rows]) for column in rows[0]}


def simulated(file: str, sets: list[str], variant: str | None = None) -> Run:
    """The run of a scenario of these measurements."""
    return api.run(api.load(ROOT / "scenarios" / "measured" / file, sets, variant))


def quantiles(values: npt.NDArray[np.float64]) -> list[float]:
    """At FRACTIONS, to five digits."""
    return [float(f"{value:.5g}") for value in np.nanquantile(values, FRACTIONS)]


def pool_rows() -> Iterator[Row]:
    """One GPU that prefills, without a pool and with one."""
    took = measured("h200-pool")
    for kind, setting in POOLS:
        requests = simulated("h200-pool.yaml", [setting]).requests
        yield {
            "pool": kind,
            "requests": len(requests),
            "measured_ttft_s": quantiles(took[f"ttft_{kind}_s"]),
            "simulated_ttft_s": quantiles(requests["ttft_s"].to_numpy()),
            "measured_blocks": int(took["cached_blocks"].sum()) if kind == "with" else 0,
            "simulated_blocks": int(requests["cached_tokens"].sum()) // BLOCK_TOKENS,
        }


def engine_rows() -> Iterator[Row]:
    """One GPU that does both, and two."""
    for name, file, variant in ENGINES:
        took, requests = measured(name), simulated(file, [], variant).requests
        for latency in ("ttft_s", "tpot_s", "e2e_s"):
            yield {
                "run": name,
                "requests": len(requests),
                "latency": latency,
                "measured_s": quantiles(took[latency]),
                "simulated_s": quantiles(requests[latency].to_numpy()),
            }


def main() -> None:
    """Play the runs and write their rows."""
    rows = {"measured_pool": list(pool_rows()), "measured_engine": list(engine_rows())}
    experiments = {name: {"rows": rows[name]} for name in rows}
    source = {"made_by": "tools/measured_h200.py", "measured": "tests/data/measured"}
    OUT.write_text(json.dumps({"source": source, "experiments": experiments}, indent=1) + "\n")


if __name__ == "__main__":
    main()
