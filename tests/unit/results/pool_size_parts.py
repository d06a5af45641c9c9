"""The table of a sweep over the size of the pool, made by hand."""

import pandas as pd

from sim.results.memorycost import HOURS_PER_YEAR, MemoryPrice

PRICE = MemoryPrice(usd_per_gb=HOURS_PER_YEAR / 1000, years=1)  # 1 USD an hour for 1 TB
CURVE = {0: (0.1, 5.0, 0.5), 500: (0.2, 3.0, 0.8), 1000: (0.3, 1.5, 0.99), 2000: (0.31, 1.4, 1.0)}


def table(curve=CURVE, limit_s=2.0, nodes=3):
    """Two seeds a size, one a little worse than the other; good tokens follow the goodput."""
    return pd.DataFrame(
        [
            {
                "kv_pool.dram": f"{size} GB",
                "seed": seed,
                "status": "ok",
                "slo_met": ttft_s + 0.1 * seed < limit_s,
                "rent_usd_per_h": 96.0,
                "pool_dram_bytes": nodes * size * 10**9,
                "hit_fraction": hits - 0.01 * seed,
                "ttft_p90_s": ttft_s + 0.1 * seed,
                "goodput_fraction": good,
                "good_output_tokens_per_s": 1000 * good,
            }
            for size, (hits, ttft_s, good) in curve.items()
            for seed in (0, 1)
        ]
    )
