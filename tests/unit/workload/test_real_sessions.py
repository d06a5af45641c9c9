"""Recorded sessions and clients of the real public files, where $SIM_TRACES has them; skipped without."""

import os
from pathlib import Path

import numpy as np
import pytest

from sim.base.streams import Streams
from sim.config.scenario import Workload
from sim.workload.build import build_sessions, build_workload

pytestmark = pytest.mark.trace
S = 10**12


def present(name):
    path = Path(os.environ.get("SIM_TRACES", "")) / name
    if not os.environ.get("SIM_TRACES") or not path.is_file():
        pytest.skip(f"NOT TESTED: {name} is not in $SIM_TRACES")
    return str(path)


def test_weka_has_its_sessions_and_requests():
    """692 of its sessions are no copies; of their 46,218 requests 27 have no output."""
    path = present("weka_claude_code_traces_710of739.jsonl.gz")
    form = Workload(sessions={"trace": path, "users": 1}, block_tokens=64)
    sessions = [list(session.turns) for session in build_sessions(form, Streams(1)).sessions()]
    turns = [turn for session in sessions for turn in session]
    assert (len(sessions), len(turns)) == (692, 46_218 - 27)
    thoughts = [turn.think_ps / S for session in sessions for turn in session[1:]]
    assert np.median(thoughts) == pytest.approx(10, rel=0.2)


def test_mini_swe_has_its_sessions_and_turns():
    form = Workload(sessions={"trace": present("lmcache_miniswe_derived_blk16.jsonl.gz")}, block_tokens=16)
    sessions = [list(session.turns) for session in build_sessions(form, Streams(1)).sessions()]
    assert (len(sessions), sum(map(len, sessions))) == (20, 402)


def test_servegen_sends_as_many_as_its_clients_say():
    """The six windows of the first hour: 14.86, 18.40, 20.05, 20.65, 20.56 and 21.33 requests/s."""
    form = Workload(servegen=present("servegen_deepseek_r1_clients.tar.gz"))
    requests = list(build_workload(form, Streams(1), until_ps=3600 * S))
    counts = np.histogram([request.arrived_ps / S for request in requests], bins=600 * np.arange(7))[0]
    expected = 600 * np.array([14.863, 18.403, 20.053, 20.645, 20.557, 21.33])
    assert counts == pytest.approx(expected, rel=0.05)
