"""One pool finds more than a cache on each node, and the more so the more nodes there are.

The testbed of Mooncake's paper with prompts of our own generator, at the same load for each node. Routing
does not look at caches, so a later turn meets its session on one node out of all of them; the system block,
with which every prompt begins, is on each.
"""

from pathlib import Path

import pytest

from sim import api

pytestmark = pytest.mark.slow

SCENARIO = Path(__file__).parents[2] / "scenarios" / "mooncake-fast25.yaml"
NODES = (2, 4, 8)
RATE_PER_NODE = 0.34
BLOCKS = (40, 200, 1_000)
ROOMY_BLOCKS = 10_000


def hit_rate(policy, nodes, blocks, router="round_robin"):
    sets = [
        f"kv_pool.policy={policy}",
        f"kv_pool.blocks={blocks}",
        f"pools.prefill.replicas={nodes}",
        f"workload.rate={RATE_PER_NODE * nodes:g} req/s",
        f"router.policy={router}",
        "run.duration=5 min",
    ]
    requests = api.run(api.load(SCENARIO, sets)).requests
    assert len(requests) > 80 * nodes
    return requests["cached_tokens"].sum() / requests["input_tokens"].sum()


@pytest.fixture(scope="module")
def rates():
    """By policy and nodes, with room for everything."""
    return {
        (policy, nodes): hit_rate(policy, nodes, ROOMY_BLOCKS)
        for policy in ("pooled", "local")
        for nodes in NODES
    }


def test_a_pool_finds_more(rates):
    assert all(rates["pooled", nodes] > 1.2 * rates["local", nodes] for nodes in NODES)


def test_the_lead_grows_with_the_number_of_nodes(rates):
    leads = [rates["pooled", nodes] / rates["local", nodes] for nodes in NODES]
    assert leads == sorted(leads)
    assert leads[-1] > 1.5 * leads[0]


@pytest.mark.parametrize("policy", ["pooled", "local"])
def test_more_memory_finds_more(policy, rates):
    found = [hit_rate(policy, 4, blocks) for blocks in BLOCKS]
    assert found == sorted(found)
    assert found[-1] > 1.4 * found[0]
    assert found[-1] <= rates[policy, 4]


def test_routing_by_the_caches_makes_up_for_most_of_it(rates):
    """Sent to the node that has its session, a turn finds it; what is left is where that one is busy."""
    aware = hit_rate("local", 4, ROOMY_BLOCKS, "conductor")
    assert 2 * rates["local", 4] < aware < rates["pooled", 4]
