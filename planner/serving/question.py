"""What a serving fleet is asked for: requests by size, and kinds of machine with their prices, speeds and limits."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Floats
from solvers.problem.errors import ModelError


@dataclass(frozen=True, eq=False)
class ServingInput:
    """The question.

    Attributes:
        buckets: names, length `n_buckets`.
        rate: requests per second of each, shape `(n_buckets,)`.
        keys: the caller's key of each kind of machine, unique, length `n_kinds`.
        usd_per_hour: price of one machine, shape `(n_kinds,)`.
        speed: requests per second of one machine that serves one bucket alone, 0 where it cannot,
            shape `(n_kinds, n_buckets)`.
        limit: most machines of each kind, inf none, shape `(n_kinds,)`.
        max_nodes: most machines in all.
        headroom: share of each machine that stays free, 0..1.
    """

    buckets: tuple[str, ...]
    rate: Floats
    keys: tuple[Hashable, ...]
    usd_per_hour: Floats
    speed: Floats
    limit: Floats
    max_nodes: float = math.inf
    headroom: float = 0.0

    def __post_init__(self) -> None:
        if self.speed.shape != (len(self.keys), len(self.buckets)) or len(self.rate) != len(self.buckets):
            raise ModelError("serving: needs a speed for every kind and bucket and a rate for every bucket")
        if not 0 <= self.headroom < 1:
            raise ModelError(f"serving: headroom must be 0 or more and below 1, not {self.headroom}")

    @property
    def machines(self) -> Floats:
        """Machines that the whole of a bucket needs of one kind, infinity where it cannot, `(n_kinds, n_buckets)`."""
        usable = self.speed * (1.0 - self.headroom)
        return np.where(usable > 0, self.rate / np.where(usable > 0, usable, 1.0), np.inf)
