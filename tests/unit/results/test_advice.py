"""Doubts about a result, word for word."""

from __future__ import annotations

import results_parts as parts
from test_figures import REJECTED, UNFINISHED, S, done, run_of

from sim.tables.uses import LinkUse


def said(run):
    return [(advice.text, advice.remedy) for advice in run.warnings]


def test_many_unfinished():
    run = run_of([done(100, 1100)] * 9 + [UNFINISHED])
    assert said(run)[0] == (
        "1 of 10 requests did not finish; the table is of the others",
        "raise run.drain to wait longer for them; the SLO counts them as misses",
    )


def test_rows_that_were_skipped():
    run = run_of([done(100, 1100)], skipped_rows=3)
    assert said(run)[0] == ("3 rows of the trace could not be used", "see which with `sim trace info`")
    assert run.figures["skipped_rows"] == 3
    assert not any("of the trace" in text for text, _ in said(run_of([done(100, 1100)])))


def test_rejected_with_their_reasons():
    run = run_of([done(100, 1100), REJECTED], rejected_reasons={"prompt longer than KV memory": 1})
    assert said(run)[0][0] == "1 of 2 requests were rejected: prompt longer than KV memory (1)"


def test_load_beyond_capacity_names_the_pool():
    requests = [done(100 + 200 * i, 20_000, arrived_ps=i * S, phase_queue_ps=i * S // 5) for i in range(10)]
    run = run_of(requests, replicas=parts.outcome().replicas)
    assert said(run)[0] == (
        "load exceeds capacity: waiting for prefill grows by 200 ms every second",
        "raise pools.prefill.replicas, or lower workload.rate",
    )


def test_a_steady_wait_is_no_overload():
    requests = [done(2100, 20_000, arrived_ps=i * S, phase_queue_ps=2 * S + i % 3) for i in range(10)]
    assert not any("exceeds" in text for text, _ in said(run_of(requests)))


def test_a_full_link():
    links = (
        LinkUse(3, "leaf 3 up", "leaf-spine", 1e9, 5e9, 0.991, 0.0),
        LinkUse(4, "leaf 4 up", "leaf-spine", 1e9, 5e9, 0.96, 0.0),
    )
    run = run_of([done(100, 1100)], links=links)
    assert said(run)[0] == (
        "link leaf 3 up (leaf-spine) reached 99 % of its capacity, and 1 more came over 95 %: "
        "transfers wait for each other",
        "give the topology more bandwidth there, or place the pools differently (pools.NAME.place)",
    )


def test_too_few_samples_for_a_quantile():
    run = run_of([done(100, 1100)] * 2000)
    assert said(run) == [
        ("p99.9 rests on the 2 slowest requests", 'use --set run.duration="5 min" for a firm value')
    ]


def test_enough_samples_raise_no_doubt():
    assert said(run_of([done(100, 1100)] * 10_000)) == []


def test_an_interrupted_run():
    run = run_of([done(100, 1100)], interrupted=True)
    assert said(run)[0][0] == "interrupted: the figures are of the part that was simulated"
