"""Rows of compared columns, made by hand."""

import pandas as pd

SEEDS = (1, 2, 3)
FIXED = {
    "status": "ok",
    "reason": "",
    "slo_met": True,
    "busiest_link": "node 0 NIC tx",
    "handoff_waited_for": "nic_rx",
    "e2e_mean_s": 10.0,
    "tpot_p90_s": 0.02,
    "e2e_p99_s": 12.0,
}


def rows(columns, seeds=SEEDS):
    """`columns` gives each column the values of its measures, one a seed."""
    made = []
    for name, measures in columns.items():
        for i, seed in enumerate(seeds):
            own = {key: values[i] for key, values in measures.items()}
            made.append({"column": name, "seed": seed, "digest": f"{name}{seed}", **FIXED, **own})
    return pd.DataFrame(made)


BASE = {
    "goodput_per_s": (100.0, 110.0, 90.0),
    "ttft_p90_s": (1.0, 1.2, 0.8),
    "hit_fraction": (0.2, 0.3, 0.25),
    "phase_queue_s": (0.5, 0.6, 0.4),
}


def changed(**shift):
    """The baseline with each measure moved by a little more in each seed."""
    moved = {
        name: tuple(value + by * (1 + 0.01 * i) for i, value in enumerate(BASE[name]))
        for name, by in shift.items()
    }
    return BASE | moved
