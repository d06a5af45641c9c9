"""A node: GPUs, NICs, host memory and NVMe of one chassis, and by which links they are joined."""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.units import show
from sim.catalog.entry import Entry
from sim.catalog.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node(Entry):
    """A node. `gpu`, `nic_link`, `nvlink` and `pcie` are names of the catalogue.

    NICs are those of the compute fabric. `dram` and `nvme` rates are reads of the whole node;
    `nvme_write_bytes_per_s` is what its NVMe takes in (None: not known, so that it writes as it reads).
    `dram_rdma_bytes_per_s` is what the node was seen to send from host memory through all its NICs together,
    where that is less than its NICs could (None: not known, so that only NICs and memory limit it).
    """

    gpu: str
    gpus: int
    nics: int
    nic_link: str
    nvlink: str | None
    pcie: str
    dram_bytes: int
    dram_bytes_per_s: float
    dram_rdma_bytes_per_s: float | None = None
    nvme_bytes: int | None
    nvme_bytes_per_s: float | None
    nvme_write_bytes_per_s: float | None = None
    power_w: float

    @classmethod
    def read(cls, fields: Fields) -> Node:
        """Read an entry of nodes/."""
        has_nvme = fields.has("nvme")
        return cls(
            **fields.identity(),
            gpu=fields.text("gpu"),
            gpus=fields.count("gpus"),
            nics=fields.count("nics"),
            nic_link=fields.text("nic_link"),
            nvlink=fields.text("nvlink") if fields.has("nvlink") else None,
            pcie=fields.text("pcie"),
            dram_bytes=fields.whole_quantity("dram", "size"),
            dram_bytes_per_s=fields.quantity("dram_bandwidth", "rate"),
            dram_rdma_bytes_per_s=fields.quantity("dram_rdma", "rate") if fields.has("dram_rdma") else None,
            nvme_bytes=fields.whole_quantity("nvme", "size") if has_nvme else None,
            nvme_bytes_per_s=fields.quantity("nvme_bandwidth", "rate") if has_nvme else None,
            nvme_write_bytes_per_s=fields.quantity("nvme_write", "rate")
            if fields.has("nvme_write")
            else None,
            power_w=fields.quantity("power", "power"),
        )

    @property
    def summary(self) -> str:
        """Title, GPUs, NICs and host memory."""
        memory = show(self.dram_bytes, "size")
        return f"{self.title}, {self.gpus} x {self.gpu}, {self.nics} x {self.nic_link}, {memory} DRAM"
