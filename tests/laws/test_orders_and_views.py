"""What routing in another order, near by, or by a late view does to whole runs."""

from models.studies import SCENARIO, SMALL, changed, played

from sim import api

UNITS = changed(SMALL, ("nodes_per_unit: 4", "nodes_per_unit: 2"))


def routed(folder, *sets):
    return played(folder, *sets, topology=UNITS)


def units_crossed(run):
    """The share of handoffs between units of two nodes; prefill is on nodes 0 to 2, decode on 3 to 5."""
    rows = run.requests
    return ((rows["prefill_replica"] // 2) != ((rows["decode_replica"] + 3) // 2)).mean()


def test_near_replicas_are_preferred_and_a_queue_weighs_against_them(tmp_path):
    near = ("router.decode_policy=topology_aware", "router.policy=round_robin")
    shares = [
        units_crossed(routed(tmp_path, *near, f"router.decode_load_weight={weight}"))
        for weight in ("0.0", "0.1", "1000.0")
    ]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]
    plain = units_crossed(routed(tmp_path, "router.policy=round_robin"))
    assert shares[0] < plain


def test_prefill_is_near_to_what_decode_was_chosen(tmp_path):
    """Only where decode is chosen first is there something to be near to."""
    near = ("router.policy=topology_aware", "router.load_weight=0.0")
    first = units_crossed(routed(tmp_path, *near, "router.order=decode_first"))
    last = units_crossed(routed(tmp_path, *near))
    assert first < last


def test_that_prefill_has_nothing_to_be_near_to_is_told(tmp_path):
    played(tmp_path)
    scenario = api.load(tmp_path / "scenario.yaml", ["router.policy=topology_aware"])
    assert any("nothing to be near to" in finding.text for finding in api.check(scenario))
    first = scenario.replace({"router.order": "decode_first"})
    assert not any("nothing to be near to" in finding.text for finding in api.check(first))


def test_late_views_herd(tmp_path):
    """Who sees old loads sends a burst to one replica: requests wait longer, and none is lost."""
    sets = ("router.policy=least_loaded", "workload.arrivals.rate=120 req/s")
    fresh, late = played(tmp_path, *sets), played(tmp_path, *sets, "router.stale=1 s")
    assert fresh.figures["requests_finished"] == late.figures["requests_finished"] == 300
    assert late.figures["ttft_s"]["mean"] > 1.2 * fresh.figures["ttft_s"]["mean"]
    assert SCENARIO.count("router") == 0


def test_sessions_stay_where_they_are_only_if_there_are_any(tmp_path):
    plain = played(tmp_path, "router.policy=least_loaded")
    assert played(tmp_path, "router.policy=session_sticky").digest == plain.digest


def test_lots_follow_from_the_seed(tmp_path):
    sets = ("router.policy=power_of_two",)
    one, again = played(tmp_path, *sets), played(tmp_path, *sets)
    assert one.digest == again.digest
