"""Who gets the next request: router policies.

A policy is a function that makes a chooser; the chooser is given the request and a View of the pool and
returns the number of a replica. It has no clock and changes nothing, so it can be tested without a
simulation; what it remembers lives in its closure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sim.base.registry import Registry
from sim.kvpool.tree import Match
from sim.serving.loads import Loads
from sim.workload.request import NO_BLOCKS, Request

HOLDERS_LOOKED_AT = 16
"""At most so many holders of the longest prefix are compared; where more hold it, it is common property."""


NOTHING = Match([], 0)


class Estimates(Protocol):
    """Estimated times of a request at the replicas of a pool: TTFT in prefill, TBT in decode."""

    def ask(self, request: Request, view: View) -> None:
        """Ask about a request from now on."""
        ...

    def best(self) -> int:
        """The replica with the least estimate among those looked at."""
        ...


class View:
    """What a router may know of a pool: loads in tokens, and which replicas hold how much of this prompt.

    Both are up to date at the instant of the choice. `match` is that of the `blocks` of the request being
    routed, empty where nothing is reused. `estimating` makes the estimates of the pool, which are kept up
    only if somebody asks for them: `ahead`.
    """

    __slots__ = (
        "_estimates",
        "block_tokens",
        "blocks",
        "estimating",
        "load_weight",
        "loads",
        "match",
        "now_ps",
        "replicas",
    )

    def __init__(self, replicas: int, loads: Loads, block_tokens: int, load_weight: float) -> None:
        self.replicas = replicas
        self.loads = loads
        self.block_tokens = block_tokens
        self.load_weight = load_weight
        self.match = NOTHING
        self.blocks: Sequence[int] = NO_BLOCKS
        self.now_ps = 0
        self.estimating: Callable[[], Estimates] | None = None
        self._estimates: Estimates | None = None

    def ahead(self, request: Request) -> Estimates | None:
        """Estimated times of a request; None where the pool makes none."""
        if self._estimates is None and self.estimating is not None:
            self._estimates = self.estimating()
        if self._estimates is not None:
            self._estimates.ask(request, self)
        return self._estimates


Chooser = Callable[[Request, View], int]
router: Registry[Callable[[], Chooser]] = Registry("router")


@router("round_robin")
def round_robin() -> Chooser:
    """Each replica in turn."""
    turn = -1

    def choose(_: Request, view: View) -> int:
        nonlocal turn
        turn = (turn + 1) % view.replicas
        return turn

    return choose


@router("least_loaded")
def least_loaded() -> Chooser:
    """The replica with the fewest outstanding tokens; ties go to the one chosen longest ago."""
    return lambda _, view: view.loads.least()


@router("prefix_aware")
def prefix_aware() -> Chooser:
    """The least of load_weight x outstanding tokens + tokens not cached, among holders and the least loaded.

    Looked at are the replica with the least load and, unless more than 16 hold it, those that hold the
    longest cached prefix. Others that hold a shorter prefix are not: looking at all would cost more the
    larger the cluster is.
    """
    return _fewest_tokens_first


def _fewest_tokens_first(request: Request, view: View) -> int:
    least = view.loads.least()
    longest, holders = view.match.longest()
    if not longest or least in holders:
        return least
    tokens, weight, block = view.loads.tokens, view.load_weight, view.block_tokens
    best = least
    best_cost = weight * tokens[least] - min(view.match.depth(least) * block, request.input_tokens)
    if len(holders) <= HOLDERS_LOOKED_AT:
        saved = min(longest * block, request.input_tokens)
        for replica in sorted(holders):
            cost = weight * tokens[replica] - saved
            if cost < best_cost:
                best, best_cost = replica, cost
    return best


@router("conductor")
def conductor() -> Chooser:
    """The least estimated TTFT (queue, fetch, compute); in decode the least predicted TBT, given room.

    Looked at are the least loaded replica of each fabric unit and, unless more than 16 hold it, those that
    hold the longest cached prefix, in HBM or in what their node lends. A pool that makes no estimates gets
    the least loaded. After the Conductor of Qin et al., *Mooncake*, FAST 2025; whom to look at is our choice.
    """
    return _soonest


def _soonest(request: Request, view: View) -> int:
    estimates = view.ahead(request)
    return view.loads.least() if estimates is None else estimates.best()
