"""Who lends no bytes to a pool has none: runs are those of caches in HBM alone, request by request."""

import pytest
from models.smallpool import simulation

from sim.api import Silent


@pytest.mark.parametrize("router", ["conductor", "prefix_aware"])
def test_a_pool_of_nothing_is_none(tmp_path, router):
    how = ("kv_pool.dram=0 GB", "kv_pool.hbm=true", "run.duration=4 s", f"router.policy={router}")
    tables = []
    for policy in ("pooled", "local"):
        simulated = simulation(tmp_path, *how, f"kv_pool.policy={policy}")
        simulated.play(Silent())
        tables.append(simulated.serving.done)
        tables.append([replica.tokens for replica in simulated.serving.prefill.replicas])
        assert simulated.meter.kv_pool_use() is None
    assert tables[:2] == tables[2:]
