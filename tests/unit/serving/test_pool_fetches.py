"""Fetches in time, worked out by hand: bytes over rates, latencies, and what overlaps with what.

A block is 80 bytes and 4 tokens, a token takes 10 ps to compute. PCIe carries 4 bytes a picosecond, a NIC 1,
NVMe 1/2; latencies are 3 (PCIe), 7 (fabric) and 5 (NVMe).
"""

import pytest
from models.hosts import Hosts, Stage, pooled_plan, prompt, staged

from sim.kvpool.pool import DRAM, NVME

A = (1, 2, 3, 4, 5)
CACHED = A[:4]  # 320 bytes, 16 tokens; computing the rest of A takes 40 ps, all of it 200
REST_PS, ANEW_PS = 40, 200


def fetched(kept, overlaps=False, layers=4, hosts=None, **kv):
    """A prompt of A on node 0 with blocks kept somewhere: the stage, and its row."""
    nodes = pooled_plan(1, (50, 50), (50, 50), overlaps=overlaps, layers=layers, **kv)
    stage, found = staged(nodes, [prompt(0, 0, A)], hosts, kept)
    return stage, found[0]


WAYS = {
    "own DRAM: 320 / 4": ((DRAM, 0), {}, 3 + 80),
    "another node's DRAM: 320 / 1": ((DRAM, 1), {}, 7 + 320),
    "own NVMe straight: 320 / 0.5": ((NVME, 0), {}, 5 + 640),
    "own NVMe through host memory, wide enough": ((NVME, 0), {"gpudirect_storage": False}, 5 + 640),
    "another node's NVMe, through its host memory": ((NVME, 1), {}, 5 + 7 + 640),
    "what a fetch costs to begin": ((DRAM, 0), {"fetch_start_ps": 11}, 11 + 3 + 80),
    "staged at 2 bytes a picosecond": ((DRAM, 0), {"fetch_bytes_per_s": 2e12}, 3 + 160),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_fetch_takes_latency_and_bytes_over_the_narrowest_link(way):
    place, kv, fetch_ps = WAYS[way]
    stage, row = fetched([(*place, CACHED)], **kv)
    assert row["phase_kv_fetch_ps"] == fetch_ps
    assert row["phase_prefill_ps"] == REST_PS
    assert row["finished_ps"] == row["first_token_ps"] == fetch_ps + REST_PS
    assert row["fetch_hidden_ps"] == row["fetch_waited_ps"] == 0
    assert row["fetch_spared_ps"] == ANEW_PS - REST_PS
    tier, node = place
    assert row["cached_tokens"] == row["dram_tokens" if tier == DRAM else "nvme_tokens"] == 16
    assert row["dram_tokens"] + row["nvme_tokens"] == 16
    assert row["remote_tokens"] == (16 if node else 0)
    assert stage.moves.read_bytes == {("dram", "nvme")[tier]: 320}


def test_host_memory_that_is_crossed_twice_can_be_the_narrowest():
    """At 0.75 bytes a picosecond host memory leaves half of that to what goes in and out of it: 854 ps."""
    hosts = Hosts({"dram": 0.75})
    _, straight = fetched([(NVME, 0, CACHED)], hosts=hosts)
    _, bounced = fetched([(NVME, 0, CACHED)], hosts=Hosts({"dram": 0.75}), gpudirect_storage=False)
    assert straight["phase_kv_fetch_ps"] == 5 + 640
    assert bounced["phase_kv_fetch_ps"] == 5 + -(-320 * 8 // 3)
    described = hosts.described
    assert described[straight["fetch_link"]].name == "node 0 nvme"


BYTES = {
    "own DRAM": ((DRAM, 0), {}, {"dram": 320, "pcie_down": 320}),
    "another node's DRAM": ((DRAM, 1), {}, {"dram": 320, "nic_tx": 320, "nic_rx": 320}),
    "own NVMe": ((NVME, 0), {}, {"nvme": 320, "pcie_down": 320}),
    "own NVMe, bounced": (
        (NVME, 0),
        {"gpudirect_storage": False},
        {"nvme": 320, "dram": 640, "pcie_down": 320},
    ),
    "another node's NVMe": ((NVME, 1), {}, {"nvme": 320, "dram": 640, "nic_tx": 320, "nic_rx": 320}),
}


@pytest.mark.parametrize("way", BYTES)
def test_bytes_are_booked_at_each_link_that_they_cross(way):
    place, kv, expected = BYTES[way]
    stage, _ = fetched([(*place, CACHED)], write="back", **kv)
    assert stage.moves.read_over == expected
    on_links = {}
    for name, carried in stage.hosts.carried().items():
        kind = name.split()[-1]
        on_links[kind] = on_links.get(kind, 0) + carried
    assert on_links == expected


def by_layers(fetch_ps, compute_ps, layers):
    """When a prompt is computed each of whose layers waits for its KV and for the layer before it."""
    done = 0
    for layer in range(1, layers + 1):
        done = max(done, fetch_ps * layer / layers) + compute_ps / layers
    return done


@pytest.mark.parametrize(("place", "fetch_ps"), [((DRAM, 0), 83), ((DRAM, 1), 327), ((NVME, 0), 645)])
def test_layer_by_layer_only_what_computing_does_not_hide_is_waited_for(place, fetch_ps):
    """The last of four layers takes 10 ps after its KV has come."""
    _, row = fetched([(*place, CACHED)], overlaps=True)
    done_ps = fetch_ps + 10
    assert abs(by_layers(fetch_ps, REST_PS, 4) - done_ps) < 1
    assert row["finished_ps"] == done_ps
    assert row["phase_kv_fetch_ps"] == done_ps - REST_PS
    assert row["phase_prefill_ps"] == REST_PS
    assert row["fetch_hidden_ps"] == fetch_ps - (done_ps - REST_PS) == 30


def test_layer_by_layer_a_short_fetch_costs_the_first_layer_alone():
    """One block: 3 + 20 ps to come; 160 to compute the rest. Layers begin at 5 and wait no more."""
    _, row = fetched([(DRAM, 0, A[:1])], overlaps=True)
    assert abs(by_layers(23, 160, 4) - 165) < 1
    assert (row["finished_ps"], row["phase_kv_fetch_ps"], row["fetch_hidden_ps"]) == (165, 5, 18)


def test_what_is_in_hbm_is_not_fetched():
    """The second prompt finds all of A in HBM; one token must be computed to give the next."""
    nodes = pooled_plan(1, (50,), hbm=True)
    stage, found = staged(nodes, [prompt(0, 0, A), prompt(1, 1000, A), prompt(2, 2000, (*A, 6))])
    assert [found[i]["phase_prefill_ps"] for i in range(3)] == [200, 10, 40]
    assert [found[i]["hbm_tokens"] for i in range(3)] == [0, 19, 20]
    assert [found[i]["cached_tokens"] for i in range(3)] == [0, 19, 20]
    assert stage.moves.read_bytes == {}


def test_only_what_hbm_lacks_is_fetched():
    """HBM has two blocks of A after a prompt of these alone; two more are fetched: 160 / 4."""
    nodes = pooled_plan(1, (50,), hbm=True)
    requests = [prompt(0, 0, A[:2]), prompt(1, 1000, A)]
    stage, found = staged(nodes, requests, kept=[(DRAM, 0, CACHED)])
    assert found[0]["dram_tokens"] == 7  # of A[:2], kept before it came
    assert (found[1]["hbm_tokens"], found[1]["dram_tokens"], found[1]["cached_tokens"]) == (8, 8, 16)
    assert found[1]["phase_kv_fetch_ps"] == 3 + 40
    assert stage.moves.read_bytes == {"dram": 160 + 160}


def test_the_own_node_is_asked_first_and_host_memory_before_nvme():
    for kept, expected in (
        ([(DRAM, 0), (DRAM, 1)], (16, 0, 0)),
        ([(NVME, 0), (DRAM, 1)], (0, 16, 0)),
        ([(NVME, 0), (DRAM, 0)], (16, 0, 0)),
        ([(NVME, 1), (DRAM, 1)], (16, 0, 16)),
    ):
        _, row = fetched([(*place, CACHED) for place in kept])
        assert (row["dram_tokens"], row["nvme_tokens"], row["remote_tokens"]) == expected


def test_a_longer_prefix_elsewhere_is_better_than_a_shorter_one_here():
    _, row = fetched([(DRAM, 0, A[:3]), (DRAM, 1, CACHED)])
    assert (row["dram_tokens"], row["remote_tokens"], row["phase_kv_fetch_ps"]) == (16, 16, 327)


def test_nodes_that_share_nothing_see_their_own_blocks_alone():
    _, row = fetched([(DRAM, 0, A[:1]), (DRAM, 1, CACHED)], is_shared=False)
    assert (row["dram_tokens"], row["remote_tokens"]) == (4, 0)


CHOICES = {
    # what is fetched, where from, over which PCIe or NIC, and whether that is worth while
    "83 + 40 < 200": ("estimate", (DRAM, 0), {}, True),
    "327 + 40 > 200": ("estimate", (DRAM, 1), {}, False),
    "87 + 40 < 200 over a faster NIC": ("estimate", (DRAM, 1), {"nic_tx": 4.0, "nic_rx": 4.0}, True),
    "160 + 40 = 200 is not sooner": (
        "estimate",
        (DRAM, 1),
        {"nic_tx": 320 / 153, "nic_rx": 320 / 153},
        False,
    ),
    "always": ("always", (DRAM, 1), {}, True),
    "never": ("never", (DRAM, 0), {}, False),
}


@pytest.mark.parametrize("case", CHOICES)
def test_fetch_or_compute(case):
    fetch, place, rates, is_fetched = CHOICES[case]
    stage, row = fetched([(*place, CACHED)], hosts=Hosts(rates), fetch=fetch)
    assert (row["dram_tokens"] > 0) == is_fetched
    assert row["fetch_link"] == -1 or is_fetched
    assert row["finished_ps"] <= ANEW_PS or fetch == "always"
    if not is_fetched:
        assert row["finished_ps"] == row["phase_prefill_ps"] == ANEW_PS
        assert row["fetch_spared_ps"] == 0
    assert stage.moves.counts["recomputed"] == (fetch == "estimate" and not is_fetched)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ranks", [1, 2, 8])
@pytest.mark.parametrize("dram", [64.0, 0.25])
def test_the_estimate_of_a_fetch_that_meets_nobody_is_what_it_takes(way, ranks, dram):
    """However many ranks its bytes are dealt out to, and whether they cross a link once or twice."""
    (tier, node), kv, _ = WAYS[way]
    nodes = pooled_plan(1, (50, 50), (50, 50), ranks=ranks, **kv)
    stage = Stage(nodes, [prompt(0, 0, A)], Hosts({"dram": dram}), [(tier, node, CACHED)])
    fetching = stage.serving.prefill.flows.fetching
    quoted_ps = fetching.quote_ps(fetching.find(A, nodes.prefill.seats[0], 0), nodes.prefill.seats[0], 0)
    assert abs(stage.play()[0]["phase_kv_fetch_ps"] - quoted_ps) <= 1


def test_overlap_makes_fetches_worth_while_that_are_not_without():
    """From node 1 at 2 bytes a picosecond: 167 + 40 > 200, but 167 + 10 < 200."""
    rates = {"nic_tx": 2.0, "nic_rx": 2.0}
    for overlaps in (False, True):
        _, row = fetched([(DRAM, 1, CACHED)], overlaps, hosts=Hosts(rates), fetch="estimate")
        assert (row["dram_tokens"] > 0) == overlaps
        assert row["finished_ps"] == (177 if overlaps else 200)


def test_two_fetches_over_one_nic_share_it():
    """Both want 320 bytes of node 2, from 7 on: together 640 ps at half the rate. Alone it is 320."""
    nodes = pooled_plan(2, (50, 50, 50), write="back")
    _, found = staged(nodes, [prompt(0, 0, A), prompt(1, 0, A)], kept=[(DRAM, 2, CACHED)])
    for number in (0, 1):
        assert found[number]["phase_kv_fetch_ps"] == 7 + 640
        assert found[number]["fetch_waited_ps"] == 320


def test_a_fetch_that_comes_later_slows_the_first_down_and_goes_on_alone():
    """From 7 to 107 alone: 100 bytes. Then both at half until the first has its other 220, at 547.

    The second has 220 by then, and gets its last 100 alone, at 647.
    """
    nodes = pooled_plan(2, (50, 50, 50), write="back")
    stage, found = staged(nodes, [prompt(0, 0, A), prompt(1, 100, A)], kept=[(DRAM, 2, CACHED)])
    assert found[0]["phase_kv_fetch_ps"] == 547
    assert found[1]["phase_kv_fetch_ps"] == 647 - 100
    assert [found[i]["fetch_waited_ps"] for i in (0, 1)] == [220, 220]
    assert stage.hosts.described[found[0]["fetch_link"]].name == "node 2 nic_tx"


def test_the_estimate_sees_the_flow_that_is_there():
    """Over NICs of 2: alone 167 + 40 > 200 would not be worth it, so 4: 87 + 40. Half of it: 167 + 40."""
    rates = {"nic_tx": 4.0, "nic_rx": 4.0}
    nodes = pooled_plan(2, (50, 50, 50), write="back", fetch="estimate")
    requests = [prompt(0, 0, A), prompt(1, 20, A)]
    stage, found = staged(nodes, requests, Hosts(rates), kept=[(DRAM, 2, CACHED)])
    assert [found[i]["dram_tokens"] for i in (0, 1)] == [16, 0]
    assert stage.moves.counts["recomputed"] == 1


def test_prompts_of_a_batch_wait_for_all_that_is_fetched():
    """The first wants 320 bytes, the second one block of another prompt; both cross PCIe from 3 on.

    At 2 bytes a picosecond each: the second has its 80 at 43, the first its last 240 at 4: 103. All compute.
    """
    nodes = pooled_plan(1, (50,), write="back", limits={"max_batch_tokens": 1000})
    kept = [(DRAM, 0, CACHED), (DRAM, 0, (7,))]
    requests = [prompt(0, 0, (99,)), prompt(1, 1, A), prompt(2, 2, (7, 8)), prompt(3, 3, (9, 10))]
    _, found = staged(nodes, requests, kept=kept)
    assert found[0]["finished_ps"] == 40
    for number, cached in ((1, 16), (2, 4), (3, 0)):
        assert found[number]["cached_tokens"] == cached
        assert found[number]["phase_kv_fetch_ps"] == 3 + 100
        assert found[number]["phase_prefill_ps"] == 10 * (4 + 4 + 8)
        assert found[number]["finished_ps"] == 40 + 103 + 160


def waiting_for_memory(kept, **kv):
    """A prompt of A that waits in HBM of six blocks for the handoff of another one, which ends at 607."""
    nodes = pooled_plan(1, (50, 50), hbm_blocks=6, fetch="estimate", write="back", **kv)
    requests = [prompt(0, 0, (11, 12, 13, 14, 15), 2), prompt(1, 1, A, 2)]
    stage, found = staged(nodes, requests, kept=kept)
    assert found[0]["phase_transfer_ps"] == 7 + 400
    assert found[1]["phase_queue_ps"] == 200 + 7 + 400 - 1
    assert found[1]["phase_prefill_ps"] == ANEW_PS
    assert found[1]["dram_tokens"] == found[1]["hbm_tokens"] == 0
    return stage, found[1]


def test_a_prompt_that_waits_is_counted_once():
    """It is looked at when the replica becomes idle, and again when there is room; 327 + 40 > 200."""
    stage, _ = waiting_for_memory([(DRAM, 1, CACHED)])
    assert stage.moves.counts["recomputed"] == 1


def test_a_prompt_whose_prefix_expires_while_it_waits_has_spared_nothing():
    """At 200 a fetch of what was touched at 0 is worth while, at 607 there is nothing to fetch."""
    stage, row = waiting_for_memory([(DRAM, 0, CACHED)], eviction="ttl", ttl_ps=300)
    assert row["fetch_spared_ps"] == 0
    assert stage.moves.counts["recomputed"] == 0
