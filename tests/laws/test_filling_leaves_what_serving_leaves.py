"""A pool that is filled before the clock starts holds what it would hold had those requests been served.

Held where each request comes when the one before it is done, so that no queue and no shared link makes a
difference, and where nothing is replicated, which depends on how busy NICs are.
"""

from dataclasses import dataclass
from itertools import islice

import pytest
from models.smallpool import simulation

from sim.clock import Errand
from sim.serving.warm import warm

REQUESTS = 120
APART_PS = 60 * 10**12
QUIET = ("kv_pool.dram=1 TB", "kv_pool.replicate=never", "router.policy=round_robin")


@dataclass
class Apart:
    """The first requests of a simulation's workload, a minute from one to the next."""

    simulated: object

    def __iter__(self):
        for number, request in enumerate(islice(self.simulated.workload, REQUESTS)):
            yield request._replace(arrived_ps=number * APART_PS)


def served(simulated):
    Errand(simulated.serving.offer(iter(Apart(simulated))))
    while simulated.clock.advance(10_000):
        pass
    return simulated


def filled(simulated):
    assert warm(simulated.serving.prefill, Apart(simulated)) == REQUESTS
    return simulated


def contents(simulated):
    pool = simulated.serving.moves.pool
    return {place: sorted(cache.contents()) for place, cache in zip(pool.places, pool.caches, strict=True)}


@pytest.mark.parametrize("hbm", ["true", "false"])
@pytest.mark.parametrize("fetch", ["estimate", "never", "always"])
def test_filling_leaves_what_serving_leaves(tmp_path, fetch, hbm):
    how = (*QUIET, "run.duration=10 min", f"kv_pool.fetch={fetch}", f"kv_pool.hbm={hbm}")
    found = contents(filled(simulation(tmp_path, *how)))
    assert found == contents(served(simulation(tmp_path, *how)))
    assert sum(len(blocks) > 0 for blocks in found.values()) == (
        8 if hbm == "true" or fetch == "never" else 1
    )
