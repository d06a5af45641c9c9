"""Limits of a service-level objective: `ttft p90 < 2 s`.

Model: a metric, a statistic over its samples, an operator and a time. Ignored: limits on anything but
latencies, and limits for a part of the requests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from sim.base import units
from sim.base.dimensions import DIMENSIONS
from sim.base.errors import ValueProblem, did_you_mean, listed
from sim.config.written import Written

METRICS = ("ttft", "tpot", "itl", "e2e")
STATISTICS = ("mean", "p50", "p90", "p99", "p99.9", "max")
OPERATORS = ("<", "<=")
EXAMPLE = "ttft p90 < 2 s"
PARTS = re.compile(r"\s*(?P<words>[^<>=!]*?)\s*(?P<operator>[<>=!]+)\s*(?P<limit>.*?)\s*")


@dataclass(frozen=True, slots=True)
class SloLimit(Written):
    """One limit; `text` is its canonical form."""

    metric: str
    statistic: str
    operator: Literal["<", "<="]
    limit_ps: int

    @property
    def text(self) -> str:
        """As a user writes it."""
        return f"{self.metric} {self.statistic} {self.operator} {units.text(self.limit_ps, 'time')}"

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: object) -> SloLimit:
        """The limit that a text states."""
        if isinstance(text, SloLimit):
            return text
        found = PARTS.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueProblem(f"cannot read {text!r} as a limit", f"write it as `{EXAMPLE}`")
        operator = found["operator"]
        if operator not in OPERATORS:
            raise ValueProblem(f"a limit of a latency cannot use '{operator}'", "write `<` or `<=`")
        metric, statistic = subject(found["words"], found[0].strip())
        limit_ps = units.parse(found["limit"], "time")
        if limit_ps <= 0:
            raise ValueProblem(
                f"the limit '{found['limit']}' can never be met", f"write a time above 0, as in `{EXAMPLE}`"
            )
        return cls(metric, statistic, "<" if operator == "<" else "<=", int(limit_ps))

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """What an editor should know."""
        times = "|".join(sorted(DIMENSIONS["time"].units))
        metrics, statistics = "|".join(METRICS), "|".join(STATISTICS).replace(".", r"\.")
        pattern = rf"^({metrics}) +({statistics}) *<=? *[0-9.eE+]+ *({times})$"
        return {"type": "string", "pattern": pattern, "examples": [EXAMPLE]}


def subject(words: str, text: str) -> tuple[str, str]:
    """The metric and the statistic of a limit."""
    metric, _, statistic = words.partition(" ")
    metric, statistic = metric.strip(), statistic.strip()
    if metric not in METRICS:
        raise ValueProblem(f"unknown metric '{metric}'", did_you_mean(metric, METRICS))
    if not statistic:
        fixed = text.replace(metric, f"{metric} p90", 1)
        raise ValueProblem(f"'{text}' does not say which statistic", f"add one, as in `{fixed}`")
    if statistic not in STATISTICS:
        raise ValueProblem(f"unknown statistic '{statistic}'", f"choose from {listed(STATISTICS)}")
    return metric, statistic
