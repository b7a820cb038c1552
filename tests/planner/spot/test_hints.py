"""Spot prices and placement scores move zones without a record, by little, and only beside each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.spot.hazards import load_hazards
from planner.spot.hazards_evidence import model_from_files
from planner.spot.policy.job import SpotZone

TYPE = "p4d.24xlarge"
CHEAP, DEAR = (SpotZone(f"us-east-1{letter}", "us-east-1", TYPE, 8.0, "aws", 1) for letter in "ab")
KNOWN = SpotZone("us-west-2a", "us-west-2", "p3.2xlarge", 1.0, "aws", 1)
PRICES = "time,zone,instance_type,spot_usd_per_hour\n"


def written(folder: Path, text: str | dict[str, Any], name: str = "hints.csv") -> Path:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


def entry(zone: str, price: str, day: int, **more: str) -> dict[str, str]:
    return {
        "AvailabilityZone": zone, "InstanceType": TYPE, "SpotPrice": price, "ProductDescription": "Linux/UNIX",
        "Timestamp": f"2026-11-{day:02}T00:00:00+00:00", **more,
    }  # fmt: skip


def test_a_dear_zone_is_scarcer_and_a_recorded_one_does_not_move(tmp_path: Path) -> None:
    rows = [f"2026-11-01,us-east-1a,{TYPE},9", f"2026-11-01,us-east-1b,{TYPE},15"]
    rows += ["2026-11-01,us-west-2a,p3.2xlarge,1", "2026-11-01,us-west-2b,p3.2xlarge,3"]
    model = model_from_files([written(tmp_path, PRICES + "\n".join(rows))])
    assert model.table_for(CHEAP).availability_ratio > model.table_for(DEAR).availability_ratio
    assert model.table_for(DEAR).source.endswith("moved by spot price")
    assert model.table_for(KNOWN).source == load_hazards().table_for(KNOWN).source


def test_a_price_counts_by_how_long_it_held(tmp_path: Path) -> None:
    short = [
        (CHEAP, 1, 10),
        (CHEAP, 2, 40),
        (CHEAP, 3, 10),
        (DEAR, 1, 12),
        (DEAR, 30, 12),
    ]  # 40 for a day of 29
    rows = [f"2026-11-{day:02}T00:00Z,{zone.name},{TYPE},{price}" for zone, day, price in short]
    model = model_from_files([written(tmp_path, PRICES + "\n".join(rows))])
    assert model.table_for(CHEAP).availability_ratio > model.table_for(DEAR).availability_ratio


def test_what_the_aws_command_prints_is_read_by_zone_id_and_without_other_systems(tmp_path: Path) -> None:
    found = [
        entry("us-east-1a", "9.0", 1, AvailabilityZoneId="use1-az1"),
        entry("us-east-1b", "15.0", 1, AvailabilityZoneId="use1-az2"),
        entry("us-east-1b", "1.0", 1, AvailabilityZoneId="use1-az2", ProductDescription="Windows"),
    ]
    model = model_from_files([written(tmp_path, {"SpotPriceHistory": found}, "prices.json")])
    cheap, dear = (SpotZone(name, "us-east-1", TYPE, 8.0, "aws", 1) for name in ("use1-az1", "use1-az2"))
    assert model.table_for(cheap).availability_ratio > model.table_for(dear).availability_ratio
    other = SpotZone("use1-az9", "us-east-1", TYPE, 8.0, "aws", 1)
    between = model.table_for(other).availability_ratio
    assert model.table_for(dear).availability_ratio < between < model.table_for(cheap).availability_ratio


def test_scores_say_little_and_only_beside_each_other(tmp_path: Path) -> None:
    text = "zone,instance_type,score\nus-east-1a,p4d.24xlarge,{}\nus-east-1b,p4d.24xlarge,{}\n"
    model = model_from_files([written(tmp_path, text.format(9, 3))])
    better, worse = (model.table_for(zone).availability_ratio for zone in (CHEAP, DEAR))
    assert worse < better < worse + 0.15
    same = model_from_files([written(tmp_path, text.format(3, 3))])
    plain = load_hazards().table_for(CHEAP).availability_ratio
    assert same.table_for(CHEAP).availability_ratio == pytest.approx(plain)


def test_scores_of_regions_hold_for_their_zones_and_must_say_what_they_are_of(tmp_path: Path) -> None:
    scores: dict[str, Any] = {
        "SpotPlacementScores": [{"Region": "us-east-1", "Score": 9}, {"Region": "eu-west-1", "Score": 1}]
    }
    with pytest.raises(InputError, match='add the key "InstanceTypes"'):
        model_from_files([written(tmp_path, scores, "scores.json")])
    model = model_from_files([written(tmp_path, scores | {"InstanceTypes": [TYPE]}, "scores.json")])
    away = SpotZone("eu-west-1a", "eu-west-1", TYPE, 8.0, "aws", 1)
    assert model.table_for(CHEAP).availability_ratio > model.table_for(away).availability_ratio


def test_prices_and_scores_of_one_zone_add_up(tmp_path: Path) -> None:
    prices = written(tmp_path, PRICES + f"2026-11-01,us-east-1a,{TYPE},9\n2026-11-01,us-east-1b,{TYPE},15\n")
    scores = written(
        tmp_path, f"zone,instance_type,score\nus-east-1a,{TYPE},9\nus-east-1b,{TYPE},3\n", "s.csv"
    )
    both, one = model_from_files([prices, scores]), model_from_files([prices])
    assert both.table_for(DEAR).availability_ratio < one.table_for(DEAR).availability_ratio
    assert both.table_for(DEAR).source.endswith("moved by spot price, placement score (assumed)")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f"soon,us-east-1a,{TYPE},9", "row 2: Invalid isoformat"),
        (f"2026-11-01,us-east-1a,{TYPE},free", "row 2: could not convert"),
        (f"2026-11-01,us-east-1a,{TYPE},nan", "row 2: spot_usd_per_hour is 'nan'"),
        (f"2026-11-01,us-east-1a,{TYPE},-1", "row 2: spot_usd_per_hour is '-1'"),
        ("2026-11-01,us-east-1a,,9", "row 2: needs an instance type"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model_from_files([written(tmp_path, PRICES + row)])


@pytest.mark.parametrize("key", ["SpotPriceHistory", "SpotPlacementScores"])
def test_an_entry_that_is_none_is_named(tmp_path: Path, key: str) -> None:
    with pytest.raises(InputError, match=rf"{key}\[0\]: expected an object"):
        model_from_files([written(tmp_path, {key: [3], "InstanceTypes": [TYPE]}, "x.json")])
