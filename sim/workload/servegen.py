"""Requests of many clients, from the statistics that ServeGen publishes of each.

Model: a client has a rate, a coefficient of variation of its gaps and a family (Gamma, Weibull, or
exponential where none is named) for each window of its trace; within a window its gaps are independent, from
the start of the window on. Prompt and output lengths are drawn, apart from each other, from the distributions
of the period in which the window lies. A window without rate sends nothing. `rate_scale` multiplies all
rates.
Source: Xiang et al., *ServeGen*, arXiv 2505.09999, and its files N-trace.csv (window start in s, rate in 1/s,
CV, family, two parameters that we do not need) and N-dataset.json (by period: length -> probability).
Ignores: prefixes that prompts share, reasoning ratios, conversations.
"""

from __future__ import annotations

import ast
import heapq
import io
import json
import math
import tarfile
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sim.workload.errors import TraceError
from sim.workload.request import Request
from sim.workload.rows import PS_PER_S

if TYPE_CHECKING:
    from sim.base.streams import Streams

CHUNK = 256
TRACE, DATASET = "-trace.csv", "-dataset.json"
FAMILIES = ("", "Exponential", "Gamma", "Weibull")


@dataclass(frozen=True, slots=True)
class Span:
    """A window of a client's trace."""

    start_s: float
    rate_per_s: float
    cv: float
    family: str


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of token counts: the counts, and the probability up to each."""

    counts: npt.NDArray[np.int64]
    up_to: npt.NDArray[np.float64]

    def draw(self, uniform: float) -> int:
        """The count at a fraction of the distribution."""
        return int(
            self.counts[min(int(np.searchsorted(self.up_to, uniform, side="right")), len(self.counts) - 1)]
        )


@dataclass(frozen=True, slots=True)
class Client:
    """One client: windows in order, and by the start of each period its prompt and output lengths."""

    name: str
    spans: tuple[Span, ...]
    periods: tuple[tuple[float, Lengths, Lengths], ...]


@dataclass(frozen=True)
class ServeGenWorkload:
    """The requests of all clients, merged in order of time."""

    path: Path
    streams: Streams
    rate_scale: float = 1.0
    limit: int | None = None
    until_ps: int | None = None
    block_tokens: int = 512

    @cached_property
    def clients(self) -> tuple[Client, ...]:
        """All clients, in order of their names."""
        texts = _texts(self.path)
        names = sorted(name.removesuffix(TRACE) for name in texts if name.endswith(TRACE))
        if not names:
            raise self._error(None, f"holds no client: no file ends in {TRACE}", "give clients of ServeGen")
        return tuple(self._client(name, texts) for name in names)

    def __iter__(self) -> Iterator[Request]:
        coming = heapq.merge(*(self._requests(place, of) for place, of in enumerate(self.clients)))
        for number, (at_ps, _, given, made) in enumerate(islice(coming, self.limit)):
            if self.until_ps is not None and at_ps >= self.until_ps:
                return
            yield Request(number, at_ps, given, made)

    def describe(self) -> str:
        """Say in one line what is generated."""
        return f"{len(self.clients)} clients of ServeGen ({self.path.name}), rates x {self.rate_scale:g}"

    def _requests(self, place: int, client: Client) -> Iterator[tuple[int, int, int, int]]:
        """Instants and lengths of one client, from a stream of its own."""
        random = self.streams.stream(f"workload.client.{client.name}")
        starts = [start_s for start_s, _, _ in client.periods]
        ends = [span.start_s for span in client.spans[1:]]
        if ends:
            ends.append(2 * client.spans[-1].start_s - client.spans[-2].start_s if ends else 0.0)
        for span, end_s in zip(client.spans, ends, strict=False):
            if span.rate_per_s <= 0:
                continue
            _, prompts, outputs = client.periods[max(bisect_right(starts, span.start_s) - 1, 0)]
            at_s = span.start_s
            for gap_s, one, other in _draws(span, self.rate_scale, random):
                at_s += gap_s
                if at_s >= end_s:
                    break
                yield round(at_s * PS_PER_S), place, prompts.draw(one), outputs.draw(other)

    def _client(self, name: str, texts: Mapping[str, str]) -> Client:
        dataset = texts.get(name + DATASET)
        if dataset is None:
            raise self._error(None, f"{name}{TRACE} has no {name}{DATASET} beside it", "add it")
        spans = tuple(
            self._span(name + TRACE, line, text)
            for line, text in enumerate(texts[name + TRACE].splitlines(), 1)
            if text.strip()
        )
        if len(spans) < 2:
            raise self._error(None, f"{name}{TRACE} has fewer than two windows", "give whole files")
        return Client(name, spans, self._periods(name + DATASET, dataset))

    def _span(self, file: str, line: int, text: str) -> Span:
        try:
            start, rate, cv, family, *_ = text.split(",")
            span = Span(float(start), float(rate), float(cv), family.strip())
        except ValueError:
            raise self._error(
                line, f"not a window of {file}: {text[:60]!r}", "write start,rate,cv,family"
            ) from None
        if span.family not in FAMILIES or (span.rate_per_s > 0 and span.family and span.cv <= 0):
            raise self._error(
                line, f"{file}: no family '{span.family}' of CV {span.cv:g}", "write Gamma or Weibull"
            )
        return span

    def _periods(self, file: str, text: str) -> tuple[tuple[float, Lengths, Lengths], ...]:
        try:
            periods = sorted((float(start), part) for start, part in json.loads(text).items())
            read = [
                (start, _lengths(part["input_tokens"]), _lengths(part["output_tokens"]))
                for start, part in periods
                if part.get("input_tokens") and part.get("output_tokens")
            ]
        except (ValueError, KeyError, AttributeError, SyntaxError, TypeError) as wrong:
            raise self._error(
                None, f"{file} cannot be read: {wrong}", "give files as ServeGen has them"
            ) from None
        known = tuple((start, given, made) for start, given, made in read if given and made)
        if not known:
            raise self._error(None, f"{file} has no lengths", "give files as ServeGen has them")
        return known

    def _error(self, line: int | None, problem: str, hint: str) -> TraceError:
        return TraceError(str(self.path), line, problem, hint)


def _lengths(written: Any) -> Lengths | None:
    """A distribution as ServeGen writes it, a mapping or the text of one; None where all of it is zero."""
    table = ast.literal_eval(written) if isinstance(written, str) else written
    pairs = sorted((int(count), float(share)) for count, share in table.items() if float(share) > 0)
    if not pairs:
        return None
    counts = np.array([max(count, 1) for count, _ in pairs], dtype=np.int64)
    up_to = np.cumsum([share for _, share in pairs])
    return Lengths(counts, up_to / up_to[-1])


def _draws(span: Span, scale: float, random: np.random.Generator) -> Iterator[tuple[float, float, float]]:
    """Gaps in seconds, and two numbers from 0 to 1 for the lengths, without end."""
    mean_s = 1 / (span.rate_per_s * scale)
    while True:
        if span.family == "Gamma":
            gaps = random.gamma(span.cv**-2, mean_s * span.cv**2, CHUNK)
        elif span.family == "Weibull":
            shape = weibull_shape(span.cv)
            gaps = random.weibull(shape, CHUNK) * (mean_s / math.gamma(1 + 1 / shape))
        else:
            gaps = random.exponential(mean_s, CHUNK)
        yield from zip(
            gaps.tolist(), random.random(CHUNK).tolist(), random.random(CHUNK).tolist(), strict=True
        )


def weibull_shape(cv: float) -> float:
    """The shape at which a Weibull distribution has a coefficient of variation, by bisection."""
    low, high = 0.05, 100.0
    for _ in range(80):
        middle = math.sqrt(low * high)
        square = math.gamma(1 + 2 / middle) / math.gamma(1 + 1 / middle) ** 2 - 1
        low, high = (middle, high) if square > cv**2 else (low, middle)
    return math.sqrt(low * high)


def _texts(path: Path) -> dict[str, str]:
    """The texts of all files of a folder or an archive, by their names without folders."""
    if path.is_dir():
        return {
            file.name: file.read_text("utf-8", "replace")
            for file in sorted(path.rglob("*"))
            if file.name.endswith((TRACE, DATASET))
        }
    try:
        with tarfile.open(path) as archive:
            members = [member for member in archive if member.name.endswith((TRACE, DATASET))]
            return {
                Path(member.name).name: io.TextIOWrapper(file, "utf-8", "replace").read()
                for member in members
                if (file := archive.extractfile(member)) is not None
            }
    except (OSError, tarfile.TarError) as failure:
        hint = "give a .tar.gz, or a folder of N-trace.csv and N-dataset.json"
        raise TraceError(str(path), None, f"is no archive of clients: {failure}", hint) from None
