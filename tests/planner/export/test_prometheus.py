"""Rules for Prometheus: promtool checks them and runs their tests; a rule that is wrong fails both."""

from __future__ import annotations

import csv
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from planner.errors import InputError
from planner.export.monitoring import planned_rate
from planner.export.registry import Options, export
from planner.export.targets.prometheus_alerts import ALERTS
from planner.export.view import Launch
from planner.tracking.thresholds import thresholds
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import allowed, run_tool, written

PROMTOOL = ("promtool", "apt-get install prometheus")
HOSTILE = 'x"} or vector(1) #{{ .Labels }} {{ printf "%d" 1 }} ${a} \\ \n- b: c'


def check(folder: Path) -> str:
    """What promtool says against the files of a folder: the first of its checks that says something."""

    def said(*words: str) -> str:
        *command, name = words
        return run_tool(*PROMTOOL, *command, str(folder / name))

    return (
        said("test", "rules", "rules-test.yaml")
        or said("check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
        or said("check", "config", "--syntax-only", "prometheus.yaml")
    )


def test_promtool_accepts_the_rules_and_their_tests_pass(tmp_path: Path) -> None:
    """Of every launch, and where texts of users would be more than texts."""
    from tests.planner.export.checks import CHECKS, Exports  # which has the program's name from here

    launches = {**LAUNCHES, "hostile": replace(LAUNCHES["in_turn"], name=HOSTILE, run_id=HOSTILE)}
    files = {name: export(launch, "prometheus", Options()) for name, launch in launches.items()}
    assert CHECKS["prometheus"](Exports(launches, files, tmp_path)) == ""


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("< 0.7", "< 0.3"),  # a threshold that the run of its test does not break
        ("> 0.3", "> -1"),  # an alert on a healthy run
        ("avg_over_time", "avg_over_tim"),
        ('for: "15m"', "for: 15 minutes"),
        ("annotations:", "annotation:"),
        ("severity:", "sever-ity:"),
        ("humanizePercentage", "humanizePercent"),
    ],
)
def test_promtool_refuses_rules_that_are_wrong(good: str, bad: str, tmp_path: Path) -> None:
    folder = written(export(LAUNCHES["one"], "prometheus", Options()), tmp_path)
    path = folder / "rules.yaml"
    text = path.read_text()
    assert good in text
    path.write_text(text.replace(good, bad))
    assert check(folder) != ""


def test_every_alert_has_a_threshold_and_every_threshold_an_alert() -> None:
    bounds = thresholds()
    assert {alert.threshold for alert in ALERTS} == {name for name, row in bounds.items() if row.severity}
    assert all(row.for_minutes > 0 and row.source for row in bounds.values() if row.severity)


def test_each_alert_is_tested_firing_and_quiet() -> None:
    files = {file.path: file.text for file in export(LAUNCHES["one"], "prometheus", Options())}
    tests = yaml.safe_load(files["rules-test.yaml"])["tests"]
    expected: dict[str, set[bool]] = {}
    for test in tests:
        for case in test["alert_rule_test"]:
            expected.setdefault(case["alertname"], set()).add(bool(case["exp_alerts"]))
    assert expected == {alert.name: {True, False} for alert in ALERTS}


def test_the_planned_rate_leaves_the_fall_back_out() -> None:
    assert planned_rate(LAUNCHES["in_turn"]) == 4 * Decimal("20.5")
    assert planned_rate(LAUNCHES["together"]) == 3 * Decimal("20.5") + Decimal("55.04")


def without_dcgm(launch: Launch) -> Launch:
    return replace(
        launch, pools=tuple(replace(pool, vendor="amd", generation="cdna3") for pool in launch.pools)
    )


def test_chips_without_dcgm_keep_the_alerts_on_progress() -> None:
    (text,) = (
        f.text
        for f in export(without_dcgm(LAUNCHES["one"]), "prometheus", Options())
        if f.path == "rules.yaml"
    )
    assert "DCGM" not in text and "TrainingStalled" in text
    with pytest.raises(InputError, match="no series to watch"):
        export(without_dcgm(LAUNCHES["workers"]), "prometheus", Options())


def test_chips_older_than_volta_use_the_counter_that_they_have() -> None:
    old = replace(
        LAUNCHES["one"], pools=tuple(replace(p, generation="pascal") for p in LAUNCHES["one"].pools)
    )
    text = export(old, "prometheus", Options())[0].text
    assert "DCGM_FI_DEV_GPU_UTIL" in text and "GR_ENGINE_ACTIVE" not in text


def test_every_metric_used_is_in_the_list_of_metrics() -> None:
    with (Path(__file__).parents[3] / "planner" / "data" / "training_metrics.csv").open(
        encoding="utf-8"
    ) as file:
        names = {row["name"] for row in csv.DictReader(file)}
    text = "".join(files[0].text for files in allowed("prometheus").values())
    assert names - {"DCGM_FI_DEV_GPU_UTIL"} <= {name for name in names if name in text}
