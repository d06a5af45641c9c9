"""Fetches over the links of real nodes: latency, and bytes over the link narrowest for its crossings."""

from collections import Counter
from types import SimpleNamespace

import pytest
from models.clusters import SMALL, changed
from models.smallpool import simulation

from sim.kvpool.pool import DRAM, NVME, Place
from sim.serving.kvfetch import Found, Wanted
from sim.tables.schema import PS_PER_S

BLOCKS = tuple(range(40))
FABRICS = {
    "sprayed, eight rails in one lane": "",
    "hashed, a lane for each rail": "\n  routing: {kind: ecmp, qps: 2}",
}
CASES = {
    # the tier, where the replica is, how NVMe is read, and the kinds of links of each byte
    "own DRAM": (DRAM, 0, True, ("dram", "pcie_down")),
    "own NVMe straight": (NVME, 0, True, ("nvme", "pcie_down")),
    "own NVMe bounced": (NVME, 0, False, ("nvme", "dram", "dram", "pcie_down")),
    "DRAM of another node": (DRAM, 1, True, ("dram", "dram_rdma", "nic_tx", "nic_rx")),
    "NVMe of another node": (NVME, 1, True, ("nvme", "dram", "dram", "dram_rdma", "nic_tx", "nic_rx")),
}


def slowest_ps(parts):
    """Each link gives the same rate to all crossings, however these belong together."""
    crossings = Counter(link for _, path in parts for link in path.links)
    took = 0.0
    for size, path in parts:
        rates = [link.capacity / crossings[link] for link in path.links]
        took = max(took, size / min([*rates, *([path.cap.rate] if path.cap else [])]))
    return took


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fabric", FABRICS)
def test_a_fetch_takes_what_is_estimated_and_crosses_what_it_should(tmp_path, fabric, case):
    tier, other, straight, kinds = CASES[case]
    topology = changed(SMALL, ("link: infiniband-ndr", f"link: infiniband-ndr{FABRICS[fabric]}"))
    sets = ("kv_pool.nvme=2 TB", f"kv_pool.gpudirect_storage={str(straight).lower()}")
    ready = simulation(tmp_path, *sets, topology=topology)
    serving = ready.serving
    fetching, seat = serving.prefill.flows.fetching, serving.prefill.replicas[0].seat
    place = Place(tier, seat.nodes[0] + other)
    fetching.pool.cache(place).keep(BLOCKS)
    found = Found(place, len(BLOCKS))
    parts = fetching.moves.ways.into_replica(place, seat, len(BLOCKS))
    quoted_ps = fetching.quote_ps(found, seat, 0)
    latency_ps = fetching.plan.fetch_start_ps + max(path.latency_ps for _, path in parts)
    assert quoted_ps == pytest.approx(latency_ps + slowest_ps(parts), abs=2)
    job = SimpleNamespace(request=SimpleNamespace(id=0), blocks=BLOCKS)
    ends = []
    fetching.begin([Wanted(job, found, 0)], seat).callbacks.append(lambda _: ends.append(ready.clock.now))
    while ready.clock.advance(10):
        pass
    assert ends[0] == pytest.approx(quoted_ps, abs=10)
    size = len(BLOCKS) * fetching.moves.ways.block_bytes
    assert sum(part for part, _ in parts) == size
    assert ends[0] > size / max(link.capacity_bytes_per_s for link in serving.fabric.described) * PS_PER_S
    assert fetching.moves.read_over == {kind: size * kinds.count(kind) for kind in kinds}
