"""KV that leaves while its prompt is computed, worked out by hand.

A prompt of five blocks is 20 tokens: 200 ps of computing in four layers of 50, and 400 bytes to hand over.
Its stream begins at 50 + 7 of latency, and has 300 bytes to send until 200: 2.1 a picosecond.
"""

import pytest
from models.hosts import DECODER, Hosts, Stage, pooled_plan, prompt, staged

from sim.clock import FLOW_START
from sim.kvpool.pool import DRAM, NVME

A = (1, 2, 3, 4, 5)
B = (11, 12, 13, 14, 15)
WIDE = {"nic_tx": 4.0, "nic_rx": 4.0}


def streamed(rates=None, streams=True, requests=((0, A),), nodes=1, **kv):
    kv = {"streams": streams, "layers": 4, "write": "back"} | kv
    offered = [prompt(i, at_ps, blocks, 2) for i, (at_ps, blocks) in enumerate(requests)]
    return staged(pooled_plan(nodes, (50, 50), **kv), offered, Hosts(rates or WIDE))


def test_after_prefill_the_whole_transfer_is_waited_for():
    _, found = streamed(streams=False)
    assert found[0]["phase_transfer_ps"] == 7 + 100
    assert found[0]["transfer_hidden_ps"] == 0


def test_what_leaves_meanwhile_leaves_the_last_layer():
    """100 bytes at 4."""
    stage, found = streamed()
    assert found[0]["phase_prefill_ps"] == 200
    assert found[0]["phase_transfer_ps"] == 25
    assert found[0]["transfer_hidden_ps"] == 200 - 57
    assert found[0]["transfer_waited_ps"] == 0
    assert stage.hosts.carried() == {"node 0 nic_tx": 400, f"node {DECODER} nic_rx": 400}


def test_over_a_narrow_nic_what_it_could_not_send_is_left_too():
    """143 of 300 bytes are gone at 1 a picosecond when the prompt is done."""
    _, found = streamed({"nic_tx": 1.0, "nic_rx": 4.0})
    assert found[0]["phase_transfer_ps"] == 400 - 143
    assert found[0]["transfer_hidden_ps"] == 143


def test_prompts_of_one_layer_are_sent_when_they_are_computed():
    _, found = streamed(layers=1)
    assert (found[0]["phase_transfer_ps"], found[0]["transfer_hidden_ps"]) == (107, 0)


def test_a_prefill_shorter_than_the_latency_hides_nothing():
    """The first layer is done at 10, its bytes would leave at 47: the prompt is computed at 40."""
    stage = Stage(
        pooled_plan(1, streams=True, layers=4, write="back"),
        [prompt(0, 0, (1,), 2)],
        Hosts(WIDE, {"fabric": 37}),
    )
    row = stage.play()[0]
    assert (row["phase_transfer_ps"], row["transfer_hidden_ps"]) == (7 + 20, 0)


def test_two_streams_into_one_decode_node_share_its_nic():
    """2 each instead of 2.1: 114 left at 200, which take 57 at 2; alone it would be 25."""
    _, found = streamed(nodes=2, requests=((0, A), (0, B)))
    for number in (0, 1):
        assert found[number]["phase_transfer_ps"] == 57
        assert found[number]["transfer_waited_ps"] == 57 - 25


def reserved_late(at_ps):
    """A prompt that waits for decode memory until 325: one before it is decoded from 225 on, in 100 steps."""
    nodes = pooled_plan(2, streams=True, layers=4, write="back", decode_kv_tokens=124)
    first, second = prompt(0, 0, A, 101), prompt(1, at_ps, B, 2)
    _, found = staged(nodes, [first, second], Hosts(WIDE))
    assert found[0]["finished_ps"] == 225 + 100
    return found[1]


def test_memory_that_is_granted_after_prefill_finds_everything_made():
    """Computed at 300, granted at 325; all 400 bytes then go at 4 after 7 of latency."""
    row = reserved_late(100)
    assert (row["phase_reserve_ps"], row["phase_transfer_ps"], row["transfer_hidden_ps"]) == (25, 107, 0)


def test_memory_that_is_granted_during_prefill_leaves_less_time():
    """From 332 to 400 it could send 300 bytes at 4.4, but the NIC takes 4: 128 are left."""
    row = reserved_late(200)
    assert (row["phase_reserve_ps"], row["phase_transfer_ps"], row["transfer_hidden_ps"]) == (0, 32, 68)


def test_a_prompt_whose_only_token_is_that_of_prefill_sends_nothing():
    stage, found = staged(pooled_plan(1, streams=True, layers=4, write="back"), [prompt(0, 0, A)])
    assert found[0]["finished_ps"] == 200
    assert stage.hosts.carried() == {}


def test_a_save_is_streamed_too_and_its_blocks_are_there_when_their_bytes_are():
    """From 50 + 3 on 300 bytes leave over PCIe until 200, then 100 at 4: 225."""
    stage = Stage(pooled_plan(1, (50,), streams=True, layers=4), [prompt(0, 0, A)])
    assert stage.found_at(DRAM, 0, A) == 225
    assert stage.moves.written_bytes == {"dram": 400}


def layers_done(at_ps, done):
    return sum(one <= at_ps for one in done)


COURSES = {
    # what is kept before, and when each of the four layers of A is done
    "nothing cached": ((), {}, (50, 100, 150, 200)),
    "a fetch that hides nothing": (((DRAM, 0, A[:4]),), {}, (93, 103, 113, 123)),
    "a fetch that computing waits for": (
        ((DRAM, 0, A[:4]),),
        {"overlaps": True},
        (30.75, 51.5, 72.25, 93),
    ),
    "computing that hides a fetch": (((DRAM, 0, A[:1]),), {"overlaps": True}, (45.75, 85.75, 125.75, 165)),
    "a slow fetch": (((NVME, 0, A[:4]),), {"overlaps": True}, (171.25, 332.5, 493.75, 655)),
}


@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("rates", [WIDE, {"nic_tx": 1.0}, {"nic_tx": 64.0, "nic_rx": 64.0, "pcie_up": 64.0}])
def test_no_byte_leaves_before_it_is_made(course, ranks, rates):
    """At each picosecond no more has left over NIC or PCIe than the layers that are done then have."""
    kept, kv, done = COURSES[course]
    nodes = pooled_plan(1, (50,), (50,), ranks=ranks, streams=True, layers=4, **kv)
    stage = Stage(nodes, [prompt(0, 0, A, 2)], Hosts(rates), kept)
    sent = []

    def read(_):
        stage.serving.network.settle()
        carried = stage.hosts.carried()
        sent.append((stage.clock.now, carried.get("node 0 nic_tx", 0), carried.get("node 0 pcie_up", 0)))

    for at_ps in range(900):
        stage.clock.at(at_ps, FLOW_START + (1 << 30)).callbacks.append(read)
    row = stage.play()[0]
    assert row["phase_kv_fetch_ps"] + row["phase_prefill_ps"] == done[-1]
    written = 400 - 80 * sum(len(blocks) for tier, _, blocks in kept if tier == DRAM)
    for at_ps, handed_over, saved in sent:
        made = layers_done(at_ps, done) / 4
        assert handed_over <= 400 * made + 1e-9
        assert saved <= written * made + 1e-9
    assert sent[-1][2] == pytest.approx(written)
    assert row["transfer_hidden_ps"] > 0
    stage.assert_nothing_is_left()


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("rates", [WIDE, {"nic_tx": 1.0, "nic_rx": 4.0}])
def test_parts_of_a_stream_that_share_a_nic_wait_for_nobody(ranks, rates):
    """Dealt out to ranks or not, what is alone is told to have waited for nothing."""
    stage, found = streamed(rates, ranks=ranks)
    assert found[0]["phase_transfer_ps"] in (25, 257)
    assert found[0]["transfer_waited_ps"] == 0
    assert sum(stage.serving.network.waited_ps.values()) == pytest.approx(0)
