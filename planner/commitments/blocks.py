"""Blocks of hours put together, so that thousands of rows are worked out at once."""

from __future__ import annotations

import numpy as np

from planner.commitments.model import Hours

ROWS_AT_ONCE = 8760


def batches(hours: tuple[Hours, ...]) -> list[list[int]]:
    """Put small blocks of one period together: thousands of rows are fastest (fewer calls, yet within the cache)."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number, block in enumerate(hours):
        groups.setdefault((block.period, _spot_rows(block)), []).append(number)
    out: list[list[int]] = []
    for numbers in groups.values():
        size = ROWS_AT_ONCE
        for number in numbers:
            rows = len(hours[number].weight)
            if size + rows > ROWS_AT_ONCE:
                out.append([])
                size = 0
            out[-1].append(number)
            size += rows
    return out


def few(hours: tuple[Hours, ...]) -> list[list[int]]:
    """As `batches`, but blocks of all periods together where they make few rows."""
    out = batches(hours)
    if sum(len(block.weight) for block in hours) > ROWS_AT_ONCE:
        return out
    groups: dict[int, list[int]] = {}
    for numbers in out:
        groups.setdefault(_spot_rows(hours[numbers[0]]), []).extend(numbers)
    return list(groups.values())


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
