"""How many pairs are predicted the right way round, by hand, and what is said of it."""

from dataclasses import replace

from sim.validate.comparison import Comparison, Comparisons
from sim.validate.ranking import Order, order_kept, order_within_groups
from sim.validate.trust import trust


def rows(*pairs):
    return [Comparison(str(n), "tpot", p, m, "ms", "group", "somebody") for n, (p, m) in enumerate(pairs)]


def test_pairs_that_differ_enough_are_counted():
    # measured 10, 11, 20: the first two differ by less than 1.2
    assert order_kept(rows((1, 10), (9, 11), (5, 20)), 1.2) == order_kept(
        rows((5, 20), (9, 11), (1, 10)), 1.2
    )
    order = order_kept(rows((1, 10), (9, 11), (5, 20)), 1.2)
    assert (order.pairs, order.right, order.share) == (2, 1, 0.5)
    assert order_kept(rows((1, 10), (9, 11), (5, 20)), 1.0).pairs == 3


def test_equal_predictions_tell_nothing():
    assert order_kept(rows((1, 10), (1, 20)), 1.1).right == 0
    assert order_kept(rows((1, 10)), 1.1).share is None


def test_only_rows_of_the_same_group_are_paired():
    near, far = rows((1, 10), (2, 20)), rows((30, 10), (3, 20))
    other = [replace(row, group="other") for row in far]
    assert order_within_groups([*near, *other], 1.1) == Order(2, 1)


def test_trust_in_words():
    told = trust(Comparisons("silicon", (*rows((1, 10), (2, 20)), replace(rows((11, 10))[0], fitted=True))))
    assert told == (
        "Set silicon. Half of 2 rows of TPOT that nothing was fitted to are predicted to 90 %, the worst is "
        "off by 90 %. Half of 1 rows of TPOT that took part in a fit are predicted to 10 %, the worst is off "
        "by 10 %. Of 2 pairs of runs that were measured to differ by a tenth or more, 50 % are predicted the "
        "right way round."
    )
    nothing = Comparisons("theory", (replace(rows((1, 1))[0], metric="bandwidth"),))
    assert trust(nothing) == "Set theory. No row says what a user feels."
