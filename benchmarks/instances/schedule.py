"""Invented forecasts: pools in a few regions, spot prices with a daily wave and a drift, gaps in availability."""

from __future__ import annotations

import numpy as np

from planner.schedules.question import ScheduleInput


def schedule_instance(
    n_hours: int, n_pools: int, seed: int, *, one_region: bool, regions: int = 4, most: int = 16
) -> ScheduleInput:  # fmt: skip
    """One job over `n_hours`.

    Args:
        n_hours: hours of the forecast, all of which the job may use.
        n_pools: pools; about three of five are spot.
        seed: seed.
        one_region: whether its nodes of an hour must be in one region.
        regions: regions, the data is in the first.
        most: most nodes of a pool.
    """
    draw = np.random.default_rng(seed)
    spot = draw.random(n_pools) < 0.6
    on_demand = draw.uniform(2.0, 12.0, n_pools)
    speed = np.round(on_demand / draw.uniform(0.8, 1.3, n_pools), 3)
    hour = np.arange(n_hours)[:, None]
    wave = 0.1 * np.sin(2 * np.pi * (hour - draw.uniform(0, 24, n_pools)) / 24)
    drift = 0.005 * np.cumsum(draw.standard_normal((n_hours, n_pools)), axis=0)
    price = np.where(spot, on_demand * np.clip(0.35 + wave + drift, 0.12, 0.95), on_demand)
    open_hours = np.repeat(draw.random((n_hours // 6 + 1, n_pools)) < 0.8, 6, axis=0)[:n_hours]
    offered = draw.integers(0, most + 1, (n_hours, n_pools)) * open_hours
    copy = np.r_[0.0, np.round(draw.uniform(50.0, 400.0, regions - 1), 2)]
    keep = np.r_[0.0, np.round(draw.uniform(0.05, 0.3, regions - 1), 3)]
    return ScheduleInput(
        pools=tuple(f"p{k}" for k in range(n_pools)), regions=tuple(f"cloud/r{k}" for k in range(regions)),
        region=np.arange(n_pools) % regions, usd_per_hour=np.round(price, 4).astype(np.float64),
        available=np.where(spot, offered, most).astype(np.float64),
        offered=np.ones((n_hours, n_pools), dtype=np.bool_),
        startup_hours=np.full(n_pools, 0.25), startup_usd=np.zeros(n_pools), jobs=("job",),
        work=np.array([round(float(speed.mean()) * most * n_hours / 3.0, 1)]), speed=speed[None, :],
        first=np.zeros(1, dtype=np.int64), last=np.full(1, n_hours), min_nodes=np.ones(1, dtype=np.int64),
        max_nodes=np.full(1, n_pools * most), one_region=np.array([one_region]), copy_usd=copy[None, :],
        keep_usd_per_hour=keep[None, :], ready=np.zeros((1, regions), dtype=np.int64),
    )  # fmt: skip
