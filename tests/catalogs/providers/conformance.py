"""What every provider must keep to; a subclass says how to open one and inherits the tests.

A package with a provider of its own uses it so:

    class TestMyCloud(ProviderConformance):
        @contextmanager
        def open(self) -> Iterator[Provider]:
            with my_fake_server() as server:
                yield MyProvider(FetchOptions(...), server.url)

The fake behind it must have at least one machine without any offer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal

import pytest

from catalogs.offers.flags import load_flags, split_flags
from catalogs.providers.base import Provider, QuotaProvider, frame_rows
from catalogs.providers.registry import BUILT_IN
from catalogs.refresh.checking import Checked, check_fetched, flag_dear_spot
from catalogs.tables.columns import column_names
from catalogs.tables.model import INSTANCE_TYPE_KEY, OFFER_KEY, PurchaseOption
from catalogs.tables.regions import load_regions

Rows = list[dict[str, str]]
_DATE = re.compile(r"\d{4}-\d{2}(-\d{2})?")
_PLAIN_DECIMAL = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Fetched:
    """Everything a provider answered once."""

    provider: Provider
    regions: list[str]
    types: Rows
    offers: Rows
    one_region: Rows
    on_demand: Rows
    quotas: Rows | None
    checked: list[Checked]


class ProviderConformance:
    """Inherit and define `open`.

    Attributes:
        refused: reasons for which the fake's own odd rows may be refused.
        n_regions: how many of its regions are asked for.
        regions: regions to ask for instead of the first ones.
        lists_unsold: whether its source or fake tells of machines that are sold nowhere (a list of offers alone
            does not); else those that the first region does not sell must be there.
    """

    refused: frozenset[str] = frozenset()
    n_regions = 2
    regions: tuple[str, ...] = ()
    lists_unsold = True

    def open(self) -> AbstractContextManager[Provider]:
        """Give a provider that reads from a fake."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def fetched(cls) -> Iterator[Fetched]:
        """Ask the provider for everything, once."""
        with cls().open() as provider:
            known = provider.fetch_regions()
            assert known and len(set(known)) == len(known) and set(cls.regions) <= set(known)
            regions = list(cls.regions) or known[: cls.n_regions]
            every = provider.info.purchase_options
            types, offers = provider.fetch_instance_types(regions), provider.fetch_offers(regions, every)
            assert tuple(types.columns) == column_names("instance_types")
            assert tuple(offers.columns) == column_names("offers")
            type_rows, offer_rows = frame_rows(types), frame_rows(offers)
            yield Fetched(
                provider,
                regions,
                type_rows,
                offer_rows,
                frame_rows(provider.fetch_offers(regions[:1], every)),
                frame_rows(provider.fetch_offers(regions, {PurchaseOption.ON_DEMAND.value})),
                frame_rows(provider.fetch_quotas(regions)) if isinstance(provider, QuotaProvider) else None,
                [
                    check_fetched(
                        [row for row in type_rows if row["provider"] == name],
                        [row for row in offer_rows if row["provider"] == name],
                        regions,
                    )
                    for name in sorted({row["provider"] for row in type_rows})
                ],
            )

    def test_it_says_what_it_is(self, fetched: Fetched) -> None:
        info = fetched.provider.info
        assert re.fullmatch(r"[a-z0-9][a-z0-9_-]*", info.name) and info.login_hint
        assert info.purchase_options <= {option.value for option in PurchaseOption}

    def test_cells_are_texts(self, fetched: Fetched) -> None:
        assert fetched.types and fetched.offers
        cells = [cell for row in (*fetched.types, *fetched.offers) for cell in row.values()]
        assert {type(cell) for cell in cells} == {str} and "nan" not in {cell.lower() for cell in cells}

    def test_keys_are_unique(self, fetched: Fetched) -> None:
        for rows, names in ((fetched.types, INSTANCE_TYPE_KEY), (fetched.offers, OFFER_KEY)):
            keys = Counter(tuple(row[name] for name in names) for row in rows)
            assert [key for key, number in keys.items() if number > 1] == []

    def test_prices_are_plain_decimals_above_zero(self, fetched: Fetched) -> None:
        priced = [price for one in fetched.checked for price in one.offers]
        assert priced
        for row in priced:
            assert _PLAIN_DECIMAL.fullmatch(row["price_per_hour"]) and Decimal(row["price_per_hour"]) > 0
            assert re.fullmatch(r"[A-Z]{3}", row["currency"])

    def test_only_what_was_asked_for(self, fetched: Fetched) -> None:
        assert {row["region"] for row in fetched.offers} <= {*fetched.regions, ""}
        assert {row["region"] for row in fetched.one_region} <= {*fetched.regions[:1], ""}
        assert {row["purchase_option"] for row in fetched.offers} <= fetched.provider.info.purchase_options
        assert {row["purchase_option"] for row in fetched.on_demand} == {"on_demand"}
        listed = sum(row["purchase_option"] == "on_demand" for row in fetched.offers)
        assert len(fetched.on_demand) == listed

    def test_regions_are_known(self, fetched: Fetched) -> None:
        table = load_regions()
        known = set(zip(table["provider"], table["region"], strict=True))
        for row in (row for one in fetched.checked for row in one.offers):
            if row["provider"] in BUILT_IN:
                assert (row["provider"], row["region"]) in known

    def test_machines_without_an_offer_are_there_too(self, fetched: Fetched) -> None:
        machines = {(row["provider"], row["instance_type"]) for row in fetched.types}
        priced = {(row["provider"], row["instance_type"]) for row in fetched.offers}
        assert priced <= machines
        here = {(row["provider"], row["instance_type"]) for row in fetched.one_region}
        unsold = machines - (priced if self.lists_unsold else here)
        assert unsold, "the fake has no machine without an offer, or the provider hides it"

    def test_spot_is_cheaper_than_on_demand_or_flagged(self, fetched: Fetched) -> None:
        """Flagged by the provider, or by the checks that every refresh makes."""
        stored = [row for one in fetched.checked for row in one.offers]
        assert [row["flags"] for row in flag_dear_spot(stored)] == [row["flags"] for row in stored]

    def test_every_row_has_source_and_date(self, fetched: Fetched) -> None:
        for row in (*fetched.types, *fetched.offers):
            assert row["source"] and _DATE.fullmatch(row["as_of"]), row

    def test_flags_and_bases_are_known(self, fetched: Fetched) -> None:
        flags = {flag for row in fetched.offers for flag in split_flags(row["flags"])}
        assert flags <= set(load_flags())
        assert {row["basis"] for row in fetched.offers} <= {"list", "observed", "derived"}

    def test_commitments_have_a_term_and_the_others_none(self, fetched: Fetched) -> None:
        for row in fetched.offers:
            years = PurchaseOption(row["purchase_option"]).term_hours
            if years > 0:
                assert float(row["term_hours"]) == years, row
            elif row["purchase_option"] in ("on_demand", "spot"):
                assert row["term_hours"] == "" and row["upfront_per_instance"] == ""

    def test_the_checks_refuse_nothing_but_what_the_fake_spoiled(self, fetched: Fetched) -> None:
        assert {reason for one in fetched.checked for reason in one.refused} <= self.refused

    def test_quotas_have_their_columns(self, fetched: Fetched) -> None:
        for row in fetched.quotas or ():
            assert set(row) == {"provider", "region", "quota", "code", "unit", "limit"}
            assert row["quota"] and row["unit"] in ("vCPU", "GPU", "instances") and float(row["limit"]) >= 0
