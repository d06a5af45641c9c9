"""Whom each policy chooses, case by case."""

import pytest
from models.routing import NaivePool

from sim.kvpool.cache import Cache
from sim.kvpool.tree import PrefixTree
from sim.serving.loads import Loads
from sim.serving.routers import HOLDERS_LOOKED_AT, View, router
from sim.workload.request import Request

BLOCK = 10


class Pool:
    """A pool of replicas with these outstanding tokens, some of which have cached prompts."""

    def __init__(self, tokens, cached=(), load_weight=1.0, block_tokens=BLOCK):
        self.loads = Loads(len(tokens))
        for replica, outstanding in enumerate(tokens):
            if outstanding:
                self.loads.choose(replica, outstanding)
        self.tree = PrefixTree()
        self.caches = [Cache(1000, self.tree, replica) for replica in range(len(tokens))]
        for replica, blocks in cached:
            self.caches[replica].keep(blocks)
        self.view = View(len(tokens), self.loads, block_tokens, load_weight)

    def choose(self, chooser, blocks=(), input_tokens=None):
        self.view.match = self.tree.match(blocks)
        tokens = len(blocks) * BLOCK if input_tokens is None else input_tokens
        return chooser(Request(0, 0, tokens or 1, 1, blocks), self.view)


def test_round_robin_takes_each_in_turn():
    pool, chooser = Pool([9, 0, 0]), router["round_robin"]()
    assert [pool.choose(chooser) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_round_robin_of_two_pools_do_not_meet():
    one, two = router["round_robin"](), router["round_robin"]()
    pool = Pool([0, 0, 0])
    assert [pool.choose(one), pool.choose(one), pool.choose(two)] == [0, 1, 0]


def test_least_loaded_takes_the_fewest_tokens_not_requests():
    chooser = router["least_loaded"]()
    pool = Pool([100, 30, 50])
    pool.loads.choose(1, 10)
    pool.loads.choose(1, 5)
    assert pool.choose(chooser) == 1


def test_least_loaded_breaks_ties_by_the_longest_time_since():
    chooser = router["least_loaded"]()
    pool = Pool([0, 0, 0, 0])
    order = []
    for tokens in (7, 7, 7, 7, 7, 7):
        replica = pool.choose(chooser)
        pool.loads.choose(replica, tokens)
        order.append(replica)
    pool.loads.done(3, 7)
    pool.loads.done(2, 7)
    order += [pool.choose(chooser)]
    assert order == [0, 1, 2, 3, 0, 1, 2]


A, B, C = (1, 2, 3, 4), (1, 2, 5, 6), (7, 8)

CASES = {
    "nothing cached: the least loaded": ([5, 3, 4], [], 1.0, A, 1),
    "another prompt cached: the least loaded": ([5, 3, 4], [(0, C)], 1.0, A, 1),
    "a holder with as little load": ([0, 0, 0], [(2, A)], 1.0, A, 2),
    "a holder worth its queue: 39 against 40": ([39, 0, 0], [(0, A)], 1.0, A, 0),
    "a draw goes to the least loaded: 40 against 40": ([40, 0, 9], [(0, A)], 1.0, A, 1),
    "a holder not worth its queue": ([41, 0, 9], [(0, A)], 1.0, A, 1),
    "half the weight, twice the queue": ([79, 0, 0], [(0, A)], 0.5, A, 0),
    "half the weight, more than twice": ([80, 0, 0], [(0, A)], 0.5, A, 1),
    "no weight: cached tokens alone": ([10**6, 0, 0], [(0, A)], 0.0, A, 0),
    "the longer prefix": ([9, 9, 0], [(0, A), (1, (1, 2))], 1.0, A, 0),
    "less loaded of two holders": ([20, 10, 0], [(0, A), (1, A)], 1.0, A, 1),
    "the least loaded holds it all": ([5, 4, 9], [(0, A), (1, A)], 1.0, A, 1),
    "the least loaded holds a part: 0 - 20 against 19 - 40": ([19, 0], [(0, A), (1, B)], 1.0, A, 0),
    "the least loaded holds a part: 0 - 20 against 21 - 40": ([21, 0], [(0, A), (1, B)], 1.0, A, 1),
    "a shorter prefix elsewhere is not looked at": ([50, 5, 0], [(0, A), (1, B)], 1.0, A, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_prefix_aware_takes_the_least_cost(case):
    tokens, cached, weight, blocks, expected = CASES[case]
    pool = Pool(tokens, cached, weight)
    assert pool.choose(router["prefix_aware"](), blocks) == expected
    naive = NaivePool(len(tokens), [_listed(cache) for cache in pool.caches], BLOCK, weight)
    naive.tokens, naive.chosen_at = tokens, pool.loads.chosen_at
    assert naive.cheapest(Request(0, 0, len(blocks) * BLOCK, 1, blocks)) == expected


def _listed(cache):
    """A cache as the naive twin sees it."""

    class Listed:
        def cached(self, blocks):
            return cache.hits(blocks)

    return Listed()


def test_prefix_aware_ties_between_holders_go_to_the_lowest_number():
    """Whoever cached the prompt first: ties must not depend on it."""
    for order in ((1, 2, 3), (3, 2, 1), (2, 3, 1)):
        pool = Pool([0, 5, 5, 5], [(replica, A) for replica in order])
        assert pool.choose(router["prefix_aware"](), A) == 1


def test_prefix_aware_counts_no_more_than_the_prompt_has():
    """The last block is partial: 31 tokens of 40 are saved at most."""
    chooser = router["prefix_aware"]()
    assert Pool([30, 0], [(0, A)]).choose(chooser, A, input_tokens=31) == 0
    assert Pool([31, 0], [(0, A)]).choose(chooser, A, input_tokens=31) == 1


def test_prefix_aware_looks_at_sixteen_holders_and_not_at_more():
    chooser = router["prefix_aware"]()
    for holders, expected in ((HOLDERS_LOOKED_AT, 0), (HOLDERS_LOOKED_AT + 1, 20)):
        pool = Pool([5] * 20 + [0], [(replica, A) for replica in range(holders)])
        assert pool.choose(chooser, A) == expected


def test_prefix_aware_without_blocks_is_least_loaded():
    assert Pool([5, 3, 4], [(0, A)]).choose(router["prefix_aware"](), (), input_tokens=40) == 1


def test_an_unknown_policy_is_answered_with_the_nearest():
    with pytest.raises(KeyError, match="least_loaded"):
        router["least_loded"]
