"""Which zone takes over when one is lost: the pool that `pool_induction` works with, from the zones' own tables."""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Bools, Floats
from planner.spot.policy.chain import SpellChain
from planner.spot.policy.pool_induction import Pool, up_age

SWITCH_CAP = 0.2
"""Most that is believed of "another zone will be up at once". Measured it is 0.6-1.0, but zones go down together within
minutes, and a policy that trusts in the next zone takes spells that do not last and waits its slack away. Between 0.2
and 0.6 the cost changes by less than its noise: docs/spot/policy.md."""
_CROWDING = 0.85
"""A dry spell of n zones ends with the sum of their hazards over `n ** _CROWDING`, as measured: docs/spot/policy.md."""
SAME_REGION_RATIO = 0.6
OTHER_REGION_RATIO = 0.85
"""What is left of a zone's availability when a zone of its region, or of another, has just gone down."""


def make_pool(
    chains: list[SpellChain],
    price_ratio: Floats,
    same_region: Bools,
    restart_ticks: float,
    egress_ticks: float,
) -> Pool:
    """The pool of some zones.

    Args:
        chains: spells per zone.
        price_ratio: spot over on-demand, shape `(n,)`.
        same_region: shape `(n, n)`.
        restart_ticks: length of a restart.
        egress_ticks: price of moving the checkpoint, in on-demand ticks.
    """
    n = len(chains)
    life = np.array([_typical_life(chain) for chain in chains])
    index = price_ratio * life / np.maximum(life - restart_ticks, 0.2 * life)
    availability = np.array([_availability(chain) for chain in chains])
    chance = availability[None, :] * np.where(same_region, SAME_REGION_RATIO, OTHER_REGION_RATIO)
    np.fill_diagonal(chance, 0.0)
    other, none = np.zeros((n, n)), np.ones(n)
    for zone in np.argsort(index, kind="stable"):
        other[:, zone] = chance[:, zone] * none
        none = none * (1.0 - chance[:, zone])
    total = other.sum(axis=1, keepdims=True)
    other *= np.minimum(1.0, SWITCH_CAP / np.maximum(total, 1e-12))
    arrive = np.stack([chain.leave_down for chain in chains], axis=1) / n**_CROWDING
    arrive *= np.minimum(1.0, 0.95 / np.maximum(arrive.sum(axis=1, keepdims=True), 1e-12))
    return Pool(chains, price_ratio, other, np.where(same_region, 0.0, egress_ticks), arrive)


def _typical_life(chain: SpellChain) -> float:
    """Mean ticks a spell met at a random moment still lasts."""
    k = len(chain.first_ticks)
    left = np.linalg.solve(np.eye(k) - chain.step[:k, :k], np.ones(k))
    return float(up_age(chain) @ left)


def _availability(chain: SpellChain) -> float:
    """Long-run share of time up."""
    k = len(chain.first_ticks)
    spells = [
        np.linalg.solve(np.eye(k) - part, np.ones(k))[0] for part in (chain.step[:k, :k], chain.step[k:, k:])
    ]
    return float(spells[0] / (spells[0] + spells[1]))
