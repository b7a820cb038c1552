"""One source of hazards for plan and advice: records where the plan used records, else the figures that the plan holds.

`planner optimize` takes a recorded pool where the offer's family was recorded, and a published band or a prior where it
was not; what it took is in the plan, per place. The same order holds here, so that a plan and the advice on it never
rest on two answers to one question.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.advice.kept import kept_values
from planner.advice.question import place_of
from planner.errors import InputError
from planner.files.limited import MAX_RECORD_BYTES, read_unpacked
from planner.plan.launch import hazards_sha256
from planner.spot.hazards import HazardModel
from planner.spot.hazards_cells import AGE_EDGES_HOURS
from planner.spot.hazards_evidence import table_from_means
from planner.spot.hazards_table import HazardTable, make_table, moved_table
from planner.spot.pools import OWN_RECORDS, as_wide

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from planner.advice.question import Question
    from planner.advice.saved_plan import Capacity, SpotPlan
    from planner.plan.launch import SpotRecords
    from planner.spot.policy.job import SpotZone

_MOVED = "moved by"
_CHANGED = "launch.places: the hazards of {zone} were changed or have other ages: they are recomputed"


def kept_as_planned(
    question: Question, evidence: Sequence[Path], load: Callable[[], HazardModel]
) -> tuple[Question, HazardModel]:
    """What `as_planned` says, taken from an earlier answer where the same was asked.

    Args:
        question: plan and state.
        evidence: files of the user's own records.
        load: gives the model with these records, where it is needed.

    Returns:
        The question with its notes, and a model that holds the tables of its zones and nothing else.
    """
    zones = [replace(zone, usd_per_hour=0.0) for zone in question.job.zones]  # hazards follow from no price
    capacities = [place_of(question.plan, seen).capacity for seen in question.seen]

    def solve() -> dict[str, Any]:
        noted, model = as_planned(replace(question, notes=()), load, own=bool(evidence))
        tables = {zone.name: _plain(model.table_for(zone)) for zone in question.job.zones}
        return {"notes": noted.notes, "tables": tables}

    solved = kept_values((zones, capacities, [_digest(path) for path in evidence]), solve)
    tables = {name: _table(values) for name, values in solved["tables"].items()}
    return replace(question, notes=(*question.notes, *solved["notes"])), HazardModel((), {}, tables)


def _digest(path: Path) -> tuple[str, str]:
    """Name and hash of a file; without a hash where it cannot be read, which its reader then reports."""
    try:
        return str(path), hashlib.sha256(read_unpacked(path, MAX_RECORD_BYTES)).hexdigest()
    except OSError:
        return str(path), ""


def _plain(table: HazardTable) -> dict[str, Any]:
    """A table as plain values; its ages are those of every table."""
    values = {field.name: getattr(table, field.name) for field in fields(table)}
    del values["age_edges_hours"]
    return {
        name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in values.items()
    }


def _table(values: Mapping[str, Any]) -> HazardTable:
    """The table of plain values."""
    hazards = {name: np.asarray(values[name], dtype=np.float64) for name in ("down_per_hour", "up_per_hour")}
    return HazardTable(**{**values, **hazards, "age_edges_hours": AGE_EDGES_HOURS})


def as_planned(
    question: Question, load: Callable[[], HazardModel], *, own: bool
) -> tuple[Question, HazardModel]:
    """The hazards that the plan rests on, and the question with notes where they differ from the plan's.

    Args:
        question: plan and state.
        load: gives the model: bundled records, and the user's own where `own`. Where the plan holds the table of every
            zone it is not requested: fitting the records takes longer than the rest of an answer.
        own: whether evidence of the user's own is in the model.
    """
    load = cache(load)
    tables: dict[str, HazardTable] = {}
    notes: dict[str, None] = {}
    for seen, zone in zip(question.seen, question.job.zones, strict=True):
        capacity = place_of(question.plan, seen).capacity
        if capacity is None:
            continue
        note = _difference(capacity, own=own)
        notes |= {note: None} if note else {}
        if capacity.hazards is not None and not own and _held(capacity) is None:
            notes |= {_CHANGED.format(zone=zone.name): None}
        table = planned_table(capacity, zone, load, own=own)
        tables |= {} if table is None else {zone.name: table}
    whole = all(zone.name in tables for zone in question.job.zones)
    model = HazardModel((), {}, tables) if whole else load().with_tables(tables)
    return replace(question, notes=(*question.notes, *notes)), model


def planned_table(
    capacity: Capacity, zone: SpotZone, load: Callable[[], HazardModel], *, own: bool
) -> HazardTable | None:
    """The table that the plan holds of a place, else `derived_table`; `own` as in `as_planned`."""
    carried = None if own else _held(capacity)
    return carried or derived_table(capacity, zone, load, own=own)


def derived_table(
    capacity: Capacity, zone: SpotZone, load: Callable[[], HazardModel], *, own: bool
) -> HazardTable | None:
    """The table that follows from the plan's figures of a place, or from records as they are now.

    Returns:
        None where the model has a record of the machine's family, which then gives the table.
    """
    recorded = own or capacity.recorded
    return None if recorded and load().knows_family(zone) else _planned_table(capacity, zone, load())


def _held(capacity: Capacity) -> HazardTable | None:
    """The table of a place that the plan holds; None where it holds none, or one that something else has changed."""
    if capacity.records is not None:
        return _records_table(capacity.records)
    hazards = capacity.hazards
    if hazards is None or hazards_sha256(hazards) != hazards.sha256:
        return None
    if hazards.age_edges_hours != tuple(AGE_EDGES_HOURS.tolist()):
        return None
    return make_table(
        np.asarray(hazards.down_per_hour, dtype=np.float64),
        np.asarray(hazards.up_per_hour, dtype=np.float64),
        (hazards.frailty_sd_down, hazards.frailty_sd_up),
        hazards.hours_seen,
        hazards.source,
        of_family=hazards.of_family,
        observed_ratio=hazards.observed_ratio,
    )


def _records_table(records: SpotRecords) -> HazardTable:
    """The user's own records as the plan holds them."""
    ages = len(AGE_EDGES_HOURS)
    for name, values in (("down_per_hour", records.down_per_hour), ("up_per_hour", records.up_per_hour)):
        if len(values) != ages:
            raise InputError(
                f"the plan: launch.places: records.{name} has {len(values)} values, {ages} (one per age) are needed: "
                "save the plan again with `planner optimize ... -o json --out FILE`"
            )
    return make_table(
        np.asarray(records.down_per_hour, dtype=np.float64),
        np.asarray(records.up_per_hour, dtype=np.float64),
        (records.frailty_sd_down, records.frailty_sd_up),
        records.hours_seen,
        f"{records.source} (as the plan has them)",
    )


def _planned_table(capacity: Capacity, zone: SpotZone, model: HazardModel) -> HazardTable:
    """The plan's mean spells with the age shape of everything, as wide as the plan takes an unrecorded pool to be."""
    from planner.asked.assumptions import load_assumptions

    source = f"the plan's figures: {capacity.evidence}"
    table = table_from_means(capacity.mean_up_hours, capacity.mean_wait_hours, source)
    hint = None if _MOVED in capacity.evidence else model.hint_for(zone)
    table = as_wide(table, load_assumptions().spot_unrecorded_frailty_sd)
    return table if hint is None else moved_table(table, hint)


def _difference(capacity: Capacity, *, own: bool) -> str:
    """What to say where the plan and this answer do not rest on the same evidence; empty where they do."""
    planned_own = capacity.evidence.startswith(OWN_RECORDS)
    if planned_own and not own and capacity.records is None:
        return (
            "the plan is based on your spot records, but does not contain them for this zone: its mean figures are "
            "used; give the records with --workload FILE or --spot-evidence FILE"
        )
    if own and not planned_own and _MOVED not in capacity.evidence:
        return f"the plan was computed without your spot records, which are used here (the plan: {capacity.evidence})"
    return ""


def workload_evidence(path: Path, plan: SpotPlan) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Files that the workload's `spot.evidence` names, and what to say if it is not the workload of the plan.

    Raises:
        InputError: the workload cannot be read.
    """
    from planner.inputs.load import load_workload

    loaded = load_workload(path)
    files: Sequence[str] = loaded.workload.spot.evidence
    notes: tuple[str, ...] = ()
    if loaded.sha256 != plan.workload_sha256:
        notes = (
            f"{path} is not the workload file of this plan (sha256 {loaded.sha256[:12]}, the plan: "
            f"{plan.workload_sha256[:12] or 'unknown'}): its spot.evidence is used",
        )
    return tuple(path.parent / name for name in files), notes
