"""Runs of one replica at a fixed concurrency: TTFT and TPOT against those measured.

Model: `silicon_concurrency` users in closed loop (sim.validate.closedloop), ten requests for each, prompts
and outputs of 80 to 100 % of the nominal length, as the benchmark that these rows most likely come from draws
them. Compared are means.
Ignores: whether the published numbers are means or medians, which is not stated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sim.base.errors import UnsupportedError
from sim.validate.closedloop import PS_PER_MS, Load
from sim.validate.comparison import Comparison, Comparisons, NotComparable
from sim.validate.rows import Row, rows_of
from sim.validate.setup import Setup, model_named, node_named, seen

SHORTEST = 0.8
ROUNDS = 10
SOURCE = "aiconfigurator-core 0.12.0, systems/silicon_sample.csv"
NEEDED = (
    "system",
    "model_path",
    "backend",
    "precision",
    "isl",
    "osl",
    "silicon_concurrency",
    "tp_size",
    "attention_dp_size",
    "moe_ep_size",
    "silicon_ttft_ms",
    "silicon_tpot_ms",
)


def silicon(path: Path) -> Comparisons:
    """Compare every row of a file of such runs."""
    rows: list[Comparison] = []
    left: list[NotComparable] = []
    met: Counter[str] = Counter()
    for row in rows_of(path, NEEDED):
        name = name_of(row)
        met[name] += 1
        if met[name] > 1:
            name += f"#{met[name]}"
        try:
            rows.extend(compared(name, row))
        except UnsupportedError as error:
            left.append(NotComparable(name, error.problem))
    return Comparisons("silicon", tuple(rows), tuple(left))


def compared(name: str, row: Row) -> Iterator[Comparison]:
    """Both metrics of a row; refuses what cannot be simulated."""
    setup, load = setup_of(row), load_of(row)
    came = seen(setup, load)
    group = f"{row.text('system')} {setup.model} {row.text('precision') or 'bf16'} {setup.backend}"
    for metric, predicted in (("ttft", came.ttft_ps), ("tpot", came.tpot_ps)):
        yield Comparison(
            id=name,
            metric=metric,
            predicted=predicted / PS_PER_MS,
            measured=row.number(f"silicon_{metric}_ms"),
            unit="ms",
            group=group,
            source=row.text("source") or SOURCE,
            fitted=row.flag("fitted"),
        )


def setup_of(row: Row) -> Setup:
    """The replica of a row."""
    data_parallel = row.count("attention_dp_size", least=0)
    experts_apart = row.count("moe_ep_size", least=0)
    if data_parallel > 1 or experts_apart > 1:
        raise UnsupportedError(
            "experts or attention spread over replicas (EP, DP attention) are not modelled"
        )
    return Setup(
        node=node_named(row.text("system")),
        model=model_named(row.text("model_path")),
        precision=row.text("precision"),
        tp=row.count("tp_size"),
        backend=row.text("backend"),
    )


def load_of(row: Row) -> Load:
    """The users of a row."""
    users = row.count("silicon_concurrency")
    return Load(users, ROUNDS * users, row.count("isl"), row.count("osl"), SHORTEST)


def name_of(row: Row) -> str:
    """A row's id: what was run, where and how."""
    engine = "-".join(filter(None, (row.text("backend"), row.text("backend_version"))))
    shape = f"tp{row.text('tp_size')}"
    for column, short in (("attention_dp_size", "dp"), ("moe_ep_size", "ep")):
        if row.text(column) not in {"", "0", "1"}:
            shape += f"-{short}{row.text(column)}"
    parts = (
        row.text("system"),
        row.text("model_path").split("/")[-1],
        engine,
        row.text("precision") or "bf16",
    )
    lengths = f"{row.text('isl')}-{row.text('osl')}"
    return "/".join((*parts, lengths, shape, f"c{row.text('silicon_concurrency')}"))
