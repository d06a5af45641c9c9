"""Replicas that leave their NVLink domain, on real shapes: all bytes, and that something is always left."""

import pytest
from models.clusters import B200_4000, changed
from models.studies import SCENARIO, SMALL, played, write

from sim import api, checks
from sim.base.errors import ConfigErrors
from sim.resolve import resolve

WIDE = changed(
    SCENARIO,
    ("llama-3.1-8b", "llama-3.1-70b"),
    ("role: prefill, replicas: 3, tp: 8", "role: prefill, replicas: 2, tp: 16"),
    ("role: decode, replicas: 3, tp: 8", "role: decode, replicas: 2, tp: 16"),
    ("rate: 60 req/s", "rate: 6 req/s"),
    ("limit: 300", "limit: 60"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wide")
    sets = ("run.duration=120 s",)
    plan = resolve(api.load(write(folder, WIDE), sets)).plan
    return played(folder, *sets, scenario=WIDE), plan


def carried(run, kind):
    return sum(link.carried_bytes for link in run.outcome.links if link.kind == kind)


def test_nics_carry_the_kv_and_the_collectives(run):
    """The steps of a decode batch are padded by the engine; tokens alone are the least that it sends."""
    played_run, plan = run
    rows = played_run.requests
    assert (rows["status"] == "finished").all() or rows["decode_replica"].min() >= 0
    kv = 2 * int(rows["input_tokens"].sum()) * plan.kv_bytes_per_token  # two copies at 16 ranks of 8 heads
    computed = int((rows["input_tokens"] - rows["cached_tokens"]).sum())
    generated = int((rows["output_tokens"] - 1).sum())
    least = kv + 2 * plan.prefill.collectives.token_bytes * (computed + generated)
    for kind in ("nic_tx", "nic_rx"):
        assert least * (1 - 1e-9) <= carried(played_run, kind) < 1.2 * least
    assert carried(played_run, "nic_tx") == pytest.approx(carried(played_run, "nic_rx"), rel=1e-9)


def test_only_handoffs_cross_the_switches_and_nobody_more_than_there_is(run):
    played_run, plan = run
    assert carried(played_run, "leaf_up") <= 2 * played_run.requests["input_tokens"].sum() * (
        plan.kv_bytes_per_token
    )
    crossed = [link for link in played_run.outcome.links if link.carried_bytes]
    assert crossed
    assert all(0 < link.peak_fraction <= 1 + 1e-9 for link in crossed)


def test_the_same_bytes_every_time(run, tmp_path):
    played_run, _ = run
    assert played(tmp_path, "run.duration=120 s", scenario=WIDE).digest == played_run.digest


@pytest.mark.parametrize(
    ("name", "tp"),
    [
        ("b200-4000-ib-ndr", 16),
        ("b200-4000-ib-ndr", 64),
        ("b200-4000-efa", 16),
        ("h100-2048-efa", 32),
        ("mooncake-a800-16", 16),
        ("mooncake-a800-16", 64),
    ],
)
def test_a_batch_is_never_shorter_than_its_collectives_need(name, tp, tmp_path):
    """At the full rate of the NICs, from a prompt of a token to a million, and for any decode batch."""
    topology = B200_4000.with_name(f"{name}.yaml")
    path = tmp_path / "scenario.yaml"
    text = changed(WIDE, ("topology.yaml", str(topology)), ("replicas: 2", "replicas: 1"))
    path.write_text(text.replace("tp: 16", f"tp: {tp}").replace("weights: fp8, kv: fp8", "weights: bf16"))
    resolved = resolve(api.load(path))
    pools = (resolved.plan.prefill, resolved.plan.decode)
    for plan, placement in zip(pools, resolved.placements, strict=True):
        rate = placement.collective.wire.bytes_per_s / 1e12
        for tokens in (1, 100, 16_384, 10**6):
            assert plan.collectives.token_bytes * tokens / plan.timing.prefill_ps([(tokens, 0)]) < rate
        table = plan.timing.decode_table(plan.max_sequences)
        for batch in range(1, plan.max_sequences + 1):
            assert plan.collectives.step_bytes[batch] / table.step_ps(batch, batch) < rate


def test_replicas_inside_a_domain_have_no_collectives_on_nics(tmp_path):
    plan = resolve(api.load(write(tmp_path, changed(WIDE, ("tp: 16", "tp: 8"))))).plan
    assert plan.prefill.collectives is plan.decode.collectives is None


def test_what_is_scaled_and_what_crosses_nics_is_said_before_a_run(tmp_path):
    found = [str(each) for each in checks.check(api.load(write(tmp_path, WIDE)))]
    (prefill, decode) = (text for text in found if "NVLink domains" in text)
    assert (
        ": pools.0.tp: 16 GPUs are in 2 NVLink domains: an all-reduce for 64 tokens takes 57.5 us" in prefill
    )
    assert "not 14 us as in one of them" in decode
    assert "advice: tp 8 stays inside" in decode
    racks = B200_4000.with_name("gb200-nvl72-4032.yaml")
    found = [
        str(each)
        for each in checks.check(
            api.load(write(tmp_path, changed(WIDE, ("topology: topology.yaml", f"topology: {racks}"))))
        )
    ]
    assert sum("no all-reduce among 16 GPUs over NVLink 5 in a rack" in text for text in found) == 2
    assert any("scaled from 8 GPUs over NVLink 5 through NVSwitch" in text for text in found)
    assert not any("NVLink domains" in text for text in found)


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        (("tp: 16, max", "tp: 12, max"), "pools.1.tp: 12 GPUs are neither an equal part of the 8 of a node"),
        (
            ("replicas: 2, tp: 16, max", "replicas: 9, tp: 16, max"),
            "pools.1.replicas: 9 replicas of 16 GPUs do",
        ),
        (("tp: 16}", "tp: 16, place: per-domain 1:1}"), "pools.0.place: a replica of 16 GPUs takes 2 NVLink"),
    ],
)
def test_what_cannot_be_seated_is_said_at_its_line(change, mistake, tmp_path):
    with pytest.raises(ConfigErrors) as caught:
        resolve(api.load(write(tmp_path, changed(WIDE, change))))
    assert mistake in str(caught.value)


def test_without_a_fabric_a_replica_cannot_leave_its_node(tmp_path):
    lonely = SMALL[: SMALL.index("fabric:")]
    with pytest.raises(ConfigErrors, match="the topology has no fabric"):
        resolve(api.load(write(tmp_path, WIDE, lonely)))
