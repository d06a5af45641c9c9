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
        paths = (way,) if isinstance(way, Path) else way.paths
        own = [Pace(cap, size * share / lasts_ps / len(paths)) for _ in paths]
        capped_paths = tuple([path.held_by(link) for path, link in zip(paths, own, strict=True)])
        held.append((size, capped_paths[0] if isinstance(way, Path) else Pooled(capped_paths)))
        links += own
    return held, links
