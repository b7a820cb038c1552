"""Machines without prices: the same rows that offers are joined to, and what a calibration needs."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from catalogs.store.load import load_catalog
from catalogs.tariffs import load_tariffs
from planner.asked.options import utc_now
from planner.estimation.answer import open_job
from planner.inputs.load import load_workload
from planner.market import offers
from planner.market.offers import gather_machines, gather_offers
from tests.conftest import ROOT

LOADED = load_workload(ROOT / "examples" / "onprem-comparison.yaml")  # with a static catalog of own machines
DAY = date(2026, 11, 20)


def test_machines_are_those_that_offers_are_joined_to() -> None:
    catalog, base = load_catalog(None), str(LOADED.path.parent)
    alone = gather_machines(catalog, LOADED.workload, base)
    joined = gather_offers(catalog, LOADED.workload, load_tariffs(), base, DAY)
    assert alone.types["instance_type"].tolist() == joined.types["instance_type"].tolist()
    assert alone.types.n_rows > catalog.instance_types.n_rows
    assert np.array_equal(alone.hardware_of_type, joined.hardware_of_type)
    assert list(alone.hardware) == list(joined.hardware)


def test_a_calibration_prices_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It compares step times: an offer that cannot be priced must not keep anyone from it."""

    def priced(*_: object) -> None:
        raise AssertionError("an offer was priced")

    monkeypatch.setattr(offers, "price_book", priced)
    assert open_job(LOADED, utc_now(), calibrated=False)[1].types.n_rows
    with pytest.raises(AssertionError, match="priced"):
        gather_offers(load_catalog(None), LOADED.workload, load_tariffs(), str(LOADED.path.parent), DAY)
