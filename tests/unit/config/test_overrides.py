from __future__ import annotations

from pathlib import Path

import pytest

from sim.base.errors import ConfigError, ValueProblem
from sim.config.marks import Mark, Node, Source, plain
from sim.config.overrides import Override, assign, merge, node_of, overridden, patched

MARK = Mark(Source("a.yaml", Path(), None, ("",)))
PATCH = Mark(Source("b.yaml", Path(), None, ("",)))
BASE = {
    "name": "chat",
    "pools": [{"name": "prefill", "tp": 8, "place": "packed"}, {"name": "decode", "tp": 4}],
    "run": {"seed": 1, "start": "0 s"},
    "slo": ["a", "b"],
}


def base() -> Node:
    return node_of(BASE, MARK)


def merged(patch: object) -> object:
    return plain(merge(base(), node_of(patch, PATCH)))


def test_mappings_merge_key_by_key() -> None:
    assert merged({"run": {"seed": 2}, "new": 1}) == {**BASE, "run": {"seed": 2, "start": "0 s"}, "new": 1}


def test_named_items_merge_by_name_and_new_ones_join() -> None:
    assert merged({"pools": [{"name": "decode", "tp": 8}, {"name": "spare", "tp": 1}]}) == {
        **BASE,
        "pools": [
            {"name": "prefill", "tp": 8, "place": "packed"},
            {"name": "decode", "tp": 8},
            {"name": "spare", "tp": 1},
        ],
    }


def test_other_lists_are_replaced() -> None:
    assert merged({"slo": ["c"]}) == {**BASE, "slo": ["c"]}
    assert merged({"pools": [{"tp": 1}]}) == {**BASE, "pools": [{"tp": 1}]}
    assert merged({"pools": []}) == {**BASE, "pools": []}


def test_null_takes_a_key_back() -> None:
    assert merged({"run": {"seed": None}, "slo": None}) == {
        key: value for key, value in {**BASE, "run": {"start": "0 s"}}.items() if key != "slo"
    }


def test_values_keep_the_mark_of_where_they_are_written() -> None:
    node = merge(base(), node_of({"run": {"seed": 2}}, PATCH))
    run = node.items["run"]
    assert [run.mark, run.items["seed"].mark, run.items["start"].mark] == [MARK, PATCH, MARK]


def assigned(key: str, value: object) -> object:
    return plain(assign(base(), key.split("."), node_of(value, PATCH)))


def test_dotted_keys_go_by_name_index_and_star() -> None:
    first, second = BASE["pools"]
    assert assigned("pools.decode.tp", 2) == {**BASE, "pools": [first, {"name": "decode", "tp": 2}]}
    assert assigned("pools.1.tp", 2) == {**BASE, "pools": [first, {"name": "decode", "tp": 2}]}
    assert assigned("pools.*.tp", 2) == {
        **BASE,
        "pools": [{"name": "prefill", "tp": 2, "place": "packed"}, {"name": "decode", "tp": 2}],
    }
    assert assigned("slo.0", "c") == {**BASE, "slo": ["c", "b"]}
    assert assigned("pools.prefill", None) == {**BASE, "pools": [second]}
    assert assigned("pools.*", None) == {**BASE, "pools": []}


def test_dotted_keys_make_what_is_not_there() -> None:
    assert assigned("router.policy", "round_robin") == {**BASE, "router": {"policy": "round_robin"}}
    assert assigned("a.b.c", 1) == {**BASE, "a": {"b": {"c": 1}}}


@pytest.mark.parametrize(
    ("key", "problem", "hint"),
    [
        ("pools.decod.tp", "pools has no item 'decod'", "did you mean 'decode'?"),
        (
            "pools.2.tp",
            "pools has no item '2'",
            "it has 2 items, counted from 0; their names are prefill, decode",
        ),
        ("slo.x", "slo has no item 'x'", "it has 2 items, counted from 0"),
        ("run.seed.x", "run.seed has no keys, so no 'x'", "its value is 1; set it as a whole"),
    ],
)
def test_dotted_keys_that_lead_nowhere(key: str, problem: str, hint: str) -> None:
    with pytest.raises(ValueProblem) as caught:
        assigned(key, 1)
    assert (caught.value.problem, caught.value.hint) == (problem, hint)


def test_a_star_over_nothing_leads_nowhere() -> None:
    empty = node_of({"pools": []}, MARK)
    with pytest.raises(ValueProblem, match="pools has no items"):
        assign(empty, ("pools", "*", "tp"), node_of(1, PATCH))


def test_the_base_is_not_changed() -> None:
    before = base()
    merge(before, node_of({"run": {"seed": 2}, "pools": [{"name": "decode", "tp": 1}]}, PATCH))
    assign(before, ("pools", "0", "tp"), node_of(1, PATCH))
    assert plain(before) == BASE


def test_a_patch_may_have_dotted_keys() -> None:
    errors: list[ConfigError] = []
    patch = node_of({"pools.decode.tp": 2, "run": {"seed": 2}, "pools.x.tp": 1}, PATCH)
    node = patched(base(), patch, errors, "variants.fast")
    assert plain(node.items["run"]) == {"seed": 2, "start": "0 s"}
    assert plain(node.items["pools"].elements[1]) == {"name": "decode", "tp": 2}
    assert [error.key for error in errors] == ["variants.fast.pools.x.tp"]


def set_to(*settings: str) -> tuple[dict[str, object], list[str]]:
    errors: list[ConfigError] = []
    tree = plain(overridden(base(), [Override.of_text(setting) for setting in settings], errors))
    assert isinstance(tree, dict)
    return tree, [str(error) for error in errors]


def test_values_of_a_set_are_yaml() -> None:
    tree, errors = set_to(
        "a=1", "b='1'", "c=[1, x]", "d={e: 400 Gb/s}", "f=no", "g=1e3", "h=x=y", "name=null"
    )
    assert not errors
    assert {key: tree.get(key) for key in "abcdfgh"} == {
        "a": 1,
        "b": "1",
        "c": [1, "x"],
        "d": {"e": "400 Gb/s"},
        "f": "no",
        "g": 1000,
        "h": "x=y",
    }
    assert "name" not in tree


def test_sets_are_laid_over_in_order_and_a_wrong_one_changes_nothing() -> None:
    tree, errors = set_to("run.seed=2", "run.seed=3", "run.seed=010", "run.seed.x=1")
    assert tree["run"] == {"seed": 3, "start": "0 s"}
    assert [error.partition("\n")[0] for error in errors] == [
        "--set run.seed=010: 010 starts with a zero, which some read as octal",
        "--set run.seed.x=1: run.seed has no keys, so no 'x'",
    ]
