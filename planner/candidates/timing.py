"""Billed time is more than steps: what else takes time, per shape and per place.

Every figure that the workload does not give is an assumption (planner/data/assumptions.csv) with its origin.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from planner.normal import Z80
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Table
    from planner.asked.assumptions import Assumptions
    from planner.asked.job import Job
    from planner.market.offers import OfferSet


GIB = 2.0**30
GB = 1e9


@record(frozen=True, eq=False)
class ShapeTimes:
    """Hours per shape, shape `(n_shapes,)`.

    Attributes:
        work: steps, evaluation and what a run spends beside them, at the middle of the prediction.
        sigma: standard deviation of the logarithm of `work`: of the step time, of whole runs over what their steps
            say, and of the steps where a run may stop early.
        warmup: compilation and warm-up.
        checkpoint_write: one checkpoint.
        export: reading the final model out of the cluster.
    """

    work: Floats
    sigma: Floats
    warmup: Floats
    checkpoint_write: Floats
    export: Floats


def time_shapes(
    job: Job,
    nodes: Floats,
    step_s: Floats,
    low_s: Floats,
    high_s: Floats,
    assume: Assumptions,
) -> ShapeTimes:
    """Return what each shape spends its hours on.

    Args:
        job: totals of the work (steps, data and checkpoint sizes).
        nodes: nodes per shape.
        step_s: step time, middle of the prediction.
        low_s: lower end of its 80 % interval.
        high_s: upper end.
        assume: assumptions in force.
    """
    steps_hours = job.total_steps * step_s / 3600.0
    checkpoint_gb = job.checkpoint_gib * GIB / GB
    write = checkpoint_gb / (assume.checkpoint_write_gb_per_s_per_node * nodes * 3600.0)
    return ShapeTimes(
        work=steps_hours * assume.work_ratio,
        sigma=np.hypot(
            np.log(high_s / low_s) / (2.0 * Z80), math.hypot(job.stop_log_sd, assume.whole_run_log_sd)
        ),
        warmup=np.full(len(nodes), assume.compile_warmup_s / 3600.0),
        checkpoint_write=write,
        export=write + assume.export_s / 3600.0,
    )


def staging_hours(offer_set: OfferSet, job: Job, assume: Assumptions) -> Floats:
    """Hours to bring the data set into each offer's region, shape `(n_offers,)`; 0 where it already is."""
    if not job.data_gb or job.stream:
        return np.zeros(offer_set.offers.n_rows)
    size, location = job.data_gb, job.location
    rates = (
        assume.user_upload_gbps, assume.inter_region_staging_gbps, assume.cross_cloud_staging_gbps,
    )  # fmt: skip
    return offer_set.once(
        ("staging", size, location, *rates), lambda: _staging_hours(offer_set.offers, size, location, *rates)
    )


def _staging_hours(
    offers: Table, size_gb: float, location: str | None, upload: float, between_regions: float, across: float
) -> Floats:
    """The same of so many GB at a place, at rates in Gbit/s."""
    if location is None:
        return np.full(offers.n_rows, size_gb * 8.0 / upload / 3600.0)
    provider, _, region = location.partition("/")
    same_provider = offers.equals("provider", provider)
    here = same_provider & offers.equals("region", region)
    gbps = np.where(same_provider, between_regions, across)
    return np.where(here, 0.0, size_gb * 8.0 / gbps / 3600.0)


def fixed_hours(assume: Assumptions, times: ShapeTimes) -> Floats:
    """Hours in use that are not work, per shape: image pull, warm-up, final export.

    Nodes have their data when their image is there (`planner.market.storage`).
    """
    return assume.image_pull_s / 3600.0 + times.warmup + times.export
