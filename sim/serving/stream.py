"""KV that leaves a replica layer by layer while its prompt is still being computed.

Model: a prompt's KV is produced at an even rate over its layers. A stream begins when the first layer is done
and is capped at the rate at which the layers after it come, so that when the prompt is done just the last
layer has not been sent; then the cap is lifted. Whoever begins late is capped by what is left of the time,
so a stream never sends what does not exist yet.
Of pooled queue pairs each gets an equal part of the cap.
Ignores: that a late stream could catch up with what has been produced meanwhile before it is capped.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.network.fabric import Fabric
from sim.network.flow import Pace
from sim.network.parts import Part, Pooled
from sim.network.path import Path

FEWEST_LAYERS = 2


def production(fabric: Fabric) -> int:
    """The number under which links name the prefill that makes the KV as what holds a stream back."""
    return fabric.table.cap("prefill", "prefill that makes the KV", float("inf")).id


def capped(parts: Sequence[Part], lasts_ps: int, layers: int, cap: int) -> tuple[list[Part], list[Pace]]:
    """Parts that are sent while they are produced over `lasts_ps`, and the links that cap them.

    `cap` is the number under which a link names the prefill as what holds it back.
    """
    share = 1.0 - 1.0 / max(layers, FEWEST_LAYERS)
    held: list[Part] = []
    links: list[Pace] = []
    for size, way in parts:
        rate = size * share / lasts_ps
        if isinstance(way, Path):
            own = [Pace(cap, rate)]
            held.append((size, way.held_by(own[0])))
        else:
            own = [Pace(cap, rate / len(way.paths)) for _ in way.paths]
            held.append((size, Pooled(tuple(map(Path.held_by, way.paths, own)))))
        links += own
    return held, links
