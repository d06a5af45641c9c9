from __future__ import annotations

import pytest

from sim.base.errors import (
    Advice,
    ConfigError,
    ConfigErrors,
    SimulationError,
    UnknownNameError,
    UnsupportedError,
    did_you_mean,
    listed,
    shown,
    suggest,
)


def error(problem: str = "unknown key") -> ConfigError:
    return ConfigError(
        "bad.yaml",
        5,
        3,
        key="fabric.bandwidht",
        problem=problem,
        hint="did you mean 'bandwidth'?",
        excerpt="   5 |   bandwidht: 400 Gb/s\n         ^",
    )


def test_a_mistake_says_where_what_and_how_to_mend_it() -> None:
    assert str(error()) == (
        "bad.yaml:5:3: fabric.bandwidht: unknown key\n"
        "   5 |   bandwidht: 400 Gb/s\n"
        "         ^\n"
        "  hint: did you mean 'bandwidth'?"
    )


def test_a_mistake_without_a_line() -> None:
    assert str(ConfigError("a.yaml", None, None, problem="no such file")) == "a.yaml: no such file"


def test_ten_mistakes_are_all_shown() -> None:
    assert str(ConfigErrors([error(f"problem {i}") for i in range(10)])).count("problem") == 10
    assert "more" not in str(ConfigErrors([error(f"problem {i}") for i in range(10)]))


def test_of_twelve_mistakes_ten_are_shown() -> None:
    text = str(ConfigErrors([error(f"problem {i}") for i in range(12)]))
    assert text.count("problem") == 10
    assert text.endswith("\n\n... and 2 more mistakes")
    assert str(ConfigErrors([error()] * 11)).endswith("... and 1 more mistake")


def test_exit_codes_tell_whose_fault_it_is() -> None:
    assert error().exit_code == ConfigErrors([]).exit_code == UnsupportedError("x").exit_code == 2
    assert UnknownNameError("router", "x", ()).exit_code == 2
    assert SimulationError("bytes were lost").exit_code == 3
    assert "please report" in str(SimulationError("bytes were lost"))


def test_other_voices() -> None:
    assert (
        str(UnsupportedError("no torus", "use rail-optimized")) == "no torus\n  nearest: use rail-optimized"
    )
    assert str(Advice("few samples", "run longer")) == "few samples\n  advice: run longer"
    unknown = UnknownNameError("router", "least_loadd", ["least_loaded", "round_robin"])
    assert str(unknown) == "unknown router 'least_loadd'\n  hint: did you mean 'least_loaded'?"
    with pytest.raises(KeyError):
        raise unknown


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("bandwidht", "bandwidth"),
        ("BANDWIDTH", "bandwidth"),
        ("max-batch-tokens", "max_batch_tokens"),
        ("colour", None),
    ],
)
def test_suggest(word: str, near: str | None) -> None:
    assert suggest(word, ["bandwidth", "latency", "max_batch_tokens"]) == near


def test_did_you_mean_lists_the_choices_where_none_is_near() -> None:
    assert did_you_mean("x", ["one", "two", "three"]) == "choose from one, two and three"
    assert did_you_mean("x", ["one"]) == "the only choice is 'one'"
    assert did_you_mean("x", []) == "there is nothing to choose from"


def test_listed() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"], "or") == "a or b"
    assert listed([]) == ""
    assert listed([str(i) for i in range(20)], most=3) == "0, 1, 2 ... (17 more)"


def test_shown() -> None:
    assert [shown(value) for value in ({}, [], True, None, "8", 8, "x" * 70)] == [
        "a mapping",
        "a list",
        "true",
        "null",
        "'8'",
        "8",
        f"'{'x' * 60}...'",
    ]
