"""What every registered router must do, yours included: tests run over the registry."""

from random import Random

import pytest
from models.play import plan, play, pool, seat
from models.wires import OwnWires

from sim.kvpool.cache import Cache
from sim.kvpool.tree import PrefixTree
from sim.serving.loads import Loads
from sim.serving.plan import RouterPlan
from sim.serving.routers import View, router
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

BLOCK = 4


def choices(name, seed, replicas):
    """What a fresh chooser answers over a random history of loads and caches."""
    dice = Random(seed)
    chooser, loads, tree = router[name](), Loads(replicas), PrefixTree()
    caches = [Cache(30, tree, replica) for replica in range(replicas)]
    view = View(replicas, loads, BLOCK, dice.choice((0.0, 0.5, 1.0, 3.0)))
    prompts = [tuple(range(start, start + dice.randint(1, 8))) for start in (0, 0, 0, 10, 20, 20)]
    out, answers = [], []
    for number in range(200):
        blocks = dice.choice([*prompts, ()])
        tokens = max(1, len(blocks) * BLOCK - dice.randint(0, BLOCK - 1))
        view.match = tree.match(blocks)
        before = list(loads.tokens)
        replica = chooser(Request(number, number, tokens, 1, blocks), view)
        assert loads.tokens == before
        answers.append(replica)
        loads.choose(replica, tokens)
        out.append((replica, tokens))
        caches[replica].keep(blocks)
        while out and dice.random() < 0.5:
            loads.done(*out.pop(0))
    return answers


@pytest.mark.parametrize("name", router)
def test_answers_are_numbers_of_replicas(name):
    for replicas in (1, 2, 5, 20):
        answers = choices(name, replicas, replicas)
        assert all(type(answer) is int and 0 <= answer < replicas for answer in answers)


@pytest.mark.parametrize("name", router)
def test_the_same_history_gives_the_same_answers(name):
    for seed in range(5):
        assert choices(name, seed, 7) == choices(name, seed, 7)


@pytest.mark.parametrize("name", router)
def test_says_what_it_does(name):
    assert router.summary(name).endswith(".")


def cluster(name, replicas, gap_ps, requests, reuse=False):
    """Requests per prefill and decode replica under a uniform load with Poisson arrivals."""
    timing = FixedTiming(
        prefill_base_ps=100, prefill_per_token_ps=10, decode_base_ps=50, decode_per_sequence_ps=2
    )
    seats = [seat(node) for node in range(2 * replicas)]
    serving_plan = plan(
        pool("prefill", seats[:replicas], timing, 10**6, max_batch_tokens=200),
        pool("decode", seats[replicas:], timing, 10**6, max_sequences=16),
        router=RouterPlan(name, name, 1.0),
        reuse=reuse,
        block_tokens=BLOCK,
    )
    dice = Random(gap_ps)
    at, offered = 0.0, []
    for number in range(requests):
        at += dice.expovariate(1 / gap_ps)
        blocks = tuple(range(10 * number, 10 * number + 5))
        offered.append(Request(number, round(at), 20, 10, blocks))
    played = play(serving_plan, offered, OwnWires(10))
    assert played.serving.done == requests
    both = (played.serving.prefill.replicas, played.serving.decode.replicas)
    return [[replica.requests for replica in of_pool] for of_pool in both]


@pytest.mark.parametrize("gap_ps", [100_000, 400, 40], ids=["idle", "some load", "busy"])
@pytest.mark.parametrize("name", router)
def test_nobody_is_starved_or_overrun_by_a_uniform_load(name, gap_ps):
    """No replica gets more than 1.2 times the mean, also where almost nothing is to be done."""
    for counts in cluster(name, 10, gap_ps, 1000, reuse=True):
        mean = sum(counts) / len(counts)
        assert mean == 100
        assert max(counts) <= 1.2 * mean
        assert min(counts) >= 0.8 * mean
