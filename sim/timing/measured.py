"""Times of a replica from whole steps that were measured on its GPU with its model.

Model: see sim.timing.decodesteps and sim.timing.prefillsteps. Times of the GPU alone get the host times of
the scenario's engine added, as the roofline does; times by the wall clock hold those of the engine that was
measured, and are refused for any other. Outside the table the roofline carries on, scaled to meet it, and
that is told. Source: device files, see sim.config.device. Ignores: what differs between the kernels of the
engine that was measured and those of the scenario's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sim.base.errors import UnsupportedError, listed
from sim.config.device import Device, Steps
from sim.timing.beyond import Beyond, Limits
from sim.timing.decodesteps import DecodeSteps
from sim.timing.fit import FitError
from sim.timing.placement import Placement
from sim.timing.prefillsteps import PrefillSteps
from sim.timing.timing import Chunk, DecodeTable, Timing

Roof = Callable[[Placement], Timing]


class Measured:
    """A Timing from a set of measured steps; `source` is the name of its file.

    `beyond` counts what is asked for outside the table.
    """

    def __init__(self, source: str, steps: Steps, placement: Placement, roof: Roof) -> None:
        engine = placement.engine
        bare = replace(engine, prefill_cached_token_ps=0)
        if steps.clock == "gpu":
            self._decode_host_ps = engine.decode_host_time_ps
            self._prefill_host_ps = engine.prefill_host_time_ps
            self._launch_ps = engine.prefill_launch_time_ps * placement.shard.model.layers
            bare = replace(bare, decode_host_time_ps=0, prefill_host_time_ps=0, prefill_launch_time_ps=0)
            bare = replace(bare, sequence_host_time_ps=0, overlaps_host=False)
        else:
            self._decode_host_ps = self._prefill_host_ps = self._launch_ps = 0
        self._sequence_ps = engine.sequence_host_time_ps if steps.clock == "gpu" else 0
        self._overlaps = engine.overlaps_host
        roofline = roof(replace(placement, engine=bare))
        self.steps = steps
        self._padded = engine.padded_batch
        self._per_token_ps: list[int] = []
        self._decode = DecodeSteps(steps.decode, roofline.decode_table, steps.ragged)
        self._prefill = PrefillSteps(steps.prefill, roofline.prefill_ps)
        is_told = steps.clock == "wall" and bool(self._prefill.prefixes.cached)
        self._cached_ps = 0 if is_told else engine.prefill_cached_token_ps
        limits = Limits(
            batch=self._decode.batches[-1],
            context=self._decode.longest_context,
            new=self._prefill.longest,
            cached=max(self._prefill.prefixes.cached, default=0),
        )
        self.beyond = Beyond(source, limits)

    @property
    def decode_error(self) -> FitError:
        """How far the coefficients of decode steps lie from the table, for sequences of equal length."""
        return self._decode.error

    @property
    def ragged_error(self) -> FitError:
        """The same for steps of unequal lengths."""
        return self._decode.ragged_error

    @property
    def prefill_error(self) -> FitError:
        """How far the coefficients of prefills lie from the table."""
        return self._prefill.error

    def prefill_ps(self, chunks: Sequence[Chunk]) -> int:
        """Duration of one prefill batch of (new, cached) tokens."""
        self.beyond.prefills.all += 1
        if not self._prefill.covers(chunks):
            self.beyond.prefills.outside += 1
        busy = self._prefill.prefill_ps(chunks)
        host_ps = self._prefill_host_ps + self._cached_ps * sum(cached for _, cached in chunks)
        return self._with_host(host_ps, max(1, round(max(busy, self._launch_ps))))

    def mixed_ps(self, chunks: Sequence[Chunk], batch: int, context_tokens: int) -> int:
        """Duration of one step of prompts and sequences: these are prompts of one token that look back."""
        if batch >= len(self._per_token_ps):
            most = max(2 * batch, self._decode.batches[-1])
            self._per_token_ps = self._decode.table(most, self._padded).per_token_ps
        prompts_ps = self.prefill_ps([*chunks, *((1, 0),) * batch])
        return prompts_ps + batch * self._sequence_ps + self._per_token_ps[batch] * context_tokens

    def _with_host(self, host_ps: int, gpu_ps: int) -> int:
        return max(host_ps, gpu_ps) if self._overlaps else host_ps + gpu_ps

    def decode_table(self, max_batch: int) -> DecodeTable:
        """Durations of decode steps of 1 to `max_batch` sequences."""
        table = self._decode.table(max_batch, self._padded)
        base_ps = [
            self._with_host(self._decode_host_ps + batch * self._sequence_ps, base)
            for batch, base in enumerate(table.base_ps[1:], 1)
        ]
        return DecodeTable([0, *base_ps], table.per_token_ps)

    def step_ps(self, contexts: Sequence[int]) -> int:
        """Duration of one decode step of sequences with these contexts, by the table itself."""
        batch, tokens = len(contexts), sum(contexts)
        uneven = self._decode.uneven_ps(batch, tokens) if len(set(contexts)) > 1 else 0.0
        return self._decode_host_ps + round(self._decode.step_ps(batch, tokens) + uneven)


def measured(device: Device, placement: Placement, roof: Roof) -> Measured:
    """The times that a device file has for a placement; refuses one that it has none for."""
    shard = placement.shard
    if device.hardware.catalogue != placement.gpu.name:
        raise UnsupportedError(
            f"{device.name} was measured on {device.hardware.catalogue or device.hardware.gpu}, "
            f"and the nodes have {placement.gpu.name}",
            "a table of that GPU, or kind: roofline",
        )
    wanted = (shard.model.name, shard.weights, shard.kv, shard.tp)
    found = [steps for steps in device.steps if steps.decode and any(not row.cached for row in steps.prefill)]
    has = [(steps.model, steps.weights, steps.kv, steps.tp) for steps in found]
    if wanted not in has:
        raise UnsupportedError(
            f"{device.name} has no steps of {_words(*wanted)}",
            listed([_words(*one) for one in has], "or") or "a table with prefill and decode steps",
        )
    steps = found[has.index(wanted)]
    if steps.engine is not None and steps.engine != placement.engine.name:
        raise UnsupportedError(
            f"{device.name} holds the host times of engine {steps.engine}, "
            f"and the scenario has {placement.engine.name}",
            f"engine: {steps.engine}, or a table with clock: gpu",
        )
    return Measured(device.name, steps, placement, roof)


def _words(model: str, weights: str, kv: str, tp: int) -> str:
    return f"{model} with weights {weights}, kv {kv}, tp {tp}"
