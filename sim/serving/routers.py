"""Who gets the next request: router policies.

A policy is a function that makes a chooser; the chooser is given the request and a View of the pool and
returns the number of a replica. It has no clock and changes nothing, so it can be tested without a
simulation; what it remembers lives in its closure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from sim.base.registry import Registry
from sim.kvpool.tree import Match
from sim.serving.loads import Loads
from sim.serving.places import EVERYWHERE, Places, Spot
from sim.serving.prefixscores import Scores
from sim.workload.request import NO_BLOCKS, NO_SESSION, Request

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

    `loads` are as they were `router.stale` ago, `match` is up to date: that of the `blocks` of the request
    being routed, empty where nothing is reused. `places` says where the replicas are, `near` where the other
    end of the handoff is (None: not chosen yet). Who draws lots draws them from `dice`. `estimating` makes
    the estimates of the pool, which are kept up only if somebody asks for them: `ahead`.
    """

    __slots__ = (
        "_estimates",
        "block_tokens",
        "blocks",
        "dice",
        "estimating",
        "load_weight",
        "loads",
        "match",
        "near",
        "now_ps",
        "places",
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
        self.places: Places = EVERYWHERE
        self.near: Spot | None = None
        self.dice = Random(0)
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
Policy = str | Callable[[], Chooser]
"""The name of a registered policy, or what makes the chooser of somebody's own."""
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


@router("power_of_two")
def power_of_two() -> Chooser:
    """The less loaded of two replicas drawn by lot; ties go to the one chosen longest ago.

    After Mitzenmacher, *The Power of Two Choices in Randomized Load Balancing*, IEEE TPDS 2001. Lots follow
    from `run.seed`.
    """
    return _less_loaded_of_two


def _less_loaded_of_two(_: Request, view: View) -> int:
    if view.replicas == 1:
        return 0
    one = view.dice.randrange(view.replicas)
    other = view.dice.randrange(view.replicas - 1)
    other += other >= one
    tokens, chosen_at = view.loads.tokens, view.loads.chosen_at
    return min((tokens[one], chosen_at[one], one), (tokens[other], chosen_at[other], other))[2]


@router("session_sticky")
def session_sticky() -> Chooser:
    """The replica that had the turn before, whatever its load; first turns go to the least loaded.

    So do requests of which no session is known.
    """
    homes: dict[int, int] = {}

    def choose(request: Request, view: View) -> int:
        if request.session == NO_SESSION:
            return view.loads.least()
        home = homes.get(request.session)
        if home is None:
            home = homes[request.session] = view.loads.least()
        return home

    return choose


@router("topology_aware")
def topology_aware() -> Chooser:
    """The least of load_weight x outstanding tokens + prompt tokens x steps to the other end of the handoff.

    No step inside an NVLink domain (a node, or a rack of them), one inside a fabric unit, two elsewhere; so a
    nearer replica is worth a queue as long as the prompt for each step. For prefill there is another end only
    with `order: decode_first`; without one it is the least loaded.
    """
    return _nearest


def _nearest(request: Request, view: View) -> int:
    least = view.loads.least()
    if view.near is None:
        return least
    tokens, chosen_at, weight = view.loads.tokens, view.loads.chosen_at, view.load_weight
    best, best_cost = least, float("inf")
    for steps, members in enumerate(view.places.around(view.near)):
        if members:
            one = min(members, key=lambda replica: (tokens[replica], chosen_at[replica], replica))
            cost = weight * tokens[one] + request.input_tokens * steps
            if cost < best_cost:
                best, best_cost = one, cost
    far = view.places.steps(least, view.near)
    return least if weight * tokens[least] + request.input_tokens * far < best_cost else best


@router("prefix_aware")
def prefix_aware() -> Chooser:
    """The least of load_weight x outstanding tokens + tokens not cached, among holders and the least loaded.

    Looked at are the replica with the least load and, unless more than 16 hold it, those that hold the
    longest cached prefix. Others that hold a shorter prefix are not: looking at all would cost more the
    larger the cluster is. The cost is that of the KV router of NVIDIA Dynamo for prefill workers.
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


@router("prefix_score")
def prefix_score() -> Chooser:
    """The most of: share of the prompt cached + load_weight x (1 - load), load from 0 (least) to 1 (most).

    All replicas are compared. Ties go to the least loaded, then to the one chosen longest ago. After the
    scorers of the llm-d inference scheduler (github.com/llm-d/llm-d-inference-scheduler): prefix cache and
    queue, whose default weights of 3 and 2 are a load_weight of 0.67. Load is outstanding tokens where llm-d
    counts waiting requests.
    """
    return lambda request, view: Scores(request, view).best(view.match)


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
