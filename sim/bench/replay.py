"""Benchmarks of whole replays. `cpu_s` is the replay, without loading, making requests and filling caches."""

from __future__ import annotations

from pathlib import Path

from sim.api import Silent, Simulation, load
from sim.bench.figures import Figures, peak_rss_bytes, simpy_events_per_cpu_s
from sim.resolve import resolve
from sim.tables.recorder import MemorySink, Recorder

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
FLAGSHIP = SCENARIOS / "bench-flagship.yaml"
CASES: dict[str, tuple[Path, str | None]] = {
    "flagship": (FLAGSHIP, None),
    "mooncake": (SCENARIOS / "mooncake-b200-4000.yaml", None),
    "replicas-8": (FLAGSHIP, "replicas-8"),
    "replicas-64": (FLAGSHIP, "replicas-64"),
    "replicas-500": (FLAGSHIP, "replicas-500"),
}


def measure(name: str) -> Figures:
    """Replay a case in this process."""
    path, variant = CASES[name]
    return replayed(name, Simulation(resolve(load(path, variant=variant)), Recorder(MemorySink())))


def replayed(name: str, simulation: Simulation) -> Figures:
    """Play a simulation, and say how fast that was."""
    before = simpy_events_per_cpu_s()
    outcome = simulation.play(Silent(), ahead=True)
    requests = simulation.serving.arrived
    peak = peak_rss_bytes()
    return Figures(
        name=name,
        requests=requests,
        cpu_s=outcome.cpu_s,
        requests_per_cpu_s=requests / outcome.cpu_s,
        events_per_request=outcome.events / requests,
        peak_rss_bytes=peak,
        simpy_events_per_cpu_s=(before + simpy_events_per_cpu_s()) / 2,
    )
