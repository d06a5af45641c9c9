"""Networks and flows for the golden cases: twelve families of topologies, drawn from seeds.

A case is what both simulators are given: links with a capacity in whole bytes per second, and flows with a
start in whole seconds, a size in whole bytes, a path of link numbers, and perhaps a cap of their own rate.
All are small enough to be exact as floats. A flow takes 1e3 to 1e5 s if it has its path to itself.
"""

from dataclasses import dataclass, field
from random import Random

SEEDS = 6


@dataclass
class Case:
    """One network, and all that is sent over it; flows are (start_s, bytes, path, cap or 0)."""

    name: str
    capacities: list[int] = field(default_factory=list)
    flows: list[tuple[int, int, list[int], int]] = field(default_factory=list)

    def link(self, bytes_per_s: float) -> int:
        """Add a link; its number."""
        self.capacities.append(int(bytes_per_s))
        return len(self.capacities) - 1

    def links(self, count: int, bytes_per_s: float) -> list[int]:
        """Add equal links; their numbers."""
        return [self.link(bytes_per_s) for _ in range(count)]

    def send(self, start_s: int, alone_s: float, path: list[int], cap: int = 0) -> None:
        """Add a flow by the time that it takes alone."""
        rate = min([self.capacities[i] for i in path] + ([cap] if cap else []))
        self.flows.append((start_s, int(alone_s * rate), path, cap))


def log_uniform(dice: Random, low: float, high: float) -> float:
    return low * (high / low) ** dice.random()


def alone_s(dice: Random) -> float:
    return log_uniform(dice, 1e3, 1e5)


def starts(dice: Random, flows: int, mean_gap_s: int) -> list[int]:
    """Staggered starts in order, a fifth of them together with the one before."""
    found = [0]
    for _ in range(flows - 1):
        found.append(found[-1] + (0 if dice.random() < 0.2 else dice.randint(1, 2 * mean_gap_s)))
    return found


def two(dice: Random, count: int) -> list[int]:
    return dice.sample(range(count), 2)


def one_link(case: Case, dice: Random) -> None:
    """A single bottleneck behind access links that are too wide to matter, or hardly."""
    shared = case.link(log_uniform(dice, 1e3, 1e9))
    wide = case.capacities[shared] * dice.choice((0.3, 2, 100))
    for start in starts(dice, 25, 4000):
        case.send(start, alone_s(dice), [case.link(wide * (0.5 + dice.random())), shared])


def star(case: Case, dice: Random) -> None:
    """Nodes around a switch: only what comes out of and goes into them is shared."""
    nodes = dice.choice((3, 6, 12, 24))
    rate = log_uniform(dice, 1e4, 1e9)
    out = [case.link(rate * dice.choice((1, 1, 2, 4))) for _ in range(nodes)]
    into = [case.link(rate * dice.choice((1, 1, 2, 4))) for _ in range(nodes)]
    for start in starts(dice, 40, 5000):
        source, target = two(dice, nodes)
        case.send(start, alone_s(dice), [out[source], into[target]])


def bipartite(case: Case, dice: Random) -> None:
    """Senders and receivers of very different speed, joined by a few trunks."""
    senders = [case.link(log_uniform(dice, 1e3, 1e9)) for _ in range(dice.randint(3, 20))]
    trunks = [case.link(log_uniform(dice, 1e5, 1e9)) for _ in range(dice.randint(1, 4))]
    receivers = [case.link(log_uniform(dice, 1e3, 1e9)) for _ in range(dice.randint(3, 20))]
    for start in starts(dice, 40, 3000):
        case.send(start, alone_s(dice), [dice.choice(senders), dice.choice(trunks), dice.choice(receivers)])


def chain(case: Case, dice: Random) -> None:
    """Links in a row; a flow crosses some neighbouring ones (the parking lot)."""
    length = dice.randint(4, 20)
    row = [case.link(log_uniform(dice, 1e5, 3e6)) for _ in range(length)]
    for start in starts(dice, 40, 4000):
        first, last = sorted(two(dice, length))
        case.send(start, alone_s(dice), row[first : last + dice.randint(0, 1)])


def nested(case: Case, dice: Random) -> None:
    """Each link narrower than the one before it, and flows that leave after any of them."""
    depth = dice.randint(4, 12)
    row = [case.link(1e9 * 0.6**i * (0.9 + 0.1 * dice.random())) for i in range(depth)]
    for start in starts(dice, 35, 2500):
        case.send(start, alone_s(dice), row[: dice.randint(1, depth)])


def tree(case: Case, dice: Random) -> None:
    """Two tiers with oversubscribed uplinks, each way of a link on its own."""
    leaves, per_leaf, over = dice.randint(2, 6), dice.randint(2, 8), dice.choice((1, 2, 4, 8))
    rate = 50e9
    nodes = leaves * per_leaf
    out, into = case.links(nodes, rate), case.links(nodes, rate)
    up, down = (case.links(leaves, rate * per_leaf / over) for _ in range(2))
    for start in starts(dice, 50, 2000):
        source, target = two(dice, nodes)
        above = (
            []
            if source // per_leaf == target // per_leaf
            else [up[source // per_leaf], down[target // per_leaf]]
        )
        case.send(start, alone_s(dice), [out[source], *above, into[target]])


def fat_tree(case: Case, dice: Random) -> None:
    """Three tiers of cables, a flow on one of the equal ways: they collide by chance."""
    pods, leaves, spines, cores, per_leaf = 2, 3, dice.choice((2, 3)), 2, dice.choice((2, 4))
    rate = log_uniform(dice, 1e6, 1e9)
    nodes = pods * leaves * per_leaf
    out, into = case.links(nodes, rate), case.links(nodes, rate)
    ups, downs = (
        {(leaf, spine): case.link(rate) for leaf in range(pods * leaves) for spine in range(spines)}
        for _ in range(2)
    )
    core_ups, core_downs = (
        {
            key: case.link(rate)
            for key in ((p, s, c) for p in range(pods) for s in range(spines) for c in range(cores))
        }
        for _ in range(2)
    )
    for start in starts(dice, 60, 1500):
        source, target = two(dice, nodes)
        leaf, to_leaf = source // per_leaf, target // per_leaf
        pod, to_pod = leaf // leaves, to_leaf // leaves
        spine, core = dice.randrange(spines), dice.randrange(cores)
        path = [out[source]]
        if leaf != to_leaf:
            path.append(ups[leaf, spine])
        if pod != to_pod:
            path += [core_ups[pod, spine, core], core_downs[to_pod, spine, core]]
        if leaf != to_leaf:
            path.append(downs[to_leaf, spine])
        case.send(start, alone_s(dice), [*path, into[target]])


def few_links(case: Case, dice: Random) -> None:
    """Any path over a handful of links whose capacities are orders of magnitude apart."""
    links = [case.link(log_uniform(dice, 1e3, 1e9)) for _ in range(dice.randint(3, 8))]
    for start in starts(dice, 40, 4000):
        case.send(start, alone_s(dice), dice.sample(links, dice.randint(1, 3)))


def many_links(case: Case, dice: Random) -> None:
    """Long paths over many links that are close in capacity, so that changes travel far."""
    links = [case.link(log_uniform(dice, 1e6, 3e6)) for _ in range(dice.randint(30, 60))]
    for start in starts(dice, 60, 700):
        case.send(start, alone_s(dice), dice.sample(links, dice.randint(1, 6)))


def ties(case: Case, dice: Random) -> None:
    """Equal links, equal sizes and equal starts: many links fill and many flows end at once."""
    links = case.links(dice.randint(2, 10), 3 * 2**20)
    for wave in range(4):
        for _ in range(10):
            path = dice.sample(links, dice.randint(1, min(3, len(links))))
            case.send(wave * 6000, dice.choice((3000, 3000, 6000)), path)


def capped(case: Case, dice: Random) -> None:
    """Flows with a rate of their own that they cannot exceed, below and above their fair share."""
    links = [case.link(log_uniform(dice, 1e5, 1e8)) for _ in range(dice.randint(3, 10))]
    for start in starts(dice, 40, 3000):
        path = dice.sample(links, dice.randint(1, 3))
        cap = int(min(case.capacities[i] for i in path) * log_uniform(dice, 0.02, 2))
        case.send(start, alone_s(dice), path, cap if dice.random() < 0.7 else 0)


def rails(case: Case, dice: Random) -> None:
    """Transfers striped over rails, one of which is slower at each of some nodes."""
    nodes, count = dice.randint(3, 5), dice.choice((2, 4, 8))
    rate = 50 * 10**9
    ends = [[[case.link(rate) for _ in range(count)] for _ in range(nodes)] for _ in range(2)]
    for node in range(0, nodes, 2):
        case.capacities[ends[0][node][dice.randrange(count)]] //= dice.choice((2, 4, 10))
    up = case.links(count, rate * nodes // 2)
    for start in starts(dice, 40 // count, 5000):
        source, target = two(dice, nodes)
        size = int(alone_s(dice) * rate)
        for rail in range(count):
            case.flows.append((start, size, [ends[0][source][rail], up[rail], ends[1][target][rail]], 0))


FAMILIES = (
    one_link,
    star,
    bipartite,
    chain,
    nested,
    tree,
    fat_tree,
    few_links,
    many_links,
    ties,
    capped,
    rails,
)


def cases() -> list[Case]:
    """All cases, the same at every call."""
    found = []
    for family in FAMILIES:
        for seed in range(SEEDS):
            case = Case(f"{family.__name__}-{seed}")
            family(case, Random(case.name))
            found.append(case)
    return found
