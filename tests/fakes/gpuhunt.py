"""A module of gpuhunt's shape: `default_catalog()` with `query(provider=...)`, items as it documents them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


class CPUArchitecture(enum.StrEnum):
    """As gpuhunt's."""

    X86 = "x86"
    ARM = "arm"


@dataclass
class CatalogItem:
    """The fields of gpuhunt's item that matter here."""

    provider: str
    instance_name: str
    location: str
    price: Any
    cpu: int
    memory: float
    gpu_count: int
    gpu_name: str | None
    gpu_memory: float | None
    spot: bool = False
    disk_size: float | None = None
    cpu_arch: CPUArchitecture = CPUArchitecture.X86
    flags: list[str] = field(default_factory=list)


ITEMS = {
    "lambdalabs": [
        CatalogItem("lambdalabs", "gpu_8x_a100_80gb_sxm4", "us-east-1", 14.32, 240, 1800, 8, "A100", 80.0),
        CatalogItem(
            "lambdalabs",
            "gpu_1x_gh200",
            "us-east-1",
            1.49,
            64,
            432,
            1,
            "GH200",
            96.0,
            cpu_arch=CPUArchitecture.ARM,
        ),
    ],
    "runpod": [
        CatalogItem("runpod", "NVIDIA H100 80GB HBM3", "EU-RO-1", 2.69, 16, 125, 1, "H100", 80.0),
        CatalogItem("runpod", "NVIDIA H100 80GB HBM3", "EU-RO-1", 21.52, 128, 1000, 8, "H100", 80.0),
        CatalogItem("runpod", "NVIDIA H100 80GB HBM3", "EU-RO-1", 1.75, 16, 125, 1, "H100", 80.0, spot=True),
        CatalogItem("runpod", "NVIDIA H100 80GB HBM3", "EU-RO-1", 3.10, 20, 188, 1, "H100", 80.0),
        CatalogItem("runpod", "NVIDIA H100 80GB HBM3", "EU-RO-1", 0.0, 20, 188, 1, "H100", 80.0),
        CatalogItem("runpod", "NVIDIA Mystery", "EU-RO-1", 1.0, 4, 16, 1, "MYSTERY", 7.0),
        CatalogItem("runpod", "NVIDIA A40", "EU-RO-1", float("nan"), 9, 50, 1, "A40", 48.0),
    ],
    "nebius": [CatalogItem("nebius", "cpu-d3", "eu-north1", 0.1, 4, 16, 0, None, None)],
    "oci": [CatalogItem("oci", "BM.GPU.H100.8", "us-ashburn-1", 80.0, 224, 2048, 8, "H100", 80.0)],
    "vastai": [CatalogItem("vastai", "123456", "", 0.4, 8, 32, 2, "RTX4090", 24.0)],
}


class Catalog:
    """Answers from `ITEMS`; `broken` maps a provider to what its query raises."""

    def __init__(self, broken: dict[str, Exception] | None = None) -> None:
        self.broken = broken or {}
        self.providers = [SimpleNamespace(NAME="vastai"), SimpleNamespace(NAME="aws")]
        self.catalog = {name: SimpleNamespace(version="20261118-7") for name in ITEMS if name != "vastai"}

    def query(self, *, provider: str) -> list[CatalogItem]:
        if provider in self.broken:
            raise self.broken[provider]
        return list(ITEMS.get(provider, []))


def module(broken: dict[str, Exception] | None = None) -> Any:
    """Stands for `import gpuhunt`."""
    return SimpleNamespace(default_catalog=lambda: Catalog(broken))
