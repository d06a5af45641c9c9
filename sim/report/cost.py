"""The lines of a run's screen on what it costs and draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sim.results import words

if TYPE_CHECKING:
    from sim.results.metrics import Figures

Line = list[tuple[str, str]]


def cost_lines(figures: Figures) -> Iterator[Line]:
    """One line on money and one on energy, a dash and the reason where either is not known."""
    if figures["cost"]["usd"] is not None:
        yield _priced(figures["cost"])
    elif not figures["cost"]["is_nameless"]:
        yield _absent("cost", figures["cost"]["absent"])
    if figures["energy"]["joules"] is not None:
        yield _drawn(figures["energy"])
    elif not figures["energy"]["is_nameless"]:
        yield _absent("energy", figures["energy"]["absent"])


def _priced(cost: dict[str, Any]) -> Line:
    each = words.number(cost["usd_per_million_output_tokens"])
    prices = [
        f"{gpu} at {words.number(price)} USD/h ({cost['sources'][gpu]})"
        for gpu, price in cost["usd_per_h_of_gpu"].items()
    ]
    return [(f"  {'cost':<10} {each} USD per M output tokens   ", ""), (", ".join(prices), "dim")]


def _drawn(energy: dict[str, Any]) -> Line:
    each, watts = words.number(energy["output_tokens_per_joule"]), words.number(energy["watts_per_gpu"])
    bound = ", TDP at work: an upper bound" if energy["is_bound"] else ""
    return [(f"  {'energy':<10} {each} output tokens per joule   ", ""), (f"{watts} W per GPU{bound}", "dim")]


def _absent(what: str, why: str) -> Line:
    return [(f"  {what:<10} {words.NOTHING}   ", ""), (why, "dim")]
