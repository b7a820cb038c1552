"""One price of a list multiplied: whatever the provider, the option and the factor, it does not win unseen."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from catalogs.offers.flags import admit_offers, split_flags
from catalogs.offers.suspicion import WAITING_FLAGS
from catalogs.providers.base import FetchOptions
from catalogs.refresh.run import refresh
from catalogs.store.read import bundled_directory, history_directory, read_provider
from catalogs.store.snapshots import source_rows, stored_source
from catalogs.tables.columns import column_names, make_table
from catalogs.tables.model import OFFER_KEY
from tests.fakes.provider import FakeProvider

CLOUDS = ("aws", "gcp", "azure", "alibaba")
FACTORS = (0.01, 0.05, 0.1, 0.34, 0.5, 2.0, 3.0, 10.0, 100.0)
Rows = list[dict[str, str]]


def widest(cloud: str, option: str) -> tuple[Rows, Rows, Rows]:
    """The machine that is sold so in most places of the bundled snapshot, its offers, and those to be poisoned."""
    types, offers = source_rows(read_provider(bundled_directory() / cloud))
    fitting: dict[str, Rows] = defaultdict(list)
    for row in offers:
        quoted = row["purchase_option"] == option and row["basis"] != "derived"
        if quoted and not WAITING_FLAGS & set(split_flags(row["flags"])):
            fitting[row["instance_type"]].append(row)
    if not fitting:
        return [], [], []
    name = max(sorted(fitting), key=lambda one: len({row["region"] for row in fitting[one]}))
    kept = sorted({row["region"] for row in fitting[name]})[:8]
    beside = [row for row in offers if row["instance_type"] == name and row["region"] in kept]
    return (
        [row for row in types if row["instance_type"] == name], beside,
        [row for row in fitting[name] if row["region"] in kept],
    )  # fmt: skip


@pytest.mark.parametrize("option", ["on_demand", "spot"])
@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_poisoned_row_waits_or_is_refused(
    cloud: str, option: str, small_bundle: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    types, offers, fitting = widest(cloud, option)
    if not fitting:
        assert option == "spot"
        pytest.skip(f"the bundled prices of {cloud} have no quoted spot")
    regions = tuple(sorted({row["region"] for row in offers}))
    for factor in FACTORS:
        monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / f"{factor}"))
        bad = {**fitting[0], "price_per_hour": f"{float(fitting[0]['price_per_hour']) * factor:.9f}"}
        sent = [bad if row is fitting[0] else row for row in offers]
        one = FakeProvider(cloud, regions, types, sent)
        refresh([cloud], FetchOptions(), create=lambda _, given, one=one: one.with_options(given))
        assert _price_in_use(bad) != pytest.approx(float(bad["price_per_hour"])), factor


def _price_in_use(row: dict[str, str]) -> float:
    """The admitted price of the offer; 0 where it is kept out."""
    source = stored_source(history_directory() / row["provider"])
    assert source is not None
    names = column_names("offers")
    found = make_table("offers", [[one[name] for name in names] for one in source_rows(source)[1]], "offers")
    mask = admit_offers(found, allow_flagged=False).mask
    for name in OFFER_KEY:
        mask = mask & found.equals(name, row[name])
    kept = found.take(mask).number("price_per_hour")
    return float(kept[0]) if len(kept) else 0.0
