"""Each policy on random loads and caches, step by step, against one that looks at every replica."""

from random import Random

import pytest
from models.routing import NaivePool

from sim.kvpool.cache import Cache
from sim.kvpool.tree import PrefixTree
from sim.serving.loads import Loads
from sim.serving.places import Places
from sim.serving.routers import View, router
from sim.workload.request import Request

BLOCK = 4
POLICIES = (
    "round_robin",
    "least_loaded",
    "power_of_two",
    "session_sticky",
    "topology_aware",
    "prefix_aware",
    "prefix_score",
)


class Listed:
    """A cache as the naive twin sees it."""

    def __init__(self, cache):
        self.cache = cache

    def cached(self, blocks):
        return self.cache.hits(blocks)


class Both:
    """A pool whose router is asked, and its twin."""

    def __init__(self, dice, replicas):
        weight = dice.choice((0.0, 0.3, 1.0, 4.0))
        self.loads, self.tree = Loads(replicas), PrefixTree()
        self.caches = [Cache(12, self.tree, replica) for replica in range(replicas)]
        self.view = View(replicas, self.loads, BLOCK, weight)
        self.naive = NaivePool(replicas, [Listed(cache) for cache in self.caches], BLOCK, weight)
        spots = [(domain, domain // 3) for domain in (dice.randrange(9) for _ in range(replicas))]
        self.view.places, self.naive.spots = Places(spots), spots
        seed = dice.random()
        self.view.dice, self.naive.dice = Random(seed), Random(seed)

    def at(self, near, blocks):
        self.view.near = self.naive.near = near
        self.view.match = self.tree.match(blocks)

    def give(self, replica, tokens, blocks):
        self.loads.choose(replica, tokens)
        self.naive.give(replica, tokens)
        self.caches[replica].keep(blocks)

    def take(self, replica, tokens):
        self.loads.done(replica, tokens)
        self.naive.take(replica, tokens)


def prompts(dice):
    """Prompts that start alike: a system prompt of two blocks, then one of a few ways on, then their own."""
    ways = [(0, 1, 10 * way, 10 * way + 1) for way in range(1, 5)]
    while True:
        way = dice.choice(ways)[: dice.randint(1, 4)]
        own = 10_000 * len(way) + 1000 * way[-1] + 10 * dice.randrange(30)
        yield (*way, *range(own, own + dice.randint(0, 3)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("policy", POLICIES)
def test_a_look_at_all_chooses_the_same(policy, seed):
    dice = Random(seed)
    replicas = dice.choice((1, 2, 7, 30))
    both, chooser, coming = Both(dice, replicas), router[policy](), prompts(dice)
    given = []
    for number in range(250):
        blocks = next(coming)
        tokens = len(blocks) * BLOCK - dice.randint(0, BLOCK - 1)
        request = Request(number, number, tokens, 1, blocks, dice.choice((-1, *range(9))))
        both.at(dice.choice((None, (dice.randrange(9), dice.randrange(3)))), blocks)
        chosen = chooser(request, both.view)
        assert chosen == both.naive.choose(policy, request), number
        work = dice.choice((0, 1, tokens, 3 * tokens))
        both.give(chosen, work, blocks)
        given.append((chosen, work))
        while given and dice.random() < 0.45:
            both.take(*given.pop(dice.randrange(len(given))))


def test_two_choices_are_seldom_the_same_and_never_the_worst_of_three():
    both = Both(Random(1), 3)
    both.give(2, 1000, ())
    chooser = router["power_of_two"]()
    asked = {chooser(Request(i, i, 1, 1), both.view) for i in range(100)}
    assert asked == {0, 1}
