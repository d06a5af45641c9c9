"""`sim check` looks at a scenario file and at each of its variants, and says each thing once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from chat_parts import SCENARIO

from sim.cli import main

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def checked(tmp_path, monkeypatch, capsys):
    """Check a scenario on two nodes with these variants: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(REPOSITORY / "topologies" / "two-dgx-b200.yaml", "topology.yaml")

    def check(*variants, text=SCENARIO):
        lines = "".join(f"  {variant}\n" for variant in variants)
        Path("chat.yaml").write_text(text + (f"variants:\n{lines}" if variants else ""))
        return main(["check", "chat.yaml"]), *capsys.readouterr()

    return check


def test_no_mistakes(checked):
    assert checked() == (0, "✓ chat.yaml: no mistakes\n", "")
    found = checked("fast: {workload.arrivals.rate: 2 req/s}")
    assert found == (0, "✓ chat.yaml and 1 variant: no mistakes\n", "")


def test_a_mistake_of_a_variant_is_told_at_its_line(checked):
    code, out, err = checked("odd: {pools.decode.tp: 3}", "typo: {workload.arrivals.raet: 2 req/s}")
    assert (code, out) == (2, "")
    problem = "3 GPUs are neither an equal part of the 8 of a node nor whole nodes (variant odd)"
    assert (
        err
        == f"""\
chat.yaml:15:9: pools.1.tp: {problem}
  15 |   odd: {{pools.decode.tp: 3}}
               ^
  hint: use 2 or 4

chat.yaml:16:10: workload.arrivals.raet: unknown key (variant typo)
  16 |   typo: {{workload.arrivals.raet: 2 req/s}}
                ^
  hint: did you mean 'rate'?
"""
    )


def test_a_mistake_at_a_line_of_the_file_names_the_variants_that_make_it_one(checked):
    more = ("more: {pools.prefill.replicas: 2}", "also: {pools.prefill.replicas: 2}")
    code, _, err = checked(*more, "less: {pools.prefill.tp: 4}")
    assert code == 2
    assert err.count("hint") == 1
    assert err.startswith(
        "chat.yaml:7:34: pools.1.replicas: 1 replicas of 8 GPUs do not fit: there is room for 0 "
    )
    assert "(variants more and also)\n" in err


@pytest.mark.parametrize(("right", "wrong"), [("replicas: 1}", "replica: 1}"), ("70b", "07b")])
def test_a_mistake_of_the_file_is_said_once(checked, right, wrong):
    _, _, alone = checked(text=SCENARIO.replace(right, wrong, 1))
    code, out, err = checked("a: {run.seed: 2}", "b: {run.seed: 3}", text=SCENARIO.replace(right, wrong, 1))
    assert (code, out) == (2, "")
    assert err == alone
    assert "variant" not in err


def test_mistakes_of_the_file_and_of_variants_come_together_in_the_order_of_lines(checked):
    wrong = SCENARIO.replace("duration: 1 min", "duration: 1 mni")
    _, _, err = checked(
        "odd: {pools.decode.max_sequences: 0}", "even: {pools.decode.replicas: 0}", text=wrong
    )
    assert [line.split(": ")[1] for line in err.splitlines() if line.startswith("chat.yaml:")] == [
        "run.duration",
        "pools.1.max_sequences",
        "pools.1.replicas",
    ]


def test_a_variant_on_a_topology_with_mistakes(checked):
    Path("broken.yaml").write_text(Path("topology.yaml").read_text().replace("type: dgx", "type: dgz"))
    code, _, err = checked("other: {topology: broken.yaml}", "again: {topology: broken.yaml}")
    assert code == 2
    assert err.startswith("broken.yaml:8:17: nodes.0.type: ")
    assert err.count("unknown node 'dgz-b200' (variants other and again)") == 1


def test_doubts_of_variants_name_them(checked):
    code, out, err = checked("silent: {slo: []}")
    assert (code, out) == (0, "✓ chat.yaml and 1 variant: no mistakes, 1 doubt\n")
    assert err == (
        "! chat.yaml:15:12: slo: there is no SLO, so there will be no verdict and no goodput "
        "(variant silent)\n"
        "  advice: write slo: [ttft p90 < 2 s]\n"
    )


def test_variants_that_are_no_mapping_are_one_mistake(checked):
    code, _, err = checked(text=f"{SCENARIO}variants: [fast]\n")
    assert code == 2
    assert err.startswith("chat.yaml:14:1: variants: must be a mapping of names to patches\n")
    assert err.count("hint") == 1
