"""Fit the constants of the `mooncake-conversation` generator on the real trace.

    SIM_TRACES=<folder> python tools/fit_mooncake_conversation.py > sim/workload/mooncake_conversation.yaml

A request whose prompt shares more than the system block with an earlier one is a later turn of the session
that last touched the deepest shared block. It *extends* its predecessor if all blocks of that one but the
last, partial one are shared, else it is an *edit* that keeps only a part. Sessions under way when the trace
starts look like new ones, and gaps beyond its end are unseen; hence first turns are taken from the
time after SETTLED_S, turns are counted as continued or not for requests between FIRST_PARENT_S and
LAST_PARENT_S, and a gap g is weighted by T / (T - g), the inverse of its chance to fall within the trace
of length T. The share of later turns among requests follows from the rest, by playing sessions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from sim.base.streams import Streams
from sim.workload.library import find_trace
from sim.workload.mooncake import Conversations
from sim.workload.shape import ConversationShape
from sim.workload.source import TraceFile
from sim.workload.tracerows import TraceRows

TRACE = "mooncake-conversation"
BLOCK_TOKENS = 512
SETTLED_S = 1_200.0
FIRST_PARENT_S = 900.0
LAST_PARENT_S = 2_100.0
ONE_SHOT_BELOW_TOKENS = 950
CLASS_EDGES_TOKENS = (4_000, 8_000, 16_000, 40_000)
CLASSES = range(len(CLASS_EDGES_TOKENS) + 1)
TURNS = 8
TICK_S = 3.0
PLAYED_SESSIONS = 400_000
HEADER = """\
# Constants of the mooncake-conversation generator, written by tools/fit_mooncake_conversation.py.
# Fitted on the conversation trace of Mooncake (Qin et al., FAST 2025; Apache-2.0), see traces.yaml.
# `levels` and a list of quantiles are points of an inverse distribution function.
"""
LONGEST_GAP_S = 3_000.0
LEVELS = (
    *(0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.225),
    *(0.25, 0.275, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97),
    *(0.98, 0.99, 0.995, 0.998, 1.0),
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Turns:
    """One entry per request; `parent` is its predecessor or -1, `shared` counts blocks, `turn` from 1."""

    at_s: Floats
    given: Ints
    made: Ints
    blocks: Ints
    parent: Ints
    shared: Ints
    turn: Ints

    @property
    def later(self) -> Ints:
        """Requests that continue a session."""
        return np.flatnonzero(self.parent >= 0)


def read_turns() -> Turns:
    """Read the trace and find the predecessor of each request."""
    rows = list(TraceRows(TraceFile(find_trace(TRACE)), "mooncake"))
    touched: dict[int, int] = {}
    parent, shared, turn = [], [], []
    for number, row in enumerate(rows):
        ids = row.hash_ids or ()
        depth = next((place for place, block in enumerate(ids) if block not in touched), len(ids))
        before = touched[ids[depth - 1]] if depth > 1 else -1
        parent.append(before)
        shared.append(depth)
        turn.append(1 if before < 0 else turn[before] + 1)
        touched.update(dict.fromkeys(ids, number))
    columns = [[getattr(row, name) for row in rows] for name in ("at_ps", "input_tokens", "output_tokens")]
    at_s = np.array(columns[0]) / 1e12
    blocks = np.array([len(row.hash_ids or ()) for row in rows])
    return Turns(
        at_s, np.array(columns[1]), np.array(columns[2]), blocks, *map(np.array, (parent, shared, turn))
    )


def quantiles(values: Floats | Ints, weights: Floats | None = None) -> Floats:
    """Return the quantiles at LEVELS, by linear interpolation."""
    if weights is None:
        return np.quantile(values, LEVELS)
    order = np.argsort(values)
    mass = np.cumsum(weights[order]) - weights[order] / 2
    return np.interp(LEVELS, mass / weights.sum(), values[order])


def classes(input_tokens: Ints) -> Ints:
    """Return the class of each prompt length."""
    return np.searchsorted(CLASS_EDGES_TOKENS, input_tokens, side="right")


def gaps_s(turns: Turns) -> list[Floats]:
    """Return the quantiles of the time to the next turn: of all turns, then by class of the prompt."""
    parent = turns.parent[turns.later]
    gap = turns.at_s[turns.later] - turns.at_s[parent]
    group = classes(turns.given[parent])
    length = turns.at_s[-1]
    inside = (gap > 0) & (gap < LONGEST_GAP_S)
    chosen = [inside, *(inside & (group == each) for each in CLASSES)]
    return [quantiles(gap[each], length / (length - gap[each])) for each in chosen]


def continued(turns: Turns) -> tuple[list[float], list[float]]:
    """Return the chance of a next turn by turn, and its factors by class of the prompt.

    One-shot prompts are left out. A factor is the number of turns that went on over that expected by turn.
    """
    goes_on = np.zeros(len(turns.at_s), dtype=bool)
    goes_on[turns.parent[turns.later]] = True
    counted = (turns.at_s >= FIRST_PARENT_S) & (turns.at_s < LAST_PARENT_S)
    counted &= turns.given >= ONE_SHOT_BELOW_TOKENS
    number = np.minimum(turns.turn, TURNS)
    chances = np.array([goes_on[counted & (number == turn)].mean() for turn in range(1, TURNS + 1)])
    group = classes(turns.given)
    members = [counted & (group == each) for each in CLASSES]
    factors = [goes_on[each].sum() / chances[number[each] - 1].sum() for each in members]
    return chances.tolist(), factors


def per_class(turns: Turns) -> tuple[list[float], list[Floats]]:
    """Return, by class of the predecessor's prompt, the share of edits and the quantiles of added tokens."""
    later, parent = turns.later, turns.parent[turns.later]
    extends = turns.shared[later] >= turns.blocks[parent] - 1
    added = turns.given[later] - turns.given[parent] - turns.made[parent]
    group = classes(turns.given[parent])
    shares = [float((~extends[group == each]).mean()) for each in CLASSES]
    return shares, [quantiles(added[extends & (group == each)]) for each in CLASSES]


def edits(turns: Turns) -> tuple[Floats, Floats]:
    """Return, for edits, the quantiles of the kept share of blocks and of new over old prompt length."""
    later, parent = turns.later, turns.parent[turns.later]
    edit = turns.shared[later] < turns.blocks[parent] - 1
    kept = turns.shared[later] / turns.blocks[parent]
    ratio = turns.given[later] / turns.given[parent]
    return quantiles(kept[edit]), quantiles(ratio[edit])


def listed(values: Iterable[float], digits: int = 0) -> list[float]:
    """Return rounded numbers, whole ones as such."""
    return [int(each) if digits == 0 else float(each) for each in np.round(np.asarray(values), digits)]


def fit() -> dict[str, Any]:
    """Return the constants by name."""
    turns = read_turns()
    shares, added = per_class(turns)
    kept, ratio = edits(turns)
    by_turn, by_class = continued(turns)
    gap, *gap_by_class = gaps_s(turns)
    first = turns.given[(turns.turn == 1) & (turns.at_s >= SETTLED_S)]
    constants = {
        "native_rate_per_s": round(len(turns.at_s) / (float(turns.at_s[-1]) + TICK_S), 4),
        "most_input_tokens": int(turns.given.max()),
        "least_input_tokens": int(turns.given.min()),
        "one_shot_below_tokens": ONE_SHOT_BELOW_TOKENS,
        "later_turn_fraction": 0.5,
        "levels": list(LEVELS),
        "first_input_quantiles": listed(quantiles(first)),
        "output_quantiles": listed(quantiles(turns.made)),
        "gap_s_quantiles": listed(gap, 1),
        "continued_by_turn": listed(by_turn, 3),
        "class_edges_tokens": list(CLASS_EDGES_TOKENS),
        "continued_by_class": listed(by_class, 3),
        "gap_s_quantiles_by_class": [listed(each, 1) for each in gap_by_class],
        "edit_share_by_class": listed(shares, 3),
        "added_quantiles_by_class": [listed(each) for each in added],
        "edit_kept_quantiles": listed(kept, 4),
        "edit_ratio_quantiles": listed(ratio, 4),
    }
    player = Conversations(ConversationShape(**constants), Streams(1), 1.0, None)
    later = len(player.later_turns(PLAYED_SESSIONS)) / PLAYED_SESSIONS
    return constants | {"later_turn_fraction": round(later / (1 + later), 4)}


def main() -> None:
    """Print the constants as YAML."""
    sys.stdout.write(HEADER)
    sys.stdout.write(yaml.safe_dump(fit(), default_flow_style=None, sort_keys=False, width=110))


if __name__ == "__main__":
    main()
