"""What nvidia-smi says: a description of the GPU, and its clock, power and temperature twice a second."""

from __future__ import annotations

import subprocess
from threading import Thread

from sim.calibrate.meter import Reading

PROGRAM = "nvidia-smi"
DESCRIPTION = ("driver_version", "clocks.max.sm", "clocks.max.memory", "power.limit")
STATE = ("clocks.sm", "power.draw", "temperature.gpu", "utilization.gpu")
EVERY_MS = 500
BUSY_PERCENT = 20
PATIENCE_S = 20


def described() -> dict[str, str]:
    """Driver, highest clocks and power limit of the first GPU; empty where there is no such program."""
    order = [PROGRAM, f"--query-gpu={','.join(DESCRIPTION)}", "--format=csv,noheader,nounits", "--id=0"]
    try:
        done = subprocess.run(order, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    words = [word.strip() for word in done.stdout.splitlines()[0].split(",")] if done.stdout else []
    return {key: word for key, word in zip(DESCRIPTION, words, strict=False) if word and word[0].isdigit()}


def reading(line: str) -> Reading | None:
    """One line of output; None where the GPU was idle, or for anything else."""
    try:
        clock, power, temperature, used = (float(word) for word in line.split(","))
    except ValueError:
        return None
    return Reading(round(clock), power, temperature) if used >= BUSY_PERCENT else None


class Watch:
    """Reads the state of the first GPU in the background until closed."""

    def __init__(self) -> None:
        self._readings: list[Reading] = []
        order = [PROGRAM, f"--query-gpu={','.join(STATE)}", "--format=csv,noheader,nounits"]
        order += ["--id=0", f"--loop-ms={EVERY_MS}"]
        self._program: subprocess.Popen[str] | None
        try:
            self._program = subprocess.Popen(
                order, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except OSError:
            self._program = None
            return
        Thread(target=self._listen, daemon=True).start()

    def taken(self) -> list[Reading]:
        """All readings since the last call."""
        found, self._readings = self._readings, []
        return found

    def close(self) -> None:
        """Stop reading."""
        if self._program is not None:
            self._program.terminate()
            self._program.wait()

    def _listen(self) -> None:
        assert self._program is not None
        assert self._program.stdout is not None
        for line in self._program.stdout:
            found = reading(line)
            if found is not None:
                self._readings.append(found)
