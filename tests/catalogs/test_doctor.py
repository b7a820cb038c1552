"""The doctor: one broken provider does not hide the others."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path

import pytest

from catalogs.inspection.doctor import examine
from catalogs.store.read import bundled_directory

TODAY = datetime.date(2026, 11, 20)


def test_the_bundled_catalog_is_whole() -> None:
    found = examine(bundled_directory(), TODAY)
    assert found.is_healthy
    assert not found.unknown_regions
    by_name = {health.manifest.provider: health for health in found.providers}
    assert by_name["aws"].newest_age_days == 121
    assert by_name["aws"].refused["retired"] == 198
    assert "ecs.gn7-c13g1.6xlarge" in by_name["alibaba"].unpriced_types
    assert "ecs.gn7-c13g1.26xlarge" not in by_name["alibaba"].unpriced_types
    azure = by_name["azure"]
    assert azure.n_admitted + sum(azure.refused.values()) == azure.manifest.n_offers
    assert sum(health.n_regional_offers for health in found.providers) >= 6000


def test_a_broken_provider_does_not_hide_the_others(snapshot: Path) -> None:
    shutil.copytree(bundled_directory() / "gcp", snapshot / "gcp")
    (snapshot / "gcp" / "offers.csv.gz").write_bytes(b"")
    found = examine(snapshot, TODAY)
    assert not found.is_healthy
    assert [health.manifest.provider for health in found.providers] == ["lambda"]
    assert "offers.csv.gz" in found.broken[0]


def test_a_wrong_row_is_named(snapshot: Path) -> None:
    import gzip

    from tests.catalogs.test_store import OFFERS, rewrite_offers

    text = gzip.decompress((snapshot / OFFERS).read_bytes()).decode()
    rewrite_offers(snapshot, gzip.compress(text.replace(",0.69,USD", ",0.0,USD").encode()))
    found = examine(snapshot, TODAY)
    assert not found.is_healthy
    faults = found.providers[0].faults
    assert faults
    assert {fault.column for fault in faults} == {"price_per_hour"}
    assert found.providers[0].refused["no_price"] == len(faults)


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_no_catalog_at_all(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    found = examine(tmp_path / name, TODAY)
    assert not found.is_healthy
    assert name in found.broken[0]
