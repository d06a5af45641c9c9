"""Max-min fair rates: by hand, by the textbook, and by the property that defines them."""

from random import Random

import pytest
from models.filling import fair_rates

from sim.network.maxmin import Link, MaxMin, Rated

TOLERANCE = 1e-12


class Net:
    """Links of some capacities, and flows that come and go on them."""

    def __init__(self, *capacities):
        self.links = [Link(i, float(capacity)) for i, capacity in enumerate(capacities)]
        self.solver = MaxMin()
        self.flows = {}

    def add(self, *path):
        flow = Rated(tuple(self.links[i] for i in path))
        self.flows[flow] = list(path)
        return flow, self.solver.add(flow)

    def remove(self, flow):
        del self.flows[flow]
        return self.solver.remove(flow)

    def rates(self):
        return [flow.rate for flow in self.flows]

    def textbook(self):
        exact = [link.capacity for link in self.links]
        return [float(rate) for rate in fair_rates(list(self.flows.values()), exact)]


def load_of(net, link):
    """What a link carries; a flow counts once for each time that it crosses."""
    return sum(flow.rate * path.count(link.id) for flow, path in net.flows.items())


def check_rates(net):
    """No link carries more than it can, and every flow has a full link on which nobody is faster."""
    for link in net.links:
        assert load_of(net, link) <= link.capacity * (1 + TOLERANCE)
    for flow in net.flows:
        assert any(
            load_of(net, link) >= link.capacity * (1 - TOLERANCE)
            and all(other.rate <= flow.rate * (1 + TOLERANCE) for other in link.flows)
            for link in flow.links
        )


def test_a_flow_alone_has_the_smallest_capacity_of_its_path():
    net = Net(4, 3, 5)
    net.add(0, 1, 2)
    assert net.rates() == [3]


def test_flows_share_a_link_equally():
    net = Net(12)
    for _ in range(3):
        net.add(0)
    assert net.rates() == [4, 4, 4]


def test_what_one_flow_cannot_use_goes_to_the_others():
    net = Net(10, 2)
    net.add(0, 1)
    net.add(0)
    net.add(0)
    assert net.rates() == [2, 4, 4]


def test_the_chain_of_the_textbook():
    """A long flow over three links shares each with a local one; a fifth halves the middle link again."""
    net = Net(1, 1, 1)
    long, _ = net.add(0, 1, 2)
    locals_ = [net.add(i)[0] for i in range(3)]
    assert [long.rate, *(flow.rate for flow in locals_)] == [0.5, 0.5, 0.5, 0.5]
    net.add(1)
    assert long.rate == pytest.approx(1 / 3)
    assert [flow.rate for flow in locals_] == pytest.approx([2 / 3, 1 / 3, 2 / 3])


def test_a_flow_that_leaves_gives_back_what_it_took():
    net = Net(1, 1, 1)
    long, _ = net.add(0, 1, 2)
    others = [net.add(i)[0] for i in range(3)]
    net.remove(others[1])
    assert (long.rate, others[0].rate, others[2].rate) == (0.5, 0.5, 0.5)
    net.remove(long)
    assert (others[0].rate, others[2].rate) == (1, 1)


def test_changes_are_reported_with_the_old_rates_and_nothing_else_is():
    net = Net(6, 100)
    first, changed = net.add(0)
    assert changed == {first: 0.0}
    far, changed = net.add(1)
    assert changed == {far: 0.0}
    second, changed = net.add(0)
    assert changed == {first: 6.0, second: 0.0}
    assert net.remove(first) == {second: 3.0}
    assert net.remove(second) == {}


def test_a_flow_that_crosses_a_link_twice_takes_twice_its_rate_there():
    net = Net(12, 5)
    twice, _ = net.add(0, 0)
    assert twice.rate == 6
    once, _ = net.add(0)
    assert (twice.rate, once.rate) == (4, 4)
    net.add(1, 0, 0)
    assert net.rates() == pytest.approx([12 / 5] * 3)
    net.remove(once)
    assert net.rates() == [3, 3]
    net.remove(twice)
    assert net.rates() == [5]


def test_what_is_crossed_twice_may_be_the_narrower_link():
    """Ten bytes in and out of host memory of 15 are more than nine over a wire."""
    net = Net(15, 9)
    net.add(0, 0, 1)
    assert net.rates() == [7.5]


def test_a_flow_that_has_crossed_twice_leaves_nothing_behind():
    net = Net(12)
    twice, _ = net.add(0, 0)
    once, _ = net.add(0)
    assert net.remove(twice) == {once: 4.0}
    assert once.rate == 12
    assert net.remove(once) == {}
    assert not net.links[0].flows
    assert not net.links[0].held


@pytest.mark.parametrize("seed", range(200, 230))
def test_random_histories_with_links_crossed_more_than_once_equal_the_textbook(seed):
    dice = Random(seed)
    net = drawn_net(dice)
    repeats = 0
    for _ in range(80):
        if net.flows and dice.random() < 0.45:
            net.remove(dice.choice(list(net.flows)))
        else:
            path = dice.choices(range(len(net.links)), k=dice.randint(1, 5))
            repeats += len(set(path)) < len(path)
            net.add(*path)
        assert net.rates() == pytest.approx(net.textbook(), rel=TOLERANCE)
        check_rates(net)
    assert repeats > 10


def test_a_link_may_change_its_capacity_under_way():
    """As if it had always been so, for those on it and for those whom they meet elsewhere."""
    dice = Random(11)
    for _ in range(60):
        net = drawn_net(dice)
        for _ in walk(dice, net, 30):
            pass
        link = dice.choice(net.links)
        before = {flow: flow.rate for flow in net.flows}
        changed = net.solver.change(link, link.capacity * dice.choice((0.1, 0.5, 0.9, 1.1, 2, 10)))
        assert net.rates() == pytest.approx(net.textbook(), rel=TOLERANCE)
        assert changed == {flow: before[flow] for flow in net.flows if flow.rate != before[flow]}
        check_rates(net)


def drawn_net(dice):
    """Links whose shares often coincide, or hardly ever."""
    count = dice.randint(1, 8)
    if dice.random() < 0.5:
        return Net(*(dice.choice((1, 2, 3, 4, 6, 12)) for _ in range(count)))
    return Net(*(dice.uniform(0.1, 10) for _ in range(count)))


def walk(dice, net, events):
    """Let flows come and go at random; yields after each."""
    for _ in range(events):
        if net.flows and dice.random() < 0.45:
            flow = dice.choice(list(net.flows))
            changed = net.remove(flow)
        else:
            length = dice.randint(1, min(4, len(net.links)))
            _, changed = net.add(*dice.sample(range(len(net.links)), length))
        yield changed


@pytest.mark.parametrize("seed", range(40))
def test_random_histories_equal_the_textbook(seed):
    dice = Random(seed)
    net = drawn_net(dice)
    for _ in walk(dice, net, 60):
        assert net.rates() == pytest.approx(net.textbook(), rel=TOLERANCE)


@pytest.mark.parametrize("seed", range(100, 140))
def test_random_histories_keep_to_capacities_and_leave_everyone_a_bottleneck(seed):
    dice = Random(seed)
    net = drawn_net(dice)
    for _ in walk(dice, net, 150):
        check_rates(net)


def test_reported_changes_are_all_changes():
    dice = Random(7)
    for _ in range(30):
        net = drawn_net(dice)
        before = {}
        for changed in walk(dice, net, 60):
            after = {flow: flow.rate for flow in net.flows}
            old = {
                flow: before.get(flow, 0.0) for flow, rate in after.items() if before.get(flow, 0.0) != rate
            }
            assert changed == old
            before = after


def test_links_forget_the_flows_that_have_left():
    dice = Random(8)
    net = drawn_net(dice)
    for _ in walk(dice, net, 200):
        pass
    for flow in list(net.flows):
        net.remove(flow)
    assert not any(link.flows or link.held for link in net.links)


def test_a_wider_link_never_lowers_the_smallest_rate():
    dice = Random(9)
    for _ in range(300):
        net = drawn_net(dice)
        for _ in walk(dice, net, 25):
            pass
        if not net.flows:
            continue
        wide = dice.randrange(len(net.links))
        wider = Net(*(link.capacity * (3 if i == wide else 1) for i, link in enumerate(net.links)))
        for path in net.flows.values():
            wider.add(*path)
        assert min(wider.rates()) >= min(net.rates()) * (1 - TOLERANCE)


def test_a_wider_link_may_slow_a_flow_down_but_not_the_slowest():
    """Why the law above speaks of the smallest rate only."""
    narrow, wide = Net(2, 10), Net(8, 10)
    for net in (narrow, wide):
        net.add(0, 1)
        net.add(1)
    assert narrow.rates() == [2, 8]
    assert wide.rates() == [5, 5]


def test_the_order_of_coming_does_not_matter():
    dice = Random(10)
    for _ in range(100):
        net = drawn_net(dice)
        for _ in walk(dice, net, 20):
            pass
        paths = list(net.flows.values())
        order = list(range(len(paths)))
        dice.shuffle(order)
        again = Net(*(link.capacity for link in net.links))
        rates = {i: again.add(*paths[i])[0] for i in order}
        assert [rates[i].rate for i in range(len(paths))] == pytest.approx(net.rates(), rel=TOLERANCE)
