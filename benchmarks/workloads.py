"""Measured rows as workloads: what a user would write in a workload file to ask for the figure that was measured.

Two ways of asking. The users' path states what whoever runs the job knows of it: model and what its output layer
predicts, batch, real tokens per sequence, precision, software class, memory layout of convolutions, the day, and the
parts of the layout that the row states. The expert path adds what `data/source_rules.csv` knows of the source: the
attention kernel and the other parts of the layout. Both go through the workload's schema, `resolve_job` and
`planner.estimation.predict`, as `planner estimate` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.measured import Case
from benchmarks.predict import hardware_table, layouts_of, metric_factor
from planner.asked.job import Job, resolve_job
from planner.estimation.predict import predict_shapes
from planner.inputs.schema import Workload
from planner.performance.constants import Constants
from planner.performance.memory_options import MemoryOptions
from planner.performance.work import stack_work

LEVELS = ("none", "selective", "full")
_SIZES = (
    "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts", "experts_per_token", "moe_ffn",
    "image_size",
)  # fmt: skip
# Choices of memory that a workload states; those of offload move the step time.
_KEPT = (
    "gradients",
    "master",
    "loss",
    "dropout",
    "offload_optimizer",
    "offload_weights",
    "offload_activations",
)
_TODAY = date(2026, 11, 1)
# A row that ran has fitted: where a plan would call its memory too risky, riskier layouts count as well.
RISKS = (0.5, 0.99, 1.0 - 1e-9)


def document(case: Case, users: bool) -> dict[str, Any]:
    """The workload of a settled case as a mapping of the workload schema."""
    training = {
        "steps": 1,
        "global_batch": max(int(case.training.global_batch), 1),
        "precision": case.training.precision,
        "optimizer": case.training.optimizer,
        "stack": case.training.stack,
        "layout": _layout(case, users) or "auto",
    }
    memory = case.training.memory
    kept = {
        name: getattr(memory, name)
        for name in _KEPT
        if getattr(memory, name) != getattr(MemoryOptions(), name)
    }
    if kept:
        training["memory"] = kept
    if case.kind == "transformer":
        training["sequence_length"] = case.training.sequence_length
    if case.training.lora_rank:
        training |= {"method": "lora", "lora_rank": case.training.lora_rank}
    if case.training.channels_last is not None:
        training["channels_last"] = case.training.channels_last
    if case.model.experts and case.ran_on:
        training["software_date"] = case.ran_on
    if not users:
        training["attention"] = case.training.attention
    made: dict[str, Any] = {
        "version": 1,
        "name": "measured",
        "model": _model(case),
        "training": training,
    }
    return made | ({"start": case.ran_on} if case.ran_on else {})


def _model(case: Case) -> dict[str, Any]:
    model = case.model
    stated: dict[str, Any] = {
        "name": model.name,
        "family": model.family.value,
        "params": max(int(model.params), 1),
        **{name: getattr(model, name) for name in _SIZES if getattr(model, name)},
    }
    if case.kind != "transformer":
        for name in ("forward_flops_per_sample", "activations_per_sample"):
            if getattr(model, name):
                stated[name] = max(int(getattr(model, name)), 1)
        return stated
    stated |= {
        "architecture": model.architecture, "gated_mlp": model.gated_mlp, "tied_embeddings": model.tied_embeddings,
        "shared_experts": model.shared_experts, "attention_ratio": model.attention_ratio,
    }  # fmt: skip
    if model.active_params:
        stated["active_params"] = int(model.active_params)
    if model.predicted_share is not None:
        stated["predicted_share"] = model.predicted_share
    return stated


def _layout(case: Case, users: bool) -> dict[str, Any]:
    """Pinned parts of the layout; of the users' path those that the row states."""
    if case.layout is None:
        return {}
    made = layouts_of([case])
    whole = {
        "tensor_parallel": int(made.tp[0]), "pipeline_parallel": int(made.pp[0]), "context_parallel": int(made.cp[0]),
        "zero_stage": int(made.zero[0]), "micro_batch": max(int(made.micro_batch[0]), 1),
        "recompute": LEVELS[int(made.recompute[0])], "expert_parallel": int(made.ep[0]),
        "interleave": int(made.interleave[0]), "sequence_parallel": bool(made.sequence_parallel[0]),
    }  # fmt: skip
    return {name: value for name, value in whole.items() if not users or name in case.stated_layout}


@lru_cache(maxsize=8192)
def _job(coded: str) -> Job:
    import json

    return resolve_job(Workload.model_validate(json.loads(coded)), _TODAY)


def job_of(case: Case, users: bool, hidden: Sequence[str] = ()) -> Job:
    """The job that the planner makes of a case's workload, without the keys of `training` that are `hidden`."""
    import json

    asked = document(case, users)
    asked["training"] = {key: value for key, value in asked["training"].items() if key not in hidden}
    return _job(json.dumps(asked, sort_keys=True))


def predict_workload(
    case: Case, users: bool, constants: Constants, hidden: Sequence[str] = ()
) -> dict[str, Any]:
    """What `planner estimate` predicts for the workload of a settled case: the row of `predict_shapes`."""
    job = job_of(case, users, hidden)
    hardware = hardware_table([case])
    row: dict[str, Any] = {}
    for risk in RISKS:
        accepted = constants.replace({"memory.oom_limit": risk})
        row = predict_shapes(job.model, job.training, hardware, [case.nodes], constants=accepted).row(0)
        if row["reason"] != "out_of_memory":
            break
    return row


def predict_workloads(
    cases: Sequence[Case], users: bool, constants: Constants, hidden: Sequence[str] = ()
) -> tuple[dict[str, Any], Counter[str]]:
    """Predicted metric and log half-width of the 80 % interval per case, NaN where the planner gives none, and why.

    Args:
        cases: settled cases.
        users: ask as users do; else with what is known of the source.
        constants: of the performance model.
        hidden: keys of `training` that the workload leaves open though the row states them.
    """
    value, spread = np.full(len(cases), np.nan), np.full(len(cases), np.nan)
    refused: Counter[str] = Counter()
    for position, case in enumerate(cases):
        try:
            row = predict_workload(case, users, constants, hidden)
        except ValueError as error:
            refused[str(error).splitlines()[0][:60]] += 1
            continue
        if row["reason"]:
            refused[str(row["reason"])] += 1
            continue
        flops = float(stack_work([(case.model, case.training)]).flops_per_sample[0])
        value[position] = row["samples_per_s"] * metric_factor(case, flops)
        spread[position] = np.log(row["step_time_high_s"] / row["step_time_s"])
    return {"value": value, "spread": spread}, refused
