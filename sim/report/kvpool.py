"""The lines of a run's screen about its pool of KV blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sim.results import words

if TYPE_CHECKING:
    from sim.results.metrics import Figures

Line = list[tuple[str, str]]
SHOWN_HOT = 3
EVENTS: dict[str, str] = {
    "replicated": "kept by the replica's node too",
    "rebalanced": "copied to idler nodes",
    "skipped": "not written for want of room",
    "recomputed": "computed as fetching was slower",
    "broken": "broken off",
}


def kv_pool_lines(figures: Figures) -> Iterator[Line]:
    """What the pool gave and cost; nothing where no node lends."""
    pool = figures.get("kv_pool")
    if pool is None:
        return
    yield []
    yield from _hits(pool)
    yield from _fetches(pool["fetches"])
    yield from _tiers(pool, figures["kv_pool_over_time"])
    yield from _events(pool["counts"])
    yield from _hottest(pool["hottest"])


def _hits(pool: dict[str, Any]) -> Iterator[Line]:
    found = [(words.TIERS[tier], share) for tier, share in pool["hit_fractions"].items() if share]
    shares = ", ".join(f"{words.percent(share)} in {name}" for name, share in found)
    yield _line("KV pool", f"of prompts {shares}" if shares else "nothing found", "")
    if shares:
        remote = f"{words.percent(pool['remote_fraction'])} of them from other nodes"
        yield _line("", f"{words.count_short(pool['tokens_not_recomputed'])} tokens not recomputed", remote)


def _fetches(fetches: dict[str, Any]) -> Iterator[Line]:
    if not fetches["requests"]:
        yield _line("fetches", "none", "")
        return
    mean, p99, hidden = (words.seconds(fetches[name]) for name in ("mean_s", "p99_s", "hidden_mean_s"))
    share = words.percent(fetches["fraction"])
    yield _line("fetches", f"by {share} of requests: {mean} mean, {p99} p99, {hidden} hidden", "")
    spared, net = words.seconds(fetches["spared_mean_s"]), words.seconds(fetches["net_mean_s"])
    yield _line("", f"spared {spared} of computing, {net} net of what was waited for", "")
    held = fetches["held_back"]
    if held is not None:
        kind, link = held["kinds"][0], held["links"][0]
        share, most = words.percent(kind["waited_fraction"]), words.percent(link["waited_fraction"])
        yield _line(
            "", "", f"waited {words.seconds(fetches['waited_mean_s'])} each for links that others used"
        )
        yield _line("", "", f"{share} of that for {words.link_kind(kind['kind'])}")
        yield _line("", "", f"most for {link['name']}, {most}")


def _tiers(pool: dict[str, Any], over_time: dict[str, list[float]]) -> Iterator[Line]:
    """A table of the tiers: how full, how large, what was read and written, how full over time."""
    rows = [("tier", "full", "of", "read", "written", "over time")]
    for tier in pool["tiers"]:
        sizes = (tier["capacity_blocks"] * pool["block_bytes"], tier["read_bytes"], tier["written_bytes"])
        full, course = words.percent(tier["used_fraction"]), words.spark(over_time.get(tier["name"], []))
        room, read, written = (words.size(size) for size in sizes)
        rows.append((words.TIERS[tier["name"]], full, room, read, written, course))
    for i, (name, *cells, course) in enumerate(rows):
        text = "".join(f"  {cell:>8}" for cell in cells)
        yield [(f"  {name:<10}{text}   {course}", "dim" if i == 0 else "")]


def _events(counts: dict[str, int]) -> Iterator[Line]:
    said = [f"{words.whole(counts[name])} {what}" for name, what in EVENTS.items() if counts.get(name)]
    for i in range(0, len(said), 2):
        yield _line("moves" if i == 0 else "", ", ".join(said[i : i + 2]), "")


def _hottest(hottest: list[dict[str, Any]]) -> Iterator[Line]:
    for i, hot in enumerate(hottest[:SHOWN_HOT]):
        what = f"{words.counted(hot['blocks'], 'block')} from id {hot['first']}"
        places = f"fetched {words.counted(hot['reads'], 'time')}, on {words.counted(hot['copies'], 'place')}"
        yield _line("hottest" if i == 0 else "", what, places)


def _line(title: str, text: str, about: str) -> Line:
    gap = "   " if text and about else ""
    return [(f"  {title:<10} {text}{gap}", ""), (about, "dim")]
