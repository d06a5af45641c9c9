"""Which GPUs of which node each replica takes."""

from random import Random

import pytest
from models.clusters import B200_4000, SMALL, changed, cluster_of

from sim.config.place import Place
from sim.config.scenario import Pool
from sim.network.fabric import Port
from sim.serving.plan import Seat
from sim.serving.seating import NoRoom, lanes, misfit, seat


@pytest.fixture
def cluster(tmp_path):
    """Twelve nodes of eight GPUs and eight rails."""
    return cluster_of(tmp_path, SMALL)


def pool(replicas, tp, place="packed"):
    return Pool(name="pool", role="prefill", replicas=replicas, tp=tp, place=Place.parse(place))


def nodes(seats):
    """The node of each replica, by pool; none is on several."""
    assert all(len(one.nodes) == 1 for of_pool in seats for one in of_pool)
    return [[one.nodes[0] for one in of_pool] for of_pool in seats]


def groups(one):
    """The lane of each rank."""
    return [port.group for port in one.ports]


def on(node, *groups):
    """A seat on one node, with the lane of each rank."""
    return Seat(tuple(Port(node, group) for group in groups))


def test_packed_fills_one_node_after_the_other(cluster):
    seats = seat(cluster, [pool(5, 4), pool(2, 4)])
    assert nodes(seats) == [[0, 0, 1, 1, 2], [2, 3]]


def test_spread_takes_nodes_evenly(cluster):
    assert nodes(seat(cluster, [pool(4, 8, "spread")])) == [[0, 3, 6, 9]]
    assert nodes(seat(cluster, [pool(12, 8, "spread")])) == [list(range(12))]


def test_spread_fills_what_is_left_of_nodes(cluster):
    seats = seat(cluster, [pool(12, 4, "spread"), pool(12, 4, "spread")])
    assert nodes(seats) == [list(range(12)), list(range(12))]
    assert all(groups(one) == [0] * 4 for one in seats[0])
    assert all(groups(one) == [1] * 4 for one in seats[1])


def test_pools_are_seated_in_order_around_each_other(cluster):
    seats = seat(cluster, [pool(6, 8, "spread"), pool(6, 8)])
    assert nodes(seats) == [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]


def test_replicas_get_the_rails_beside_their_gpus(cluster):
    one, two = seat(cluster, [pool(2, 2), pool(1, 4)])
    assert lanes(cluster, [pool(2, 2), pool(1, 4)]) == 2
    assert one == (on(0, 0, 0), on(0, 1, 1))
    assert two == (on(0, 2, 2, 3, 3),)


@pytest.mark.parametrize(
    ("tps", "width"), [([8], 8), ([8, 8], 8), ([4, 8], 4), ([8, 2], 2), ([4, 1], 1), ([2, 4, 8], 2)]
)
def test_rails_used_together_are_merged(cluster, tps, width):
    assert lanes(cluster, [pool(1, tp) for tp in tps]) == width


def test_fewer_rails_than_gpus(tmp_path):
    """Four rails: two GPUs share a NIC, so a replica of one GPU uses a whole rail."""
    cluster = cluster_of(tmp_path, changed(SMALL, ("rails: 8", "rails: 4"), ("per_pod: 4", "per_pod: 2")))
    pools = [pool(4, 1), pool(1, 4)]
    assert lanes(cluster, pools) == 1
    small, large = seat(cluster, pools)
    assert [groups(one) for one in small] == [[0], [0], [1], [1]]
    assert large == (on(0, 2, 2, 3, 3),)


def test_no_two_replicas_share_a_gpu(cluster):
    pools = [pool(3, 8, "spread"), pool(10, 4), pool(7, 2, "spread"), pool(5, 1)]
    seats = seat(cluster, pools)
    taken = {}
    for form, of_pool in zip(pools, seats, strict=True):
        assert len(of_pool) == form.replicas
        for one in of_pool:
            assert len(one.ports) == form.tp
            for port in one.ports:
                taken[port] = taken.get(port, 0) + 1
    assert set(taken.values()) == {1}


def test_the_first_pool_without_room_is_named(cluster):
    assert seat(cluster, [pool(13, 8)]) == NoRoom(0, 12, 13)
    assert seat(cluster, [pool(10, 8), pool(5, 4), pool(9, 1)]) == NoRoom(1, 4, 5)


def test_room_of_several_nodes_is_no_room_for_one_replica(cluster):
    """Each node has four GPUs left, and the replica needs eight of one."""
    assert seat(cluster, [pool(12, 4, "spread"), pool(1, 8)]) == NoRoom(1, 0, 1)


def test_without_a_fabric_lanes_are_of_gpus(tmp_path):
    cluster = cluster_of(tmp_path, SMALL[: SMALL.index("fabric:")])
    assert lanes(cluster, [pool(1, 4)]) == 4
    assert seat(cluster, [pool(2, 4)]) == [(on(0, 0, 0, 0, 0), on(0, 1, 1, 1, 1))]


def test_per_domain_gives_each_pool_its_places_of_every_domain(cluster):
    prefill = pool(24, 2, "per-domain 2:1")
    decode = Pool(name="d", role="decode", replicas=12, tp=4, place=Place.parse("per-domain 2:1"))
    seats = seat(cluster, [prefill, decode])
    assert nodes(seats) == [sorted([*range(12)] * 2), [*range(12)]]
    assert [groups(one) for one in seats[0][:2]] == [[0, 0], [1, 1]]


def test_more_than_the_places_of_the_domains_do_not_fit(cluster):
    assert seat(cluster, [pool(25, 2, "per-domain 2:1")]) == NoRoom(0, 24, 25)


def test_nodes_are_filled_in_the_order_in_which_they_are_listed(cluster):
    assert nodes(seat(cluster, [pool(5, 4, "nodes 7,2-3")])) == [[7, 7, 2, 2, 3]]


def test_nodes_that_are_not_listed_stay_free(cluster):
    assert seat(cluster, [pool(3, 4, "nodes 1")]) == NoRoom(0, 2, 3)


@pytest.fixture(scope="module")
def racks(tmp_path_factory):
    """56 racks of 18 trays of four GPUs, each rack one NVLink domain."""
    text = B200_4000.with_name("gb200-nvl72-4032.yaml").read_text()
    return cluster_of(tmp_path_factory.mktemp("racks"), text)


def test_a_replica_may_take_several_nodes_of_an_nvlink_domain(racks):
    (seats,) = seat(racks, [pool(2, 8)])
    assert [one.nodes for one in seats] == [(0, 1), (2, 3)]
    assert seats[0] == Seat(tuple(Port(node, 0) for node in (0, 0, 0, 0, 1, 1, 1, 1)))


def test_no_replica_crosses_the_edge_of_an_nvlink_domain(racks):
    """Two of 32 GPUs fit into 72, and the third goes to the next rack."""
    (seats,) = seat(racks, [pool(112, 32)])
    assert [one.nodes[0] for one in seats[:4]] == [0, 8, 18, 26]
    assert all(len({racks.domain_of(node) for node in one.nodes}) == 1 for one in seats)
    assert seat(racks, [pool(113, 32)]) == NoRoom(0, 112, 113)


def test_spread_takes_racks_evenly(racks):
    (seats,) = seat(racks, [pool(56, 4, "spread")])
    assert [racks.domain_of(one.nodes[0]) for one in seats] == list(range(56))


def assert_lanes_are_whole(cluster, pools):
    """Every lane that a replica uses has all its GPUs in that replica."""
    width = lanes(cluster, pools)
    users = {}
    for number, of_pool in enumerate(seat(cluster, pools)):
        for replica, one in enumerate(of_pool):
            for port in one.ports:
                users.setdefault(port, []).append((number, replica))
    for port, here in users.items():
        gpus = cluster.types[port.node].gpus * width // cluster.rails
        assert len(set(here)) == 1
        assert len(here) == gpus


def test_a_replica_uses_all_of_a_lane_or_nothing_of_it(cluster, racks):
    dice, seated = Random(1), 0
    for _ in range(30):
        for one, sizes in ((cluster, (1, 2, 4, 8, 16, 32)), (racks, (1, 2, 4, 6, 8, 24, 144))):
            places = ("packed", "spread", "nodes 3-9,1", "per-domain 1:1")
            pools = [pool(dice.randint(1, 3), dice.choice(sizes), dice.choice(places)) for _ in range(3)]
            if not isinstance(seat(one, pools), NoRoom):
                assert_lanes_are_whole(one, pools)
                seated += 1
    assert seated > 40


def test_replicas_that_end_within_a_node_do_not_share_lanes(racks):
    assert_lanes_are_whole(racks, [pool(4, 6)])
    assert lanes(racks, [pool(4, 6)]) == 2
    assert lanes(racks, [pool(4, 8), pool(1, 144)]) == 4


def test_replicas_larger_than_a_node_take_whole_nodes(racks):
    """The two GPUs of another pool keep the rest of their node from them."""
    pair, wide = seat(racks, [pool(1, 2), pool(2, 16)])
    assert pair[0].nodes == (0,)
    assert [one.nodes for one in wide] == [(1, 2, 3, 4), (5, 6, 7, 8)]


def test_replicas_larger_than_a_domain_take_whole_domains_of_one_unit(cluster):
    """Twelve nodes in units of four; with one taken, the unit has one pair and one node left over."""
    (wide,) = seat(cluster, [pool(6, 16)])
    assert [one.nodes for one in wide] == [(i, i + 1) for i in range(0, 12, 2)]
    assert [port.group for port in wide[0].ports] == [0] * 16
    _, wide = seat(cluster, [pool(1, 4), pool(5, 16)])
    assert [one.nodes for one in wide] == [(1, 2), (4, 5), (6, 7), (8, 9), (10, 11)]


def test_only_where_units_have_none_left_do_they_share_a_replica(cluster):
    _, wide = seat(cluster, [pool(2, 8, "nodes 0,4"), pool(5, 16)])
    assert [one.nodes for one in wide] == [(1, 2), (5, 6), (8, 9), (10, 11), (3, 7)]
    assert seat(cluster, [pool(2, 8, "nodes 0,4"), pool(6, 16)]) == NoRoom(1, 5, 6)


def test_racks_are_taken_whole_too(racks):
    (wide,) = seat(racks, [pool(2, 144, "spread")])
    assert [(one.nodes[0], one.nodes[-1], len(one.nodes)) for one in wide] == [
        (0, 35, 36),
        (1008 // 2, 539, 36),
    ]
    assert len(wide[0].ports) == 144


def test_wide_replicas_on_listed_nodes_begin_with_the_first_of_them(cluster):
    (wide,) = seat(cluster, [pool(2, 16, "nodes 6-7,1-2")])
    assert [one.nodes for one in wide] == [(6, 7), (1, 2)]
    assert seat(cluster, [pool(2, 16, "nodes 1-3")]) == NoRoom(0, 1, 2)


def test_nodes_of_a_rack_that_are_not_listed_do_not_part_a_replica(racks):
    (wide,) = seat(racks, [pool(3, 8, "nodes 3-9")])
    assert [one.nodes for one in wide] == [(3, 4), (5, 6), (7, 8)]


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 24, 32])
def test_parts_of_a_node_and_whole_nodes_fit(cluster, tp):
    assert misfit(cluster, pool(1, tp)) is None


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 12, 16, 72, 144])
def test_parts_of_a_tray_and_trays_of_a_rack_fit(racks, tp):
    assert misfit(racks, pool(1, tp)) is None


@pytest.mark.parametrize(
    ("where", "tp", "problem", "hint"),
    [
        ("cluster", 6, "6 GPUs are neither an equal part of the 8 of a node nor whole nodes", "use 4 or 8"),
        (
            "cluster",
            12,
            "12 GPUs are neither an equal part of the 8 of a node nor whole nodes",
            "use 8 or 16",
        ),
        ("racks", 6, "6 GPUs are neither an equal part of the 4 of a node nor whole nodes", "use 4 or 8"),
        ("racks", 96, "96 GPUs are not whole NVLink domains of 72", "use 72 or 144"),
    ],
)
def test_other_numbers_of_gpus_are_refused_with_the_nearest(where, tp, problem, hint, request):
    assert misfit(request.getfixturevalue(where), pool(1, tp)) == ("tp", problem, hint)


def test_a_replica_of_several_domains_has_no_places_in_one(cluster):
    found = misfit(cluster, pool(1, 16, "per-domain 1:1"))
    assert found == ("place", "a replica of 16 GPUs takes 2 NVLink domains of 8", "write place: packed")
