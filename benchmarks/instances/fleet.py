"""Fleet questions, synthetic and seeded, shaped on real catalogs.

A few dozen accelerator types sold in regions of different price level, by zone, on demand and spot; capacities small
for large machines, quotas Pareto-distributed in vCPU, a price for opening a region.
"""

from __future__ import annotations

import numpy as np

from planner.fleet.question import FleetInput

TYPES = np.array(
    # accelerators, relative throughput each, vCPU, accelerator GiB each, USD per hour
    [
        (1, 0.20, 4, 16, 0.53),
        (4, 0.20, 48, 16, 3.91),
        (1, 0.25, 8, 24, 1.21),
        (4, 0.25, 48, 24, 5.67),
        (8, 0.25, 192, 24, 16.29),
        (1, 0.33, 8, 24, 0.98),
        (4, 0.33, 48, 24, 4.60),
        (8, 0.33, 192, 24, 13.35),
        (1, 0.80, 8, 48, 2.24),
        (8, 0.80, 192, 48, 30.13),
        (1, 0.35, 8, 16, 3.06),
        (8, 0.35, 64, 16, 24.48),
        (1, 1.00, 12, 40, 3.67),
        (8, 1.00, 96, 40, 21.96),
        (8, 1.04, 96, 80, 27.45),
        (1, 2.60, 26, 80, 8.50),
        (8, 2.60, 192, 80, 55.04),
        (8, 2.85, 192, 141, 63.30),
        (8, 5.60, 192, 179, 113.93),
        (16, 0.28, 128, 32, 21.50),
    ]
)


def fleet_instance(n_offers: int, seed: int, *, hours: bool = False) -> FleetInput:
    """A fleet question of `n_offers` offers over about 80 regions of three providers.

    `hours`: workers may stop early, with 0.5 to 4 % of the whole time as fixed hours.
    """
    random = np.random.default_rng([seed, n_offers])
    n_regions = 80
    level = np.round(random.uniform(1.0, 1.6, n_regions), 2)
    provider_of_region = random.integers(0, 3, n_regions)
    kind = random.integers(0, len(TYPES), n_offers)
    variant = random.uniform(0.85, 1.15, n_offers) if n_offers > 20_000 else np.ones(n_offers)
    region = random.integers(0, n_regions, n_offers)
    spot = random.random(n_offers) < 0.5
    accelerators, speed, vcpus, memory, price = TYPES[kind].T
    discount = np.where(spot, random.uniform(0.25, 0.8, n_offers), 1.0)
    interruption = np.where(spot, random.choice([0.03, 0.08, 0.13, 0.2], n_offers), 0.0)
    throughput = accelerators * speed * 100 * (1 - interruption) * random.uniform(0.97, 1.03, n_offers)
    large = accelerators >= 8
    capacity = np.where(large, random.integers(0, 9, n_offers), random.integers(0, 50, n_offers))
    group_code = (region * 4 + np.minimum(accelerators, 8) // 4) * 2 + spot
    group = np.unique(group_code, return_inverse=True)[1]
    quota = np.clip(np.rint(256 * (1 + random.pareto(1.1, int(group.max()) + 1))), 64, 6_000)
    cost = np.round(price * level[region] * discount * variant, 4)
    required = 40 * float(np.quantile(throughput, 0.75))
    return FleetInput(
        keys=tuple(range(n_offers)),
        cost_usd=cost,
        fixed_cost_usd=cost * np.random.default_rng(seed).uniform(0.005, 0.04, n_offers) if hours else None,
        throughput=np.round(throughput * variant, 3),
        required_throughput=round(required, 1),
        max_units=capacity.astype(float),
        region=region,
        provider=provider_of_region[region],
        is_spot=spot,
        memory_gib=accelerators * memory,
        quota_group=group,
        quota_units=vcpus,
        quota_limit=quota,
        region_cost_usd=np.round(random.uniform(0.5, 6.0, n_regions), 2),
        max_spot_share=0.6,
        max_share_per_region=0.5,
        max_share_per_offer=0.2,
        max_regions=4,
        min_total_memory_gib=32 * float(np.median(accelerators * memory)),
    )
