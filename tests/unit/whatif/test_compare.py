"""Columns of a comparison, the keys in which they differ, and columns that cannot be played."""

import pytest
from models.studies import write

from sim import api
from sim.base.errors import SimError
from sim.results.differences import differences_of
from sim.whatif.axes import axis_of_text
from sim.whatif.compare import columns_of, compare


@pytest.fixture(name="base")
def base_(tmp_path):
    return api.load(write(tmp_path)).replace({"workload.limit": 40})


def test_columns_are_named_by_what_tells_them_apart(base, tmp_path):
    policies = axis_of_text("router.policy=round_robin,prefix_aware")
    assert list(columns_of({"a": base}, [policies])) == ["round_robin", "prefix_aware"]
    assert list(columns_of({"a": base, "b": base}, [])) == ["a", "b"]
    both = columns_of({"a": base, "b": base}, [policies])
    assert list(both) == ["a round_robin", "a prefix_aware", "b round_robin", "b prefix_aware"]
    (tmp_path / "other.yaml").write_text((tmp_path / "topology.yaml").read_text())
    paths = axis_of_text(f"topology={tmp_path}/topology.yaml,{tmp_path}/other.yaml")
    assert list(columns_of({"a": base}, [paths])) == ["topology", "other"]


def test_differences_go_by_key_and_by_name(base):
    changed = base.replace({"pools.decode.replicas": 2, "run.drain": "1 min", "name": "new"})
    found = differences_of({"a": base, "b": changed})
    assert dict(found.values) == {"pools.decode.replicas": ("3", "2"), "run.drain": ("10 min", "1 min")}
    assert found.of_requests == ()
    busier = differences_of({"a": base, "b": base.replace({"workload.arrivals.rate": "9 req/s"})})
    assert busier.of_requests == ("workload.arrivals.rate",)


def test_a_column_that_cannot_be_played_is_left_out(base):
    found = compare({"a": base}, {"pools.prefill.tp": [8, 5]}, seeds=2, jobs=1)
    assert found.comparison.columns == ("8",)
    assert "5" in found.comparison.failed["5"]
    with pytest.raises(SimError, match="the baseline '5' cannot be played"):
        compare({"a": base}, {"pools.prefill.tp": [8, 5]}, seeds=2, jobs=1, baseline="5")


def test_same_seeds_see_the_same_requests(base):
    found = compare({"a": base}, {"router.policy": ["round_robin", "least_loaded"]}, seeds=3, jobs=1)
    offered = found.rows.pivot_table(index="seed", columns="column", values="offered_per_s", sort=False)
    assert (offered["round_robin"] == offered["least_loaded"]).all()
    assert offered["round_robin"].nunique() == 3
