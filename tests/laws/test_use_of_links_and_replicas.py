"""What the meter says links and replicas did, against what the requests must have made them do."""

import pytest
from models.studies import SCENARIO, played, with_shared_prefixes, write

from sim import api
from sim.resolve import resolve

WHOLE = "run.duration=60 s"
"""A window that everything fits in."""


@pytest.fixture(scope="module", params=[SCENARIO, with_shared_prefixes()], ids=["lengths alone", "prefixes"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    scenario = api.load(write(folder, request.param), [WHOLE])
    return api.run(scenario), resolve(scenario).plan


def carried(outcome, kind):
    return sum(link.carried_bytes for link in outcome.links if link.kind == kind)


def test_all_kv_bytes_cross_a_nic_out_and_a_nic_in(run):
    played_run, plan = run
    moved = played_run.requests[played_run.requests["decode_replica"] >= 0]
    kv_bytes = moved["input_tokens"].sum() * plan.kv_bytes_per_token
    for kind in ("nic_tx", "nic_rx"):
        assert carried(played_run.outcome, kind) == pytest.approx(kv_bytes, rel=1e-12)
    assert carried(played_run.outcome, "leaf_up") == carried(played_run.outcome, "leaf_down")
    assert 0 < carried(played_run.outcome, "leaf_up") < kv_bytes


def test_tokens_of_replicas_are_those_of_requests(run):
    played_run, _ = run
    requests, uses = played_run.requests, played_run.outcome.replicas
    for role, column in (("prefill", "prefill_replica"), ("decode", "decode_replica")):
        own = [use for use in uses if use.role == role]
        served = requests[requests[column] >= 0]
        assert [use.requests for use in own] == [(served[column] == use.id).sum() for use in own]
        for use in own:
            here = served[served[column] == use.id]
            new = (
                here["input_tokens"] - here["cached_tokens"]
                if role == "prefill"
                else here["output_tokens"] - 1
            )
            assert use.tokens == new.sum()


def test_busy_time_is_no_longer_than_the_window_nor_shorter_than_the_work(run):
    played_run, _ = run
    from_ps, until_ps = played_run.outcome.window_ps
    assert (from_ps, until_ps) == (0, 60 * 10**12)
    for use in played_run.outcome.replicas:
        assert 0 < use.busy_ps < until_ps
        longest = played_run.requests[played_run.requests[f"{use.role}_replica"] == use.id]
        assert use.busy_ps >= longest[f"phase_{use.role}_s"].max() * 10**12 - 1


def test_links_are_never_used_more_than_they_can(run):
    played_run, _ = run
    _, until_ps = played_run.outcome.window_ps
    for link in played_run.outcome.links:
        mean = link.carried_bytes / (link.capacity_bytes_per_s * until_ps / 10**12)
        is_cap = link.kind == "prefill"
        assert (0 if is_cap else 1e-12) <= mean <= link.peak_fraction <= 1 + 1e-9


def test_samples_are_readings_of_something_that_is_there(run):
    played_run, _ = run
    samples = played_run.samples
    fractions = samples[samples["metric"].astype(str).str.endswith("_fraction")]["value"]
    assert fractions.between(0, 1 + 1e-9).all()
    counts = samples[samples["metric"].isin(["queued", "running", "waiting", "reserving", "transfers"])]
    assert (counts["value"] >= 0).all()
    last = counts[counts["at_ps"] == counts["at_ps"].max()]
    assert (last["value"] == 0).all()
    assert counts[counts["metric"] == "running"]["value"].max() > 0


def test_use_refers_to_the_window_alone(tmp_path):
    """After a warm-up: less than the whole, more than nothing."""
    whole = played(tmp_path, WHOLE).outcome
    later = played(tmp_path, WHOLE, "run.warmup=2 s").outcome
    assert later.window_ps == (2 * 10**12, 60 * 10**12)
    assert 0.3 < carried(later, "nic_tx") / carried(whole, "nic_tx") < 0.8
    for after, all_of_it in zip(later.replicas, whole.replicas, strict=True):
        assert 0 < after.busy_ps < all_of_it.busy_ps
        assert 0 < after.requests < all_of_it.requests


def test_without_a_duration_the_window_ends_with_the_last_arrival(tmp_path):
    run = played(tmp_path)
    assert run.outcome.window_ps == (0, run.requests["arrived_at_ps"].max())
    assert run.outcome.simulated_ps > run.outcome.window_ps[1]
