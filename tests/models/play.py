"""Plans and requests drawn at random, and the engine played on them to the end."""

from dataclasses import dataclass
from random import Random

from sim.clock import Clock, Errand
from sim.network.fabric import Port
from sim.serving.cluster import Serving
from sim.serving.plan import PoolPlan, RouterPlan, Seat, ServingPlan
from sim.tables.recorder import MemorySink, Recorder
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

POLICIES = ("round_robin", "least_loaded", "prefix_aware")


def seat(node, ranks=1, groups=1):
    """A replica on one node: its ranks take the ports of the node in equal runs."""
    return Seat(tuple(Port(node, rank * groups // ranks) for rank in range(ranks)))


def pool(role, seats, timing, kv_tokens, **limits):
    """A pool of one-GPU replicas."""
    limits = {"max_batch_tokens": 1 << 30, "max_sequences": 8} | limits
    return PoolPlan(role, role, tuple(seats), 1, timing, kv_tokens, **limits)


def plan(prefill, decode, **changes):
    """A serving plan with everything of no interest left at something simple."""
    simple = {
        "router": RouterPlan("least_loaded", "least_loaded", 1.0),
        "reuse": False,
        "kv_bytes_per_token": 1,
        "kv_heads": 1,
        "block_tokens": 4,
        "page_tokens": 4,
        "first_token_by_prefill": True,
        "measured_from_ps": 0,
        "measured_until_ps": 1 << 60,
    }
    return ServingPlan(prefill, decode, **simple | changes)


@dataclass
class Played:
    """A serving model that has come to its end, and its rows."""

    serving: Serving
    requests: dict
    segments: dict
    events: int


def play(serving_plan, requests, wires, until_ps=None):
    """Let requests through the engine until nothing is left to happen, or up to an instant."""
    clock, sink = Clock(), MemorySink()
    serving = Serving(clock, serving_plan, wires, Recorder(sink))
    Errand(serving.offer(requests))
    if until_ps is not None:
        clock.stop_after(until_ps)
    events = 0
    while happened := clock.advance(1000):
        events += happened
    serving.close()
    return Played(serving, sink.request_table(), sink.segment_table(), events)


def drawn_plan(dice: Random, seats, ranks=(1, 1), groups=1, kv_heads=1, kv_grain_bytes=1):
    """A small plan in which time is coarse, memory is short, and batches fill up.

    `seats` are the nodes of both pools, `ranks` their tensor parallelism, `groups` the ports of a node, and
    `kv_grain_bytes` divides the KV of a token.
    """

    def timing():
        return FixedTiming(
            prefill_base_ps=dice.choice((0, 1, 10, 100)),
            prefill_per_token_ps=dice.choice((1, 2, 10)),
            decode_base_ps=dice.choice((1, 5, 10, 60)),
            decode_per_sequence_ps=dice.choice((0, 0, 5)),
            decode_per_token_ps=dice.choice((0, 0, 1, 2)),
        )

    block_tokens, page_tokens = dice.choice((1, 2, 4)), dice.choice((1, 4, 8))
    prefills, decodes = seats
    measured = sorted(dice.choice(((0, 1 << 60), (100, 1000), (200, 300))))
    return plan(
        pool(
            "prefill",
            [seat(node, ranks[0], groups) for node in prefills],
            timing(),
            kv_tokens=dice.choice((12, 20, 40, 400)),
            max_batch_tokens=dice.choice((1, 8, 20, 1000)),
        ),
        pool(
            "decode",
            [seat(node, ranks[1], groups) for node in decodes],
            timing(),
            kv_tokens=dice.choice((32, 60, 1000)),
            max_sequences=dice.choice((1, 2, 3, 16)),
        ),
        router=RouterPlan(dice.choice(POLICIES), dice.choice(POLICIES), dice.choice((0.0, 0.5, 1.0, 2.0))),
        reuse=dice.random() < 0.6,
        kv_bytes_per_token=dice.choice((1, 3, 10)) * kv_grain_bytes,
        kv_heads=kv_heads,
        block_tokens=block_tokens,
        page_tokens=page_tokens,
        first_token_by_prefill=dice.random() < 0.5,
        measured_from_ps=measured[0],
        measured_until_ps=measured[1],
    )


def drawn_requests(dice: Random, count, block_tokens, grain_ps=10):
    """Requests at coarse instants, many at once, whose prompts share prefixes; some output one token."""
    requests = []
    at_ps = 0
    prefixes = [()]
    for number in range(count):
        at_ps += grain_ps * dice.choice((0, 0, 1, 2, 5, 20))
        tokens = dice.randint(1, 16)
        length = -(-tokens // block_tokens)
        start = dice.choice(prefixes)[: dice.randint(0, length)]
        blocks = start + tuple(1000 * number + i for i in range(length - len(start)))
        prefixes.append(blocks)
        output = dice.choice((1, 1, 2, 3, 5, 12, 20))
        requests.append(Request(number, at_ps, tokens, output, blocks))
    return requests
