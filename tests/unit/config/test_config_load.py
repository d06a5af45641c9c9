from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sim.base.errors import ConfigErrors
from sim.config.load import load_scenario, load_topology, replaced
from sim.config.scenario import Scenario
from sim.config.topology import Topology

S = 10**12
TOPOLOGY = """\
sim: 1
name: small
source: [hand-made]
nodes: [{name: dgx, type: dgx-b200, count: 6}]
fabric:
  kind: rail-optimized
  link: infiniband-ndr
  rails: 8
  nodes_per_unit: 32
  units_per_pod: 4
  leaf: {radix: 64, uplinks: 32}
  routing: {efficiency: 95 %}
"""


def message(*arguments: object) -> str:
    with pytest.raises(ConfigErrors) as caught:
        load_scenario(*arguments)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_scenario(study: Path) -> None:
    chat = load_scenario("chat.yaml")
    assert chat.topology == str(study / "topologies" / "dgx.yaml")
    assert [(pool.name, pool.replicas, pool.tp) for pool in chat.pools] == [
        ("prefill", 4, 8),
        ("decode", 2, 8),
    ]
    assert chat.workload.rate == 20.0
    assert (chat.run.duration, chat.run.warm_caches, chat.run.start) == (60 * S, 600 * S, 0)
    assert [limit.text for limit in chat.slo] == ["ttft p90 < 2 s"]


def test_a_topology(study: Path) -> None:
    (study / "small.yaml").write_text(TOPOLOGY)
    small = load_topology(study / "small.yaml")
    assert small.nodes[0].count == 6
    assert small.fabric is not None
    assert small.fabric.routing.efficiency == 0.95
    assert small.fabric.spine is None


def test_a_topology_may_extend_another(study: Path) -> None:
    (study / "small.yaml").write_text(TOPOLOGY)
    (study / "large.yaml").write_text(
        "extends: small.yaml\nname: large\nnodes.dgx.count: 60\nfabric.rails: 4\n"
    )
    large = load_topology("large.yaml")
    assert (large.name, large.nodes[0].count, large.nodes[0].type) == ("large", 60, "dgx-b200")
    assert large.fabric is not None
    assert large.fabric.rails == 4


@pytest.mark.parametrize(("written", "is_warm"), [("true", True), ("false", False), ("1 h", 3600 * S)])
def test_warm_caches_takes_a_boolean_or_a_time(written: str, is_warm: bool | int, study: Path) -> None:
    run = load_scenario("chat.yaml", [f"run.warm_caches={written}"]).run
    assert run.warm_caches == is_warm
    assert type(run.warm_caches) is type(is_warm)


def test_the_order_is_extends_then_variant_then_sets(study: Path) -> None:
    (study / "base.yaml").write_text((study / "chat.yaml").read_text())
    (study / "middle.yaml").write_text("extends: base.yaml\nrun: {seed: 10, start: 1 s}\nname: middle\n")
    (study / "chat.yaml").write_text("extends: middle.yaml\nrun: {seed: 11}\nname: chat\n")
    assert load_scenario("chat.yaml").run.seed == 11
    assert load_scenario("chat.yaml").run.start == S
    assert load_scenario("chat.yaml").name == "chat"
    large = load_scenario("chat.yaml", ["run.seed=4", "pools.decode.tp=4"], "large")
    assert (large.run.seed, large.pools[1].replicas, large.pools[1].tp) == (4, 8, 4)
    assert load_scenario("chat.yaml", variant="large").run.seed == 3


def test_a_child_may_add_variants_and_change_those_of_its_parent(study: Path) -> None:
    (study / "child.yaml").write_text(
        "extends: chat.yaml\nvariants:\n  large: {run: {seed: 5}}\n  tiny: {pools.*.replicas: 1}\n"
    )
    assert load_scenario("child.yaml").document.variants == ("large", "slow", "tiny")
    large = load_scenario("child.yaml", variant="large")
    assert (large.run.seed, large.pools[1].replicas) == (5, 8)
    assert [pool.replicas for pool in load_scenario("child.yaml", variant="tiny").pools] == [1, 1]


def test_paths_start_at_the_file_they_are_written_in(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (study / ".git").mkdir()
    (study / "parts").mkdir()
    (study / "parts" / "base.yaml").write_text((study / "chat.yaml").read_text())
    (study / "chat.yaml").write_text("extends: parts/base.yaml\nvariants:\n  own: {topology: dgx.yaml}\n")
    monkeypatch.chdir(study / "parts")
    chat = study / "chat.yaml"
    assert load_scenario(chat).topology == str(study / "parts" / "topologies" / "dgx.yaml")
    assert load_scenario(chat, variant="own").topology == str(study / "dgx.yaml")
    assert load_scenario(chat, ["topology=dgx.yaml"]).topology == str(study / "parts" / "dgx.yaml")
    assert load_scenario(chat, ["topology=/elsewhere/dgx.yaml"]).topology == "/elsewhere/dgx.yaml"


def test_a_trace_is_a_file_or_a_name(study: Path) -> None:
    take_back = "workload.generator=null"
    for_trace = [take_back, "workload.rate=null"]
    assert load_scenario("chat.yaml", [*for_trace, "workload.trace=mooncake"]).workload.trace == "mooncake"
    (study / "mooncake").touch()
    assert load_scenario("chat.yaml", [*for_trace, "workload.trace=mooncake"]).workload.trace == str(
        study / "mooncake"
    )


def test_a_chain_has_an_end(study: Path) -> None:
    for i in range(12):
        (study / f"s{i}.yaml").write_text(f"extends: s{i + 1}.yaml\n")
    (study / "s12.yaml").write_text((study / "chat.yaml").read_text())
    assert load_scenario("s3.yaml").name == "chat"
    assert "more than 10 files extend each other" in message("s1.yaml")


def test_files_are_named_as_the_user_knows_them(study: Path) -> None:
    (study / "parts").mkdir()
    (study / "parts" / "base.yaml").write_text((study / "chat.yaml").read_text().replace("60 s", "60"))
    (study / "chat.yaml").write_text("extends: parts/../parts/base.yaml\n")
    assert message("chat.yaml").startswith("parts/base.yaml:13:7: run.duration: 60 has no unit")
    assert message("../study/chat.yaml").startswith("../study/parts/base.yaml:13:7:")
    assert message(study / "chat.yaml").startswith(f"{study}/parts/base.yaml:13:7:")


def test_a_file_that_is_not_there(study: Path) -> None:
    assert message("chta.yaml") == "chta.yaml: no such file\n  hint: did you mean 'chat.yaml'?"


def test_mistakes_of_file_and_sets_come_together_in_order(study: Path, text: str) -> None:
    (study / "chat.yaml").write_text(text.replace("20 req/s", "20").replace("replicas: 4", "replicas: 04"))
    told = message("chat.yaml", ["run.sede=1", "run.duration=1"], "lrage").split("\n\n")
    assert [error.partition("\n")[0] for error in told] == [
        "chat.yaml:6:36: pools.0.replicas: 04 starts with a zero, which some read as octal",
        "chat.yaml:12:3: workload.rate: 20 has no unit",
        "--variant lrage: unknown variant 'lrage'",
        "--set run.sede=1: unknown key 'sede'",
        "--set run.duration=1: 1 has no unit",
    ]


def test_replace_gives_a_changed_copy(study: Path) -> None:
    chat = load_scenario("chat.yaml")
    more = chat.replace({"pools.prefill.replicas": 300, "slo": ["e2e max < 1 min"], "run.duration": None})
    assert (more.pools[0].replicas, more.run.duration) == (300, None)
    assert more.slo[0].metric == "e2e"
    assert chat.pools[0].replicas == 4
    assert chat.replace({}) == chat
    assert (
        more.replace({"pools.prefill.replicas": 4, "slo": ["ttft p90 < 2 s"], "run.duration": "60 s"}) == chat
    )
    assert isinstance(more, Scenario)


def test_replace_points_at_the_change(study: Path) -> None:
    chat = load_scenario("chat.yaml")
    with pytest.raises(ConfigErrors) as caught:
        chat.replace({"pools.prefil.replicas": 3, "pools.decode.replicas": 0, "run.sede": 1})
    assert [str(error).partition("\n")[0] for error in caught.value.errors] == [
        "replace pools.prefil.replicas=3: pools has no item 'prefil'",
        "replace pools.decode.replicas=0: must be above 0, not 0",
        "replace run.sede=1: unknown key 'sede'",
    ]


def test_replace_works_on_what_was_never_in_a_file() -> None:
    topology = Topology.model_validate(
        {"sim": 1, "name": "one", "source": ["x"], "nodes": [{"name": "a", "type": "b", "count": 1}]}
    )
    assert topology.replace({"nodes.a.count": 2}).nodes[0].count == 2
    assert str(topology.document.error("nodes.a.type", "unknown node 'b'")) == (
        "topology: nodes.a.type: unknown node 'b'"
    )
    with pytest.raises(ConfigErrors):
        replaced(topology, {"nodes": []})


def test_replace_knows_what_model_copy_changed(study: Path) -> None:
    chat = load_scenario("chat.yaml")
    copied = chat.model_copy(update={"name": "copy"})
    assert copied.replace({"run.seed": 9}).name == "copy"


def test_later_checks_point_at_the_line(study: Path) -> None:
    document = load_scenario("chat.yaml", ["pools.prefill.tp=6"]).document
    assert str(document.error("pools.1.role", "no such role", "use another")) == (
        "chat.yaml:8:5: pools.1.role: no such role\n"
        "   8 |     role: decode\n"
        "           ^\n"
        "  hint: use another"
    )
    assert str(document.error("pools.decode.tp", "too many")).startswith(
        "chat.yaml:7:5: pools.decode.tp: too many"
    )
    top = str(document.error("engine", "unknown engine"))
    assert top.startswith("chat.yaml:1:1: engine: unknown engine")
    assert str(document.error("pools.0.tp", "6 does not divide 8")) == (
        "--set pools.prefill.tp=6: 6 does not divide 8"
    )
    assert document.where("pools.1.role") == "chat.yaml:8:5"
    assert document.where("pools.0.tp") == "--set pools.prefill.tp=6"
    assert document.overrides == ("--set pools.prefill.tp=6",)


def test_forms_with_equal_values_are_equal(study: Path, text: str) -> None:
    (study / "other.yaml").write_text(text.replace("60 s", "1 min").replace("\n  rate", "\n\n  rate"))
    assert load_scenario("chat.yaml") == load_scenario("other.yaml")
    assert load_scenario("chat.yaml") != load_scenario("chat.yaml", ["run.seed=2"])


def test_loading_imports_nothing_heavy() -> None:
    heavy = ("numpy", "pandas", "networkx", "simpy", "matplotlib")
    code = f"import sys, sim.config.load; print([name for name in {heavy} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == "[]\n"
