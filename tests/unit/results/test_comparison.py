"""Columns compared by hand: what is better, worse, unclear, missing, and what is said about it."""

import math

import pytest
from comparison_parts import BASE, changed, rows

from sim.results.comparedwords import sentence
from sim.results.comparison import BETTER, OTHER, UNCLEAR, UNKNOWN, WORSE, compare_rows


def test_differences_are_taken_seed_by_seed():
    """Seeds scatter by ten; the column is ten better in each: clear, though the means' intervals overlap."""
    found = compare_rows(rows({"a": BASE, "b": changed(goodput_per_s=10.0, ttft_p90_s=0.1)}), "a")
    goodput, ttft = found.cell("b", "goodput_per_s"), found.cell("b", "ttft_p90_s")
    assert goodput.verdict == BETTER
    assert goodput.relative.mean == pytest.approx(0.101)
    assert goodput.relative.half == pytest.approx(4.3027 * 0.1 / math.sqrt(3) / 100, rel=1e-4)
    assert ttft.verdict == WORSE
    assert found.cell("a", "goodput_per_s").verdict is None


def test_what_goes_up_and_down_is_not_clear():
    b = BASE | {"goodput_per_s": (103.0, 106.0, 91.0)}
    assert compare_rows(rows({"a": BASE, "b": b}), "a").cell("b", "goodput_per_s").verdict == UNCLEAR


def test_shares_differ_by_points_and_some_have_no_better():
    b = changed(hit_fraction=0.1) | {"busiest_link_fraction": (0.5, 0.5, 0.51)}
    a = BASE | {"busiest_link_fraction": (0.2, 0.2, 0.2)}
    found = compare_rows(rows({"a": a, "b": b}), "a")
    hits = found.cell("b", "hit_fraction")
    assert (hits.relative, hits.verdict) == (None, BETTER)
    assert hits.difference.mean == pytest.approx(0.101)
    assert found.cell("b", "busiest_link_fraction").verdict == OTHER


def test_one_seed_and_seeds_that_change_nothing_leave_all_unknown():
    one = compare_rows(rows({"a": BASE, "b": changed(goodput_per_s=10.0)}, seeds=(1,)), "a")
    assert one.cell("b", "goodput_per_s").verdict == UNKNOWN
    assert "one seed" in sentence(one, "b")
    table = rows({"a": BASE, "b": changed(goodput_per_s=10.0)})
    table["digest"] = table["column"]
    same = compare_rows(table, "a")
    assert same.is_chance_free
    assert same.cell("b", "goodput_per_s").verdict == UNKNOWN
    assert "every seed gives the same" in sentence(same, "b")


def test_what_a_seed_lacks_is_missing():
    b = BASE | {"ttft_p90_s": (1.0, None, 0.8)}
    found = compare_rows(rows({"a": BASE, "b": b}), "a")
    assert found.cell("b", "ttft_p90_s").mean is None
    assert found.cell("a", "ttft_p90_s").mean == pytest.approx(1.0)


def test_a_failed_column_is_left_out_with_its_reason():
    table = rows({"a": BASE, "b": BASE, "c": BASE})
    table.loc[(table["column"] == "b") & (table["seed"] == 2), ["status", "reason"]] = ["failed", "no room"]
    found = compare_rows(table, "a")
    assert found.columns == ("a", "c")
    assert found.failed == {"b": "no room"}


def test_the_sentence_is_about_users_and_names_the_phase():
    b = changed(goodput_per_s=11.0, phase_queue_s=-0.3)
    said = sentence(compare_rows(rows({"a": BASE, "b": b}), "a"), "b")
    assert said == (
        "b serves 11 % more requests within the SLO; on average prompts wait for prefill 303 ms less."
    )
    slower = sentence(compare_rows(rows({"a": BASE, "b": changed(ttft_p90_s=0.2)}), "a"), "b")
    assert slower == "b has a TTFT p90 that is 20 % longer."
    assert "no clear difference" in sentence(compare_rows(rows({"a": BASE, "b": BASE}), "a"), "b")


def test_a_phase_that_hardly_changed_is_no_cause():
    b = changed(goodput_per_s=11.0, phase_queue_s=-0.05)
    assert "on average" not in sentence(compare_rows(rows({"a": BASE, "b": b}), "a"), "b")


def test_measures_that_are_the_same_everywhere_are_left_out():
    same = compare_rows(rows({"a": BASE, "b": BASE}), "a")
    assert [one.measure.column for one in same.measures] == [
        "goodput_per_s",
        "ttft_p90_s",
        "tpot_p90_s",
        "e2e_p99_s",
    ]


def test_a_trifle_is_no_difference_however_sure():
    found = compare_rows(rows({"a": BASE, "b": changed(goodput_per_s=0.005, ttft_p90_s=0.001)}), "a")
    assert found.cell("b", "goodput_per_s").verdict == UNCLEAR
    assert found.cell("b", "ttft_p90_s").verdict == WORSE


def test_links_are_those_of_most_seeds():
    table = rows({"a": BASE, "b": BASE})
    table.loc[table["column"] == "b", "busiest_link"] = ["leaf 1 up", "leaf 2 up", "leaf 2 up"]
    found = compare_rows(table, "a")
    assert found.links == ("node 0 NIC tx", "leaf 2 up")
    assert found.waited_for == ("nic_rx", "nic_rx")
