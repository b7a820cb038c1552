"""The benchmark runs on any folder, and says what it left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import forecast_left_out
from benchmarks.forecast import main
from benchmarks.forecast_regimes import REGIMES


def write(path: Path, scope: str, n: int, level: float = 50.0, *, without: tuple[int, ...] = ()) -> None:
    rng = np.random.default_rng(n)
    day = np.datetime64("2024-01-01")
    rows = [
        f"{day + i},{scope},{level * np.exp(rng.normal(0, 0.1)):.3f}" for i in range(n) if i not in without
    ]
    path.write_text("\n".join(["date,scope,cost", *rows]) + "\n")


def test_figures_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path / "a.csv", "a", 200, without=(40, 120))
    write(tmp_path / "deep" / "a.csv", "a", 150)
    write(tmp_path / "short.csv", "s", 50)
    write(tmp_path / "small.csv", "s", 150, level=0.001)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "other.csv").write_text("x,y\n1,2\n")
    (tmp_path / "broken.csv.gz").write_bytes(b"no gzip")
    (tmp_path / "bad.csv").write_text("date,scope,cost\n2024-01-01,a,much\n")
    assert main(["--data", str(tmp_path), "--json", str(tmp_path / "out.json"), "--by-series"]) == 0
    values = json.loads((tmp_path / "out.json").read_text())
    assert set(values["series"]) == {"a/a", "deep/a/a"} and values["series"]["a/a"]["filled_days"] == 2
    assert values["n_windows"] == 9 + 4 == len(values["windows"])
    assert set(values["total"]) == {"forecast", "seasonal_naive", "run_rate_28", "level_told"}
    assert sum(one["share_ratio"] for one in values["by_change"]) == pytest.approx(1)
    assert values["total"]["forecast"]["median_error_ratio"] < 0.1 and set(values["landing"]) == {
        "5",
        "10",
        "20",
    }
    assert 0 <= values["intervals"]["0.80"]["coverage_ratio"] <= 1
    said = capsys.readouterr().out
    for name in ("short/s", "small/s", "empty.csv", "other.csv", "broken.csv.gz", "bad.csv"):
        assert f"skipped {name}" in said
    assert "80% interval: holds" in said


def test_what_is_told_of_a_window_is_in_its_forecast(tmp_path: Path) -> None:
    """The level doubles on a day that no past tells of: the more of the window is known, the smaller the error."""
    days, out = np.datetime64("2024-01-01") + np.arange(180), tmp_path / "out.json"
    rows = [f"{day},a,{50 * (1 + (n >= 130))}" for n, day in enumerate(days)]
    (tmp_path / "a.csv").write_text("\n".join(["date,scope,cost", *rows]) + "\n")
    errors = []
    for told in ("0", "10", "30"):
        assert main(["--data", str(tmp_path), "--every-day", "--told-late", told, "--json", str(out)]) == 0
        errors.append(json.loads(out.read_text())["total"]["forecast"]["p90_error_ratio"])
    assert errors[0] > errors[1] > errors[2] == pytest.approx(0, abs=1e-12)
    for wrong in (["--told-late", "5"], ["--every-day", "--told-late", "31"]):
        with pytest.raises(SystemExit):
            main(["--data", str(tmp_path), *wrong])


@pytest.mark.parametrize("horizon", ["7", "30"])
def test_windows_that_begin_without_cost_are_of_the_class_of_most_change(
    tmp_path: Path, horizon: str
) -> None:
    """Their change was written as Infinity, which is no JSON, and counted in no class."""
    write(tmp_path / "a.csv", "a", 220, without=tuple(range(100, 140)))
    out = tmp_path / "out.json"
    assert main(["--data", str(tmp_path), "--every-day", "--horizon", horizon, "--json", str(out)]) == 0
    values = json.loads(out.read_text(), parse_constant=pytest.fail)
    assert sum(one["share_ratio"] for one in values["by_change"]) == pytest.approx(1)


def test_a_folder_without_series_is_no_success(tmp_path: Path) -> None:
    write(tmp_path / "short.csv", "s", 50)
    assert main(["--data", str(tmp_path)]) == 1
    with pytest.raises(SystemExit):
        main(["--data", str(tmp_path / "none")])


def test_choices_are_judged_on_series_they_were_not_made_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real series are one kind, chosen for by the generated ones; figures are those of the candidate named."""
    write(tmp_path / "a.csv", "a", 170)
    kinds = {name: REGIMES[name] for name in ("steady", "shifts_up", "storage")}
    monkeypatch.setattr("benchmarks.forecast_regimes.REGIMES", kinds)
    arguments = [
        "--data",
        str(tmp_path),
        "--per-regime",
        "1",
        "--step",
        "20",
        "--json",
        str(tmp_path / "out.json"),
    ]
    assert forecast_left_out.main(arguments) == 0
    values = json.loads((tmp_path / "out.json").read_text())
    assert set(values) == {"real", *kinds, "generated", "all"}
    for kind in ("real", *kinds):
        chosen = values[kind]["left out"]["chosen"]
        assert chosen in forecast_left_out.CANDIDATES
        assert values[kind]["left out"] == {**values[kind][chosen], "chosen": chosen}
    assert values["real"]["run rate"]["n_windows"] == 3
    assert "left out" in capsys.readouterr().out


def test_late_rows_are_grossed_up_for_the_landing(tmp_path: Path) -> None:
    """With 12 % of the last day reported and 90 % of the one before, the landing stays unbiased."""
    write(tmp_path / "a.csv", "a", 220)
    assert (
        main(["--data", str(tmp_path), "--late", "--json", str(tmp_path / "out.json"), "--step", "200"]) == 0
    )
    landings = json.loads((tmp_path / "out.json").read_text())["landings"]
    ours, run_rate = (
        [row[method] / row["actual"] - 1 for row in landings] for method in ("forecast", "run_rate")
    )
    assert len(landings) >= 9 and abs(np.mean(ours)) < 0.02 < -np.mean(run_rate)


def both_ways(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Windows by origin, in one pass and one by one."""
    by_way = []
    for way in (["--every-day"], ["--step", "7"]):
        assert main(["--data", str(folder), "--json", str(folder / "out.json"), *way]) == 0
        windows = json.loads((folder / "out.json").read_text())["windows"]
        by_way.append({row["origin"]: row for row in windows})
    return by_way[0], by_way[1]


def test_one_pass_forecasts_what_each_origin_does(tmp_path: Path) -> None:
    """With every day as origin the same windows have the same forecasts and bounds as one by one."""
    write(tmp_path / "a.csv", "a", 170)
    every_day, by_step = both_ways(tmp_path)
    assert len(every_day) == 170 - 90 - 30 + 1
    for origin, row in by_step.items():
        one = every_day[origin]
        for name in ("actual", "forecast", "run_rate_28", "seasonal_naive"):
            assert one[name] == pytest.approx(row[name], rel=1e-9), name
        assert one["width_0.80"] == pytest.approx(row["width_0.80"], rel=0.05)


def test_one_pass_knows_pauses_as_each_origin_does(tmp_path: Path) -> None:
    """One by one, ranges after a pause were those of all days: 1.4 times the actual where one pass had 3.1."""
    write(tmp_path / "a.csv", "a", 300, without=(*range(150, 185), *range(220, 250)))
    every_day, by_step = both_ways(tmp_path)
    for origin, row in by_step.items():
        assert every_day[origin]["width_0.80"] == pytest.approx(row["width_0.80"], rel=0.1, abs=0.05), origin
