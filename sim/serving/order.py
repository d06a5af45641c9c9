"""The order in which prompts of a replica are taken in, and, backwards, in which sequences give way.

Model: a key that a request has for good; the smallest goes first. What is put aside for want of memory keeps
its key, so that it is back before all that come after it: the first of an order is never put aside.
Ignores: ageing. Where urgent or short prompts keep coming, others wait as long as they do.
"""

from __future__ import annotations

from collections.abc import Callable

from sim.base.registry import Registry
from sim.workload.request import Request

Key = tuple[int, int, int]
"""What decides, then arrival, then the number of the request."""

order: Registry[Callable[[Request], Key]] = Registry("order")


@order("fcfs")
def fcfs(request: Request) -> Key:
    """First come, first served."""
    return 0, request.arrived_ps, request.id


@order("shortest_prompt")
def shortest_prompt(request: Request) -> Key:
    """The shortest prompt first."""
    return request.input_tokens, request.arrived_ps, request.id


@order("priority")
def priority(request: Request) -> Key:
    """The most urgent class first, as the trace says it; first come, first served within a class."""
    return request.priority, request.arrived_ps, request.id
