"""A schedule at once, without a solver: what there is when the time limit comes before any other."""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct_values
from planner.schedules.question import ScheduleInput


def greedy_schedule(question: ScheduleInput) -> dict[tuple[int, int, int], int] | None:
    """Job by job, the hours with the least cost per work, each used in full; None says nothing about the question.

    Pools are taken cheapest work first; where `max_nodes` then keeps a job from being done, fastest first.
    """
    left = np.where(question.offered, question.available, 0.0)
    nodes: dict[tuple[int, int, int], int] = {}
    for job in range(len(question.jobs)):
        job_nodes = _job(question, job, left, fastest=False)
        job_nodes = _job(question, job, left, fastest=True) if job_nodes is None else job_nodes
        if job_nodes is None:
            return None
        left -= job_nodes
        nodes |= {(job, int(t), int(o)): int(job_nodes[t, o]) for t, o in np.argwhere(job_nodes > 0)}
    return nodes


def _job(question: ScheduleInput, job: int, left: Floats, *, fastest: bool) -> Floats | None:
    """Nodes of one job by hour and pool, shape (T, P); None where they do not do its work."""
    speed, region = question.speed[job], question.region
    per_node = question.usd_per_hour * (1 + question.startup_hours) + question.startup_usd
    ratio = per_node / np.where(speed > 0, speed, 1e-300)
    order: Ints = np.argsort(
        -np.broadcast_to(speed, ratio.shape) if fastest else ratio, axis=1, kind="stable"
    )
    free = np.where(question.usable[job], left, 0.0)
    groups: list[Bools] = [region == r for r in distinct_values(region)]
    if not question.one_region[job]:
        groups = [region >= 0]
    best = np.zeros_like(free)
    best_ratio = np.full(len(free), np.inf)
    for group in groups:
        sorted_free = np.take_along_axis(free * group, order, axis=1)
        before = np.cumsum(sorted_free, axis=1) - sorted_free
        used = np.zeros_like(free)
        np.put_along_axis(used, order, np.clip(question.max_nodes[job] - before, 0.0, sorted_free), axis=1)
        enough = used.sum(axis=1) >= max(int(question.min_nodes[job]), 1)
        work = used @ speed
        cost_ratio = np.where(enough, (used * per_node).sum(axis=1) / np.where(work > 0, work, 1.0), np.inf)
        if fastest:
            cost_ratio = np.where(enough, -work, np.inf)
        better = cost_ratio < best_ratio
        best[better], best_ratio[better] = used[better], cost_ratio[better]
    hours = np.argsort(best_ratio, kind="stable")
    work_done = np.cumsum((best @ speed)[hours])
    count = int(np.searchsorted(work_done, question.work[job]))
    if count >= len(hours):
        return None
    chosen = np.zeros_like(free)
    chosen[hours[: count + 1]] = best[hours[: count + 1]]
    return chosen
