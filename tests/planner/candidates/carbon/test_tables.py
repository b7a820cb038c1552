"""The carbon tables: complete, dated, in bounds; what is unknown stays so; a broken table names itself."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from catalogs.errors import CatalogError
from catalogs.tables.accelerators import load_accelerators
from catalogs.tariffs.carbon import DATA_DIRECTORY, CarbonTables, load_carbon


def rows(name: str) -> list[dict[str, str]]:
    with (DATA_DIRECTORY / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_grids_have_a_basis_a_year_and_a_source() -> None:
    found, bases = rows("grid_intensity.csv"), {row["basis"] for row in rows("grid_basis.csv")}
    known = [row for row in found if row["gco2e_per_kwh"]]
    assert (len(found), len(known)) == (200, 199)
    assert len({(row["provider"], row["region"]) for row in found}) == 200
    for row in known:
        # a missing decimal point would show: no grid is above 1,200 g
        assert 1 < float(row["gco2e_per_kwh"]) < 1200, row
        assert 2020 <= int(row["year"]) <= 2026 and row["source"] and row["basis"] in bases, row


def test_a_region_on_the_grid_of_another_has_its_figure_and_year() -> None:
    """The map is ours, so a copied figure that no longer equals the one it stands for is an error."""
    found = rows("grid_intensity.csv")
    published = {f"gcp/{row['region']}": row for row in found if row["provider"] == "gcp"}
    shared = [row for row in found if row["basis"] == "same_grid"]
    assert {"alibaba", "aws", "azure", "lambda", "oci"} == {row["provider"] for row in shared}
    for row in shared:
        one = published[row["of"].split()[0]]
        assert row["of"].split(maxsplit=1)[1] == one["of"], row
        assert [row[key] for key in ("gco2e_per_kwh", "year", "source")] == [
            one[key] for key in ("gco2e_per_kwh", "year", "source")
        ], row


def test_what_nobody_publishes_is_unknown() -> None:
    tables = load_carbon()
    assert tables.grid("lambda", "europe-south-1") is None
    assert tables.grid("nowhere", "x") is None
    assert tables.maximum_power("tpu-v4-32gb") is None
    assert tables.embodied("aws", "p5.48xlarge") is None
    assert tables.overhead("nobody") == tables.overhead("*")


def test_intervals_hold_their_middle() -> None:
    for figure in load_carbon().draws.values():
        assert 0 < figure.low <= figure.mid <= figure.high
    for row in rows("pue.csv"):
        found = load_carbon().overhead(row["provider"])
        assert 1 <= found.low <= found.pue <= found.high < 2.5
        assert row["confidence"] in ("reported", "assumed") and row["source"] and row["as_of"]


def test_accelerators_are_of_the_catalog_and_each_figure_stands_once() -> None:
    table = load_accelerators()
    stated = {
        name for name, watts in zip(table["accelerator"], table["tdp_w"], strict=True) if float(watts) > 0
    }
    own = [row["accelerator"] for row in rows("accelerator_power.csv")]
    assert set(own) <= set(table["accelerator"]) and len(set(own)) == len(own)
    assert not stated & set(own)
    for row in rows("accelerator_power.csv"):
        assert row["confidence"] in ("read", "unverified", "assumed") and row["source"], row
    assert load_carbon().maximum_power("h100-80gb-sxm").watts == 700  # type: ignore[union-attr]


def test_embodied_figures_are_those_of_24_types() -> None:
    assert len(rows("embodied_servers.csv")) == 24
    server = load_carbon().embodied("aws", "p4d.24xlarge")
    assert server is not None and (server.server_kgco2e, server.accelerators) == (4676.79, 8)


@pytest.mark.parametrize("value", ["", "x", "-3", "0", "nan", "inf"])
def test_a_wrong_figure_is_refused_by_name(tmp_path: Path, value: str) -> None:
    folder = tmp_path / "carbon"
    shutil.copytree(DATA_DIRECTORY, folder)
    text = (folder / "pue.csv").read_text(encoding="utf-8").replace("aws,1.15,", f"aws,{value},")
    (folder / "pue.csv").write_text(text, encoding="utf-8")
    with pytest.raises(CatalogError, match="pue of aws"):
        CarbonTables(folder).overhead("aws")
    (folder / "pue.csv").unlink()
    with pytest.raises(CatalogError, match=r"pue\.csv"):
        CarbonTables(folder).overhead("aws")
