"""gpuhunt's items as our offers: what is kept, what is refused, what one failing cloud does to the others."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from catalogs.providers.base import (
    FetchLog,
    FetchOptions,
    ProviderError,
    SchemaChanged,
    Unreachable,
    frame_rows,
)
from catalogs.providers.gpuhunt import GpuhuntProvider, create, parse_offers, parse_types
from catalogs.refresh.checking import check_fetched
from catalogs.refresh.run import refresh
from catalogs.store.load import load_catalog
from tests.fakes import gpuhunt as fake

BOTH = frozenset({"on_demand", "spot"})


def _fetch(broken: dict[str, Exception] | None = None) -> tuple[GpuhuntProvider, list[Any], list[Any]]:
    one = GpuhuntProvider(FetchOptions(), lambda: fake.module(broken))
    regions = one.fetch_regions()
    return one, frame_rows(one.fetch_instance_types(regions)), frame_rows(one.fetch_offers(regions, BOTH))


def test_items_become_machines_and_offers_of_their_own_provider() -> None:
    _, types, offers = _fetch()
    machines = {(row["provider"], row["instance_type"]): row for row in types}
    lambda_ = machines["lambda", "gpu_8x_a100_80gb_sxm4"]  # gpuhunt calls it lambdalabs
    assert (lambda_["accelerator"], lambda_["as_of"]) == ("a100-80gb-sxm", "2026-11-18")
    assert machines["lambda", "gpu_1x_gh200"]["arch"] == "arm64"
    assert machines["oci", "BM.GPU.H100.8"]["accelerator"] == "h100-80gb-sxm"
    card = machines["runpod", "8x-NVIDIA-H100-80GB-HBM3"]
    assert (card["accelerator"], card["accelerator_count"], card["intra_node"]) == (
        "h100-80gb-sxm",
        "8",
        "unknown",
    )
    one = machines["runpod", "1x-NVIDIA-H100-80GB-HBM3"]
    assert (one["vcpus"], one["intra_node"], one["note"]) == (
        "16",
        "single",
        "the smallest of 2 variants of this name",
    )
    assert {row["as_of"] for row in offers if row["provider"] == "vastai"} != {"2026-11-18"}  # asked live


def test_spot_is_kept_and_the_cheapest_host_of_equal_ones_counts() -> None:
    _, _, offers = _fetch()
    own = [row for row in offers if row["instance_type"] == "1x-NVIDIA-H100-80GB-HBM3"]
    assert [(row["purchase_option"], row["price_per_hour"], row["basis"]) for row in own] == [
        ("on_demand", "2.69", "list"),  # neither the 0.0 nor the dearer host
        ("spot", "1.75", "observed"),
    ]


def test_what_our_checks_refuse_is_refused_with_a_reason() -> None:
    one, types, offers = _fetch()
    for provider, reasons in {
        "runpod": {
            "instance_types.accelerator: is missing": 1,
            "offers.instance_type: unknown instance type ...": 1,
            "offers.price_per_hour: is missing": 1,
        },
        "vastai": {"offers.region: is missing": 1},
        "oci": {},
    }.items():
        checked = check_fetched(
            [row for row in types if row["provider"] == provider],
            [row for row in offers if row["provider"] == provider],
            one.fetch_regions(),
        )
        assert checked.refused == reasons
    assert {(e.what, e.name) for e in one.options.log.not_understood} == {
        ("accelerator", "MYSTERY-7GB"),
        ("price", "runpod/EU-RO-1/1x-NVIDIA-A40"),
    }


def test_each_cloud_is_stored_as_its_own_provider(home: Path) -> None:
    def create(name: str, options: FetchOptions) -> GpuhuntProvider:
        return GpuhuntProvider(options, lambda: fake.module({"oci": OSError("down")}))

    report = refresh(["gpuhunt"], FetchOptions(), create=create)
    status = {outcome.provider: outcome.status for outcome in report.outcomes}
    # of vastai every row is refused here, so the bundled asks stay
    assert status == {"lambda": "added", "runpod": "added", "vastai": "failed"}
    assert any("oci: OSError" in text for text in report.outcomes[0].remarks)
    assert "runpod" in load_catalog(cache=False).sha256
    assert sum(len(outcome.not_understood) for outcome in report.outcomes) == 2  # told once


def test_lists_copied_to_every_region_say_nothing_of_the_place() -> None:
    _, _, offers = _fetch()
    flags = {(row["provider"], row.get("flags", "")) for row in offers}
    assert ("lambda", "region_availability_not_reflected") in flags
    assert {flag for provider, flag in flags if provider != "lambda"} == {""}


def test_the_other_clouds_of_gpuhunt_are_refreshed(home: Path) -> None:
    loaded = lambda: fake.module(items=fake.MORE)  # noqa: E731 - what stands for the import
    report = refresh(["gpuhunt"], FetchOptions(), create=lambda _, options: GpuhuntProvider(options, loaded))
    assert {outcome.provider: (outcome.status, outcome.n_offers) for outcome in report.outcomes} == {
        "nebius": ("added", 1), "crusoe": ("added", 1), "verda": ("added", 2), "hotaisle": ("added", 1),
    }  # fmt: skip
    assert not any(outcome.refused for outcome in report.outcomes)
    types = load_catalog(cache=False).instance_types
    found = {str(row["provider"]): row["accelerator"] for row in types.rows() if row["provider"] in fake.MORE}
    assert found == {
        "nebius": "h200-141gb-sxm", "crusoe": "h100-80gb-sxm", "verda": "h100-80gb-sxm", "hotaisle": "mi300x-192gb-oam",
    }  # fmt: skip


def test_one_cloud_that_fails_does_not_hide_the_others_and_all_failing_is_an_error() -> None:
    one, types, _ = _fetch({"runpod": RuntimeError("boom")})
    assert "runpod" not in {row["provider"] for row in types} and "lambda" in {
        row["provider"] for row in types
    }
    assert "RuntimeError in gpuhunt" in one.options.log.remarks[-1]
    with pytest.raises(Unreachable, match="OSError in gpuhunt"):
        _fetch({name: OSError() for name in [*fake.ITEMS, "cloudrift", "verda"]})


def test_a_library_that_hangs_is_given_up() -> None:
    hanging = SimpleNamespace(default_catalog=lambda: time.sleep(3))
    one = GpuhuntProvider(FetchOptions(timeout_s=0.05, retries=0), lambda: hanging)
    with pytest.raises(Unreachable, match=r"no answer within 0\.05 s"):
        one.fetch_regions()


def test_without_the_library_the_error_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    with pytest.raises(ProviderError, match=r"pip install 'ml-training-planner\[gpuhunt\]'"):
        create(FetchOptions()).fetch_regions()


def test_items_of_another_shape_are_named() -> None:
    strange = SimpleNamespace(
        default_catalog=lambda: SimpleNamespace(query=lambda provider: [SimpleNamespace()])
    )
    one = GpuhuntProvider(FetchOptions(), lambda: strange)
    with pytest.raises(SchemaChanged, match=r"CatalogItem\.gpu_count"):
        one.fetch_regions()


def test_an_odd_item_costs_itself() -> None:
    good = SimpleNamespace(
        instance_name="NVIDIA A40", location="EU-RO-1", price=0.4, cpu=9, memory=50.0, gpu_count=1, gpu_name="A40",
        gpu_memory=48.0, spot=False, disk_size=None,
    )  # fmt: skip
    odd = [
        SimpleNamespace(**{**vars(good), name: value})
        for name, value in (("gpu_count", "many"), ("memory", "50 GB"))
    ]
    log = FetchLog()
    assert [row["instance_type"] for row in parse_types("runpod", [*odd, good], "2026-11-28", log)] == [
        "1x-NVIDIA-A40"
    ]
    assert len(log.not_understood) == 2
    (row,) = parse_types("verda", [*odd, good], "2026-11-28", FetchLog())
    assert row["instance_type"] == "NVIDIA-A40"
    with pytest.raises(SchemaChanged, match="not one of 1 rows"):
        parse_offers("runpod", [odd[0]], "2026-11-28", {"EU-RO-1"}, {"on_demand"}, FetchLog())
    rows = parse_offers("runpod", [odd[0], good], "2026-11-28", {"EU-RO-1"}, {"on_demand"}, FetchLog())
    assert [row["price_per_hour"] for row in rows] == ["0.4"]
