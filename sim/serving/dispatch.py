"""Which way a request goes where a scenario has colocated replicas beside prefill and decode pools.

Model: prompts up to a length go to colocated replicas, where the scenario says which (a prompt that is soon
computed is not worth a transfer); else a request goes where fewer are under way for each GPU.
Source of the threshold: conditional disaggregation in NVIDIA Dynamo (the longest prompt prefilled locally).
Ignores: what of a prompt is cached on either side.
"""

from __future__ import annotations

from sim.serving.plan import PoolPlan, ServingPlan
from sim.workload.request import Request


class Dispatch:
    """Chooses between colocated replicas and others; `colocated` and `apart` are requests under way."""

    def __init__(self, plan: ServingPlan) -> None:
        self.limit_tokens = plan.router.colocated_tokens
        self.is_mixed = plan.colocated is not None and bool(plan.prefill.seats)
        self.is_colocated = plan.colocated is not None and not plan.prefill.seats
        self.colocated_gpus = _gpus(plan.colocated) if plan.colocated is not None else 0
        self.apart_gpus = _gpus(plan.prefill) + _gpus(plan.decode)
        self.colocated = 0
        self.apart = 0

    def to_colocated(self, request: Request) -> bool:
        """Whether a request goes to a colocated replica."""
        if not self.is_mixed:
            return self.is_colocated
        if self.limit_tokens is not None:
            return request.input_tokens <= self.limit_tokens
        return self.colocated * self.apart_gpus <= self.apart * self.colocated_gpus

    def went_colocated(self, request: Request) -> bool:
        """The same for one of the past, of which nothing is under way: each side has its share of GPUs."""
        if not self.is_mixed or self.limit_tokens is not None:
            return self.to_colocated(request)
        return request.id % (self.colocated_gpus + self.apart_gpus) < self.colocated_gpus


def _gpus(pool: PoolPlan) -> int:
    return len(pool.seats) * pool.gpus_per_replica
