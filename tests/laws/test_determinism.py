"""The same scenario and seed give the same run, to the last picosecond; requests depend on nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from models.studies import SCENARIO, SMALL, changed, played, with_shared_prefixes, write

ROOT = Path(__file__).parents[2]
STUDIES = {"lengths alone": SCENARIO, "shared prefixes": with_shared_prefixes()}
POOL = changed(
    with_shared_prefixes(),
    (
        "workload:",
        "kv_pool: {policy: pooled, hbm: false, dram: 5 GB, nvme: 20 GB, fetch: always, rebalance: 1 s, "
        "stream_out: true, overlap_fetch: true, lost: [{node: 1, at: 3 s}]}\nworkload:",
    ),
)
POOLED = {**STUDIES, "a pool": POOL}
ASKED = ["arrived_at_ps", "input_tokens", "output_tokens"]


@pytest.mark.parametrize("study", POOLED)
def test_the_same_seed_gives_the_same_digest(tmp_path, study):
    one, two = (played(tmp_path, scenario=POOLED[study]) for _ in range(2))
    assert one.digest == two.digest
    assert one.requests.equals(two.requests)
    assert one.samples.equals(two.samples)
    assert one.figures["requests_finished"] == 300
    assert one.figures["kv_pool"] == two.figures["kv_pool"]


@pytest.mark.slow
def test_other_processes_with_other_hashes_give_the_same_digests(tmp_path):
    paths, here = [], []
    for study, scenario in POOLED.items():
        folder = tmp_path / study.replace(" ", "-")
        folder.mkdir()
        here.append(played(folder, scenario=scenario).digest)
        paths.append(str(folder / "scenario.yaml"))
    code = f"from sim import api; print(*(api.run(api.load(path)).digest for path in {paths}))"
    others = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for hash_seed in ("0", "4711")
    ]
    assert [other.communicate()[0].split() for other in others] == [here, here]


def test_another_seed_gives_another_run(tmp_path):
    assert played(tmp_path).digest != played(tmp_path, "run.seed=2").digest


SLOWER = changed(SMALL, ("link: infiniband-ndr", "link: infiniband-ndr\n  routing: {efficiency: 2 %}"))
LARGER = changed(SMALL, ("count: 12", "count: 16"), ("nodes_per_unit: 4", "nodes_per_unit: 8"))


@pytest.mark.parametrize("topology", [SLOWER, LARGER], ids=["slower", "larger"])
@pytest.mark.parametrize("study", STUDIES)
def test_requests_do_not_change_with_the_topology(tmp_path, study, topology):
    one = played(tmp_path, scenario=STUDIES[study]).requests
    two = played(tmp_path, scenario=STUDIES[study], topology=topology).requests
    assert one[ASKED].equals(two[ASKED])
    assert [list(ids) for ids in one["block_ids"]] == [list(ids) for ids in two["block_ids"]]
    assert not one["e2e_ps"].equals(two["e2e_ps"])


@pytest.mark.parametrize(
    "change",
    [
        "pools.decode.replicas=2",
        "router.policy=round_robin",
        "kv_pool.policy=none",
        "model.name=llama-3.1-70b",
    ],
)
def test_requests_do_not_change_with_what_serves_them(tmp_path, change):
    one, two = played(tmp_path).requests, played(tmp_path, change).requests
    assert one[ASKED].equals(two[ASKED])


def test_the_interval_of_samples_changes_nothing_else(tmp_path):
    one, two = played(tmp_path), played(tmp_path, "run.sample_every=100 ms")
    assert one.digest == two.digest
    assert len(two.samples) > 5 * len(one.samples)


def test_two_simulations_in_one_process_do_not_meet(tmp_path):
    """One played inside of the other's progress line."""
    alone = played(tmp_path).digest
    inner = []

    class Meddling:
        def update(self, *_):
            if not inner:
                inner.append(played(tmp_path, "run.seed=3").digest)

    assert played(tmp_path, progress=Meddling()).digest == alone
    assert inner == [played(tmp_path, "run.seed=3").digest]


def test_the_written_scenario_gives_the_same_run(tmp_path):
    """Overrides in the file or beside it: the same."""
    beside = played(tmp_path, "router.policy=least_loaded", "run.seed=5").digest
    text = SCENARIO.replace("run: {seed: 1}", "run: {seed: 5}\nrouter: {policy: least_loaded}")
    assert played(tmp_path, scenario=text).digest == beside
    assert write(tmp_path).read_text() == SCENARIO
