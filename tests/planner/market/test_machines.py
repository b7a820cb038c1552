"""Machines without prices: the same rows that offers are joined to, and what a calibration needs."""

from __future__ import annotations

from collections import deque
from datetime import date
from typing import Any

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
    assert open_job(LOADED, utc_now())[1].types.n_rows
    with pytest.raises(AssertionError, match="priced"):
        gather_offers(load_catalog(None), LOADED.workload, load_tariffs(), str(LOADED.path.parent), DAY)


def test_what_a_catalog_offers_is_priced_once_for_all_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of a portfolio, tasks of a pipeline and rows of a comparison share it; what differs is priced anew."""
    catalog, days, price = load_catalog(None), [], offers.price_book

    def priced(*given: Any) -> Any:
        days.append(given[3])
        return price(*given)

    monkeypatch.setattr(offers, "price_book", priced)
    monkeypatch.setattr(offers, "_LAST", deque(maxlen=2))  # not what other tests asked
    base = str(ROOT / "examples")
    jobs = [
        load_workload(ROOT / "examples" / f"{name}.yaml").workload for name in ("bert-large", "llama-3-8b")
    ]
    one, other = (gather_offers(catalog, job, load_tariffs(), base, DAY) for job in jobs)
    assert one is other and days == [DAY]
    later = gather_offers(catalog, jobs[0], load_tariffs(), base, date(2026, 11, 21))
    own = gather_offers(catalog, LOADED.workload, load_tariffs(), base, DAY)
    assert later is not one and own.offers.n_rows > one.offers.n_rows
    assert days == [DAY, date(2026, 11, 21), DAY]


def test_jobs_with_the_same_machines_of_their_own_share_what_they_can_buy() -> None:
    catalog, base = load_catalog(None), str(ROOT / "examples")
    owning = load_workload(ROOT / "examples" / "owned-top-up.yaml").workload
    without = owning.model_copy(update={"commitments": owning.commitments[:0]})
    assert owning.commitments
    one, again = (gather_offers(catalog, owning, load_tariffs(), base, DAY) for _ in range(2))
    other = gather_offers(catalog, without, load_tariffs(), base, DAY)
    assert again is one and other.offers.n_rows == one.offers.n_rows - len(owning.commitments)
