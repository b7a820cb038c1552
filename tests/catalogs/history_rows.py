"""Small rows for tests of the history: one provider, as many machines and regions as asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Rows = list[dict[str, str]]


def machine(
    name: str = "gpu.8x", provider: str = "acme", as_of: str = "2026-11-01", **cells: str
) -> dict[str, str]:
    row = {
        "provider": provider,
        "instance_type": name,
        "family": "gpu",
        "accelerator": "a100-80gb-sxm",
        "accelerator_name": "A100",
        "accelerator_count": "8",
        "accelerator_memory_gib": "80",
        "vcpus": "96",
        "memory_gib": "1024",
        "arch": "x86_64",
        "intra_node": "nvswitch",
        "intra_node_gb_per_s": "600",
        "internode_gbps": "400",
        "rdma": "efa",
        "link_domain_accelerators": "",
        "allocation_unit": "",
        "local_nvme_gib": "0",
        "status": "current",
        "source": "Acme price list",
        "as_of": as_of,
        "note": "",
    }
    return {**row, **cells}


def offer(
    price: str = "16.00",
    region: str = "north",
    name: str = "gpu.8x",
    provider: str = "acme",
    as_of: str = "2026-11-01",
    **cells: str,
) -> dict[str, str]:
    row = {
        "provider": provider,
        "region": region,
        "zone": "",
        "instance_type": name,
        "purchase_option": "on_demand",
        "option_variant": "",
        "price_per_hour": price,
        "currency": "USD",
        "upfront_per_instance": "",
        "term_hours": "",
        "capacity": "",
        "basis": "list",
        "interruption_band": "",
        "flags": "",
        "source": "Acme price list",
        "as_of": as_of,
    }
    return {**row, **cells}


def refresh(day: str, prices: Mapping[str, str], names: Sequence[str] = ("gpu.8x",)) -> tuple[Rows, Rows]:
    """What a refresh on `day` returns: the machines `names`, each at `prices` by region."""
    types = [machine(name, as_of=day) for name in names]
    offers = [offer(price, region, name, as_of=day) for name in names for region, price in prices.items()]
    return types, offers
