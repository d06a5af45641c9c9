"""Which links were busy, and which held the slowest handoffs back."""

import numpy as np
import pytest
import results_parts as parts

from sim.results.run import Run
from sim.results.tables import FolderTables
from sim.tables.uses import LinkUse

S = parts.S


@pytest.fixture(scope="module")
def run():
    return Run.from_sink(parts.sink(), parts.outcome(), parts.scenario())


def test_kinds_over_time_have_equal_steps_of_the_mean(run):
    by_kind = {kind["kind"]: kind for kind in run.figures["link_kinds"]}
    assert list(by_kind) == ["nic_tx", "leaf_up"]
    course = by_kind["leaf_up"]["over_time"]
    assert len(course) == 24
    assert course == sorted(course)
    assert by_kind["leaf_up"]["utilisation"] == pytest.approx(np.mean([s / 30 for s in range(30)]))
    assert by_kind["nic_tx"]["peak"] == pytest.approx(0.1)


def test_the_slowest_handoffs_are_told_by_the_link_that_cost_them_most(run):
    frame = run.requests
    transfers = run.figures["transfers"]
    assert transfers["requests"] == len(frame)
    assert transfers["mean_s"] == pytest.approx(frame["phase_transfer_s"].mean())
    assert transfers["waited_mean_s"] == pytest.approx(frame["transfer_waited_s"].mean())
    slow = frame[frame["phase_transfer_s"] >= np.quantile(frame["phase_transfer_s"], 0.99)]
    assert transfers["slowest"]["requests"] == len(slow)
    assert transfers["slowest"]["mean_s"] == pytest.approx(slow["phase_transfer_s"].mean())
    links = transfers["slowest"]["links"]
    expected = slow["transfer_link"].value_counts()
    found = {link["id"]: link["fraction"] for link in links}
    assert found == pytest.approx({int(i): n / len(slow) for i, n in expected.items()})
    waits = slow.groupby("transfer_link")["transfer_waited_s"].sum() / slow["transfer_waited_s"].sum()
    assert {link["id"]: link["waited_fraction"] for link in links} == pytest.approx(waits.to_dict())
    assert [link["waited_fraction"] for link in links] == pytest.approx(sorted(waits, reverse=True))
    (kind,) = transfers["slowest"]["kinds"]
    assert kind == {"kind": "leaf_up", "fraction": 1.0, "waited_fraction": pytest.approx(1.0)}


def test_long_prompts_that_waited_for_nobody_do_not_blame_their_link():
    """Of 200 handoffs two take longest: one alone on a NIC, one that mostly waited for a leaf."""
    columns = parts.request_columns(200)
    columns["phase_transfer_ps"][:] = S // 100
    columns["transfer_waited_ps"][:] = 0
    columns["transfer_link"][:] = 9
    columns["phase_transfer_ps"][-2:] = S
    columns["transfer_link"][-1], columns["transfer_waited_ps"][-1] = 3, S * 9 // 10
    sink = parts.MemorySink()
    sink.requests(columns, [[] for _ in range(200)])
    nic = LinkUse(9, "node 4 NIC tx", "nic_tx", 1e9, 5e9, 0.5, 0.0)
    outcome = parts.outcome(links=(*parts.outcome().links, nic))
    figures = Run.from_sink(sink, outcome, parts.scenario()).figures
    assert figures["transfers"]["slowest"]["kinds"] == [
        {"kind": "leaf_up", "fraction": 0.5, "waited_fraction": 1.0},
        {"kind": "nic_tx", "fraction": 0.5, "waited_fraction": 0.0},
    ]


def test_links_are_a_table_of_the_run(run, tmp_path):
    assert list(run.links["id"]) == list(range(5))
    assert list(run.links.columns) == [
        "id",
        "name",
        "kind",
        "nodes",
        "rails",
        "leaves",
        "spines",
        "cores",
        "capacity_bytes_per_s",
        "carried_bytes",
        "peak_fraction",
        "waited_s",
    ]
    run.tables.write(tmp_path)
    written = FolderTables(tmp_path).read("links")
    assert [list(leaves) for leaves in written["leaves"]] == [[i] for i in range(5)]
    assert [list(spines) for spines in written["spines"]] == [[0, 1]] * 5
    assert [len(cores) for cores in written["cores"]] == [0] * 5


def test_a_link_that_carried_only_before_the_window_is_not_among_the_busiest():
    idle = LinkUse(9, "leaf 9 up", "leaf_up", 1e9, 0.0, 0.0, 0.0)
    run = Run.from_sink(parts.sink(), parts.outcome(links=(*parts.outcome().links, idle)), parts.scenario())
    assert 9 not in [link["id"] for link in run.figures["links"]]


def test_without_handoffs_there_is_nothing_to_tell():
    columns = parts.request_columns(50)
    columns["transfer_link"][:] = -1
    sink = parts.MemorySink()
    sink.requests(columns, [[] for _ in range(50)])
    transfers = Run.from_sink(sink, parts.outcome(), parts.scenario()).figures["transfers"]
    assert transfers == {"requests": 0, "mean_s": None, "waited_mean_s": None, "p99_s": None, "slowest": None}
