"""What a run costs and draws, by hand, and that what is not known is absent and says why."""

import pytest
import results_parts as parts
from models.studies import SCENARIO, SMALL, changed, played
from test_figures import done, run_of

from sim.base.errors import ConfigErrors
from sim.catalog import load_catalog
from sim.config.scenario import Cost
from sim.report.cost import cost_lines
from sim.report.text import plain
from sim.results.cost import cost_figures
from sim.results.energy import energy_figures
from sim.results.measured import Measured
from sim.tables.uses import ReplicaUse

S = parts.S
HOUR = 3600 * S
OWN = Cost(gpu_price="3 USD/h", idle_power="100 W", busy_power="500 W")


def replica(pool, gpu, gpus, busy_s, tokens):
    return ReplicaUse(0, pool, pool, pool, gpus, busy_s * S, 1, tokens, gpu)


def figures(cost, requests=(), **outcome):
    """Cost and energy of hand-made requests and replicas over an hour."""
    run = run_of(list(requests), window_ps=(0, HOUR), **outcome)
    measured = Measured(run.requests[run.requests["measured"]], {}, {})
    return cost_figures(measured, run.outcome, cost), energy_figures(measured, run.outcome, cost)


TWO_POOLS = {
    "gpus": 8,
    "gpu_kinds": {"h200": 8},
    "replicas": (replica("prefill", "h200", 2, 1800, 40_000), replica("decode", "h200", 4, 3600, 90_000)),
}


def test_every_gpu_is_paid_for_and_tokens_are_those_of_finished_requests():
    requests = [done(100, 900, tokens=500, input_tokens=1500), done(100, 900, tokens=300, status=1)]
    cost, _ = figures(OWN, requests, **TWO_POOLS)
    assert cost["usd"] == 8 * 3.0
    assert cost["usd_per_million_output_tokens"] == 24.0 / 500 * 1e6
    assert cost["usd_per_million_tokens"] == 24.0 / 2000 * 1e6
    assert [pool["usd"] for pool in cost["pools"]] == [6.0, 12.0]
    assert [pool["usd_per_million_tokens"] for pool in cost["pools"]] == [150.0, 12.0 / 90_000 * 1e6]
    assert cost["sources"] == {"h200": "the scenario"}
    assert cost["absent"] is None


def test_energy_is_idle_and_what_work_adds():
    _, energy = figures(OWN, [done(100, 900, tokens=500)], **TWO_POOLS)
    prefill = 2 * (100 * 3600 + 400 * 1800)
    decode = 4 * 500 * 3600
    assert [pool["joules"] for pool in energy["pools"]] == [prefill, decode]
    assert energy["joules"] == prefill + decode + 2 * 100 * 3600
    assert energy["watts_per_gpu"] == energy["joules"] / 3600 / 8
    assert energy["output_tokens_per_joule"] == 500 / energy["joules"]
    assert [pool["tokens_per_joule"] for pool in energy["pools"]] == [40_000 / prefill, 90_000 / decode]
    assert [pool["watts_per_gpu"] for pool in energy["pools"]] == [300.0, 500.0]


def test_the_catalogue_speaks_where_the_scenario_does_not():
    cost, energy = figures(Cost(), [done(100, 900)], **TWO_POOLS)
    h200 = load_catalog().gpus["h200"]
    assert cost["usd"] == pytest.approx(8 * h200.price_usd_per_h)
    assert cost["sources"]["h200"] == "mercatus, secondary"
    assert energy["pools"][1]["watts_per_gpu"] == h200.decode_w
    assert energy["pools"][0]["watts_per_gpu"] == (h200.idle_w + h200.prefill_w) / 2
    assert energy["sources"]["h200"][0] == "idle 120 W: h200-power, measured"
    assert not energy["is_bound"]


def test_where_work_was_not_measured_it_is_the_tdp_and_said():
    kinds = {"gpu_kinds": {"b200": 8}, "gpus": 8, "replicas": (replica("decode", "b200", 8, 3600, 1),)}
    _, energy = figures(Cost(), [done(100, 900)], **kinds)
    assert energy["pools"][0]["watts_per_gpu"] == 1000
    assert energy["is_bound"]
    assert energy["sources"]["b200"][2].startswith("decode 1 kW: TDP, an upper bound")


def test_what_nobody_knows_is_absent_and_says_why():
    kinds = {"gpu_kinds": {"rubin": 4, "h200": 4}, "replicas": (replica("decode", "rubin", 4, 3600, 9),)}
    cost, energy = figures(Cost(), [done(100, 900)], **kinds)
    assert cost["absent"] == "no price is known for rubin: set cost.gpu_price"
    assert (cost["usd"], cost["usd_per_million_output_tokens"], cost["usd_per_million_tokens"]) == (None,) * 3
    assert cost["pools"] == [{"name": "decode", "usd": None, "usd_per_million_tokens": None}]
    assert energy["absent"].startswith("no idle power is known for rubin: set cost.idle_power")
    assert (energy["joules"], energy["watts_per_gpu"], energy["output_tokens_per_joule"]) == (None,) * 3
    assert energy["pools"][0]["joules"] is None
    own_price, _ = figures(Cost(gpu_price="9 USD/h"), [done(100, 900)], **kinds)
    assert own_price["usd"] == 72.0


def test_nothing_finished_is_no_price_for_a_token():
    cost, energy = figures(OWN, [done(100, 900, status=1)], **TWO_POOLS)
    assert cost["usd"] == 24.0
    assert cost["usd_per_million_output_tokens"] is None
    assert energy["output_tokens_per_joule"] == 0.0


def shown(cost, energy):
    return [plain(line) for line in cost_lines({"cost": cost, "energy": energy})]


def test_the_screen_says_each_figure_or_why_not():
    assert shown(*figures(Cost(), [done(100, 900)] * 50, **TWO_POOLS)) == [
        "  cost       55 273 USD per M output tokens   h200 at 3.80 USD/h (mercatus, secondary)",
        "  energy     0.000 output tokens per joule   424 W per GPU",
    ]
    kinds = {"gpu_kinds": {"rubin": 4}, "replicas": ()}
    assert shown(*figures(Cost(), [done(100, 900)], **kinds)) == [
        "  cost       –   no price is known for rubin: set cost.gpu_price",
        "  energy     –   no idle power is known for rubin: set cost.idle_power and cost.busy_power",
    ]
    nameless = {"gpu_kinds": {}, "replicas": ()}
    assert shown(*figures(Cost(), [done(100, 900)], **nameless)) == []


def test_a_run_costs_its_price_over_its_throughput(tmp_path):
    """By the figures that were there before: tokens a second and GPU, and busy shares."""
    run = played(tmp_path, "run.duration=4 s", "cost.gpu_price=2 USD/h")
    made = run.figures["output_tokens_per_s_per_gpu"]
    assert run.figures["cost"]["usd_per_million_output_tokens"] == pytest.approx(2 / (made * 3600) * 1e6)
    energy = run.figures["energy"]
    assert energy["output_tokens_per_joule"] == pytest.approx(made / energy["watts_per_gpu"])
    for pool, drawn in zip(run.figures["pools"], energy["pools"], strict=True):
        assert drawn["watts_per_gpu"] == pytest.approx(192 + (1000 - 192) * pool["utilisation"])


def test_a_price_without_a_unit_is_refused_at_its_line(tmp_path):
    message = r"scenario.yaml:\d+:8: cost.gpu_price: 2.5 has no unit\n(.*\n)*  hint: .*2.5 USD/h"
    with pytest.raises(ConfigErrors, match=message):
        played(tmp_path, scenario=SCENARIO.replace("run: {seed: 1}", "cost: {gpu_price: 2.5}"))


def test_mixed_gpus_are_paid_for_as_what_they_are(tmp_path):
    mixed = changed(
        SMALL,
        (
            "- {name: dgx, type: dgx-b200, count: 12}",
            "- {name: new, type: dgx-b200, count: 6}\n  - {name: old, type: hgx-h200, count: 6}",
        ),
    )
    run = played(tmp_path, "workload.limit=20", "pools.decode.place=nodes 6-8", topology=mixed)
    assert run.outcome.gpu_kinds == {"b200": 48, "h200": 48}
    assert {(replica.role, replica.gpu) for replica in run.outcome.replicas} == {
        ("prefill", "b200"),
        ("decode", "h200"),
    }
    hours = run.figures["window_s"] / 3600
    assert run.figures["cost"]["usd"] == pytest.approx(48 * (5.5 + 3.8) * hours)
    assert [pool["usd"] for pool in run.figures["cost"]["pools"]] == pytest.approx(
        [24 * 5.5 * hours, 24 * 3.8 * hours]
    )
