"""Unit tests of the exported rules, as `promtool test rules` reads them: each alert once firing and once not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.export.monitoring import deadline_epoch, label, overhead, planned_rate
from planner.export.names import RUN_TAG
from planner.export.targets.prometheus_alerts import Alert, stalled_minutes
from planner.export.view import Launch
from planner.tracking.thresholds import thresholds

_BUSY, _IDLE = 0.9, 0.0


def rule_tests(launch: Launch, alerts: Sequence[Alert]) -> dict[str, Any]:
    """The test file: a healthy run that raises nothing, and one run for each alert that does."""
    groups = [f"planner-{launch.run_id}-{part}" for part in ("recorded", "alerts")]
    return {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "group_eval_order": groups,
        "tests": [_healthy(launch, alerts), *(_firing(launch, alert) for alert in alerts)],
    }


def _healthy(launch: Launch, alerts: Sequence[Alert]) -> dict[str, Any]:
    last = max(_minutes(launch, alert) for alert in alerts)
    series = [
        *_gpu(launch, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", [_BUSY], last),
        *_gpu(launch, "DCGM_FI_DEV_GPU_UTIL", [100 * _BUSY], last),
        *_gpu(launch, "DCGM_FI_DEV_FB_USED", [60], last),
        *_gpu(launch, "DCGM_FI_DEV_FB_FREE", [40], last),
        *_hosts(launch, launch.pools[0].nodes, last),
        _series(launch, "training_step", f"1+1x{last}"),
        _series(launch, "training_step_seconds", f"1x{last}"),
        _series(launch, "training_loader_seconds", f"0.1x{last}"),
    ]
    quiet = [{"eval_time": f"{last}m", "alertname": alert.name, "exp_alerts": []} for alert in alerts]
    return {"name": "a healthy run", "interval": "1m", "input_series": series, "alert_rule_test": quiet}


def _firing(launch: Launch, alert: Alert) -> dict[str, Any]:
    last = _minutes(launch, alert)
    series, value = _broken(launch, alert, last)
    summary = alert.summary
    for call in ("humanizePercentage", "humanize"):
        summary = summary.replace(f"{{{{ $value | {call} }}}}", value)
    labels = {"severity": thresholds()[alert.threshold].severity, "workload": launch.name}
    expected = {
        "exp_labels": {RUN_TAG: launch.run_id, **labels},
        "exp_annotations": {"summary": f"{launch.name}: {summary}", "description": alert.remedy},
    }
    test = {"eval_time": f"{last}m", "alertname": alert.name, "exp_alerts": [expected]}
    return {"name": alert.name, "interval": "1m", "input_series": series, "alert_rule_test": [test]}


def _broken(launch: Launch, alert: Alert, last: int) -> tuple[list[dict[str, str]], str]:
    """Series that break one threshold, and the value as the summary shows it."""
    if alert.threshold == "gpu_busy_min":
        return _activity(launch, [0.5, 0.5], last), "50%"
    if alert.threshold == "gpu_idle_max":
        return _activity(launch, [_IDLE, 1.0], last), "50%"
    if alert.threshold == "memory_used_max":
        used = _gpu(launch, "DCGM_FI_DEV_FB_USED", [98, 50], last)
        return [*used, *_gpu(launch, "DCGM_FI_DEV_FB_FREE", [2, 50], last)], "98%"
    if alert.threshold == "loader_share_max":
        step = _series(launch, "training_step_seconds", f"10x{last}")
        return [step, _series(launch, "training_loader_seconds", f"3x{last}")], "30%"
    if alert.threshold == "spend_rate_max":
        price = float(launch.first.usd_per_hour)
        nodes = int(thresholds()[alert.threshold].value * float(planned_rate(launch)) / price) + 1
        return _hosts(launch, nodes, last), humanize(nodes * price)
    if alert.threshold == "finish_after_deadline_max":
        return _late(launch, last)
    return [_series(launch, "training_step", f"7x{last}")], ""


def _late(launch: Launch, last: int) -> tuple[list[dict[str, str]], str]:
    """A run that is so slow that it ends long after its deadline, by a clock that starts in 1970."""
    deadline, steps = deadline_epoch(launch) or 0, launch.training.steps or 1
    # as the rule writes it
    factor = float(f"{overhead(launch):.4f}")
    seconds = float(2 * (deadline // max(1, int(steps * factor)) + 1))
    late = (60 * last + steps * seconds * factor - deadline) / 3600
    step = _series(launch, "training_step_seconds", f"{seconds:.0f}x{last}")
    return [_series(launch, "training_step", f"0x{last}"), step], humanize(late)


def humanize(value: float) -> str:
    """Write a number of at least 1 as Prometheus' template function does: four digits and a prefix of SI."""
    prefixes = iter("kMGTP")
    prefix = ""
    while abs(value) >= 1000:
        value, prefix = value / 1000, next(prefixes)
    return f"{value:.4g}{prefix}"


def _minutes(launch: Launch, alert: Alert) -> int:
    return max(round(thresholds()[alert.threshold].for_minutes), stalled_minutes(launch)) + 10


def _activity(launch: Launch, values: Sequence[float], last: int) -> list[dict[str, str]]:
    return [
        *_gpu(launch, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", values, last),
        *_gpu(launch, "DCGM_FI_DEV_GPU_UTIL", [100 * value for value in values], last),
    ]


def _gpu(launch: Launch, metric: str, values: Sequence[float], last: int) -> list[dict[str, str]]:
    return [
        _series(launch, metric, f"{value:g}x{last}", gpu=str(place), Hostname="node-0", planner_pool="0")
        for place, value in enumerate(values)
    ]


def _hosts(launch: Launch, nodes: int, last: int) -> list[dict[str, str]]:
    return [
        _series(
            launch, "DCGM_FI_DEV_GPU_TEMP", f"60x{last}", gpu="0", Hostname=f"node-{place}", planner_pool="0"
        )
        for place in range(nodes)
    ]


def _series(launch: Launch, metric: str, values: str, **labels: str) -> dict[str, str]:
    inner = ", ".join(f"{key}={label(value)}" for key, value in ({RUN_TAG: launch.run_id} | labels).items())
    return {"series": f"{metric}{{{inner}}}", "values": values}
