"""Who asks for what, when: requests from trace files and from generators, in order of arrival."""

from sim.workload.build import build_workload, validate_workload
from sim.workload.request import Request, Workload

__all__ = ["Request", "Workload", "build_workload", "validate_workload"]
