"""Batching rules: what the next step of a replica may do, decided from what the replica holds.

Model: at each step boundary a rule is asked once. It sees counts only (`Load`) and the replica's limits, and
answers how much of prompts the step may compute and whether decode goes on beside them (`Allowance`). The
replica fills the step: first prompts that are under way, then waiting ones in the pool's order, as far as
memory goes. So a rule is a pure function of numbers, and a user's own one takes ten lines.
Source: iteration-level scheduling of Yu et al., *Orca*, OSDI 2022; chunks beside decode of Agrawal et al.,
*Sarathi-Serve*, OSDI 2024, as vLLM v1 has it.
Units: tokens, sequences.
Ignores: memory and the order of prompts, which are not a rule's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sim.base.registry import Registry


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a step: new tokens in all, those of one prompt; and sequences that a replica holds at once."""

    token_budget: int
    chunk_tokens: int
    max_sequences: int


class Load(NamedTuple):
    """What a replica holds: sequences that decode, prompts under way, and prompts that wait."""

    decoding: int
    under_way: int
    waiting: int


class Allowance(NamedTuple):
    """What a step may do.

    `prompt_tokens` of prompts may be computed, and `prompts` new ones be taken in. `is_chunked`: a prompt may
    be cut to what is left; else prompts go whole, the first one whatever its length. `mixes`: sequences
    decode beside prompts; else only in steps without any.
    """

    prompt_tokens: int
    prompts: int
    is_chunked: bool = False
    mixes: bool = False


Rule = Callable[[Load, Limits], Allowance]
batching: Registry[Rule] = Registry("batching rule")


@batching("prefill_first")
def prefill_first(load: Load, limits: Limits) -> Allowance:
    """Continuous batching: waiting prompts go first and whole, in steps of their own; decode in between."""
    return Allowance(limits.token_budget, limits.max_sequences - load.decoding)


@batching("chunked")
def chunked(load: Load, limits: Limits) -> Allowance:
    """Continuous batching: each step decodes, and fills its token budget up with chunks of prompts."""
    room = limits.max_sequences - load.decoding - load.under_way
    return Allowance(limits.token_budget - load.decoding, room, is_chunked=True, mixes=True)


@batching("mixed")
def mixed(load: Load, limits: Limits) -> Allowance:
    """Continuous batching: each step decodes, and takes in whole prompts beside as its budget allows."""
    return Allowance(limits.token_budget - load.decoding, limits.max_sequences - load.decoding, mixes=True)


@batching("chunked_apart")
def chunked_apart(load: Load, limits: Limits) -> Allowance:
    """Chunks of prompts go first, in steps of their own; decode in between."""
    room = limits.max_sequences - load.decoding - load.under_way
    return Allowance(limits.token_budget, room, is_chunked=True)


@batching("static")
def static(load: Load, limits: Limits) -> Allowance:
    """A batch is formed when the replica is empty, and decodes until its last sequence is done."""
    return Allowance(limits.token_budget, 0 if load.decoding else limits.max_sequences)


@batching("prefill_only")
def prefill_only(_: Load, limits: Limits) -> Allowance:
    """What prefill pools do: whole prompts within the token budget, and no decode."""
    return Allowance(limits.token_budget, limits.max_sequences)


@batching("decode_only")
def decode_only(_: Load, __: Limits) -> Allowance:
    """What decode pools do: a token for each sequence in every step, and no prompts."""
    return Allowance(0, 0)


OF_ROLE = {"prefill": "prefill_only", "decode": "decode_only"}
"""The rule of pools that do one thing; theirs is no choice."""
