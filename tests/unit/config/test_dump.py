from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.config.dump import dump
from sim.config.load import load_scenario, load_topology
from sim.config.scenario import Scenario

REPOSITORY = Path(__file__).parents[3]
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,10}", fullmatch=True)
counts = st.integers(1, 10**6)
times = st.integers(1, 8 * 10**18).map(lambda ps: f"{ps} ps")
words = st.text(max_size=30).filter(lambda word: "\0" not in word)
pools = st.lists(
    st.fixed_dictionaries(
        {"name": names, "role": st.sampled_from(["prefill", "decode"]), "replicas": counts}
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda pool: pool["name"],
)
rates = st.floats(1e-6, 1e9).map(lambda rate: f"{rate!r} req/s")
workloads = st.one_of(
    st.fixed_dictionaries({"generator": st.just("mooncake-conversation"), "rate": rates}),
    st.fixed_dictionaries({"trace": st.just("conversation"), "tick": times, "scale": st.just({"copies": 3})}),
    st.fixed_dictionaries(
        {
            "arrivals": st.fixed_dictionaries(
                {"kind": st.just("gamma"), "rate": rates, "cv": st.floats(0.1, 9)}
            ),
            "input": st.just({"kind": "fixed", "tokens": 7}),
        }
    ),
)
scenarios = st.fixed_dictionaries(
    {
        "sim": st.just(1),
        "name": names,
        "description": words,
        "topology": st.just("/elsewhere/dgx.yaml"),
        "model": st.fixed_dictionaries({"name": words}),
        "engine": st.sampled_from(
            ["no", "010", "1e6", "null", "12:30", "true", "~", "", "- a", "a: b", "7", "x\ny"]
        ),
        "pools": pools,
        "router": st.fixed_dictionaries({"load_weight": st.floats(0, 1e6)}),
        "workload": workloads,
        "run": st.fixed_dictionaries({"warm_caches": st.one_of(st.booleans(), times), "duration": times}),
        "slo": st.lists(st.just("ttft p99.9 <= 2 s"), max_size=2),
    }
)


def test_text(study: Path) -> None:
    assert (
        dump(load_scenario("chat.yaml"), study) == (Path(__file__).parent / "chat.resolved.yaml").read_text()
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(scenarios)
def test_what_is_written_loads_as_an_equal_form(tmp_path: Path, values: dict[str, Any]) -> None:
    scenario = Scenario.model_validate(values)
    file = tmp_path / "resolved.yaml"
    file.write_text(dump(scenario, tmp_path), encoding="utf-8", newline="")
    assert load_scenario(file) == scenario


@pytest.mark.parametrize(
    "file", sorted((REPOSITORY / "topologies").glob("*.yaml")), ids=lambda file: file.stem
)
def test_topologies_of_this_repository_load_again(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "resolved.yaml"
    copy.write_text(dump(load_topology(file), tmp_path))
    assert load_topology(copy) == load_topology(file)


@pytest.mark.parametrize(
    "file", sorted((REPOSITORY / "scenarios").glob("*.yaml")), ids=lambda file: file.stem
)
def test_scenarios_of_this_repository_load_again_in_every_variant(file: Path, tmp_path: Path) -> None:
    for variant in (None, *load_scenario(file).document.variants):
        copy = tmp_path / "resolved.yaml"
        copy.write_text(dump(load_scenario(file, (), variant), tmp_path))
        assert load_scenario(copy) == load_scenario(file, (), variant)


def test_paths_are_relative_inside_the_repository_only(study: Path) -> None:
    chat = load_scenario("chat.yaml")
    run = study / "runs" / "chat-1"
    assert f"topology: {study}/topologies/dgx.yaml\n" in dump(chat, run)
    (study / ".git").mkdir()
    text = dump(chat, run)
    assert "topology: ../../topologies/dgx.yaml\n" in text
    run.mkdir(parents=True)
    (run / "scenario.yaml").write_text(text)
    assert load_scenario(run / "scenario.yaml") == chat


@pytest.mark.parametrize(
    ("sets", "absent"),
    [
        ((), ("tick", "scale", "arrivals")),
        (("workload={trace: x, generator: null, rate: null}",), ("rate", "input")),
    ],
)
def test_what_belongs_to_another_source_is_left_out(
    sets: tuple[str, ...], absent: tuple[str, ...], study: Path
) -> None:
    workload = load_scenario("chat.yaml", sets).model_dump(exclude_none=True)["workload"]
    assert not workload.keys() & set(absent)
