"""Batch inference on one cluster: request rate, tokens of the answers, total hours, and the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.estimation.values import Answered, Interval
from planner.performance.inference.engines import find_engine

if TYPE_CHECKING:
    from catalogs.tables.table import Table
    from planner.asked.job import Job
    from planner.performance.post_training.spec import Engine, Requests


def answered_of(job: Job, amount: int, requests: Requests, row: dict[str, Any]) -> Answered:
    """What a cluster answers.

    Args:
        job: the work.
        amount: requests or items in all.
        requests: what is asked, and the engine.
        row: the row of `estimate_shapes` that fits.
    """
    step, answers = (
        Interval(row["step_time_s"], row["step_time_low_s"], row["step_time_high_s"]),
        requests.answers,
    )
    batch = job.training.global_batch
    rate, steps = step.inverse(batch), amount / batch
    engine = find_engine(requests.engine.name, requests.engine.year)
    written = None if answers is None else step.inverse(batch * answers.mean)
    rows = f"{engine.rows:,} measured rows of its release of {engine.year}"
    if written is None:
        rows = "the share of the peak that models of this class were measured to reach"
    elif not engine.rows:
        rows = f"no measured rows of its release of {engine.year}: a related engine's figures, with a wide interval"
    return Answered(
        amount=amount,
        what="items" if answers is None else "requests",
        batch=batch,
        rate=rate,
        output_tokens_per_s=written,
        hours=Interval(*(value * steps / 3600.0 for value in (step.value, step.low, step.high))),
        engine=engine.name,
        evidence=rows,
        kv_precision=requests.engine.kv_precision if written is not None else "",
    )


def engine_words(engine: Engine) -> str:
    """The engine with the year whose figures are used, and its mode if that is not the usual one."""
    record = find_engine(engine.name, engine.year)
    return f"{record.name} {record.year}{'' if engine.graphs else ' in eager mode'}"


def served_precision(requests: Requests, hardware: Table) -> str:
    """Precision of the weights: fp16 in place of bf16 where the accelerator has no arithmetic in it."""
    stated = requests.engine.precision
    lacks = stated == "bf16" and not hardware.number("bf16_tflops")[0] > 0
    return "fp16" if lacks else stated
