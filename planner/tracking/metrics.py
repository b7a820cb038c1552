"""Progress of a run from the metrics of a Prometheus server."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.bundled import bundled_rows
from planner.errors import InputError
from planner.tracking.model import MEASURES, Progress, Rows
from planner.tracking.prometheus import TIMEOUT_S, TOKEN_VARIABLE, Prometheus
from planner.tracking.row_order import in_order

if TYPE_CHECKING:
    from planner.tracking.planned import Planned

RUN_LABEL = "planner_run_id"
_SELECTOR = "{@}"


@functools.cache
def default_queries() -> tuple[tuple[str, str], ...]:
    """Quantity and query, in order; of several of one quantity the first that has samples counts."""
    return tuple((row["quantity"], row["query"]) for row in bundled_rows("tracking_queries.csv"))


def run_selector(run_id: str) -> str:
    """The matcher of a run's series."""
    return f"{RUN_LABEL}={json.dumps(run_id)}"


def queries(selector: str, own: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Queries with a selector in them; `own` replaces those of a quantity.

    Raises:
        InputError: a quantity is not known.
    """
    names = list(dict.fromkeys(name for name, _ in default_queries()))
    names = list(dict.fromkeys((*names, *MEASURES)))
    for name in own:
        if name not in names:
            raise InputError(f"--metric {name}=...: is not known; there are {', '.join(names)}")
    usual = tuple((name, query) for name, query in default_queries() if name not in own)
    return tuple(
        (name, query.replace(_SELECTOR, f"{{{selector}}}")) for name, query in (*own.items(), *usual)
    )


def read_metrics(
    server: Prometheus, selector: str, start: float, end: float, own: Mapping[str, str] | None = None
) -> Progress:
    """Read the progress of a run.

    Args:
        server: to ask.
        selector: label matchers of the run's series.
        start: first moment, POSIX seconds.
        end: last one.
        own: queries by quantity in place of the usual ones.

    Raises:
        InputError: the server cannot be asked, or knows no step of the run.
    """
    if end <= start:
        raise InputError("--prometheus: the run begins after the present: give --started, or --now")
    series: dict[str, dict[float, float]] = {}
    for name, query in queries(selector, own or {}):
        if name not in series:
            points = server.query_range(name, query, start, end)
            if points:
                series[name] = points
    steps = series.pop("step", None)
    if steps is None:
        step_query = next(query for name, query in queries(selector, own or {}) if name == "step")
        raise InputError(
            f"--prometheus {server.url}: no sample of the step in the span: {step_query} is empty; name yours with "
            "--metric step=QUERY, or its labels with --selector"
        )
    return in_order(_rows(server.url, steps, series))


def read_run(
    url: str, planned: Planned, *, started: datetime | None = None, now: datetime | None = None,
    selector: str | None = None, own: Mapping[str, str] | None = None, token_env: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Progress:  # fmt: skip
    """Read the progress of a plan's run from a server.

    Args:
        url: of the server.
        planned: the plan: its start begins the span, its run id is the usual label.
        started: when the run began, where that was not the plan's start.
        now: end of the span; default: the present.
        selector: label matchers in place of the run id.
        own: queries by quantity.
        token_env: environment variable that holds a bearer token.
        timeout_s: for all queries together.

    Raises:
        InputError: as `read_metrics`.
    """
    server = Prometheus(url, token_env=token_env or TOKEN_VARIABLE, timeout_s=timeout_s)
    labels = run_selector(planned.plan.run_id) if selector is None else selector
    start, end = started or planned.start, now or datetime.now(UTC)
    return read_metrics(server, labels, start.timestamp(), end.timestamp(), own)


def _rows(source: str, steps: Mapping[float, float], series: Mapping[str, Mapping[float, float]]) -> Rows:
    """A row wherever the step changes; other figures are the mean of the samples since the row before."""
    moments = np.asarray(sorted(steps))
    step = np.asarray([steps[moment] for moment in moments.tolist()])
    at = np.flatnonzero(np.concatenate([[True], np.diff(step) != 0]))
    values = {"step": step[at].tolist(), "seconds": moments[at].tolist()}
    for name, points in series.items():
        values[name] = _means(moments[at], points).tolist()
    return Rows(source, "prometheus", values, [], True)


def _means(rows: Floats, points: Mapping[float, float]) -> Floats:
    """Mean of the samples up to each row, since the one before; NaN without any."""
    times = np.asarray(sorted(points))
    of = np.searchsorted(rows, times, side="left")
    inside = of < len(rows)
    count = np.bincount(of[inside], minlength=len(rows)).astype(np.float64)
    values = np.asarray([points[moment] for moment in times.tolist()])
    total = np.bincount(of[inside], values[inside], len(rows))
    return np.asarray(
        np.divide(total, count, out=np.full(len(rows), math.nan), where=count > 0), dtype=np.float64
    )
