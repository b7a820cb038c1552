"""Blocks of hours put together, so that thousands of rows are worked out at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.commitments.model import Hours

ROWS_AT_ONCE = 8760


def few(hours: tuple[Hours, ...]) -> list[list[list[int]]]:
    """Put small blocks of one period together to batches, and small batches of several periods to chunks.

    Thousands of rows are fastest (fewer calls, yet within the cache). All of a chunk have spot prices of one kind.

    Returns:
        numbers of blocks, by batch, by chunk.
    """
    sizes = [len(block.weight) for block in hours]
    periods: dict[tuple[int, int], list[int]] = {}
    for number, block in enumerate(hours):
        periods.setdefault((_spot_rows(block), block.period), []).append(number)
    kinds: dict[int, list[list[int]]] = {}
    for (kind, _), numbers in periods.items():
        parts = _filled([sizes[number] for number in numbers])
        kinds.setdefault(kind, []).extend(numbers[part] for part in parts)
    return [
        batches[part]
        for batches in kinds.values()
        for part in _filled([sum(sizes[number] for number in numbers) for numbers in batches])
    ]


def _filled(sizes: list[int]) -> Iterator[slice]:
    """Yield neighbours that make at most `ROWS_AT_ONCE` rows together, or one alone."""
    first = total = 0
    for at, rows in enumerate(sizes):
        if total + rows > ROWS_AT_ONCE and at > first:
            yield slice(first, at)
            first, total = at, 0
        total += rows
    yield slice(first, len(sizes))


def _spot_rows(block: Hours) -> int:
    """Rows of spot prices: 0 without spot, 1 where they are the same in every hour, else 2."""
    return 0 if block.spot_usd is None or block.spot_cap is None else min(len(block.spot_usd), 2)


def join(blocks: list[Hours], n_plans: int) -> Hours:
    """Return the blocks as one; spot prices that are the same in every hour of all blocks stay one row."""
    first = blocks[0]
    if len(blocks) == 1:
        return first
    cap = usd = owned = None
    if first.spot_cap is not None and first.spot_usd is not None:
        cap = np.concatenate([block.spot_cap for block in blocks if block.spot_cap is not None])
        prices = [block.spot_usd for block in blocks if block.spot_usd is not None]
        same = all(len(price) == 1 and (price == prices[0]).all() for price in prices)
        wide = [np.broadcast_to(p, b.demand.shape) for p, b in zip(prices, blocks, strict=True)]
        usd = prices[0] if same else np.concatenate(wide)
    if any(block.owned_plan_usd is not None for block in blocks):
        none = [np.zeros((len(block.weight), n_plans)) for block in blocks]
        own = [block.owned_plan_usd for block in blocks]
        owned = np.concatenate([n if o is None else o for n, o in zip(none, own, strict=True)])
    weight = np.concatenate([block.weight for block in blocks])
    demand = np.concatenate([block.demand for block in blocks])
    return Hours(first.scenario, first.period, weight, demand, cap, usd, owned)
