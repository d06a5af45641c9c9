"""The conductor's choice: by hand, and against looking at every replica."""

from random import Random

import pytest
from models.play import plan, pool, seat
from models.smallpool import simulation
from models.wires import OwnWires

from sim.api import Silent
from sim.clock import Clock
from sim.serving.cluster import Serving
from sim.serving.plan import KvPlan, RouterPlan
from sim.serving.prefillestimates import PrefillEstimates
from sim.serving.routers import HOLDERS_LOOKED_AT
from sim.tables.recorder import MemorySink, Recorder
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

BLOCK = 4
TIMING = FixedTiming(prefill_base_ps=5, prefill_per_token_ps=10, decode_base_ps=100, decode_per_token_ps=1)


def pools(replicas, units=(), stale_ps=0, decodes=2):
    """A prefill pool of so many replicas, before anything has come in."""
    nodes = [seat(node) for node in range(replicas + decodes)]
    serving_plan = plan(
        pool("prefill", nodes[:replicas], TIMING, 10**6, units=units),
        pool("decode", nodes[replicas:], TIMING, 400, max_sequences=2),
        router=RouterPlan("conductor", "conductor", 1.0),
        reuse=True,
        block_tokens=BLOCK,
        kv=KvPlan(stale_ps=stale_ps),
    )
    return Serving(Clock(), serving_plan, OwnWires(10), Recorder(MemorySink()))


def give(prefill, replica, tokens, number):
    """Let a replica have a prompt that nobody has seen, without computing it."""
    prefill.view.match = prefill.tree.match(())
    prefill.view.blocks = ()
    estimates = prefill.estimates_from_now()
    estimates.ask(Request(number, 0, tokens, 1, ()), prefill.view)
    estimates.assume(replica, 0)


def chosen(prefill, blocks=(), tokens=20, now_ps=0, number=1000):
    return prefill.route(Request(number, now_ps, tokens, 1, blocks), blocks, now_ps)


A = (1, 2, 3, 4, 5)

CASES = {
    "nothing queued, nothing held": ((0, 0, 0), {}, 0, 0),
    "the shortest queue": ((9, 4, 6), {}, 0, 1),
    "a holder worth its queue: 15 + 5 + 5 x 10 < 205": ((1, 0, 0), {0: A[:4]}, 0, 0),
    "a holder not worth its queue: 165 + 45 > 205": ((16, 0, 0), {0: A[:4]}, 0, 1),
    "the same later: 164 + 45 - 4 <= 205": ((16, 0, 0), {0: A[:4]}, 6, 0),
    "the longer prefix: 15 against 85": ((0, 0, 0), {1: A[:3], 2: A}, 0, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_the_least_of_queue_and_computing(case):
    """Queues are of one prompt of so many tokens each, 5 + 10 per token."""
    queues, held, now_ps, expected = CASES[case]
    prefill = pools(len(queues)).prefill
    for replica, blocks in held.items():
        prefill.replicas[replica].memory.keep(blocks)
    for replica, tokens in enumerate(queues):
        if tokens:
            give(prefill, replica, tokens, replica)
    assert chosen(prefill, A, 20, now_ps) == expected


def test_the_batch_under_way_counts_with_what_is_left_of_it():
    serving = pools(2)
    serving.accept(Request(0, 0, 30, 1, ()))
    serving.accept(Request(1, 0, 10, 1, ()))
    serving.clock.advance(2)
    assert [serving.prefill.estimates.queue_ps(replica) for replica in (0, 1)] == [305, 105]
    assert chosen(serving.prefill, now_ps=0) == 1
    serving.prefill.route(Request(2, 100, 9, 1, ()), (), 100)
    assert [serving.prefill.estimates.queue_ps(replica) for replica in (0, 1)] == [205, 5]


def test_a_view_that_is_late_does_not_see_the_last_choice_yet():
    for stale_ps, expected in ((0, 1), (50, 0)):
        prefill = pools(2, stale_ps=stale_ps).prefill
        assert chosen(prefill, number=1) == 0
        give(prefill, 0, 100, 2)
        assert chosen(prefill, now_ps=49, number=3) == expected
        assert chosen(prefill, now_ps=50, number=4) == 1


def test_decode_goes_to_the_shortest_step_with_room():
    decode = pools(1, decodes=3).decode
    estimates = decode.estimates_from_now()
    for replica, tokens in ((0, 10), (1, 30), (2, 40), (0, 10)):
        estimates.assign(replica, Request(0, 0, tokens, 1, ()), 5, 0)
    estimates.ask(Request(9, 0, 50, 2, ()), decode.view)
    assert [estimates.tbt_ps(replica) for replica in range(3)] == [100 + 47, 100 + 81, 100 + 91]
    assert [estimates.has_room(replica) for replica in range(3)] == [False, True, True]
    assert estimates.best() == 1
    estimates.done(0, Request(0, 0, 10, 1, ()), 5, 0)
    assert estimates.best() == 0


def full_scan(estimates, replicas):
    """The least estimate over all replicas, and who has it."""
    return min((estimates.ttft_ps(replica), replica) for replica in range(replicas))


def test_looking_at_few_is_as_good_as_looking_at_all():
    """Only holders of a shorter prefix, or many holders of the longest one, are passed over."""
    seen = {"equal": 0, "passed over": 0}
    for seed in range(40):
        dice = Random(seed)
        replicas = dice.choice((3, 8, 30))
        units = tuple(dice.randrange(4) for _ in range(replicas))
        prefill = pools(replicas, units).prefill
        estimates = prefill.estimates_from_now()
        prompts = [tuple(range(start, start + dice.randint(2, 8))) for start in (0, 0, 0, 20, 20, 40)]
        for number in range(60):
            blocks, now_ps = dice.choice([*prompts, ()]), 20 * number
            request = Request(number, now_ps, BLOCK * len(blocks) or 9, 1, blocks)
            got = prefill.route(request, blocks, now_ps)
            least_ps, best = full_scan(estimates, replicas)
            longest, holders = prefill.view.match.longest()
            if estimates.ttft_ps(got) == least_ps:
                seen["equal"] += 1
            else:
                seen["passed over"] += 1
                assert least_ps < estimates.ttft_ps(got)
                is_shorter = 0 < prefill.view.match.depth(best) < longest
                assert is_shorter or len(holders) > HOLDERS_LOOKED_AT
            estimates.assume(got, now_ps)
            if blocks and dice.random() < 0.5:
                prefill.replicas[got].memory.keep(blocks)
    assert seen["equal"] > 50 * seen["passed over"] > 0, seen


@pytest.mark.parametrize("policy", ["pooled", "local"])
@pytest.mark.parametrize("hbm", ["true", "false"])
def test_with_a_pool_it_is_as_good_as_looking_at_all(tmp_path, monkeypatch, policy, hbm):
    """Only links that are busier at one replica of a unit than at another could make a difference."""
    gaps, best = [], PrefillEstimates.best

    def compared(self):
        got = best(self)
        least_ps, _ = full_scan(self, 8)
        gaps.append(self.ttft_ps(got) / least_ps - 1)
        return got

    monkeypatch.setattr(PrefillEstimates, "best", compared)
    ready = simulation(tmp_path, f"kv_pool.policy={policy}", f"kv_pool.hbm={hbm}", "workload.rate=60 req/s")
    ready.play(Silent())
    assert len(gaps) == ready.serving.arrived > 200
    assert 0 <= min(gaps) <= max(gaps) <= 0.01
    if hbm == "false":
        assert ready.serving.moves.read_bytes["dram"] > 0
