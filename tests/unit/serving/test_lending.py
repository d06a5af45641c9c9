"""What nodes lend: blocks by tier from topology and scenario, and what is said of a pool that cannot be."""

import pytest
from models.clusters import SMALL, changed, cluster_of
from models.smallpool import simulation

from sim.base.errors import ConfigErrors
from sim.config.kvpool import KvPool
from sim.serving.lending import lent_blocks

LENDING = (
    f"{SMALL}kv_pool:\n  - {{nodes: dgx, dram: 10 GB, nvme: 1 TB}}\n",
    changed(
        SMALL,
        (
            "  - {name: dgx, type: dgx-b200, count: 12}",
            "  - {name: a, type: dgx-b200, count: 8}\n  - {name: b, type: dgx-b200, count: 4}",
        ),
    )
    + "kv_pool:\n  - {nodes: b, dram: 10 GB}\n",
)


def lent(folder, topology=SMALL, **form):
    """Blocks of 3 GB by tier and node."""
    return lent_blocks(KvPool(**form), cluster_of(folder, topology), 3 * 10**9)


def test_nobody_lends_unless_somebody_says_so(tmp_path):
    assert lent(tmp_path) == ()
    assert lent(tmp_path, LENDING[0], policy="none") == ()


def test_what_the_topology_says_in_whole_blocks(tmp_path):
    assert lent(tmp_path, LENDING[0]) == (dict.fromkeys(range(12), 3), dict.fromkeys(range(12), 333))
    assert lent(tmp_path, LENDING[1]) == (dict.fromkeys(range(8, 12), 3), {})


def test_what_the_scenario_says_goes_for_those_that_lend_or_for_all(tmp_path):
    assert lent(tmp_path, dram="7 GB") == (dict.fromkeys(range(12), 2), {})
    assert lent(tmp_path, LENDING[1], dram="7 GB") == (dict.fromkeys(range(8, 12), 2), {})
    assert lent(tmp_path, LENDING[1], nvme="7 GB")[1] == dict.fromkeys(range(8, 12), 2)
    assert lent(tmp_path, LENDING[0], dram="0 GB", nvme="0 GB") == ()


def test_a_number_of_blocks_in_place_of_bytes(tmp_path):
    assert lent(tmp_path, LENDING[1], blocks=5) == (dict.fromkeys(range(8, 12), 5), {})


def test_less_than_a_block_is_nothing(tmp_path):
    assert lent(tmp_path, dram="2 GB") == ()


BARE = changed(SMALL, ("type: dgx-b200", "type: hgx-h20"))
MISTAKES = {
    "nobody lends": (SMALL, ("kv_pool.dram=null",), "kv_pool.policy: no node lends anything to the pool"),
    "who lends nothing is lost": (
        SMALL,
        ("kv_pool.lost=[{node: 12, at: 1 s}]",),
        "kv_pool.lost.0.node: node 12 lends nothing",
    ),
    "NVMe that nobody knows": (
        BARE,
        ("kv_pool.nvme=1 TB",),
        "kv_pool.nvme=1 TB: HGX H20 server, 8 GPUs has no NVMe that is known",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_told_at_their_keys(tmp_path, case):
    topology, sets, expected = MISTAKES[case]
    with pytest.raises(ConfigErrors) as caught:
        simulation(tmp_path, *sets, topology=topology)
    assert expected in str(caught.value)
    assert "hint: " in str(caught.value)
