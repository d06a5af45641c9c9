"""The screen of a run: verdict, then evidence, then doubts, then what to do next.

Lines are lists of (text, style) pieces, so that the same screen is coloured on a terminal and plain in
a file. Signs that the output cannot encode are replaced by plain ones; colour never stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TextIO

from sim.base.errors import Advice
from sim.report.cost import cost_lines
from sim.report.kvpool import kv_pool_lines
from sim.report.signs import can_encode, plainly, wants_colour
from sim.results import words
from sim.tables.metrics import STATISTICS

if TYPE_CHECKING:
    from sim.results.metrics import Figures

Piece = tuple[str, str]
Line = list[Piece]
WIDTH = 80
SHOWN_LINKS = 3
LITTLE = 0.01
"""Less waiting than this part of the slowest handoffs is not worth a cause."""
_MARK_STYLES: dict[bool | None, str] = {True: "bold green", False: "bold red", None: "yellow"}


def screen(figures: Figures, saved_as: str | None = None, command: str = "sim") -> list[Line]:
    """The whole screen of a run; `saved_as` is its folder, `command` what the user types to get `sim`."""
    return [
        *_head(figures),
        [],
        *_latencies(figures),
        [],
        *_replicas(figures),
        *kv_pool_lines(figures),
        *cost_lines(figures),
        *_links(figures),
        *_doubts(Advice(**entry) for entry in figures["warnings"]),
        *_saved(figures, saved_as, command),
    ]


def _head(figures: Figures) -> Iterator[Line]:
    name, identity = words.headline(figures)
    space = max(WIDTH - len(name) - len(identity), 2)
    yield [(name, "bold"), (" " * space, ""), (identity, "dim")]
    for entry in figures["slo"]:
        yield [
            (words.mark(entry["is_met"]), _MARK_STYLES[entry["is_met"]]),
            (f" {words.verdict(entry)}", ""),
            *_misses(entry),
        ]
    if not figures["slo"]:
        yield [("~", "yellow"), (" no SLO: the scenario sets no limit", "")]
    yield [("  goodput   ", ""), (words.goodput(figures), "")]


def _misses(entry: dict[str, Any]) -> Line:
    if not entry["missing"]:
        return []
    what = "gaps" if entry["metric"] == "itl" else "requests"
    return [(f"   {words.whole(entry['missing'])} {what} without one count as misses", "dim")]


def _latencies(figures: Figures) -> Iterator[Line]:
    rows = [["", "", *STATISTICS], *words.latency_table(figures)]
    lines = words.aligned(rows)
    yield [(f"  {lines[0].rstrip()}", "dim")]
    for line in lines[1:]:
        yield [(f"  {line.rstrip()}", "")]
    has_weak = any(words.WEAK in cell for row in rows for cell in row)
    yield [(f"  {words.counts(figures)}", "dim")]
    if has_weak:
        yield [("  * fewer than 10 samples beyond", "dim")]


def _replicas(figures: Figures) -> Iterator[Line]:
    for pool in figures["pools"]:
        replicas, gpus = words.counted(pool["replicas"], "replica"), words.counted(pool["gpus"], "GPU")
        copies = f"{replicas} on {gpus}{_batches(pool)}"
        yield [(f"  {pool['name']:<10} {words.percent(pool['utilisation']):>6} busy   ", ""), (copies, "dim")]
    hits = words.percent(figures["hit_fraction"])
    yield [(f"  {'KV cache':<10} {hits:>6} of prompt tokens found   ", ""), *_computed(figures)]


def _batches(pool: dict[str, Any]) -> str:
    """How many sequences a decode step had on average, and how often one gave way for want of memory."""
    batch, preempted, swapped = pool.get("mean_batch"), pool.get("preempted"), pool.get("swapped")
    text = f" · {words.number(batch)} sequences a step" if batch else ""
    each = pool.get("step_tokens") or 1
    text += f", {words.number(each)} tokens each" if each > 1 else ""
    text += f" · {words.whole(preempted)} preempted" if preempted else ""
    return text + (f", {words.whole(swapped)} to host memory" if swapped else "")


def _computed(figures: Figures) -> Line:
    return [(f"{words.count_short(figures['prefill_tokens'])} tokens computed", "dim")]


def _links(figures: Figures) -> Iterator[Line]:
    kinds = [kind for kind in figures["link_kinds"] if kind["peak"] > 0]
    if not kinds:
        return
    yield []
    rows = [["links", "mean", "busiest", "over time"]]
    rows += [
        [
            words.link_kind(kind["kind"]),
            words.percent(kind["utilisation"]),
            words.percent(kind["peak"]),
            words.spark(kind["over_time"]),
        ]
        for kind in kinds
    ]
    width = max(len(row[0]) for row in rows)
    for i, (name, mean, most, course) in enumerate(rows):
        yield [(f"  {name:<{width}}  {mean:>7}  {most:>7}   {course}", "dim" if i == 0 else "")]
    for i, link in enumerate(figures["links"][:SHOWN_LINKS]):
        title = "most used" if i == 0 else ""
        use = f"{words.percent(link['utilisation']):>6} mean, {words.percent(link['peak'])} peak   "
        yield [(f"  {title:<10} {use}", ""), (link["name"], "dim")]
    yield from _handoffs(figures["transfers"])


def _handoffs(transfers: dict[str, Any]) -> Iterator[Line]:
    """What handoffs took, how much of it they waited for links that others used, and for which."""
    if not transfers["requests"]:
        return
    mean, waited = (words.seconds(transfers[name]) for name in ("mean_s", "waited_mean_s"))
    yield [(f"  {'handoffs':<10} {mean} mean, of which {waited} waiting for links that others used", "")]
    slowest = transfers["slowest"]
    p99, beyond = words.seconds(transfers["p99_s"]), words.seconds(slowest["mean_s"])
    kind, link = slowest["kinds"][0], slowest["links"][0]
    if slowest["waited_mean_s"] > LITTLE * slowest["mean_s"]:
        part = f"of which {words.seconds(slowest['waited_mean_s'])} waiting"
        kinds, most = words.percent(kind["waited_fraction"]), words.percent(link["waited_fraction"])
        why = f"{kinds} of that for {words.link_kind(kind['kind'])}; most for {link['name']}, {most}"
    else:
        kind = max(slowest["kinds"], key=lambda one: one["fraction"])
        part = "hardly any of it waiting"
        why = f"as fast as {words.link_kind(kind['kind'])} for {words.percent(kind['fraction'])} of them"
    yield [(f"  {'':<10} {p99} p99; beyond it {beyond} mean, {part}", "")]
    yield [(f"  {'':<10} {why}", "dim")]


def _doubts(doubts: Iterable[Advice]) -> Iterator[Line]:
    for doubt in doubts:
        yield []
        for i, part in enumerate(wrap(doubt.text, WIDTH - 2)):
            yield [("! " if i == 0 else "  ", "bold yellow"), (part, "yellow")]
        for part in wrap(doubt.remedy, WIDTH - 2, break_long_words=False):
            yield [(f"  {part}", "")]


def _saved(figures: Figures, saved_as: str | None, command: str) -> Iterator[Line]:
    yield []
    spent = f"{words.whole(figures['events'])} events in {words.seconds(figures['cpu_s'])} of CPU"
    if saved_as is None:
        yield [(spent, "dim")]
        return
    yield [("saved ", ""), (f"{saved_as}/", "bold")]
    yield [("next  ", ""), (f"{command} run {saved_as}", "bold"), ("   repeats it", "dim")]
    yield [(f"      cdf.png in it shows the latencies · {spent}", "dim")]


def plain(line: Line) -> str:
    """A line without its styles."""
    return "".join(text for text, _ in line).rstrip()


def show(lines: Sequence[Line], stream: TextIO) -> None:
    """Print lines: in colour on a terminal that wants it, else plain."""
    encodable = can_encode(stream)
    if wants_colour(stream):
        from rich.console import Console  # noqa: PLC0415 - only where there is colour
        from rich.text import Text  # noqa: PLC0415

        console = Console(file=stream, highlight=False, soft_wrap=True)
        for line in lines:
            console.print(
                Text.assemble(*[(text if encodable else plainly(text), style) for text, style in line])
            )
        return
    for line in lines:
        print(plain(line) if encodable else plainly(plain(line)), file=stream)
