"""The part of the bundled catalog that tests plan on is a part of it, and what its page promises is in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from catalogs.store.load import load_catalog
from catalogs.store.read import bundled_directory


def test_it_is_a_part_of_the_bundled_catalog(small_catalog: Path) -> None:
    part, whole = load_catalog(small_catalog), load_catalog(bundled_directory())
    offers, all_offers = ({*map(str, catalog.offers.rows())} for catalog in (part, whole))
    assert offers < all_offers and len(offers) < len(all_offers) / 5
    for column in ("provider", "purchase_option"):
        assert {*part.offers[column].tolist()} == {*whole.offers[column].tolist()}


@pytest.mark.catalog("small")
class TestMark:
    """The mark nearest to a test decides."""

    def test_a_marked_test_plans_on_it(self, small_catalog: Path) -> None:
        assert os.environ["PLANNER_CATALOG_DIR"] == str(small_catalog)

    @pytest.mark.catalog("whole")
    def test_its_own_mark_comes_first(self) -> None:
        assert "PLANNER_CATALOG_DIR" not in os.environ
