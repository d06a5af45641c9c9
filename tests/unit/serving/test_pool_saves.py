"""Writes to the pool and moves down its tiers, by hand: when blocks are found, and the bytes on each link.

A prompt of five blocks is 20 tokens, 200 ps and 400 bytes. PCIe carries 4 bytes a picosecond after 3 of
latency, NVMe 1/2 after 5.
"""

import pytest
from models.hosts import Stage, pooled_plan, prompt, staged

from sim.kvpool.pool import DRAM, NVME

A = (1, 2, 3, 4, 5)
B = (11, 12, 13, 14, 15)


def stage_of(requests, dram=50, nvme=0, kept=(), **kv):
    return Stage(pooled_plan(1, (dram,), (nvme,), **kv), requests, kept=kept)


def test_new_blocks_are_found_when_their_bytes_are_there():
    """Computed at 200, written from 203 to 303."""
    stage = stage_of([prompt(0, 0, A)])
    assert stage.found_at(DRAM, 0, A) == 303
    assert stage.moves.written_bytes == {"dram": 400}
    assert stage.moves.written_over == {"pcie_up": 400, "dram": 400}
    assert stage.hosts.carried() == {"node 0 pcie_up": 400, "node 0 dram": 400}


@pytest.mark.parametrize(("at_ps", "dram_tokens"), [(302, 0), (303, 19)])
def test_a_prompt_that_comes_before_that_is_computed(at_ps, dram_tokens):
    """One token is left to give the next."""
    _, found = staged(pooled_plan(1, (50,)), [prompt(0, 0, A), prompt(1, at_ps, A)])
    assert found[1]["dram_tokens"] == dram_tokens
    assert found[1]["phase_prefill_ps"] == 10 * (20 - dram_tokens)


def test_only_blocks_that_are_not_there_are_written():
    stage = stage_of([prompt(0, 0, A)], kept=[(DRAM, 0, A[:3])], fetch="never")
    assert stage.found_at(DRAM, 0, A) == 200 + 3 + 40
    assert stage.moves.written_over == {"pcie_up": 160, "dram": 160}


def test_hbm_is_held_until_what_is_in_it_has_been_written():
    """Memory for one prompt: the second is admitted when the first has been saved, at 303."""
    stage, found = staged(pooled_plan(1, (50,), hbm_blocks=5), [prompt(0, 0, A), prompt(1, 0, B)])
    assert found[1]["phase_queue_ps"] == 303
    assert stage.moves.written_bytes == {"dram": 800}


def test_what_finds_no_room_is_not_written_and_counted():
    stage, found = staged(pooled_plan(1, (4,)), [prompt(0, 0, A), prompt(1, 500, A)])
    assert found[1]["dram_tokens"] == 0
    assert stage.moves.counts["skipped"] == 2
    assert stage.hosts.carried() == {}


def test_written_back_is_what_hbm_evicts_with_the_blocks_before_it():
    """At 1000 B drives four of A's blocks out of HBM of six. All five are written: 1003 to 1103."""
    stage = stage_of([prompt(0, 0, A), prompt(1, 1000, B)], hbm=True, hbm_blocks=6, write="back")
    assert stage.found_at(DRAM, 0, A) == 1103
    assert stage.clock.now == 1103
    stage.play()
    assert stage.moves.written_over == {"pcie_up": 400, "dram": 400}
    stage.assert_nothing_is_left()


def test_what_hbm_evicts_block_after_block_is_written_once():
    """A prompt at 300 drives A's last block out, one at 350 the block before, while A is written."""
    requests = [prompt(0, 0, A), prompt(1, 300, (21, 22)), prompt(2, 350, (23,))]
    stage = stage_of(requests, dram=6, hbm=True, hbm_blocks=6, write="back")
    assert stage.found_at(DRAM, 0, A) == 403
    stage.play()
    assert stage.moves.written_over == {"pcie_up": 400, "dram": 400}
    assert stage.moves.counts["skipped"] == 0
    stage.assert_nothing_is_left()


def test_on_second_use_what_is_known_is_written():
    """A and its sixth block at 1000: five are in HBM, one takes 40; written are the five, from 1043 on."""
    requests = [prompt(0, 0, A), prompt(1, 1000, (*A, 6)), prompt(2, 2000, (*A, 6))]
    stage = stage_of(requests, hbm=True, write="second_use")
    stage.play_until(999)
    assert stage.hosts.carried() == {}
    assert stage.found_at(DRAM, 0, A) == 1143
    assert stage.has(DRAM, 0, (*A, 6)) == 5
    assert stage.found_at(DRAM, 0, (*A, 6)) == 2000 + 10 + 3 + 20
    assert stage.moves.written_bytes == {"dram": 480}


def test_what_host_memory_evicts_goes_to_nvme():
    """B is computed at 1200 and takes the room of A, which is on NVMe 5 + 800 later, nowhere meanwhile."""
    requests = [prompt(0, 0, A), prompt(1, 1000, B)]
    stage = stage_of(requests, dram=5, nvme=50)
    stage.play_until(1200)
    assert (stage.has(DRAM, 0, A), stage.has(NVME, 0, A)) == (0, 0)
    assert stage.found_at(NVME, 0, A) == 2005
    assert stage.moves.written_bytes == {"dram": 800, "nvme": 400}
    assert stage.moves.written_over == {"pcie_up": 800, "dram": 1200, "nvme": 400}
    assert stage.hosts.carried() == {"node 0 pcie_up": 800, "node 0 dram": 1200, "node 0 nvme": 400}
    stage.play()
    stage.assert_nothing_is_left()


@pytest.mark.parametrize(("at_ps", "nvme_tokens"), [(2004, 0), (2005, 19)])
def test_a_prompt_on_its_way_down_is_found_when_it_is_there(at_ps, nvme_tokens):
    requests = [prompt(0, 0, A), prompt(1, 1000, B), prompt(2, at_ps, A)]
    _, found = staged(pooled_plan(1, (5,), (50,)), requests)
    assert (found[2]["dram_tokens"], found[2]["nvme_tokens"]) == (0, nvme_tokens)


def test_what_is_read_from_nvme_is_written_to_host_memory_again():
    """Computed at 3000 + 645 + 10; A then drives B out of host memory and is there 103 later."""
    requests = [prompt(0, 0, A), prompt(1, 1000, B), prompt(2, 3000, A)]
    stage = stage_of(requests, dram=5, nvme=10)
    stage.play_until(2999)
    assert stage.found_at(DRAM, 0, A) == 3000 + 5 + 800 + 10 + 103
    assert stage.moves.read_over == {"nvme": 400, "pcie_down": 400}
    stage.play()
    assert (stage.has(NVME, 0, A), stage.has(NVME, 0, B)) == (5, 5)
    assert stage.moves.written_over["nvme"] == 800
    stage.assert_nothing_is_left()


def test_what_nvme_evicts_is_gone():
    prompts = [A, B, (21, 22, 23, 24, 25)]
    requests = [prompt(i, 3000 * i, blocks) for i, blocks in enumerate(prompts)]
    stage, _ = staged(pooled_plan(1, (5,), (5,)), requests)
    where = [(stage.has(DRAM, 0, blocks), stage.has(NVME, 0, blocks)) for blocks in prompts]
    assert where == [(0, 0), (0, 5), (5, 0)]


def test_what_goes_block_after_block_is_written_down_once():
    """Room for six: two prompts of one block drive A's last two out, one at a time, while A is on its way.

    NVMe has room for A alone, so there is none to be taken twice.
    """
    requests = [prompt(0, 0, A), *(prompt(i, 500 + 50 * i, (20 + i,)) for i in (1, 2, 3))]
    stage = stage_of(requests, dram=6, nvme=5)
    evicted_ps = 600 + 40
    assert stage.found_at(NVME, 0, A) == evicted_ps + 5 + 800
    stage.play()
    assert stage.moves.written_bytes["nvme"] == 400
    assert stage.moves.counts["skipped"] == 0
    stage.assert_nothing_is_left()


def test_branches_that_go_together_share_what_is_before_them():
    """A and (1, 2, 31) go at 1040: 400 bytes and, of the branch, 80. At 1/4 each the 80 take 320.

    The other 320 of A then take 640 at 1/2, and the branch is found no sooner, for it begins with A's blocks.
    """
    branch = (1, 2, 31)
    requests = [prompt(0, 0, A), prompt(1, 500, branch), prompt(2, 1000, (41, 42, 43, 44, 45, 46))]
    stage = stage_of(requests, dram=6, nvme=20, fetch="never")
    evicted_ps = 1000 + 240
    assert stage.found_at(NVME, 0, branch) == evicted_ps + 5 + 960
    assert stage.has(NVME, 0, A) == 5
    stage.play()
    assert stage.moves.written_bytes["nvme"] == 480
    stage.assert_nothing_is_left()
