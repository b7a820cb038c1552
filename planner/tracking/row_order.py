"""Rows as written become rows in order: clocks that jump, lines out of order, hosts that each write their own."""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.tracking.model import MEASURES, Intervals, Progress, Rows

# A run stands still in an interval this many times as long as its steps need, and by at least so many seconds more.
GAP_RATIO, GAP_SECONDS = 10.0, 60.0
# Shares of 1; a column with values above this is taken as percent.
_RATIOS = frozenset(("gpu_busy", "cpu_busy", "memory_used", "throttled"))
_PERCENT_ABOVE = 1.5


def in_order(rows: Rows) -> Progress:
    """Progress of rows as they were written.

    Raises:
        InputError: there is nothing to measure: a single row.
    """
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in rows.values.items()}
    hosts: dict[str, float] = {}
    notes = list(rows.notes)
    if rows.hosts:
        hosts, columns = _one_row_a_step(columns, np.asarray(rows.hosts))
    seconds, jumps = mended(columns["seconds"], columns["step"])
    if jumps:
        notes.append(
            f"the clock went back {jumps} time{'s' * (jumps > 1)} while steps went on: moved forward"
        )
    columns["seconds"] = seconds
    order = np.argsort(seconds, kind="stable")
    moved = int((order != np.arange(len(order))).sum())
    if moved:
        notes.append(f"{moved:,} rows were out of order: sorted by time")
    columns = {name: values[order] for name, values in columns.items()}
    columns, twice = _without_doubles(columns)
    if twice:
        notes.append(f"{twice:,} rows were written twice: left out")
    n = len(columns["seconds"])
    if n < 2:
        raise InputError(f"{rows.source}: one row of progress: a speed needs two; wait for the next step")
    unknown = np.full(n, np.nan)
    measures = {name: as_ratio(name, columns[name]) for name in MEASURES if name in columns}
    return Progress(
        rows.source, rows.kind, columns["seconds"], rows.absolute, columns["step"], columns.get("tokens", unknown),
        columns.get("nodes", unknown), measures, hosts, tuple(notes),
        columns.get("samples"),
    )  # fmt: skip


def mended(seconds: Floats, step: Floats) -> tuple[Floats, int]:
    """Times with jumps back of the clock taken out, and how many there were.

    A clock that goes back while steps go on was set anew: all that follows moves by as much. Rows whose step goes back
    with the time are lines out of order, which sorting mends.
    """
    out = seconds.copy()
    back = np.flatnonzero((np.diff(out) < 0) & (np.diff(step) > 0))
    jumps = 0
    usual = _usual(seconds, step)
    for at in back.tolist():
        late = out[at] - out[at + 1]
        if late <= 0:
            continue
        out[at + 1 :] += late + usual * (step[at + 1] - step[at])
        jumps += 1
    return out, jumps


def _usual(seconds: Floats, step: Floats) -> float:
    """Seconds per step where both go on."""
    dt, ds = np.diff(seconds), np.diff(step)
    on = (dt > 0) & (ds > 0)
    return float(np.median(dt[on] / ds[on])) if on.any() else 0.0


def _without_doubles(columns: dict[str, Floats]) -> tuple[dict[str, Floats], int]:
    seconds, step = columns["seconds"], columns["step"]
    same = np.concatenate([[False], (np.diff(seconds) == 0) & (np.diff(step) == 0)])
    return {name: values[~same] for name, values in columns.items()}, int(same.sum())


def _one_row_a_step(
    columns: dict[str, Floats], host: np.ndarray[tuple[int], np.dtype[np.str_]]
) -> tuple[dict[str, float], dict[str, Floats]]:
    """Median step time of each host, and the rows of the host that writes most: a step ends when its last host does."""
    names, of, count = np.unique(host, return_inverse=True, return_counts=True)
    paces = {}
    for number, name in enumerate(names.tolist()):
        mine = of == number
        step_s = columns.get("step_s", np.full(len(of), np.nan))[mine]
        if np.isfinite(step_s).any():
            paces[str(name)] = float(np.nanmedian(step_s))
    first = of == int(np.argmax(count))
    return (paces if len(paces) > 1 else {}), {name: values[first] for name, values in columns.items()}


def intervals_of(progress: Progress) -> Intervals:
    """What happened between rows.

    Raises:
        InputError: no step follows another one.
    """
    dt, ds = np.diff(progress.seconds), np.diff(progress.step)
    on = (ds > 0) & (dt > 0)
    if not on.any():
        raise InputError(f"{progress.source}: no step follows another one: there is no speed to measure")
    step_s = float(np.median(np.repeat(dt[on] / ds[on], np.minimum(ds[on], 50).astype(np.int64))))
    fell_back = ds < 0
    needed = np.maximum(ds, 0.0) * step_s
    gap = ~fell_back & (dt > GAP_RATIO * np.maximum(needed, step_s)) & (dt - needed > GAP_SECONDS)
    highest = np.maximum.accumulate(progress.step)
    again = np.clip(np.minimum(progress.step[1:], highest[:-1]) - progress.step[:-1], 0.0, None)
    repeated = np.divide(again, ds, out=np.zeros_like(dt), where=ds > 0)
    return Intervals(dt, np.maximum(ds, 0.0), fell_back, gap, np.clip(repeated, 0.0, 1.0), step_s)


def as_ratio(name: str, values: Floats) -> Floats:
    """Shares of 1, from percent where the column has them so."""
    finite = values[np.isfinite(values)]
    if name in _RATIOS and len(finite) and float(finite.max()) > _PERCENT_ABOVE:
        return values / 100.0
    return values
