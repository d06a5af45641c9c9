"""The shipped catalogue: summaries, laziness, and what must not be imported for it."""

import pickle
import subprocess
import sys

import pytest

from sim.base.errors import UnknownNameError, UnsupportedError
from sim.catalog import load_catalog


def test_summaries():
    catalog = load_catalog()
    assert catalog.gpus["b200"].summary == (
        "NVIDIA B200 SXM 180 GB, 7.7 TB/s, dense 2.25 PFLOPS BF16, 4.5 PFLOPS FP8, 9 PFLOPS FP4"
    )
    assert catalog.nodes["dgx-b200"].summary == "NVIDIA DGX B200, 8 x b200, 8 x infiniband-ndr, 2.2 TB DRAM"
    assert catalog.links["infiniband-ndr"].summary == (
        "InfiniBand NDR, ConnectX-7 and Quantum-2, 50 GB/s per direction, 99 % reached, 240 ns per hop"
    )


def test_inner_units():
    catalog = load_catalog()
    ndr, b200 = catalog.links["infiniband-ndr"], catalog.gpus["b200"]
    assert (ndr.bytes_per_s, ndr.effective_bytes_per_s) == (50e9, 49.5e9)
    assert (ndr.latency_ps, ndr.endpoint_latency_ps) == (240_000, 970_000)
    assert (b200.usable_memory_bytes, b200.flops("fp8"), b200.tdp_w) == (183359 * 2**20, 4.5e15, 1000)


def test_an_unknown_gpu():
    with pytest.raises(UnknownNameError) as caught:
        load_catalog().gpus["H 200"]
    assert str(caught.value) == "unknown GPU 'H 200'\n  hint: did you mean 'h200'?"


def test_a_precision_that_a_gpu_lacks():
    with pytest.raises(UnsupportedError) as caught:
        load_catalog().gpus["h200"].flops("fp4")
    said = "NVIDIA H200 SXM5 141 GB has no FP4 rate\n  nearest: it has BF16, FP8 and INT8"
    assert str(caught.value) == said


def test_a_16_bit_format_stands_for_the_other_where_a_gpu_has_bf16():
    catalog = load_catalog()
    assert catalog.gpus["h200"].flops("fp16") == catalog.gpus["h200"].flops("bf16") == 989e12
    assert catalog.efficiencies["hopper"].gemm("fp16") == catalog.efficiencies["hopper"].gemm("bf16")
    assert (catalog.gpus["t4"].flops("fp16"), catalog.efficiencies["turing"].gemm("fp16")) == (65e12, 0.64)
    with pytest.raises(UnsupportedError, match="NVIDIA T4 16 GB has no BF16 rate"):
        catalog.gpus["t4"].flops("bf16")


def test_slices_shared_memories_and_prices():
    gpus = load_catalog().gpus
    assert (gpus["a100-mig-3g.40gb"].slice_of, gpus["h100"].slice_of) == ("a100-sxm-80gb", None)
    assert (gpus["dgx-spark"].is_unified, gpus["rtx-5090"].is_unified) == (True, False)
    assert (gpus["b200"].price_usd_per_h, gpus["rubin"].price_usd_per_h) == (5.5, None)


def test_padded_batch():
    engine = load_catalog().engines["reference-h200"]
    assert [engine.padded_batch(batch) for batch in (1, 3, 16, 17, 256, 300)] == [1, 4, 16, 24, 256, 300]
    assert load_catalog().engines["reference"].padded_batch(17) == 17


def test_entries_survive_pickling():
    gpu = load_catalog().gpus["b200"]
    again = pickle.loads(pickle.dumps(gpu))
    assert (again.name, again.dense_flops, again.provenance) == (gpu.name, gpu.dense_flops, gpu.provenance)


def test_nothing_heavy_is_imported():
    code = (
        "import sys, sim.catalog; list(sim.catalog.load_catalog().gpus);"
        "print([m for m in ('numpy', 'pandas', 'pydantic', 'networkx', 'simpy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_what_a_node_was_seen_to_send_from_host_memory():
    nodes = load_catalog().nodes
    assert nodes["p6-b200"].dram_rdma_bytes_per_s == 222e9
    assert nodes["dgx-a100"].dram_rdma_bytes_per_s is None


def test_gpus_of_a_rack_without_measured_all_reduce():
    assert load_catalog().links["nvlink-6-nvl72"].all_reduce == {}
    assert sorted(load_catalog().links["nvlink-5-nvl72"].all_reduce) == [2, 4]
