"""What a sweep over the size of the pool says, by hand."""

import pandas as pd
import pytest
from pool_size_parts import CURVE, PRICE, table

from sim.results.memorycost import usd_per_million
from sim.results.poolsize import COST, pool_sizes


def test_means_intervals_and_knees():
    sizes = pool_sizes(table(), PRICE)
    assert list(sizes.table.index) == [0, 500, 1000, 2000]
    assert sizes.at(1000, "ttft_p90_s") == pytest.approx(1.55)
    assert sizes.at(1000, "ttft_p90_s_half") == pytest.approx(12.706 * 0.05, rel=1e-4)
    assert sizes.knees == {"hit_fraction": 1000, "ttft_p90_s": 1000, "goodput_fraction": 1000}


def test_cost_is_rent_and_memory_over_good_tokens():
    sizes = pool_sizes(table(), PRICE)
    assert sizes.at(1000, COST) == pytest.approx((96 + 3) / (990 * 3600) * 1e6)
    assert sizes.at(0, COST) == pytest.approx(96 / (500 * 3600) * 1e6)


def test_the_cheapest_size_meets_the_slo_with_every_seed():
    assert pool_sizes(table(), PRICE).cheapest_gb == 1000
    assert pool_sizes(table(limit_s=1.55), PRICE).cheapest_gb == 2000
    assert pool_sizes(table(limit_s=1.0), PRICE).cheapest_gb is None


def test_nothing_good_has_no_price():
    assert usd_per_million(96.0, 0.0) is None
    assert usd_per_million(None, 5.0) is None
    assert pd.isna(pool_sizes(table(CURVE | {0: (0.1, 9.0, 0.0)}), PRICE).at(0, COST))


def test_the_answer_in_words():
    said = pool_sizes(table(), PRICE).answer()
    assert said.startswith(
        "The hit rate has its knee at 1 000 GB a node: up to there it goes from 10 % to 29 %"
    )
    assert "Of the sizes that meet the SLO 1 000 GB is the cheapest: 27.8 USD" in said
    assert "No size meets the SLO" in pool_sizes(table(limit_s=1.0), PRICE).answer()
    straight = {size: (size / 10_000, 1.0, 1.0) for size in (0, 1000, 2000)}
    assert "no knee" in pool_sizes(table(straight), PRICE).answer()


def test_failed_trials_do_not_count():
    failed = pd.DataFrame([{"kv_pool.dram": "4 TB", "seed": 0, "status": "failed"}])
    assert list(pool_sizes(pd.concat([table(), failed]), PRICE).table.index) == [0, 500, 1000, 2000]
    with pytest.raises(ValueError, match="no trial"):
        pool_sizes(failed, PRICE)
