"""One colocated replica, and a few requests through it to the end."""

from dataclasses import replace

from models.play import plan, play, pool, seat
from models.rebuild import rows
from models.wires import OwnWires
from sim.serving.plan import BatchingPlan, HostTimes
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

TIMING = FixedTiming(prefill_base_ps=10, prefill_per_token_ps=1, decode_base_ps=100)


def colocated(rule, **fields):
    limits = {name: fields.pop(name) for name in ("max_batch_tokens", "max_sequences") if name in fields}
    host = fields.pop("host", HostTimes())
    kv_tokens = fields.pop("kv_tokens", 1000)
    one = pool("serve", [seat(0)], TIMING, kv_tokens, **limits)
    return replace(one, role="colocated", host=host, batching=BatchingPlan(rule, **fields))


def served(serve, *parts, **changes):
    nothing = pool("prefill", [], TIMING, 1000)
    decode = replace(nothing, name="decode", role="decode")
    whole = plan(changes.pop("prefill", nothing), changes.pop("decode", decode), colocated=serve, **changes)
    played = play(whole, [Request(number, *part) for number, part in enumerate(parts)], OwnWires(0))
    return sorted(rows(played.requests), key=lambda row: row["request_id"]), played


def times(found):
    return [(row["first_token_ps"], row["second_token_ps"], row["finished_ps"]) for row in found]
