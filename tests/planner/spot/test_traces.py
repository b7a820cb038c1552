"""Importers: every format gives the same days, wrong polarity and holes are noticed, bad input is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputError
from planner.spot.generate import generate_traces
from planner.spot.hazards import load_hazards
from planner.spot.policy.job import SpotZone
from planner.spot.traces.registry import FORMATS, format_of, read_traces
from planner.spot.traces.samples import place_of, probe_hours, published, up_on_grid
from tests.planner.spot.csv_log import csv_log_text

START = datetime(2022, 10, 26, 22, 5, tzinfo=UTC)
DAYS = 12


def samples(share_up: float, n: int = DAYS * 144, seed: int = 0) -> np.ndarray:
    """Ten-minute samples that are up for about `share_up` of the time, in spells of any length."""
    rng = np.random.default_rng(seed)
    up = np.repeat(rng.random(n) < share_up, rng.geometric(0.4, n))[:n]
    return up.astype(int)


def as_lists(folder: Path, zones: dict[str, np.ndarray], **meta: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in zones.items():
        text = json.dumps({"metadata": {"gap_seconds": 600, **meta}, "data": data.tolist()})
        (folder / f"{name}.json").write_text(text)
    return folder


def as_text(path: Path, up: np.ndarray) -> Path:
    lines = [
        f"{i},{(START + timedelta(minutes=10 * i)).isoformat()},{1 - u}" for i, u in enumerate(up.tolist())
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def as_csv(path: Path, up: np.ndarray, zone: str = "us-west-2a") -> Path:
    lines = [
        f"{(START + timedelta(minutes=10 * i)).isoformat()},{zone},{u},0.9" for i, u in enumerate(up.tolist())
    ]
    path.write_text("time,zone,available,price\n" + "\n".join(lines) + "\n")
    return path


def as_rounds(folder: Path, created: np.ndarray) -> Path:
    folder.mkdir()
    for i, n in enumerate(created.tolist()):
        when = (START + timedelta(minutes=10 * i)).isoformat()
        result = {"us-central1-a": {"instances_created": n, "instances_requested": 16}}
        (folder / f"{i:05}.json").write_text(json.dumps({"scheduled_at": when, "zone_results": result}))
    return folder


def as_run_length(path: Path, up: np.ndarray) -> Path:
    pairs: list[list[int]] = []
    for value in up.tolist():
        if pairs and pairs[-1][0] == value:
            pairs[-1][1] += 1
        else:
            pairs.append([value, 1])
    zone = {"itype": "p2.xlarge", "start_utc": START.isoformat(), "rle": pairs, "spot_price": 0.27}
    path.write_text(
        json.dumps({"gap_seconds": 600, "requested": 1, "set": "s", "zones": {"us-west-2a_k80_1": zone}})
    )
    return path


def test_all_formats_give_the_same_days(tmp_path: Path) -> None:
    up = samples(0.9)
    paths = {
        "run_length": as_run_length(tmp_path / "r.json", up),
        "sample_list": as_lists(tmp_path / "aws-10-26-2022", {"us-west-2a_k80_1": up}),
        "failed_text": as_text(tmp_path / "us-west-2a_k80_1.txt", up),
        "csv": as_csv(tmp_path / "log.csv", up),
        "rounds": as_rounds(tmp_path / "rounds", up[:300] * 16),
    }
    assert paths.keys() == FORMATS.keys()
    expected = up_on_grid(up == 1, 1 / 6, 0.1)
    for name, path in paths.items():
        (trace,) = read_traces(path)
        n = min(len(trace.up), len(expected))
        assert n >= 490, name
        assert (trace.up[:n] == expected[:n]).all(), name
        assert trace.tick_hours == 0.1
        assert trace.probe_hours == pytest.approx(1 / 6, rel=0.01), name
        assert trace.start.date() == START.date(), name


def test_zeros_and_ones_are_turned_the_way_the_published_table_says(tmp_path: Path) -> None:
    zones = {name: samples(share, seed=i) for i, (name, share) in enumerate(typical().items())}
    right = read_traces(as_lists(tmp_path / "right", zones))
    turned = read_traces(as_lists(tmp_path / "turned", {name: 1 - up for name, up in zones.items()}))
    for a, b in zip(right, turned, strict=True):
        assert (a.up == b.up).all()


def typical() -> dict[str, float]:
    return {
        name: published()[name][0].availability_ratio for name in ("us-west-2a_k80_1", "us-west-2b_k80_1")
    }


@pytest.mark.parametrize(("polarity", "turn"), [("instances", True), ("preempted", False)])
def test_the_wrong_polarity_is_refused(tmp_path: Path, polarity: str, turn: bool) -> None:
    zones = {name: samples(share, seed=i) for i, (name, share) in enumerate(typical().items())}
    folder = as_lists(tmp_path / "in", {n: 1 - up if turn else up for n, up in zones.items()})
    with pytest.raises(InputError, match="wrong way round"):
        read_traces(folder, polarity=polarity)  # type: ignore[arg-type]


def test_a_2022_text_that_was_turned_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="wrong way round"):
        read_traces(as_text(tmp_path / "us-west-2a_k80_1.txt", 1 - samples(0.9)))


def test_zeros_and_ones_of_unknown_zones_need_a_word(tmp_path: Path) -> None:
    folder = as_lists(tmp_path / "in", {"my-zone": samples(0.5)})
    with pytest.raises(InputError, match="give polarity"):
        read_traces(folder)
    (up,), (down,) = (read_traces(folder, polarity=way) for way in ("instances", "preempted"))
    assert (up.up == ~down.up).all()


def test_a_simulator_file_means_preempted(tmp_path: Path) -> None:
    up = samples(0.6)
    info = {"price": 18.9, "on_demand_price": 82.5}
    meta = {"price_info": info, "zone": "my-zone", "start_time": "2025-10-04T00:10:00+00:00"}
    (trace,) = read_traces(as_lists(tmp_path / "my-zone", {"full": 1 - up}, **meta))
    assert trace.zone == "my-zone"
    assert trace.on_demand_usd_per_hour == 82.5
    assert trace.up.mean() == pytest.approx(up.mean(), abs=0.01)


def test_the_gang_decides_what_counts_as_up(tmp_path: Path) -> None:
    created = np.tile([16, 16, 16, 7, 7, 0, 0, 0, 0, 0], 60)
    folder = as_rounds(tmp_path / "rounds", created)
    share = {gang: read_traces(folder, gang=gang)[0].up.mean() for gang in (1, 8, 16)}
    assert share[1] == pytest.approx(0.5, abs=0.02)
    assert share[8] == share[16] == pytest.approx(0.3, abs=0.02)
    assert read_traces(folder)[0].gang == 16


def test_repeated_probes_are_not_taken_for_more_of_them() -> None:
    rng = np.random.default_rng(3)
    probes = np.repeat(rng.random(700) < 0.6, rng.geometric(0.4, 700))
    repeated = probes[(np.arange(int(len(probes) * 3.08)) / 3.08).astype(int)]
    assert probe_hours(repeated, 195 / 3600) == pytest.approx(600 / 3600, rel=0.1)
    assert probe_hours(probes, 195 / 3600) == pytest.approx(195 / 3600)


def test_a_hole_ends_a_record(tmp_path: Path) -> None:
    up = np.ones(100, dtype=int)
    path = as_csv(tmp_path / "log.csv", up)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:41] + lines[71:]) + "\n")
    first, second = read_traces(path)
    assert first.hours == pytest.approx(40 / 6, abs=0.2)
    assert second.hours == pytest.approx(30 / 6, abs=0.2)
    assert (second.start - first.end) > timedelta(hours=4)


def test_probes_that_stray_are_still_even(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    up = samples(0.7, 300)
    rows = ["time,zone,available"]
    for i, one in enumerate(up.tolist()):
        at = START + timedelta(minutes=10 * i, seconds=float(rng.uniform(0, 90)))
        rows.append(f"{at.isoformat()},us-west-2z,{'up' if one else 'down'}")
    path = tmp_path / "probe.csv"
    path.write_text("\n".join(rows) + "\n")
    (trace,) = read_traces(path)
    assert trace.up.mean() == pytest.approx(up.mean(), abs=0.02)
    assert (trace.provider, trace.region) == ("aws", "us-west-2")


def test_generated_traces_are_read_back(tmp_path: Path) -> None:
    zones = [
        SpotZone("us-west-2a", "us-west-2", "p3.2xlarge", 0.918, "aws", 16),
        SpotZone("x", "far", "y", 1.5),
    ]
    tables = {zone.name: load_hazards().table_for(zone) for zone in zones}
    made = generate_traces(zones, tables, 48.0, seed=7, on_demand_usd_per_hour=3.06)
    (tmp_path / "made.csv").write_text(csv_log_text(made), encoding="utf-8")
    for wrote, read in zip(made, read_traces(tmp_path / "made.csv"), strict=True):
        assert (wrote.up == read.up).all()
        for name in (
            "zone",
            "region",
            "provider",
            "instance_type",
            "gang",
            "start",
            "on_demand_usd_per_hour",
        ):
            assert getattr(wrote, name) == getattr(read, name), name
        np.testing.assert_allclose(wrote.spot_usd_per_hour, read.spot_usd_per_hour)
    again = generate_traces(zones, tables, 48.0, seed=7)
    assert all((a.up == b.up).all() for a, b in zip(made, again, strict=True))


def test_nothing_to_generate_is_told() -> None:
    with pytest.raises(InputError, match="at least one zone"):
        generate_traces([], {}, 10.0)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("us-west-2a_v100_1", ("aws", "us-west-2")),
        ("us-gov-west-1b", ("aws", "us-gov-west-1")),
        ("europe-west1-c", ("gcp", "europe-west1")),
        ("us-central1-a_c3-88", ("gcp", "us-central1")),
        ("somewhere", ("", "somewhere")),
    ],
)
def test_places_of_zone_names(name: str, place: tuple[str, str]) -> None:
    assert place_of(name) == place


def _json(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda p: p / "none.json", "no such file"),
        (lambda p: _json(p / "a.json", "[1, 2"), "no known trace format"),
        (lambda p: _json(p / "a.json", '{"metadata": {}, "data": [1]}'), "not a sample list"),
        (
            lambda p: _json(p / "a.json", '{"zones": {"z": {}}, "gap_seconds": 1, "requested": 1}'),
            "not a run-length",
        ),
        (lambda p: _json(p / "a.csv", "time,zone,available\n2026-01-01,z,perhaps\n"), "row 2"),
        (
            lambda p: _json(p / "a.csv", "time,zone,available,price\n2026-01-01,z,1,-3\n"),
            "spot_usd_per_hour|price",
        ),
        (
            lambda p: _json(p / "a.csv", "time,zone,available,price\n2026-01-01,z,1,0\n"),
            "row 2: price is '0', expected a price above 0",
        ),
        (
            lambda p: _json(
                p / "a.json",
                '{"zones": {"z": {"rle": [[1, 9]], "start_utc": "2026-01-01T00:00:00+00:00", "on_demand_price": 0}},'
                '"gap_seconds": 360, "requested": 1}',
            ),
            "zone z: on-demand price of 0 an hour",
        ),
        (lambda p: _json(p / "a.csv", "time,zone,available\n"), "holds no probe"),
        (
            lambda p: _json(
                p / "a.csv", "time,zone,available\n2026-01-01T00:00Z,z,1\n2026-01-01T02:00+02:00,z,0\n"
            ),
            "zone z: two probes of 2026-01-01T00:00:00.00:00 disagree",
        ),
        (lambda p: _json(p / "a.csv", "when,what\n"), "no known trace format"),
        (lambda p: p, "holds no trace"),
    ],
)
def test_bad_input_is_told(tmp_path: Path, write: Callable[[Path], Path], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_traces(write(tmp_path))


def test_an_unknown_format_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="choose one of"):
        read_traces(tmp_path, format="parquet")


@pytest.mark.shared
def test_the_shared_blocks_are_read_and_stand_right(shared_dir: Path) -> None:
    for path in sorted((shared_dir / "spot").glob("*.json")):
        assert format_of(path) == "run_length"
        found = read_traces(path)
        assert len({trace.zone for trace in found}) == len(found) >= 3


@pytest.mark.parametrize(
    ("pairs", "gap", "said"),
    [([[1, 10**12]], 600, "more than 10,000,000 samples"), ([[1, 400]], 1e12, "100 years")],
)
def test_records_of_centuries_are_refused(
    pairs: list[list[int]], gap: float, said: str, tmp_path: Path
) -> None:
    zone = {"rle": pairs, "start_utc": "2026-10-01T00:00:00+00:00"}
    path = tmp_path / "runs.json"
    path.write_text(json.dumps({"gap_seconds": gap, "requested": 1, "zones": {"us-east-1a": zone}}))
    with pytest.raises(InputError, match=said):
        read_traces(path)
