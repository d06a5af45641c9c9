from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from sim.base.streams import Streams

DRAW = """
from sim.base.streams import Streams
print(Streams(7).stream("arrivals").integers(2**62, size=5).tolist())
"""


def drawn(seed: int, purpose: str, count: int = 20_000) -> np.ndarray:
    return Streams(seed).stream(purpose).random(count)


def test_a_purpose_gets_the_same_numbers_whatever_else_was_drawn() -> None:
    streams = Streams(1)
    first = streams.stream("arrivals").random(100)
    streams.stream("lengths").random(1000)
    assert np.array_equal(first, streams.stream("arrivals").random(100))
    assert np.array_equal(first, Streams(1).stream("arrivals").random(100))


def test_another_process_draws_the_same_whatever_its_hash_seed() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", DRAW],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert told == {f"{Streams(7).stream('arrivals').integers(2**62, size=5).tolist()}\n"}


def test_purposes_and_seeds_are_independent() -> None:
    base = drawn(1, "arrivals")
    for other in (drawn(1, "lengths"), drawn(2, "arrivals"), drawn(1, "arrival")):
        assert abs(float(np.corrcoef(base, other)[0, 1])) < 4 / np.sqrt(len(base))
