"""What changed between two catalogs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.errors import CatalogInputError
from catalogs.inspection.diff import CatalogDiff, Rename, diff_catalogs, diff_refs
from catalogs.store.history import save_snapshot
from catalogs.tables.columns import column_names, make_table
from catalogs.tables.model import Catalog, ProviderManifest
from tests.catalogs.history_rows import Rows, machine, offer, refresh
from tests.draws import draws


def catalog_of(types: Rows, offers: Rows) -> Catalog:
    tables = {
        name: make_table(name, [[row[column] for column in column_names(name)] for row in rows], name)
        for name, rows in (("instance_types", types), ("offers", offers))
    }
    manifests = tuple(
        ProviderManifest(provider, "2026-11", "2026-11", "0" * 64, 0, 0, 1, ())
        for provider in sorted({row["provider"] for row in types})
    )
    accelerators = make_table("accelerators", [], "accelerators")
    return Catalog(tables["instance_types"], tables["offers"], accelerators, manifests)


def compare(old: tuple[Rows, Rows], new: tuple[Rows, Rows], min_change_ratio: float = 0.0) -> CatalogDiff:
    return diff_catalogs(catalog_of(*old), catalog_of(*new), min_change_ratio=min_change_ratio)


def test_a_catalog_equals_itself(bundled: Catalog) -> None:
    found = diff_catalogs(bundled, bundled)
    assert found.n_same == bundled.offers.n_rows
    assert not (found.moves or found.new_offers or found.gone_offers or found.new_types or found.gone_types)


def test_prices_that_moved_come_by_size() -> None:
    old = refresh("2026-11-01", {"a": "10", "b": "10", "c": "10", "d": "10.00"})
    new = refresh("2026-11-02", {"a": "10.1", "b": "5", "c": "12", "d": "10.0"})
    found = compare(old, new)
    assert [(move.key[1], round(move.change_ratio, 6)) for move in found.moves] == [
        ("b", -0.5),
        ("c", 0.2),
        ("a", 0.01),
    ]
    assert found.n_same == 1  # 10.00 and 10.0 are one price
    assert found.moves[0].old_as_of == "2026-11-01"
    assert [move.key[1] for move in found.above(0.05)] == ["b", "c"]
    less = compare(old, new, min_change_ratio=0.05)
    assert [move.key[1] for move in less.moves] == ["b", "c"]
    assert (less.n_small_moves, less.n_same) == (1, 1)


def test_another_currency_is_a_move_of_unknown_size() -> None:
    types = [machine()]
    found = compare(
        (types, [offer("10"), offer("1", "b")]), (types, [offer("10", currency="CNY"), offer("9", "b")])
    )
    assert math.isnan(found.moves[0].change_ratio)
    assert found.moves[0] in found.above(0.99)
    assert (found.moves[0].old_currency, found.moves[0].new_currency) == ("USD", "CNY")


def test_offers_types_and_regions_that_come_and_go() -> None:
    old = refresh("2026-11-01", {"a": "10", "b": "10"}, ("one", "two"))
    new = refresh("2026-11-01", {"a": "10", "c": "10"}, ("one", "huge.machine"))
    new[0][1].update(vcpus="4")
    found = compare(old, new)
    assert found.gone_types == (("acme", "two"),)
    assert found.new_types == (("acme", "huge.machine"),)
    assert (found.new_regions, found.gone_regions) == ((("acme", "c"),), (("acme", "b"),))
    assert found.n_same == 1
    assert ("acme", "b", "", "one", "on_demand", "") in found.gone_offers
    assert ("acme", "c", "", "huge.machine", "on_demand", "") in found.new_offers


def test_a_machine_under_a_new_name_is_a_rename_and_its_prices_are_compared() -> None:
    old = refresh("2026-11-01", {"a": "10", "b": "10"}, ("gpu.8x",))
    new = refresh("2026-11-01", {"a": "10", "b": "11"}, ("gpu.8x-v2",))
    found = compare(old, new)
    assert found.renamed_types == (Rename("acme", "gpu.8x", "gpu.8x-v2"),)
    assert not (found.new_types or found.gone_types or found.new_offers or found.gone_offers)
    assert [move.key[3] for move in found.moves] == ["gpu.8x-v2"]
    assert found.n_same == 1


@pytest.mark.parametrize("names", [("gpu.8x-v2", "gpu.8x-v3"), ("quite-other",)])
def test_a_doubtful_rename_is_none(names: tuple[str, ...]) -> None:
    found = compare(refresh("2026-11-01", {"a": "1"}), refresh("2026-11-01", {"a": "1"}, names))
    assert found.renamed_types == ()
    assert found.gone_types == (("acme", "gpu.8x"),)
    assert len(found.new_types) == len(names)


def test_a_machine_that_lost_its_price_and_a_changed_description() -> None:
    old = refresh("2026-11-01", {"a": "10"}, ("one", "two"))
    new = ([machine("one"), machine("two", vcpus="128", local_nvme_gib="")], [offer("10", "a", "one")])
    found = compare(old, new)
    assert found.unpriced_types == (("acme", "two"),)
    changes = {(change.column, change.old, change.new) for change in found.changed_types}
    assert changes == {("vcpus", "96", "128"), ("local_nvme_gib", "0", "")}


def test_a_provider_in_one_of_the_two_is_told_and_not_listed_offer_by_offer(bundled: Catalog) -> None:
    mine = catalog_of(*refresh("2026-11-01", {"a": "10"}))
    found = diff_catalogs(mine, bundled)
    assert found.gone_providers == ("acme",)
    assert "aws" in found.new_providers
    assert not (found.new_offers or found.gone_offers or found.new_types)


def test_empty_catalogs_can_be_compared() -> None:
    found = compare(([machine()], []), ([machine()], [offer()]))
    assert len(found.new_offers) == 1
    assert len(compare(([machine()], [offer()]), ([machine()], [])).gone_offers) == 1


KEYS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["1", "2", "3.5"]), max_size=8)


@given(old=KEYS, new=KEYS)
@draws(60)
def test_every_offer_is_counted_once_and_the_reverse_is_the_mirror(
    old: dict[str, str], new: dict[str, str]
) -> None:
    there = compare(refresh("2026-11-01", old), refresh("2026-11-02", new))
    assert there.n_same + len(there.moves) + len(there.gone_offers) == len(old)
    assert there.n_same + len(there.moves) + len(there.new_offers) == len(new)
    assert {move.key[1]: (move.old, move.new) for move in there.moves} == {
        region: (old[region], new[region]) for region in old.keys() & new.keys() if old[region] != new[region]
    }
    back = compare(refresh("2026-11-02", new), refresh("2026-11-01", old))
    assert (back.new_offers, back.gone_offers, back.n_same) == (
        there.gone_offers,
        there.new_offers,
        there.n_same,
    )


def test_names_of_one_provider_cut_the_other_down(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-01", {"north": "10"}))
    save_snapshot("acme", *refresh("2026-11-08", {"north": "11"}))
    found = diff_refs("acme@2026-11-01", "latest")
    assert not (found.new_providers or found.gone_providers)
    assert len(found.moves) == 1
    assert diff_refs("bundled", "latest").new_providers == ("acme",)
    assert diff_refs("bundled", "latest", providers=["acme"]).new_providers == ("acme",)
    with pytest.raises(CatalogInputError, match="different providers"):
        diff_refs("acme@latest", "aws@bundled")
    with pytest.raises(CatalogInputError, match="unknown provider nobody"):
        diff_refs("bundled", "latest", providers=["nobody"])
