"""How far replicas reach: the domains they are in, and the NICs and the latency between these."""

import pytest
from models.clusters import B200_4000, SMALL, changed, cluster_of

from sim.config.place import Place
from sim.config.scenario import Pool
from sim.serving.seating import lanes, seat
from sim.serving.span import domains_of, span
from sim.timing.collective import Wire
from sim.timing.placement import Span

RAIL = 49.5e9
LEAF_PS, SPINE_PS, CORE_PS = (970_000 + hops * 240_000 for hops in (1, 3, 5))


@pytest.fixture
def cluster(tmp_path):
    """Twelve nodes of eight GPUs and eight rails in units of four, two units in a pod."""
    return cluster_of(tmp_path, SMALL)


def reach(cluster, *pools):
    """The spans of pools of (replicas, tp, place)."""
    forms = [
        Pool(name="pool", role="prefill", replicas=replicas, tp=tp, place=Place.parse(place))
        for replicas, tp, place in pools
    ]
    width = lanes(cluster, forms)
    return [span(cluster, seats, width) for seats in seat(cluster, forms)]


def test_inside_a_domain_there_is_no_wire(cluster):
    assert reach(cluster, (3, 8, "packed"), (4, 2, "spread")) == [Span(8), Span(2)]


def test_two_nodes_of_a_unit_meet_at_their_leaves_on_all_rails(cluster):
    assert reach(cluster, (6, 16, "packed")) == [Span(8, Wire(2, 8 * RAIL, LEAF_PS))]


def test_the_rate_is_that_of_all_rails_whatever_lanes_they_make(cluster):
    assert reach(cluster, (2, 16, "packed"), (3, 2, "packed"))[0] == Span(8, Wire(2, 8 * RAIL, LEAF_PS))


def test_the_replica_whose_parts_are_farthest_from_each_other_counts(cluster):
    near, across, far = ("nodes 0-3", "nodes 3-4"), ("nodes 2-4,5"), ("nodes 3,8")
    assert reach(cluster, (2, 16, near[0]))[0].wire.latency_ps == LEAF_PS
    assert reach(cluster, (1, 16, near[1]))[0].wire.latency_ps == SPINE_PS
    assert reach(cluster, (1, 32, across))[0].wire.latency_ps == SPINE_PS
    assert reach(cluster, (1, 16, far))[0].wire.latency_ps == CORE_PS
    assert reach(cluster, (2, 16, "nodes 0-1,3-4"))[0].wire.latency_ps == SPINE_PS


def test_gpus_that_share_a_nic_share_its_rate(tmp_path):
    half = changed(SMALL, ("rails: 8", "rails: 4"), ("per_pod: 4", "per_pod: 2"))
    found = reach(cluster_of(tmp_path, half), (2, 16, "packed"))[0].wire
    assert found.bytes_per_s == 8 * RAIL  # two NICs a rail
    lone = cluster_of(tmp_path, half.replace("type: dgx-b200", "type: mooncake-a800"))
    assert reach(lone, (2, 16, "packed"))[0].wire.bytes_per_s == 4 * RAIL


def test_racks_have_the_nics_of_all_their_trays(tmp_path):
    text = B200_4000.with_name("gb200-nvl72-4032.yaml").read_text()
    found = reach(cluster_of(tmp_path, text), (2, 144, "packed"), (1, 72, "packed"), (3, 16, "packed"))
    assert found == [Span(72, Wire(2, 72 * RAIL, SPINE_PS)), Span(72), Span(16)]


def test_nodes_back_to_back_have_no_switch_between_them(tmp_path):
    text = B200_4000.with_name("two-dgx-b200-direct.yaml").read_text()
    direct = cluster_of(tmp_path, text)
    (found,) = reach(direct, (1, 16, "packed"))
    assert (found.gpus, found.wire.domains, found.wire.bytes_per_s) == (8, 2, 8 * RAIL)
    assert found.wire.latency_ps < LEAF_PS


def test_the_domains_of_a_seat(cluster):
    form = Pool(name="pool", role="prefill", replicas=1, tp=24, place=Place.parse("nodes 4,2,9"))
    ((one,),) = seat(cluster, [form])
    assert domains_of(cluster, one) == (4, 2, 9)
