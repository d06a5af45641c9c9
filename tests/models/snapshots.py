"""Many flows at once on the cables of a fabric, and their max-min rates by filling whole arrays.

Every link whose share is the smallest on all of its flows' paths stops them; with those gone the rest is
filled again (the same rates as raising one link after the other, in a few rounds).
"""

import numpy as np

from sim.network.fabric import Fabric, Port


def rates(paths, capacities):
    """The rate of each flow; `paths` are lists of link numbers, each link once."""
    lengths = np.fromiter(map(len, paths), int, len(paths))
    links = np.fromiter((link for path in paths for link in path), int, lengths.sum())
    owner = np.repeat(np.arange(len(paths)), lengths)
    found, rising = np.zeros(len(paths)), np.ones(len(paths), bool)
    room = np.array(capacities, float)
    while rising.any():
        live = rising[owner]
        count = np.bincount(links[live], minlength=len(room))
        share = np.divide(room, count, out=np.full(len(room), np.inf), where=count > 0)
        tightest = np.full(len(paths), np.inf)
        np.minimum.at(tightest, owner[live], share[links[live]])
        slack = np.full(len(room), np.inf)
        np.minimum.at(slack, links[live], tightest[owner[live]])
        stops = (count > 0) & (slack >= share * (1 - 1e-12))
        stopped = np.zeros(len(paths), bool)
        stopped[owner[live & stops[links]]] = True
        found[stopped] = tightest[stopped]
        leaving = stopped[owner]
        room = room - np.bincount(links[leaving], found[owner[leaving]], minlength=len(room))
        room = np.maximum(room, 0)
        rising &= ~stopped
    return found


def permutation(cluster, active, dice):
    """On every rail, part of the nodes each send to one of them: (sender, receiver) pairs of ports."""
    pairs = []
    for rail in range(cluster.rails):
        nodes = dice.sample(range(len(cluster.types)), round(active * len(cluster.types)))
        targets = dice.sample(nodes, len(nodes))
        pairs += [(Port(one, rail), Port(to, rail)) for one, to in zip(nodes, targets, strict=True)]
    return [(one, to) for one, to in pairs if one != to]


def throughput(cluster, pairs, seed=0):
    """What each transfer gets of its NIC's rate, queue pair by queue pair.

    Flows come in the order of the pairs, and stay: each is on its links when the next looks for its way.
    """
    fabric = Fabric(cluster, 1, seed)
    flows = [(one, to, number) for one, to in pairs for number in range(fabric.queue_pairs)]
    paths = []
    for flow in flows:
        path = fabric.gpu_to_gpu(*flow)
        paths.append(path.counted)
        for link in path.links:
            link.flows[flow] = 1
    found = rates(paths, [link.capacity for link in fabric.links])
    return found.reshape(len(pairs), fabric.queue_pairs) / (cluster.rate_bytes_per_s / 1e12)
