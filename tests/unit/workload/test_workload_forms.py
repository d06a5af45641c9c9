"""From the form of a scenario to a workload, and what is said about fields that do not go together."""

import pytest
from workload_parts import DATA, requests_of

from sim.base.streams import Streams
from sim.config.scenario import Workload as WorkloadForm
from sim.workload import build_workload, validate_workload

FIXED = {"kind": "fixed", "tokens": 10}
POISSON = {"kind": "poisson", "rate": "10 req/s"}


def problems(**fields):
    return validate_workload(WorkloadForm(**fields))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"arrivals": POISSON, "input": FIXED, "output": FIXED}, []),
        ({"generator": "mooncake-conversation"}, []),
        ({"trace": "a.jsonl", "tick": "3 s", "format": "mooncake", "scale": {"copies": 3}}, []),
        ({"trace": "a.jsonl", "format": "some.module:reader"}, []),
        (
            {"arrivals": POISSON, "input": FIXED},
            [
                (
                    "output",
                    "missing: generated requests need output lengths",
                    "write output: {kind: fixed, tokens: 200}",
                )
            ],
        ),
        (
            {"arrivals": {"kind": "gamma", "rate": "1 req/s"}, "input": FIXED, "output": FIXED},
            [("arrivals.cv", "missing: kind gamma needs it", "write cv: 3")],
        ),
        (
            {"arrivals": {**POISSON, "cv": 2.0}, "input": FIXED, "output": FIXED},
            [("arrivals.cv", "kind poisson has no cv", "remove it, or use kind: gamma")],
        ),
        (
            {
                "arrivals": {"kind": "diurnal", "rate": "1 req/s", "period": "24 h"},
                "input": FIXED,
                "output": FIXED,
            },
            [("arrivals.peak_to_mean", "missing: kind diurnal needs it", "write peak_to_mean: 1.5")],
        ),
        (
            {
                "arrivals": POISSON,
                "input": {"kind": "lognormal", "median_tokens": 5, "tokens": 3},
                "output": FIXED,
            },
            [
                ("input.sigma", "missing: kind lognormal needs it", "write sigma: 1"),
                ("input.tokens", "kind lognormal has no tokens", "remove it, or use kind: fixed"),
            ],
        ),
        (
            {"arrivals": POISSON, "input": {**FIXED, "max_tokens": 3}, "output": FIXED},
            [("input.max_tokens", "kind fixed has no max_tokens", "remove it, or use kind: lognormal")],
        ),
        (
            {"trace": "a.jsonl", "rate": "5 req/s", "input": FIXED},
            [
                ("rate", "belongs to generator, and the workload is made by trace", "remove rate"),
                ("input", "belongs to arrivals, and the workload is made by trace", "remove input"),
            ],
        ),
        (
            {"generator": "mooncake-conversation", "tick": "3 s"},
            [("tick", "belongs to trace, and the workload is made by generator", "remove tick")],
        ),
        (
            {"trace": "a.jsonl", "format": "moncake"},
            [("format", "unknown trace format 'moncake'", "did you mean 'mooncake'?")],
        ),
    ],
)
def test_fields_that_do_not_go_together(fields, expected):
    assert problems(**fields) == expected


def test_each_source_becomes_a_workload_that_describes_itself():
    streams = Streams(1)
    told = [
        build_workload(WorkloadForm(**fields), streams).describe()
        for fields in (
            {"trace": str(DATA / "mooncake.jsonl"), "tick": "3 s", "scale": {"copies": 2}, "limit": 5},
            {"generator": "mooncake-conversation", "rate": "1400 req/s"},
            {"arrivals": POISSON, "input": FIXED, "output": FIXED},
        )
    ]
    assert told == [
        "trace mooncake.jsonl (mooncake), arrivals spread within ticks of 3 s, 2 overlaid copies, "
        "at most 5 requests",
        "mooncake-conversation generator at 1400 req/s",
        "poisson arrivals at 10 req/s, fixed input and fixed output lengths",
    ]


def test_a_reader_of_your_own_is_used_by_its_module():
    found = requests_of(trace=str(DATA / "csv.csv"), format="sim.workload.readers:plain_csv")
    assert [request.input_tokens for request in found] == [100, 200, 300, 400, 500]
