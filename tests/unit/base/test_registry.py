from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from sim.base.errors import UnknownNameError
from sim.base.registry import Registry

Rule = Callable[[], int]


@pytest.fixture
def rule() -> Registry[Rule]:
    rule = Registry[Rule]("rule")

    @rule("two")
    def two() -> int:
        """Give two.

        Always.
        """
        return 2

    @rule("one")
    def one() -> int:
        return 1

    return rule


def test_finds_by_name(rule: Registry[Rule]) -> None:
    assert rule["two"]() == 2
    assert rule.names() == tuple(rule) == ("one", "two")
    assert len(rule) == 2
    assert "one" in rule
    assert "three" not in rule


def test_summary_is_the_first_line_of_the_docstring(rule: Registry[Rule]) -> None:
    assert rule.summary("two") == "Give two."
    assert rule.summary("one") == ""


def test_a_name_is_taken_once(rule: Registry[Rule]) -> None:
    with pytest.raises(ValueError, match="rule 'one' is registered twice"):
        rule("one")


def test_an_unknown_name_gets_the_nearest(rule: Registry[Rule]) -> None:
    with pytest.raises(UnknownNameError) as caught:
        rule["tow"]
    assert str(caught.value) == "unknown rule 'tow'\n  hint: did you mean 'two'?"


def test_a_name_with_a_module_is_imported(rule: Registry[Rule]) -> None:
    assert rule["random:random"] is random.random


def test_what_cannot_be_imported(rule: Registry[Rule]) -> None:
    with pytest.raises(UnknownNameError, match="unknown rule module 'no_such_module'"):
        rule["no_such_module:mine"]
    with pytest.raises(
        UnknownNameError, match=r"unknown rule of module random 'rnadom'\n  hint: did you mean 'random'"
    ):
        rule["random:rnadom"]
    with pytest.raises(UnknownNameError, match="unknown rule module ''"):
        rule[":mine"]
