"""Steps between replicas and spots."""

from sim.serving.places import EVERYWHERE, Places


def test_steps_are_counted_by_domain_and_unit():
    places = Places([(0, 0), (0, 0), (1, 0), (2, 1)])
    assert [places.steps(replica, (0, 0)) for replica in range(4)] == [0, 0, 1, 2]
    assert places.around((0, 0)) == ([0, 1], [0, 1, 2])
    assert places.around((7, 1)) == ((), [3])
    assert places.around((7, 9)) == ((), ())


def test_nowhere_in_particular():
    assert EVERYWHERE.around((0, 0)) == ((), ())
