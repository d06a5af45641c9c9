"""What `sim topo path` says of two GPUs is what the simulator would do with a handoff between them.

Pairs are drawn at random. Links and latency are compared with those of the engine's fabric, rates by sending
bytes over it: as many as take a second, and as many as should take just as long as the latency.
"""

from collections import Counter
from random import Random

import pytest
from models.clusters import B200_4000, cluster_of

from sim.cli.way import way
from sim.clock import Clock
from sim.network.fabric import Fabric, Port
from sim.network.flows import FlowNetwork
from sim.topology.place import place

PAIRS = 12
FABRICS = {
    "b200-4000-ib-ndr": "",
    "b200-4000-ib-4to1": "",
    "b200-4000-efa": "",
    "b200-4000-roce-spectrumx": "",
    "gb200-nvl72-4032": "",
    "a100-sxm-1024-hdr": "",
    "mooncake-a800-16": "",
    "two-dgx-b200-direct": "",
    "one-hgx-h200": "",
    "staged: h200-2000-ib-ndr": "  gpudirect: false",
    "staged: mooncake-a800-16": "  gpudirect: false",
    "staged, efficiency: b200-4000-ib-4to1": "  gpudirect: false\n  routing: {efficiency: 70 %}",
    "spine: a100-sxm-1024-hdr": "  other_rail: spine",
    "ecmp: b200-4000-ib-2to1": "  routing: {kind: ecmp, qps: 4}",
    "ecmp: mooncake-a800-16": "  routing: {kind: ecmp, qps: 2}",
    "static: b200-4000-ib-ndr": "  routing: {kind: static}",
}
"""Shipped topologies, some with other words in their fabric."""


@pytest.fixture(scope="module", params=FABRICS)
def cluster(request, tmp_path_factory):
    topology, words = request.param.rpartition(": ")[2], FABRICS[request.param]
    base = B200_4000.with_name(f"{topology}.yaml")
    text = f'sim: 1\nname: drawn\nsource: ["made up for tests"]\nextends: {base}\n'
    text += f"fabric:\n{words}\n" if words else ""
    return cluster_of(tmp_path_factory.mktemp("drawn"), text)


def drawn(cluster):
    """Pairs of GPUs: anywhere, on one rail, and neighbours."""
    dice = Random(cluster.gpus)
    for turn in range(PAIRS):
        one = dice.randrange(cluster.gpus)
        apart = (8 * dice.randrange(1, cluster.gpus), dice.randrange(1, 40), 1)[turn % 3]
        other = (one + apart) % cluster.gpus
        if one != other:
            yield one, other


def port(cluster, gpu):
    """The node of a GPU, and the rail beside it: GPUs and rails in order, as many or several to one."""
    gpus = cluster.types[0].gpus
    assert {node.gpus for node in cluster.types} == {gpus}
    return Port(gpu // gpus, gpu % gpus // (gpus // (cluster.rails or gpus)))


def paths_of(cluster, one, other):
    """The paths of a handoff from GPU to GPU over a fabric that nobody uses, and that fabric."""
    fabric, source, target = Fabric(cluster, 1), port(cluster, one), port(cluster, other)
    is_inside = cluster.domain_of(source.node) == cluster.domain_of(target.node)
    pairs = range(1 if is_inside else fabric.queue_pairs)
    return fabric, [fabric.gpu_to_gpu(source, target, pair) for pair in pairs]


def lasts_ps(fabric, paths, size):
    """How long so many bytes take when they are dealt out evenly over some paths, without the latency."""
    clock = Clock()
    network = FlowNetwork(clock, fabric.table.carried)
    each, rest = divmod(size, len(paths))
    parts = [(each + (i < rest), path.of_a_flow()) for i, path in enumerate(paths)]
    ends = []
    network.send(parts).callbacks.append(lambda _: ends.append(clock.now))
    while clock.advance(100):
        pass
    return ends[0]


def told(cluster, one, other):
    return way(cluster, *(place(cluster, f"gpu {gpu}") for gpu in (one, other)))


def test_links_are_those_that_the_bytes_cross(cluster):
    for one, other in drawn(cluster):
        fabric, paths = paths_of(cluster, one, other)
        found = told(cluster, one, other)
        crossed = dict.fromkeys(number for path in paths for number in path.counted)
        names = [fabric.described[number].name for number in paths[0].counted]
        assert [link.name for link in found.links for _ in range(link.times)] == names
        assert sum(link.links for link in found.links) == len(crossed)
        carried = Counter()
        for number in crossed:
            carried[fabric.described[number].kind] += fabric.described[number].capacity_bytes_per_s
        shown = Counter()
        for link in found.links:
            shown[link.kind] += link.bytes_per_s * link.times
        assert shown == pytest.approx(carried)


def test_latency_is_what_a_handoff_waits(cluster):
    for one, other in drawn(cluster):
        _, paths = paths_of(cluster, one, other)
        found = told(cluster, one, other)
        assert {path.latency_ps for path in paths} == {found.latency_ps}
        assert found.latency.total_ps == found.latency_ps


def test_a_second_of_bytes_takes_a_second(cluster):
    for one, other in drawn(cluster):
        found = told(cluster, one, other)
        took_ps = lasts_ps(*paths_of(cluster, one, other), round(found.bytes_per_s))
        assert took_ps == pytest.approx(10**12, rel=1e-9)


def test_the_size_at_which_latency_and_bandwidth_cost_the_same(cluster):
    """A byte more or less takes some twenty picoseconds."""
    for one, other in drawn(cluster):
        found = told(cluster, one, other)
        took_ps = lasts_ps(*paths_of(cluster, one, other), found.equal_bytes)
        assert abs(took_ps - found.latency_ps) <= 2 * 10**12 / found.bytes_per_s + 1


def test_pairs_are_of_many_kinds(cluster):
    """Else the laws above would be about less than they seem."""
    kinds = {told(cluster, one, other).way for one, other in drawn(cluster)}
    assert len(kinds) >= (1 if len(cluster.types) == 1 else 2)
