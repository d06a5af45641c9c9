"""Caches filled with what came before the window."""

from models.play import plan, pool, seat
from models.wires import OwnWires

from sim.clock import Clock
from sim.serving.cluster import Serving
from sim.serving.plan import RouterPlan
from sim.serving.warm import warm
from sim.tables.recorder import MemorySink, Recorder
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

A, B = (1, 2, 3), (1, 2, 4, 5)


def warmed(history, replicas=2, kv_tokens=400, policy="least_loaded"):
    """A serving model whose caches have seen a history; nothing has happened yet."""
    timing = FixedTiming(prefill_per_token_ps=10, decode_base_ps=1)
    serving = Serving(
        Clock(),
        plan(
            pool("prefill", [seat(node) for node in range(replicas)], timing, kv_tokens),
            pool("decode", [seat(9)], timing, 10**6),
            router=RouterPlan(policy, "least_loaded", 1.0),
            reuse=True,
        ),
        OwnWires(0),
        Recorder(MemorySink()),
    )
    fed = warm(serving.prefill, [Request(number, *parts) for number, parts in enumerate(history)])
    assert fed == len(history)
    return serving.prefill


def contents(prefill):
    return [list(replica.memory.contents()) for replica in prefill.replicas]


def test_prompts_go_where_the_router_sends_them():
    prefill = warmed([(0, 12, 1, A), (1, 16, 1, B)])
    assert contents(prefill) == [[3, 2, 1], [5, 4, 2, 1]]


def test_the_prefix_aware_router_sees_what_is_there_already():
    prefill = warmed([(0, 12, 1, A), (500, 16, 1, B)], policy="prefix_aware")
    assert contents(prefill) == [[3, 5, 4, 2, 1], []]


def test_a_replica_works_its_prompts_off_one_after_the_other():
    """The first replica is busy until 120 and 60; at 100 the load decides, not the turn."""
    prefill = warmed([(0, 12, 1, A), (0, 4, 1, (7,)), (100, 4, 1, (8,)), (101, 4, 1, (9,))])
    assert contents(prefill) == [[3, 2, 1], [7, 8, 9]]


def test_what_waits_in_a_replica_is_done_after_what_came_before():
    """At 155 the first one still has its second prompt, until 160; the other is done at 150."""
    history = [(0, 12, 1, A), (0, 12, 1, (4, 5, 6)), (0, 4, 1, (7,)), (0, 3, 1, (8,)), (155, 4, 1, (9,))]
    assert contents(warmed(history)) == [[3, 2, 1, 7], [6, 5, 4, 8, 9]]


def test_caches_hold_what_fits_and_the_latest():
    prefill = warmed([(0, 12, 1, A), (10**6, 8, 1, (7, 8))], replicas=1, kv_tokens=16)
    assert contents(prefill) == [[2, 1, 8, 7]]


def test_nothing_else_is_left_behind():
    prefill = warmed([(0, 12, 1, A), (1, 16, 1, B), (2, 4, 1, ())])
    assert prefill.loads.tokens == [0, 0]
    assert all(replica.memory.claimed == 0 for replica in prefill.replicas)
    assert all(replica.requests == replica.busy_ps == 0 for replica in prefill.replicas)
    assert all(not replica.queue for replica in prefill.replicas)
