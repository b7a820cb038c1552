"""Lengths of sequences: a lognormal through mean and 95th percentile, and the longest of several.

A micro-batch without packing is padded to its longest sequence. The mean of the longest of n follows from the mean and
the variance of the greatest of n normal draws (Blom 1958 for the mean).
"""

from __future__ import annotations

import math

import numpy as np

from catalogs.tables.table import Floats, distinct
from planner.normal import Z90
from planner.normal.arrays import rough_normal_quantile
from planner.performance.post_training.spec import Lengths


def log_width(lengths: Lengths) -> float:
    """Standard deviation of the logarithm of the length, from p95 / mean = exp(1.645 s - s^2 / 2); at most 1.645."""
    ratio = math.log(max(lengths.p95 / lengths.mean, 1.0))
    inside = Z90 * Z90 - 2.0 * ratio
    return Z90 - math.sqrt(inside) if inside > 0 else Z90


def longest_of(number: Floats, width: Floats) -> Floats:
    """Mean longest of `number` sequences over the mean length; 1 for a single one or equal lengths."""
    sizes, at = distinct(np.maximum(np.ravel(number), 1.0))[::2]
    mean = rough_normal_quantile((sizes - 0.375) / (sizes + 0.25))[at]
    # 0.49 for 4 draws, 0.34 for 10, 0.2 for 100
    variance = (1.0 / (1.0 + 0.83 * np.log(sizes)))[at]
    result: Floats = np.exp(width * mean + 0.5 * width * width * (variance - 1.0))
    return result


def quantiles(lengths: Lengths, count: int) -> Floats:
    """Lengths at `count` evenly spaced quantiles, ascending, cut at the longest, scaled to keep the mean."""
    width = log_width(lengths)
    draws = rough_normal_quantile((np.arange(count) + 0.5) / count)
    values = np.exp(width * draws)
    scaled = values / values.mean() * lengths.mean
    result: Floats = np.minimum(scaled, lengths.longest)
    return result
