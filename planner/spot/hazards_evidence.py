"""What a user has, turned into a hazard model: records, preemption logs, bands, prices, placement scores.

Strong evidence (recorded traces, the user's own preemption log) becomes counts and is shrunk with everything else.
Weak evidence (published bands; spot prices and placement scores: `planner.spot.hints`) never touches a zone that was
recorded: it makes or moves tables of zones that were not, and leaves their frailty wide.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.files.limited import MAX_RECORD_BYTES, open_text
from planner.spot.hazards import HazardModel, HazardTable, load_hazards, make_table, mean_spell_hours
from planner.spot.hazards_cells import (
    AGE_EDGES_HOURS,
    N_AGES,
    HazardCell,
    age_bucket,
    cell_of,
    plain_type,
    plain_zone,
    scale,
)

if TYPE_CHECKING:
    from catalogs.tariffs import InterruptionPrior
    from planner.spot.hints import Hint


LOG_COLUMNS = ("start", "end", "reason", "zone")
"""Columns a preemption log must have; `region`, `provider`, `instance_type` and `gang` may follow."""
_PREEMPTED = frozenset({"preempted", "preemption", "interrupted", "interruption", "reclaimed", "evicted"})
_OWN_ENOUGH_HOURS = 100.0
_LONGEST_WAIT_HOURS = 24.0


def model_from_files(paths: Sequence[Path], *, base: HazardModel | None = None) -> HazardModel:
    """The bundled model with a user's files.

    They are availability traces in any known format, preemption logs, histories of spot prices, placement scores.

    Raises:
        InputError: a file is none of these, or a row of it is wrong.
    """
    from planner.spot.hints import read_hints
    from planner.spot.traces.registry import read_traces

    cells: list[HazardCell] = []
    model = load_hazards() if base is None else base
    for path in paths:
        hints = read_hints(path) if path.is_file() else None
        if hints is not None:
            model = model.with_hints(hints)
        elif path.is_file() and is_preemption_log(path):
            cells += read_preemption_log(path)
        else:
            cells += [cell_of(trace) for trace in read_traces(path)]
    return with_own(model, cells) if cells else model


def with_own(model: HazardModel, cells: Sequence[HazardCell]) -> HazardModel:
    """The model with the user's own counts; where they show a zone for 100 hours, they stand alone for it.

    Old public records of a zone say little beside recent ones of the user's; as long as the user's are short, both
    count.
    """
    hours: dict[tuple[str, str, int], float] = {}
    for cell in cells:
        hours[_place(cell)] = hours.get(_place(cell), 0.0) + cell.hours
    enough = {place for place, seen in hours.items() if seen >= _OWN_ENOUGH_HOURS}
    kept = tuple(cell for cell in model.cells if _place(cell) not in enough)
    return replace(model, cells=(*kept, *cells))


def is_preemption_log(path: Path) -> bool:
    """Whether the first line names the columns of a preemption log."""
    try:
        with open_text(path, MAX_RECORD_BYTES) as file:
            header = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
    return set(LOG_COLUMNS) <= {name.strip() for name in header}


def read_preemption_log(path: Path) -> list[HazardCell]:
    """Counts of a log of runs on spot: a row per run, from its start to its end, and why it ended.

    A run that was preempted ends an up spell; any other reason only shows that it lasted so long. The time from a
    preemption to the next start in the same zone, at most 24 h, counts as a wait: it is one only for who asked all the
    time, so waits from such logs are an upper bound.

    Raises:
        InputError: a column is missing, a time cannot be read or a run ends before it starts.
    """
    from planner.files.tables import csv_rows  # the bundled hazards need none
    from planner.inputs.faults import need_columns

    runs: dict[tuple[str, str, str, str, int], list[tuple[float, float, bool, str]]] = {}
    with open_text(path, MAX_RECORD_BYTES) as file:
        reader = csv_rows(file, path)
        need_columns(path, reader.fieldnames, LOG_COLUMNS)
        for number, row in enumerate(reader, start=2):
            key, run = _run_of(path, number, row)
            runs.setdefault(key, []).append(run)
    out = []
    for (provider, region, zone, type_, gang), found in runs.items():
        up_hours, downs, down_hours, ups = _counts(sorted(found))
        as_of = min(run[3] for run in found)
        label = f"own log {path.name}"
        out.append(
            HazardCell(provider, region, zone, type_, gang, up_hours, downs, down_hours, ups, label, as_of)
        )
    return out


def table_from_prior(prior: InterruptionPrior, gang: int, hint: Hint | None = None) -> HazardTable:
    """Hazards of the tariff table's interruption figures (measured pool, Spot Advisor band or prior).

    The rate and the wait are that table's, so a plan and a policy never use two; the age shape is everything's, moved
    until the mean up spell is `1 / rate` and the mean down spell is the wait. A hint multiplies the rate and divides
    the wait.
    """
    source = f"{prior.basis}: {prior.source} ({prior.as_of}), x{gang}"
    rate, wait = max(prior.gang_rate_per_hour(gang), 1e-6), max(prior.gang_wait_hours(gang), 1e-3)
    if hint is not None:
        rate, wait = rate * np.exp(hint.log_down), wait / np.exp(hint.log_up)
        source = f"{source}; moved by {hint.by}"
    return table_from_means(1.0 / rate, wait, source)


def table_from_means(mean_up_hours: float, mean_down_hours: float, source: str) -> HazardTable:
    """Hazards whose spells have these means, by the age shape of everything; as uncertain as a published band."""
    model = load_hazards()
    down = with_mean(model.sides["down"].shape, mean_up_hours)
    up = with_mean(model.sides["up"].shape, mean_down_hours)
    sd = tuple(
        float(np.hypot(model.scales[side].drift_sd, scale("band_sd", side))) for side in ("down", "up")
    )
    return make_table(down, up, (sd[0], sd[1]), 0.0, source)


def with_mean(shape_per_hour: Floats, mean_hours: float) -> Floats:
    """An age shape times the factor that gives its spells the wanted mean (bisection on the log factor)."""
    low, high = -14.0, 14.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if mean_spell_hours(shape_per_hour * np.exp(middle)) > mean_hours:
            low = middle
        else:
            high = middle
    return np.asarray(shape_per_hour * np.exp(0.5 * (low + high)))


def _place(cell: HazardCell) -> tuple[str, str, int]:
    return cell.zone, cell.instance_type, cell.gang


def _run_of(
    path: Path, number: int, row: Mapping[str, str | None]
) -> tuple[tuple[str, str, str, str, int], tuple[float, float, bool, str]]:
    """Place, and (start hour, end hour, preempted, day) of a row."""
    from planner.spot.traces.samples import place_of

    def text(name: str) -> str:
        return (row.get(name) or "").strip()

    try:
        start, end = (datetime.fromisoformat(text(name)) for name in ("start", "end"))
        begin, stop = (
            t.replace(tzinfo=UTC).timestamp() / 3600 if t.tzinfo is None else t.timestamp() / 3600
            for t in (start, end)
        )
        gang = int(text("gang") or "1")
    except ValueError as error:
        raise InputError(f"{path}: row {number}: {error}") from error
    if stop < begin or gang < 1 or not text("zone"):
        raise InputError(
            f"{path}: row {number}: needs a zone, a gang from 1, and an end not before its start"
        )
    provider, region = place_of(text("zone"))
    key = (
        text("provider") or provider,
        text("region") or region,
        plain_zone(text("zone")),
        plain_type(text("instance_type")),
        gang,
    )
    return key, (begin, stop, text("reason").lower() in _PREEMPTED, start.date().isoformat())


def _counts(
    runs: Sequence[tuple[float, float, bool, str]],
) -> tuple[Floats, Floats, Floats, Floats]:
    """Up hours, downs, down hours and ups by age, shape `(N_AGES,)` each, of runs in order of their start."""
    up_hours, downs, down_hours, ups = (np.zeros(N_AGES) for _ in range(4))
    for at, (start, end, preempted, _) in enumerate(runs):
        up_hours += _by_age(end - start)
        if not preempted:
            continue
        downs[age_bucket(end - start)] += 1.0
        wait = runs[at + 1][0] - end if at + 1 < len(runs) else -1.0
        if 0.0 <= wait <= _LONGEST_WAIT_HOURS:
            down_hours += _by_age(wait)
            ups[age_bucket(wait)] += 1.0
    return up_hours, downs, down_hours, ups


def _by_age(hours: float) -> Floats:
    """A spell's hours in each age bucket."""
    upper = np.append(AGE_EDGES_HOURS[1:], np.inf)
    return np.clip(hours - AGE_EDGES_HOURS, 0.0, upper - AGE_EDGES_HOURS)
