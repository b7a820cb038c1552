"""A dashboard for Grafana: the series of the exported rules, beside what the plan expects.

Facts: types of @grafana/schema 13.2; the grid is 24 columns wide.
"""

from __future__ import annotations

import json
from typing import Any

from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.monitoring import gpu_series, progress_series, selector, spend_series
from planner.export.names import FILE_NAME, RUN_TAG, clean
from planner.export.registry import Options
from planner.export.view import Launch
from planner.records import record
from planner.tracking.thresholds import thresholds

SCHEMA_VERSION = 42
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2
_UID_MOST = 40


@record(frozen=True)
class Panel:
    """A chart: its title, unit, recorded series with their legends, what it is for and the threshold drawn in it."""

    title: str
    unit: str
    series: tuple[tuple[str, str], ...]
    note: str
    threshold: str = ""


PANELS = (
    Panel("GPU activity", "percentunit", (("run:gpu_active:avg5m", "activity"),),
          "A kernel running is not a tensor core working: see tensor cores beside it.", "gpu_busy_min"),
    Panel("Tensor cores active", "percentunit", (("run:tensor_active:avg5m", "tensor cores"),),
          "The nearest that DCGM has to model FLOPs utilisation."),
    Panel("Idle GPUs", "percentunit", (("run:gpu_idle:ratio", "idle"),),
          "GPUs that are paid and do nothing.", "gpu_idle_max"),
    Panel("Fullest GPU memory", "percentunit", (("run:gpu_memory_used:max", "used"),),
          "The GPU with the least free memory.", "memory_used_max"),
    Panel("Cost per hour", "currencyUSD",
          (("run:spend_usd_per_hour:estimated", "nodes that report"), ("run:spend_usd_per_hour:plan", "plan")),
          "Prices of the plan times nodes that report."),
    Panel("Nodes", "none", (("run_pool:nodes:count", "place {{planner_pool}}"),), "By place of the plan, 0 the first."),
    Panel("Step", "none", (("run:training_step:max", "step"),), "Goes back after a restart from a checkpoint."),
    Panel("Time of a step", "s", (("run:step_seconds:avg30m", "step"),), "Mean of half an hour."),
    Panel("Share of the step that waits for data", "percentunit", (("run:loader:ratio", "loader"),),
          "Above the line the GPUs starve.", "loader_share_max"),
    Panel("Hours behind the deadline", "h", (("run:late_hours:estimated", "late"),),
          "Below zero is in time, at the speed measured.", "finish_after_deadline_max"),
    Panel("Power of all GPUs", "watt", (("run:gpu_power_watts:sum", "power"),), "What the GPUs draw."),
)  # fmt: skip


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:  # noqa: ARG001
    """Return `dashboard.json`, which Grafana imports; it reads the series of `--to prometheus`.

    Raises:
        InputError: nothing of the plan can be watched.
    """
    known = {item.name for item in (*gpu_series(launch), *spend_series(launch), *progress_series(launch))}
    panels = [panel for panel in PANELS if panel.series[0][0] in known]
    if not panels:
        raise InputError(
            "--to grafana: independent runs on chips that dcgm-exporter does not know have no series to show"
        )
    text = json.dumps(dashboard(launch, panels), indent=1, ensure_ascii=False)
    return (ExportFile("dashboard.json", text + "\n"),)


def dashboard(launch: Launch, panels: list[Panel]) -> dict[str, Any]:
    """The dashboard as Grafana's JSON."""
    return {
        "uid": clean(f"planner-{launch.run_id}", FILE_NAME, most=_UID_MOST).replace(".", "-"),
        "title": plain(f"{launch.name} ({launch.run_id})"),
        "description": f"Watches {plain(launch.name)} against its plan of {launch.created_at}.",
        "tags": ["planner", RUN_TAG],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "timezone": "utc",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_source_variable()]},
        "annotations": {"list": [_alert_marks(launch)]},
        "panels": [_panel(launch, place, panel) for place, panel in enumerate(panels)],
    }


def _source_variable() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "current": {"text": "default", "value": "default"},
    }


def _alert_marks(launch: Launch) -> dict[str, Any]:
    """Alerts of the rules as marks in all panels."""
    return {
        "name": "Alerts",
        "enable": True,
        "iconColor": "red",
        "datasource": _SOURCE,
        "expr": f'ALERTS{{alertname=~"Training.*", alertstate="firing", {selector(launch)[1:-1]}}}',
        "titleFormat": "{{alertname}}",
    }


def _panel(launch: Launch, place: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(place, _COLUMNS)
    return {
        "id": place + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.note,
        "datasource": _SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT},
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "none"},
        },
        "targets": [
            {"refId": chr(ord("A") + at), "expr": f"{name}{selector(launch)}", "legendFormat": legend,
             "datasource": _SOURCE}
            for at, (name, legend) in enumerate(panel.series)
        ],
    }  # fmt: skip


def _defaults(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.threshold:
        value = thresholds()[panel.threshold].value
        low, high = ("red", "green") if panel.threshold.endswith("_min") else ("green", "red")
        steps = [{"color": low, "value": None}, {"color": high, "value": value}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        defaults["custom"] = {"thresholdsStyle": {"mode": "line"}}
    if panel.unit == "percentunit":
        defaults |= {"min": 0, "max": 1}
    return defaults


def plain(text: str) -> str:
    """Return a text in which Grafana sees no variable: `$` and `[[` lose their meaning by a space of no width."""
    return text.replace("$", "$\u200b").replace("[[", "[\u200b[")
