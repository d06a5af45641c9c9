"""Every scenario, topology, schema and template that comes with the simulator."""

from __future__ import annotations

import json
import resource

import jsonschema
import pytest
import yaml
from documents import ROOT, Block

from sim import api
from sim.base.errors import ConfigError
from sim.checks import check_topology
from sim.cli.schema import schema_text

KINDS = ("scenario", "topology", "device")
SCENARIOS = sorted((ROOT / "scenarios").glob("**/*.yaml"))
TOPOLOGIES = sorted((ROOT / "topologies").glob("**/*.yaml"))
VARIANTS = [
    (path, variant)
    for path in SCENARIOS
    for variant in (None, *yaml.safe_load(path.read_text()).get("variants", {}))
]
A_FEW_SECONDS_CPU_S = 10


def mistakes(findings):
    return [str(finding) for finding in findings if isinstance(finding, ConfigError)]


def stem(value):
    return getattr(value, "stem", value)


@pytest.mark.parametrize(("path", "variant"), VARIANTS, ids=stem)
def test_scenarios_can_run(path, variant):
    assert mistakes(api.check(api.load(path, variant=variant))) == []


@pytest.mark.parametrize("path", TOPOLOGIES, ids=stem)
def test_topologies_can_be_cabled(path):
    assert mistakes(check_topology(path)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_current(kind):
    committed = (ROOT / "schemas" / f"{kind}.json").read_text()
    assert committed == schema_text(kind), f"run: sim schema {kind} > schemas/{kind}.json"


@pytest.mark.parametrize("path", [*SCENARIOS, *TOPOLOGIES], ids=stem)
def test_files_name_their_schema_and_keep_to_it(path):
    first = path.read_text().splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    schema = path.parent / first.partition("=")[2]
    assert schema.resolve().parent == ROOT / "schemas"
    jsonschema.validate(yaml.safe_load(path.read_text()), json.loads(schema.read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["my-study/scenario.yaml", "scenarios/hello.yaml"])
def test_first_steps_answer_in_seconds(scenario, run):
    assert run(Block("sh", "sim new my-study", 1)).returncode == 0
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(Block("sh", f"sim run {scenario}", 1))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, done.stderr) == (0, "")
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < A_FEW_SECONDS_CPU_S


@pytest.mark.slow
def test_the_study_holds_what_its_readme_says(run):
    script = "sim new my-study\ncd my-study\nsim check scenario.yaml topology.yaml\nsim run scenario.yaml"
    assert run(Block("sh", script, 1)).returncode == 0
    busier = run(Block("sh", "cd my-study\nsim run scenario.yaml --variant busier", 1))
    assert busier.returncode in {0, 1}
    assert busier.stdout.startswith("my-study")
