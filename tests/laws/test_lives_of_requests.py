"""What holds for every request of every run: its phases are its life, and nothing is left out."""

import pytest
from models.studies import SCENARIO, SMALL, changed, played, with_shared_prefixes

from sim.tables.recorder import MemorySink
from sim.tables.schema import PHASES, STATUSES

FULL = (
    "pools.prefill.replicas=1",
    "pools.decode.replicas=1",
    "pools.decode.max_sequences=4",
    "workload.arrivals.rate=400 req/s",
)
RUNS = {
    "normal": (SCENARIO, ()),
    "shared prefixes": (with_shared_prefixes(), ()),
    "full": (SCENARIO, FULL),
    "cut short": (SCENARIO, (*FULL, "run.drain=100 ms")),
}


@pytest.fixture(scope="module", params=RUNS)
def run(request, tmp_path_factory):
    """A run, and its rows as recorded."""
    scenario, sets = RUNS[request.param]
    sink = MemorySink()
    return played(tmp_path_factory.mktemp("run"), *sets, scenario=scenario, sink=sink), sink.request_table()


def test_phases_sum_to_the_end_to_end_time_exactly(run):
    _, rows = run
    phases = sum(rows[f"phase_{name}_ps"] for name in PHASES)
    done = rows["status"] == STATUSES.index("finished")
    assert done.sum() > 30
    assert (phases[done] == (rows["finished_ps"] - rows["arrived_ps"])[done]).all()
    assert all((rows[f"phase_{name}_ps"] >= 0).all() for name in PHASES)


def test_spans_lie_end_to_end_from_the_arrival_to_the_end(run):
    played_run, _ = run
    requests = played_run.requests.set_index("request_id")
    spans = played_run.spans
    for request_id, own in spans.groupby("request_id"):
        request = requests.loc[request_id]
        starts, lengths = own["started_at_ps"].tolist(), own["duration_ps"].tolist()
        assert starts[0] == request["arrived_at_ps"]
        ends = [start + length for start, length in zip(starts, lengths, strict=True)]
        assert starts[1:] == ends[:-1]
        if request["status"] == "finished":
            assert ends[-1] == request["arrived_at_ps"] + request["e2e_ps"]


def test_causes_come_before_effects(run):
    _, rows = run
    done = rows["status"] == STATUSES.index("finished")
    arrived, first, second, finished = (
        rows[f"{name}_ps"][done] for name in ("arrived", "first_token", "second_token", "finished")
    )
    assert (arrived < first).all()
    assert (first <= finished).all()
    has_second = second >= 0
    assert has_second.sum() > 20
    assert (first[has_second] < second[has_second]).all()
    assert (second[has_second] <= finished[has_second]).all()


def test_every_request_is_accounted_for_once(run):
    played_run, rows = run
    assert sorted(rows["request_id"].tolist()) == list(range(len(rows["request_id"])))
    figures = played_run.figures
    counts = {word: int((rows["status"] == code).sum()) for code, word in enumerate(STATUSES)}
    assert figures["requests_finished"] == counts["finished"]
    assert figures["requests_unfinished"] == counts["unfinished"]
    assert sum(counts.values()) == 300


def test_requests_that_are_not_finished_are_reported(tmp_path):
    """With a short time to drain: with the phases they had, without a latency they never had."""
    run = played(tmp_path, *FULL, "run.drain=100 ms")
    left = run.requests[run.requests["status"] == "unfinished"]
    assert run.figures["requests_unfinished"] == len(left) > 50
    assert left["e2e_s"].isna().all()
    assert (left["e2e_ps"] == -1).all()
    spent = left[[f"phase_{name}_s" for name in PHASES]].sum(axis=1)
    end_s = run.requests["arrived_at_s"].max() + 0.1
    assert spent.tolist() == pytest.approx((end_s - left["arrived_at_s"]).tolist(), abs=1e-9)
    assert any("did not finish" in str(advice) for advice in run.warnings)


def test_with_time_to_drain_all_are_finished(tmp_path):
    assert played(tmp_path, *FULL).figures["requests_unfinished"] == 0


def test_requests_of_the_warm_up_are_replayed_but_not_measured(tmp_path):
    run = played(tmp_path, "run.warmup=2 s")
    early = run.requests["arrived_at_s"] < 2
    assert 50 < early.sum() < 250
    assert (run.requests["measured"] == ~early).all()
    assert run.figures["requests_finished"] == (~early).sum()


class BreakingOff:
    """A progress line at which the user presses Ctrl-C after so many looks."""

    def __init__(self, looks):
        self.looks = looks

    def update(self, *_):
        self.looks -= 1
        if self.looks < 0:
            raise KeyboardInterrupt


def test_an_interrupted_run_gives_what_there_is_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.api.EVENTS_AT_ONCE", 200)
    whole = played(tmp_path)
    run = played(tmp_path, progress=BreakingOff(3))
    assert run.outcome.interrupted
    assert not whole.outcome.interrupted
    done = run.requests[run.requests["status"] == "finished"]
    assert 0 < len(done) < 300
    assert len(run.requests) < 300
    same = whole.requests.set_index("request_id").loc[done["request_id"]]
    assert same["e2e_ps"].tolist() == done["e2e_ps"].tolist()
    assert any("interrupted" in str(advice).lower() for advice in run.warnings) or run.figures.get(
        "interrupted"
    )


def test_progress_is_told_the_truth(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.api.EVENTS_AT_ONCE", 100)
    told = []

    class Listening:
        def update(self, now_ps, done, running, waiting, events):
            told.append((now_ps, done, running, waiting, events))

    run = played(tmp_path, progress=Listening())
    assert [now for now, *_ in told] == sorted(now for now, *_ in told)
    assert told[-1][1:4] == (300, 0, 0)
    assert told[-1][4] == run.outcome.events
    assert all(running >= 0 and waiting >= 0 for _, _, running, waiting, _ in told)
    assert max(running for _, _, running, _, _ in told) > 0


def sprayed(percent):
    """Every node a unit of its own, and a fabric above the leaves that reaches a part of its capacity."""
    routing = f"link: infiniband-ndr\n  routing: {{efficiency: {percent} %}}"
    return changed(SMALL, ("nodes_per_unit: 4", "nodes_per_unit: 1"), ("link: infiniband-ndr", routing))


def test_more_bandwidth_is_never_slower_for_a_request_alone(tmp_path):
    """Up to where the NICs are what holds it back."""
    alone = ("workload.limit=1", "workload.input.median_tokens=20000")
    runs = [played(tmp_path, *alone, topology=sprayed(percent)) for percent in (0.5, 1, 2, 5, 50, 100)]
    times = [run.requests["phase_transfer_s"][0] for run in runs]
    assert times == sorted(times, reverse=True)
    assert times[0] > 1.5 * times[1] > 2 * times[2]
    assert times[-1] == times[-2] > 0
    half_the_rate = changed(sprayed(100), ("infiniband-ndr", "infiniband-hdr"))
    assert played(tmp_path, *alone, topology=half_the_rate).requests["phase_transfer_s"][0] > 1.9 * times[-1]
    four_rails = changed(sprayed(100), ("rails: 8", "rails: 4"))  # and still eight NICs, two on each
    assert played(tmp_path, *alone, topology=four_rails).requests["phase_transfer_s"][0] == times[-1]


def test_a_slower_fabric_makes_nobody_faster_at_low_load(tmp_path):
    """Each request on its own: end to end it can only get worse."""
    rate = "workload.arrivals.rate=0.2 req/s"
    fast = played(tmp_path, rate, topology=sprayed(100)).requests
    slow = played(tmp_path, rate, topology=sprayed(1)).requests
    assert (slow["e2e_ps"] >= fast["e2e_ps"]).all()
    assert (slow["phase_transfer_s"] > fast["phase_transfer_s"]).all()


def test_a_window_without_requests_is_a_run_without_requests(tmp_path):
    """The only arrivals come before the window."""
    run = played(tmp_path, "run.start=1000 s")
    assert len(run.requests) == 0
    assert run.figures["requests_finished"] == 0
