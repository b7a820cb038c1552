"""The figures that sum up predictions beside what was measured."""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats


def errors(predicted: Floats, measured: Floats) -> dict[str, float]:
    """Count, MAPE, median and p90 of the absolute percentage error, and bias (median ratio)."""
    if not len(predicted):
        return {"n": 0}
    ratio = predicted / measured
    ape = np.abs(ratio - 1.0) * 100.0
    return {
        "n": len(ape), "mape": float(ape.mean()), "median": float(np.median(ape)),
        "p90": float(np.quantile(ape, 0.9)), "bias": float(np.median(ratio)),
    }  # fmt: skip
