"""Members of the extra `forecast`: statsforecast's AutoETS, AutoARIMA and MFLES beside the ensemble.

They fit anew at every origin, which takes seconds, so they are tried at a few past origins only and weighed against the
ensemble as a whole by the same rule as its members. Intervals stay the ensemble's, around the new centre.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from catalogs.errors import install_command
from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.finops.forecast.ensemble import TRUST
from planner.finops.forecast.smoothing import WEEK

Fit = Callable[[Floats, int], Floats]
MOST_DAYS = 365  # of history a fit sees
MOST_ORIGINS = 6
_LEAST_DAYS = 28  # of history for a fit


def statsforecast_members() -> dict[str, Fit]:
    """The members, as functions of history and horizon.

    Raises:
        InputError: statsforecast is not installed.
    """
    if importlib.util.find_spec("statsforecast") is None:
        raise InputError(f"more members need statsforecast: {install_command('forecast')}")
    models = importlib.import_module("statsforecast.models")
    members = {"auto_ets": models.AutoETS, "auto_arima": models.AutoARIMA}
    if importlib.util.find_spec("sklearn") is not None:  # MFLES fits with it
        members["mfles"] = models.MFLES

    def fit_of(model: Callable[..., Any]) -> Fit:
        def fit(cost: Floats, horizon: int) -> Floats:
            return np.asarray(model(season_length=WEEK).forecast(y=cost[-MOST_DAYS:], h=horizon)["mean"])

        return fit

    return {name: fit_of(model) for name, model in members.items()}


def with_more_members(
    cost: Floats, paths: Floats, members: dict[str, Fit]
) -> tuple[Floats, dict[str, float]]:
    """Blend the ensemble's forecast with those of more members.

    Args:
        cost: (n_days,).
        paths: (n_days + 1, horizon) of the ensemble.
        members: name -> function.

    Returns:
        The blended path (horizon,) and the weights; `ensemble` is the weight of all others together. Histories too
        short for a trial leave the ensemble alone.
    """
    horizon = paths.shape[1]
    origins = _origins(len(cost), horizon)
    if not origins:
        return paths[-1], {"ensemble": 1.0}
    names = ["ensemble", *members]
    errors = np.zeros(len(names))
    for origin in origins:
        actual = cost[origin : origin + horizon].sum()
        predictions = [paths[origin], *(fit(cost[:origin], horizon) for fit in members.values())]
        errors += np.abs([path.sum() - actual for path in predictions])
    middle = float(np.median(errors))
    score = errors / middle if middle > 0 else np.zeros(len(names))
    weights = (score + TRUST.equal_share) ** -TRUST.sharpness
    weights /= weights.sum()
    ahead = np.stack([paths[-1], *(fit(cost, horizon) for fit in members.values())])
    if (cost >= 0).all():
        ahead = np.maximum(ahead, 0.0)
    return weights @ ahead, dict(zip(names, weights.tolist(), strict=True))


def _origins(n_days: int, horizon: int) -> list[int]:
    """The last past origins whose windows are over."""
    step = max(WEEK, horizon // 3)
    found = range(n_days - horizon, _LEAST_DAYS - 1, -step)
    return list(found)[:MOST_ORIGINS]
