"""Recording and alert rules for Prometheus, with tests that promtool runs and a scrape configuration.

Facts of the metrics: dcgm-exporter 4.5.3. The thresholds are those of `planner track`.
"""

from __future__ import annotations

from typing import Any

from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.monitoring import Series, gpu_series, progress_series, selector, spend_series
from planner.export.names import RUN_TAG
from planner.export.program import heading
from planner.export.quoting import yaml_text
from planner.export.registry import Options
from planner.export.targets.prometheus_alerts import ALERTS, Alert, stalled_minutes
from planner.export.targets.prometheus_tests import rule_tests
from planner.export.view import Launch
from planner.tracking.thresholds import Threshold, thresholds


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:  # noqa: ARG001
    """Write `rules.yaml`, `rules-test.yaml` and `prometheus.yaml`.

    Raises:
        InputError: nothing of the plan can be watched.
    """
    if not (gpu_series(launch) or progress_series(launch)):
        raise InputError(
            "--to prometheus: independent runs on chips that dcgm-exporter does not know have no series to watch"
        )
    head = "\n".join(heading(launch)) + "\n"
    return (
        ExportFile("rules.yaml", head + _CHECK_NOTE + yaml_text(rules(launch))),
        ExportFile("rules-test.yaml", head + yaml_text(rule_tests(launch, alerts_of(launch)))),
        ExportFile("prometheus.yaml", head + _SCRAPE_NOTE + yaml_text(scrape(launch))),
    )


def rules(launch: Launch) -> dict[str, Any]:
    """Groups of the rule file; recorded series first, alerts on them."""
    recorded = [*gpu_series(launch), *spend_series(launch), *progress_series(launch)]
    name = f"planner-{launch.run_id}"
    records = [_record(series) for series in recorded]
    alerts = [rule(launch, alert) for alert in alerts_of(launch)]
    return {
        "groups": [
            {"name": f"{name}-recorded", "interval": "1m", "rules": records},
            {"name": f"{name}-alerts", "interval": "1m", "rules": alerts},
        ]
    }


def alerts_of(launch: Launch) -> list[Alert]:
    """The alerts whose series exist for this plan."""
    recorded = {
        series.name for series in (*gpu_series(launch), *spend_series(launch), *progress_series(launch))
    }
    own = recorded | ({"training_step"} if progress_series(launch) else set())
    return [alert for alert in ALERTS if alert.series in own]


def rule(launch: Launch, alert: Alert) -> dict[str, Any]:
    """One alert as a rule."""
    threshold = thresholds()[alert.threshold]
    stalled = alert.compare == "changes"
    return {
        "alert": alert.name,
        "expr": _expression(launch, alert, threshold),
        "for": "0m" if stalled else f"{threshold.for_minutes:g}m",
        "labels": {"severity": threshold.severity, "workload": literal(launch.name)},
        "annotations": {"summary": f"{literal(launch.name)}: {alert.summary}", "description": alert.remedy},
    }


def _record(series: Series) -> dict[str, Any]:
    labels = {"labels": dict(series.labels)} if series.labels else {}
    return {"record": series.name, "expr": series.expr} | labels


def _expression(launch: Launch, alert: Alert, threshold: Threshold) -> str:
    at = selector(launch)
    if alert.compare == "changes":
        window = stalled_minutes(launch)
        return (
            f"max by ({RUN_TAG}) (changes(training_step{at}[{window}m])) <= {threshold.value:g} "
            f"and on ({RUN_TAG}) count by ({RUN_TAG}) (training_step{at} offset {window}m)"
        )
    if alert.threshold == "spend_rate_max":
        return f"{alert.series}{at} > {threshold.value:g} * run:spend_usd_per_hour:plan{at}"
    return f"{alert.series}{at} {alert.compare} {threshold.value:g}"


def scrape(launch: Launch) -> dict[str, Any]:
    """A scrape configuration that puts the labels on the series."""
    jobs = [("training", "training-targets.json")]
    if gpu_series(launch):
        jobs.insert(0, ("dcgm", "dcgm-targets.json"))
    return {
        "global": {"scrape_interval": "15s", "evaluation_interval": "1m"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {
                "job_name": job,
                "file_sd_configs": [{"files": [file]}],
                "relabel_configs": [
                    {"target_label": RUN_TAG, "replacement": launch.run_id.replace("$", "$$")}
                ],
            }
            for job, file in jobs
        ],
    }


def literal(text: str) -> str:
    """Return a text that Prometheus takes as it is where it expands templates."""
    return text.replace("{{", '{{ "{{" }}')


_CHECK_NOTE = "# check: promtool check rules rules.yaml; promtool test rules rules-test.yaml\n"
_SCRAPE_NOTE = """\
# dcgm-targets.json lists dcgm-exporter of each node (port 9400), with planner_pool 0 for the plan's first place:
#   [{"targets": ["10.0.0.1:9400"], "labels": {"planner_pool": "0"}}]
# training-targets.json lists the training program, which has the gauges training_step, training_step_seconds and
# training_loader_seconds.
"""
