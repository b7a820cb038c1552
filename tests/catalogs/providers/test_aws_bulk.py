"""The public bulk price list: streamed, exact, and small in memory."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bulk_price_list import LIMIT_MIB, generate, measure_in_a_process
from catalogs.providers.aws_bulk import parse_bulk_csv, parse_region_index
from catalogs.providers.aws_pricing import parse_price_list
from catalogs.providers.aws_public import is_commercial, text_lines
from catalogs.providers.base import SchemaChanged
from tests.draws import draws
from tests.fakes.aws import World, bulk_lines, product

TODAY = "2026-11-20"
OPTIONS = {"on_demand", "reserved_1y", "reserved_3y"}


def lines() -> list[str]:
    return list(bulk_lines(World(), "us-east-1"))


def test_the_list_says_what_the_interface_says() -> None:
    import json

    world = World()
    found = parse_bulk_csv(lines(), "us-east-1", TODAY, {"p4d.24xlarge"}, OPTIONS).rows
    item = json.dumps(product(world, "p4d.24xlarge", "us-east-1"))
    asked = parse_price_list({"PriceList": [item]}, TODAY, {"us-east-1"}, OPTIONS)
    keys = ("purchase_option", "option_variant", "price_per_hour", "upfront_per_instance", "term_hours")
    standard = {
        tuple(row[key] for key in keys) for row in asked if "convertible" not in row["option_variant"]
    }
    assert {tuple(row[key] for key in keys) for row in found} == standard
    assert len(found) == 7


def test_only_what_is_wanted_is_kept() -> None:
    found = parse_bulk_csv(lines(), "us-east-1", TODAY, {"g6.xlarge"}, {"on_demand"})
    assert [(row["instance_type"], row["purchase_option"]) for row in found.rows] == [
        ("g6.xlarge", "on_demand")
    ]
    assert {"p4d.24xlarge", "dl1.24xlarge"} <= found.with_gpu
    assert "m7i.large" not in found.with_gpu


def test_rows_of_another_region_are_left_out() -> None:
    assert parse_bulk_csv(lines(), "eu-west-1", TODAY, {"g6.xlarge"}, OPTIONS).rows == []


@pytest.mark.parametrize("column", ["Instance Type", "PricePerUnit", "Region Code", "Pre Installed S/W"])
def test_a_missing_column_is_named(column: str) -> None:
    changed = [line.replace(f'"{column}"', '"Other"') for line in lines()]
    with pytest.raises(SchemaChanged, match=column):
        parse_bulk_csv(changed, "us-east-1", TODAY, {"g6.xlarge"}, OPTIONS)


def test_a_file_without_header_or_cut_short_is_refused() -> None:
    with pytest.raises(SchemaChanged, match="begins with SKU"):
        parse_bulk_csv(["<html>\n"], "us-east-1", TODAY, {"g6.xlarge"}, OPTIONS)
    whole = lines()
    with pytest.raises(SchemaChanged, match="cut short"):
        parse_bulk_csv([*whole[:9], whole[9][:40]], "us-east-1", TODAY, {"g6.xlarge"}, OPTIONS)


@given(data=st.lists(st.text(alphabet='ab,"é\u2028\x0c €', max_size=12), max_size=6), cut=st.integers(1, 7))
@draws(100)
def test_lines_do_not_depend_on_how_the_bytes_arrive(data: list[str], cut: int) -> None:
    text = "".join(f"{part}\n" for part in data)
    raw = text.encode()
    pieces = [raw[start : start + cut] for start in range(0, len(raw), cut)]
    assert "".join(text_lines(pieces)) == text
    assert list(csv.reader(text_lines(pieces))) == list(csv.reader(text_lines([raw])))


def test_bytes_that_are_no_text_are_named() -> None:
    with pytest.raises(SchemaChanged, match="not UTF-8"):
        list(text_lines([b"abc\xff\xfe\n"]))


def test_the_index_names_csv_files() -> None:
    payload = {"regions": {"us-east-1": {"currentVersionUrl": "/offers/x/us-east-1/index.json"}}}
    assert parse_region_index(payload, ["us-east-1", "eu-west-1"]) == {
        "us-east-1": "/offers/x/us-east-1/index.csv"
    }


@pytest.mark.parametrize(
    ("region", "usual"),
    [
        ("us-east-1", True),
        ("ap-southeast-5", True),
        ("mx-central-1", True),
        ("us-gov-west-1", False),
        ("cn-north-1", False),
        ("us-west-2-lax-1", False),
        ("us-iso-east-1", False),
    ],
)
def test_other_partitions_and_local_zones_are_left_out(region: str, usual: bool) -> None:
    assert is_commercial(region) is usual


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "index.csv"
    rows = generate(path, 24 * 2**20)
    found = measure_in_a_process(path)
    assert found["rows"] == rows
    assert found["peak_rss_mib"] < LIMIT_MIB / 2


def test_a_term_without_one_of_its_amounts_has_no_price() -> None:
    """Constructed: the fee of a partial payment cannot be read, and the price per hour alone would be too cheap."""
    whole = parse_bulk_csv(lines(), "us-east-1", TODAY, {"p4d.24xlarge"}, OPTIONS).rows
    header, *rest = lines()
    changed, damaged = [header], 0
    for line in rest:
        if "Quantity" in line and "Partial Upfront" in line and "p4d.24xlarge" in line:
            line, damaged = line.replace("Quantity", "Fortnight"), damaged + 1
        changed.append(line)
    assert damaged
    found = parse_bulk_csv(changed, "us-east-1", TODAY, {"p4d.24xlarge"}, OPTIONS).rows
    partial = [row for row in whole if "partial" in row["option_variant"]]
    assert partial and found == [row for row in whole if row not in partial]
