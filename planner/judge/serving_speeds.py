"""Speeds that a serving answer predicted, recomputed from the question with the inference model."""

from __future__ import annotations

from dataclasses import replace
from math import exp, inf, isnan, nan
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import Table
from planner.inputs.serving_checks import served_model
from planner.judge.document import MalformedError
from planner.judge.findings import Near
from planner.judge.goods import hardware_of
from planner.judge.prices import Z80
from planner.performance.constants import load_constants
from planner.performance.inference import serving as replicas
from planner.performance.inference.beyond import ratio_doubts
from planner.performance.parts import model_of
from planner.performance.post_training.read import engine_of_section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.model import Catalog
    from planner.inputs.serving_load import LoadedServing
    from planner.inputs.serving_schema import Machine, Serving


def with_speeds(loaded: LoadedServing, catalog: Catalog) -> tuple[LoadedServing, list[dict[str, Any]]]:
    """The question with every speed known, and what the answer's list of predictions must say."""
    entries, speeds = [], dict(loaded.speeds)
    for at in loaded.predicted:
        machine = loaded.serving.machines[at]
        for bucket, counted, entry in _of(loaded.serving, machine, _kind(machine, catalog)):
            speeds[machine.name, bucket] = counted
            entries.append(entry)
    return replace(loaded, speeds=speeds), entries


def doubts_of(serving: Serving, entries: Sequence[dict[str, Any]]) -> list[str]:
    """What the answer must say of prompts that are longer than measured ones; nothing where load tests rescale all."""
    if all(entry["basis"] != "predicted" for entry in entries):
        return []
    ratio = replicas.read_ratio(*_asked(serving))
    return list(ratio_doubts(engine_of_section(serving.inference), ratio, "machines.measured"))


def _asked(serving: Serving) -> tuple[list[replicas.Class], replicas.Target]:
    classes = [
        replicas.Class(float(b.input_tokens or 0), float(b.output_tokens or 0), float(b.requests_per_s))
        for b in serving.buckets
    ]
    limits, shared = serving.latency, serving.inference.shared_prefix
    return classes, replicas.Target(
        limits.time_to_first_token_s or inf, limits.time_per_token_s or inf, shared
    )


def _kind(machine: Machine, catalog: Catalog) -> Table:
    assert machine.provider is not None and machine.instance_type is not None
    types = catalog.instance_types
    hit = types.equals("provider", machine.provider) & types.equals("instance_type", machine.instance_type)
    if not hit.any():
        raise MalformedError(f"machines: no instance type {machine.instance_type} in the catalog")
    return types.take(hit.nonzero()[0][:1])


def _of(serving: Serving, machine: Machine, kind: Table) -> list[tuple[str, float, dict[str, Any]]]:
    """Bucket, the speed it is sized by, and its entry, for one machine."""
    model, engine = model_of(served_model(serving)), engine_of_section(serving.inference)
    device = replicas.serving_devices(hardware_of(kind), model, engine)
    classes, target = _asked(serving)
    degree, pace = float(machine.tensor_parallel or serving.inference.tensor_parallel or nan), 1.0
    spread = float(replicas.spread_of(engine, device, classes, target)[0])

    def at_pace(speed: float) -> replicas.Service:
        return replicas.serve(model, engine, device, classes, target, np.array([speed]), np.array([degree]))

    if machine.measured:
        degree = float(at_pace(1.0).tp[0]) or degree
        tested = np.array([[machine.measured.get(bucket.name, nan) for bucket in serving.buckets]])
        predicted_pace = float(
            replicas.pace_of(model, engine, device, classes, target, np.array([degree]), tested)[0]
        )
        if not isnan(predicted_pace):
            pace, spread = predicted_pace, min(spread, load_constants()["serving.measured_spread"])
    sure = exp(-spread * NormalDist().inv_cdf(serving.confidence) / Z80)
    services = {
        "requests_per_s": at_pace(pace * sure), "expected_requests_per_s": at_pace(pace),
        "low_requests_per_s": at_pace(pace * exp(-spread)), "high_requests_per_s": at_pace(pace * exp(spread)),
    }  # fmt: skip
    out = []
    for k, bucket in enumerate(serving.buckets):
        measured_rate = machine.measured.get(bucket.name)
        rates = {
            key: measured_rate or predicted_pace.at(0, k).rate for key, predicted_pace in services.items()
        }
        shown = services["requests_per_s" if measured_rate is None else "expected_requests_per_s"].at(0, k)
        basis = "measured" if measured_rate is not None else "rescaled" if machine.measured else "predicted"
        entry = {
            "machine": machine.name, "bucket": bucket.name, "basis": basis,
            **{key: Near(rate) for key, rate in rates.items()}, "tensor_parallel": shown.tp,
            "concurrency": shown.running, "time_per_token_s": Near(shown.token_s),
            "time_to_first_token_s": Near(shown.first_token_s),
        }  # fmt: skip
        out.append((bucket.name, rates["requests_per_s"], entry))
    return out
