"""Invented serving questions: buckets of request sizes, kinds of accelerators good at different ones; and the rival."""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.serving.question import ServingInput
from solvers.problem.milp import Milp, MilpBuilder


def serving_instance(n_buckets: int, n_kinds: int, seed: int, *, rate: float = 300.0) -> ServingInput:
    """One instance: dearer kinds are faster, and relatively better at large requests.

    Args:
        n_buckets: size classes.
        n_kinds: kinds of machines.
        seed: seed.
        rate: requests per second in all.
    """
    draw = np.random.default_rng(seed)
    size = np.sort(draw.lognormal(0.0, 1.2, n_buckets))
    rates = draw.dirichlet(np.full(n_buckets, 0.7)) * rate
    price: Floats = np.asarray(np.round(np.sort(draw.lognormal(0.8, 0.9, n_kinds)), 3), dtype=np.float64)
    strength = price ** draw.uniform(0.85, 1.15, n_kinds)
    speed = 4.0 * strength[:, None] / size[None, :] ** draw.uniform(0.7, 1.1, (n_kinds, 1))
    speed *= draw.lognormal(0.0, 0.15, speed.shape)
    speed[size[None, :] > 3.0 * strength[:, None]] = 0.0
    speed[-1] = np.maximum(speed[-1], 0.05)
    return ServingInput(
        tuple(f"b{k}" for k in range(n_buckets)), rates, tuple(f"g{k}" for k in range(n_kinds)), price,
        np.round(speed, 4).astype(np.float64), np.full(n_kinds, np.inf),
    )  # fmt: skip


def build_slices(question: ServingInput, slices: int) -> Milp:
    """The formulation by slices: every bucket in equal slices, each of one kind (one binary per slice and kind)."""
    needed = question.machines / slices
    builder = MilpBuilder("slices")
    upper = np.ceil(np.where(np.isfinite(needed), needed, 0.0).sum(axis=1) * slices)
    n = builder.add_columns("n", question.keys, cost=question.usd_per_hour, upper=upper, integer=True)
    kind, bucket, part = np.nonzero(np.repeat(np.isfinite(needed)[:, :, None], slices, axis=2))
    keys = [("slice", *place) for place in zip(kind.tolist(), bucket.tolist(), part.tolist(), strict=True)]
    z = builder.add_columns("z", keys, upper=1.0, integer=True)
    columns = np.arange(z.start, z.stop)
    serve = builder.add_rows("serve", len(question.buckets) * slices, lower=1.0, upper=1.0)
    builder.add_entries(serve.start + bucket * slices + part, columns, 1.0)
    load = builder.add_rows("load", len(question.keys), upper=0.0)
    builder.add_entries(load.start + kind, columns, needed[kind, bucket])
    builder.add_entries(np.arange(load.start, load.stop), np.arange(n.start, n.stop), -1.0)
    return builder.build()
