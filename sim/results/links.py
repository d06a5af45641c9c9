"""What links did in a run: the busiest, each kind over time, and which held the handoffs back.

Model: a handoff waits for the links that it shares; what it waited is its duration less what it would have
taken with all its links to itself, and all of it is counted for the link that cost it most (for the narrowest
where it waited for none). The slowest are the measured requests whose handoff took at least as long as its
99th percentile, latency included.
Ignores: what a handoff waits for before its first byte, which is the phase `reserve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any

import numpy as np
import pandas as pd

from sim.results.measured import Measured
from sim.results.ratios import finite, ratio
from sim.tables.uses import LinkUse

BUSIEST_LINKS = 10
SLOWEST_FROM = 0.99
STEPS_OVER_TIME = 24


def busiest(links: Sequence[LinkUse], window_s: float) -> list[dict[str, Any]]:
    """The links with the highest mean utilisation in the window, the busiest first."""
    used: list[dict[str, Any]] = [
        {
            "id": link.id,
            "name": link.name,
            "kind": link.kind,
            "utilisation": ratio(link.carried_bytes, link.capacity_bytes_per_s * window_s) or 0.0,
            "peak": link.peak_fraction,
            "waited_s": link.waited_s,
        }
        for link in links
        if link.carried_bytes > 0
    ]
    return sorted(used, key=lambda link: (-link["utilisation"], link["id"]))[:BUSIEST_LINKS]


def kinds_over_time(samples: pd.DataFrame) -> list[dict[str, Any]]:
    """For each kind of link its utilisation over the run: mean, busiest link, and the mean in equal steps."""
    of_links = samples[samples["kind"] == "links"]
    found = []
    for name, readings in of_links.groupby("name", observed=True, sort=False):
        used = readings.loc[readings["metric"] == "used_fraction", "value"].to_numpy()
        most = readings.loc[readings["metric"] == "busiest_fraction", "value"].to_numpy()
        steps = np.array_split(used, min(STEPS_OVER_TIME, len(used)))
        found.append(
            {
                "kind": str(name),
                "utilisation": float(used.mean()),
                "peak": float(most.max()),
                "over_time": [float(step.mean()) for step in steps],
            }
        )
    return found


def waits_of(measured: Measured, links: Sequence[LinkUse]) -> dict[str, Any]:
    """How long the handoffs of measured requests took, what sharing cost them, and whose fault that was."""
    sent = measured.requests[measured.requests["transfer_link"] >= 0]
    if sent.empty:
        return {"requests": 0, "mean_s": None, "waited_mean_s": None, "p99_s": None, "slowest": None}
    took_s = sent["phase_transfer_s"].to_numpy()
    limit_s = float(np.quantile(took_s, SLOWEST_FROM))
    return {
        "requests": len(sent),
        "mean_s": finite(float(took_s.mean())),
        "waited_mean_s": finite(float(sent["transfer_waited_s"].mean())),
        "p99_s": limit_s,
        "slowest": _held_back(sent[took_s >= limit_s], links),
    }


def _held_back(slowest: pd.DataFrame, links: Sequence[LinkUse]) -> dict[str, Any]:
    """The slowest handoffs: how long they took and waited, and for which links."""
    return {
        "requests": len(slowest),
        "mean_s": finite(float(slowest["phase_transfer_s"].mean())),
        "waited_mean_s": fsum(slowest["transfer_waited_s"]) / len(slowest),
        **blamed(slowest, links, "transfer"),
    }


def blamed(requests: pd.DataFrame, links: Sequence[LinkUse], what: str) -> dict[str, Any]:
    """Which part of some transfers (or fetches: `what`) and of their waiting each link accounts for."""
    known = {link.id: link for link in links}
    waits: dict[int, list[float]] = {}
    waited_s = requests[f"{what}_waited_s"]
    for link, wait_s in zip(requests[f"{what}_link"].tolist(), waited_s.tolist(), strict=True):
        waits.setdefault(link, []).append(wait_s)
    kinds: dict[str, list[float]] = {}
    for link, waited in waits.items():
        kinds.setdefault(known[link].kind, []).extend(waited)
    total_s = fsum(waited_s)

    def parts(waited: list[float]) -> dict[str, float]:
        return {
            "fraction": len(waited) / len(requests),
            "waited_fraction": fsum(waited) / total_s if total_s else 0.0,
        }

    by_kind = [{"kind": kind, **parts(waited)} for kind, waited in kinds.items()]
    by_link = [{"id": link, "name": known[link].name, **parts(waits[link])} for link in sorted(waits)]
    return {
        "kinds": sorted(by_kind, key=_by_blame),
        "links": sorted(by_link, key=_by_blame)[:BUSIEST_LINKS],
    }


def _by_blame(entry: dict[str, Any]) -> tuple[float, float]:
    """Who cost most comes first; where nobody waited, who was the narrowest most often."""
    return -entry["waited_fraction"], -entry["fraction"]
