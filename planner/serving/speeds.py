"""Speeds of machines whose load nobody has tested: from the inference model, cautiously, rescaled by measurements."""

from __future__ import annotations

import math
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from planner.inputs.faults import Fault
from planner.inputs.serving_checks import served_model
from planner.normal import Z80
from planner.performance.constants import load_constants
from planner.performance.inference.beyond import ratio_doubts
from planner.performance.inference.serving import (
    Class,
    Point,
    Target,
    pace_of,
    read_ratio,
    serve,
    serving_devices,
    spread_of,
)
from planner.performance.parts import model_of
from planner.performance.post_training.read import engine_of_section
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from catalogs.tables.table import Table
    from planner.inputs.serving_load import LoadedServing
    from planner.inputs.serving_schema import Machine, Serving


@record(frozen=True)
class Speed:
    """What one machine serves of one bucket alone.

    Attributes:
        machine, bucket: names.
        basis: predicted, rescaled (by a measurement of another bucket of this machine) or measured.
        requests_per_s: what the fleet is sized by; 0 where the machine cannot within the limits.
        expected, low, high: as likely more as less, and the 80 % interval about it, requests per second.
        tensor_parallel, concurrency: accelerators of a replica, and requests that it answers at once.
        token_s, first_token_s: seconds per token and to the first at that speed, without a queue; of a bucket that the
            machine cannot serve these and the two before are 0.
    """

    machine: str
    bucket: str
    basis: str
    requests_per_s: float
    expected: float
    low: float
    high: float
    tensor_parallel: int
    concurrency: int
    token_s: float
    first_token_s: float


def predict_speeds(loaded: LoadedServing, catalog: Catalog) -> tuple[Speed, ...]:
    """Predict every bucket on every machine without given speeds.

    Raises:
        InputError: an instance type that the catalog lacks, or of which too little is known.
    """
    serving, rows = loaded.serving, loaded.predicted
    if not rows:
        return ()
    model, engine = model_of(served_model(serving)), engine_of_section(serving.inference)
    devices = serving_devices(_hardware(loaded, catalog), model, engine)
    calibrated = (
        np.isfinite(devices.serve_peak) & np.isfinite(devices.memory_rate) & np.isfinite(devices.memory_gib)
    )
    for at, fine in zip(rows, calibrated, strict=True):
        if not fine:
            text = "peak or memory of its accelerator is unknown at this precision: give requests_per_s"
            raise loaded.document.source.error([Fault(("machines", at, "instance_type"), text)])
    classes, target = _asked(serving)
    ask = partial(serve, model, engine, devices, classes, target)
    general, machines = serving.inference.tensor_parallel, [serving.machines[at] for at in rows]
    pinned = np.asarray([float(m.tensor_parallel or general or math.nan) for m in machines])
    tested = np.asarray([[m.measured.get(b.name, math.nan) for b in serving.buckets] for m in machines])
    untested = ask(np.ones(len(rows)), pinned)
    measured = np.isfinite(tested).any(axis=1)
    pace = np.ones(len(rows))
    spread = spread_of(engine, devices, classes, target)
    if measured.any():
        pinned = np.where(measured & (untested.tp > 0), untested.tp, pinned)
        which = np.flatnonzero(measured).astype(np.int64)
        by_test = pace_of(model, engine, devices.take(which), classes, target, pinned[which], tested[which])
        # an engine that is predicted better than one row by another is surer yet where the test agrees
        narrowed = np.minimum(spread[which], load_constants()["serving.measured_spread"])
        spread[which] = np.where(np.isnan(by_test), spread[which], narrowed)
        pace[which] = np.where(np.isnan(by_test), 1.0, by_test)
    # the speed that is reached with the confidence asked, and the ends of 80 %
    ends = np.asarray([-NormalDist().inv_cdf(serving.confidence) / Z80, 0.0, -1.0, 1.0])
    answers = [ask(pace * np.exp(end * spread), pinned) for end in ends.tolist()]
    return tuple(
        _speed(machine, bucket.name, [answer.at(at, k) for answer in answers], measured=bool(measured[at]))
        for at, machine in enumerate(machines)
        for k, bucket in enumerate(serving.buckets)
    )


def speed_doubts(serving: Serving, speeds: tuple[Speed, ...]) -> tuple[str, ...]:
    """Why predicted speeds are less sure than those of most engines, in words; empty where load tests rescale them all.

    Args:
        serving: the question.
        speeds: what was predicted.
    """
    if all(speed.basis != "predicted" for speed in speeds):
        return ()
    ratio = read_ratio(*_asked(serving))
    return ratio_doubts(engine_of_section(serving.inference), ratio, "machines.measured")


def _asked(serving: Serving) -> tuple[list[Class], Target]:
    """Size classes and limits as the inference model takes them."""
    classes = [
        Class(float(b.input_tokens or 0.0), float(b.output_tokens or 0.0), float(b.requests_per_s))
        for b in serving.buckets
    ]
    limits = serving.latency
    return classes, Target(
        limits.time_to_first_token_s or math.inf,
        limits.time_per_token_s or math.inf,
        serving.inference.shared_prefix,
    )


def _speed(machine: Machine, bucket: str, four: list[Point], *, measured: bool) -> Speed:
    """One entry; `four` are what is counted, expected, low and high."""
    counted, expected, *_ = four
    given = machine.measured.get(bucket)
    shown = counted if given is None else expected
    sized, middle, least, most = (one.rate if given is None else float(given) for one in four)
    basis = "measured" if given is not None else "rescaled" if measured else "predicted"
    return Speed(
        machine.name, bucket, basis, sized, middle, least, most, shown.tp, shown.running, shown.token_s,
        shown.first_token_s,
    )  # fmt: skip


def _hardware(loaded: LoadedServing, catalog: Catalog) -> Table:
    """One row of hardware per predicted machine."""
    from planner.market.machines import build_hardware

    types, rows = catalog.instance_types, []
    for at in loaded.predicted:
        machine = loaded.serving.machines[at]
        assert machine.provider is not None and machine.instance_type is not None
        hit = types.equals("provider", machine.provider) & types.equals(
            "instance_type", machine.instance_type
        )
        if not hit.any():
            text = f"the catalog has no {machine.provider} instance type {machine.instance_type}"
            raise loaded.document.source.error([Fault(("machines", at, "instance_type"), text)])
        rows.append(int(np.flatnonzero(hit)[0]))
    hardware, row_of_type = build_hardware(types.take(np.asarray(rows, dtype=np.int64)))
    return hardware.take(row_of_type)
