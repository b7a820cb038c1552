"""What is dropped before the model with risk is built is needed by no best choice, by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from solvers.search.tail_reduce import not_replaced
from tests.draws import share_of


def _best(usd: np.ndarray, draws: np.ndarray, job: np.ndarray, limit: float, tail: int) -> float:
    """The least of half the mean and half the mean of the `tail` worst, of all choices within the limit."""
    own = [np.flatnonzero(job == one).tolist() for one in np.unique(job)]
    best = np.inf
    for choice in product(*own):
        if draws[list(choice)].sum() <= limit:
            total = np.sort(usd[list(choice)].sum(axis=0))
            best = min(best, 0.5 * float(total.mean()) + 0.5 * float(total[-tail:].mean()))
    return best


@pytest.mark.parametrize("block", range(4))
def test_the_best_choice_is_as_good_without_what_others_replace(block: int) -> None:
    dropped = 0
    for seed in range(share_of(40) * block, share_of(40) * (block + 1)):
        draw = np.random.default_rng(seed)
        counts = draw.integers(1, 7, 3)
        job = np.repeat(np.arange(3), counts)
        usd = draw.integers(1, 6, (len(job), 4)).astype(np.float64) + draw.integers(0, 3, len(job))[:, None]
        draws = draw.integers(0, 3, (len(job), 1)).astype(np.float64)
        kept = not_replaced(usd, draws, job)
        limit = float(draw.integers(0, 6))
        assert len(np.unique(job[kept])) == 3
        assert _best(usd[kept], draws[kept], job[kept], limit, 2) == _best(usd, draws, job, limit, 2), seed
        dropped += int((~kept).sum())
    assert dropped > 10


def test_of_equal_candidates_one_stays_and_the_dearer_on_a_limit_goes() -> None:
    usd = np.array([[2.0, 3.0], [2.0, 3.0], [1.0, 9.0], [2.0, 3.0]])
    draws = np.array([[1.0], [1.0], [1.0], [0.0]])
    assert not_replaced(usd, draws, np.zeros(4, dtype=np.int64)).tolist() == [True, False, True, True]
    assert not_replaced(usd[[3, 0]], draws[[3, 0]], np.zeros(2, dtype=np.int64)).tolist() == [True, False]
