"""A module of gpuhunt's shape: `default_catalog()` with `query(provider=...)`, items as it documents them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
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


# Constructed after each cloud's module in gpuhunt: names, places and what is left open as they write them.
MORE = {
    "nebius": [CatalogItem("nebius", "gpu-h200-sxm", "eu-north1", 28.0, 128, 1600, 8, "H200", 141.0)],
    "crusoe": [CatalogItem("crusoe", "h100-80gb-sxm-ib.8x", "us-east1-a", 31.2, 176, 960, 8, "H100", 80.0)],
    "verda": [
        CatalogItem("verda", "8H100.80S.176V", "FIN-01", 18.32, 176, 1480, 8, "H100", 80.0),
        CatalogItem("verda", "8H100.80S.176V", "FIN-01", 6.4, 176, 1480, 8, "H100", 80.0, spot=True),
    ],
    "hotaisle": [
        CatalogItem("hotaisle", "1x MI300X 13x", "us-michigan-1", 1.99, 13, 224, 1, "MI300X", 192.0)
    ],
}
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


_LIVE = ("vastai", "crusoe", "hotaisle")


class Catalog:
    """Answers from `ITEMS`; `broken` maps a provider to what its query raises."""

    def __init__(
        self,
        broken: dict[str, Exception] | None = None,
        items: Mapping[str, list[CatalogItem]] | None = None,
    ) -> None:
        self.broken = broken or {}
        self.items = ITEMS if items is None else items
        self.providers = [SimpleNamespace(NAME=name) for name in (*_LIVE, "aws")]
        self.catalog = {name: SimpleNamespace(version="20261118-7") for name in ITEMS if name != "vastai"}

    def query(self, *, provider: str) -> list[CatalogItem]:
        if provider in self.broken:
            raise self.broken[provider]
        return list(self.items.get(provider, []))


def module(
    broken: dict[str, Exception] | None = None, items: Mapping[str, list[CatalogItem]] | None = None
) -> Any:
    """Stands for `import gpuhunt`."""
    return SimpleNamespace(default_catalog=lambda: Catalog(broken, items))
