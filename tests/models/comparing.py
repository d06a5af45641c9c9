"""A play of the engine held against the same play of the naive model, whole."""

import itertools
from contextlib import contextmanager
from random import Random

from models.play import drawn_plan, drawn_requests, play
from models.rebuild import rows, token_times
from models.stepping import StepModel
from sim.tables.schema import STATUSES


def told(story):
    """The row that a story of the naive model should leave behind."""
    request = story.request
    end = story.finished if story.finished is not None else story.left
    instants = [
        request.arrived_ps,
        request.arrived_ps,
        story.prefill,
        story.prefill,
        story.computed,
        story.reserved,
        story.received,
        story.decoding,
        end,
    ]
    for i in range(len(instants)):
        if instants[i] is None:
            instants[i] = end if end is not None else request.arrived_ps
    tokens = story.tokens
    if story.left is not None:  # what went on without its user is not its own
        instants = [min(instant, story.left) for instant in instants]
        tokens = [token for token in tokens if token < story.left]
    phases = [after - before for before, after in itertools.pairwise(instants)]
    names = ("route", "queue", "kv_fetch", "prefill", "reserve", "transfer", "decode_queue", "decode")
    return {
        "request_id": request.id,
        "status": STATUSES.index(story.status),
        "cached_tokens": story.cached_tokens,
        "first_token_ps": tokens[0] if tokens else -1,
        "finished_ps": -1 if story.finished is None else story.finished,
        "prefill_replica": -1 if story.prefill_replica is None else story.prefill_replica,
        "decode_replica": -1 if story.decode_replica is None else story.decode_replica,
        **{f"phase_{name}_ps": phase for name, phase in zip(names, phases, strict=True)},
        "phase_preempted_ps": 0,
        "phase_retry_ps": 0,
    }


def compare(plan, requests, engine_wires, naive_wires):
    """Play both and compare; returns what happened, so that a test can see that something did."""
    played = play(plan, requests, engine_wires)
    naive = StepModel(plan, requests, naive_wires)
    found = rows(played.requests)
    assert [row["request_id"] for row in found] == naive.order
    for row in found:
        expected = told(naive.stories[row["request_id"]])
        assert {name: row[name] for name in expected} == expected
    leavers = sum(story.status in ("timed_out", "cancelled") for story in naive.stories.values())
    times = token_times(found, rows(played.segments), not leavers)
    finished = {id: story for id, story in naive.stories.items() if story.status == "finished"}
    assert times == {id: list(dict.fromkeys(story.tokens)) for id, story in finished.items()}
    assert len(finished) + leavers + sum(played.serving.rejected.values()) == len(requests)
    return played, naive


@contextmanager
def seeded(seed):
    """Say with which seed it went wrong."""
    try:
        yield
    except Exception as wrong:
        wrong.add_note(f"seed {seed}")
        raise


def drawn(seed, count=30):
    dice = Random(seed)
    prefills, decodes = dice.randint(1, 4), dice.randint(1, 4)
    plan = drawn_plan(dice, (range(prefills), range(prefills, prefills + decodes)))
    return plan, drawn_requests(dice, count, plan.block_tokens), dice.choice((0, 1, 10))
