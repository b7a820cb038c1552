"""Ordinary use: SKUs x regions x accounts x resources x days, with weekdays, growth, price moves and a spike."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from catalogs.tables.table import Floats, Ints
from tests.focus_company import fields
from tests.focus_company.catalogue import APPLICATIONS, ENVIRONMENTS, SKUS, TEAMS, Sku
from tests.focus_company.commitments import Commitment, apply_commitment
from tests.focus_company.ledger import Ledger, days_in

SPOT_ACCOUNT = 2
REGION_PRICES = (1.0, 1.08)  # the second region is dearer
SHARES = sum(sku.share for sku in SKUS)
SPIKE_SKU, SPIKE_REGION, SPIKE_ACCOUNT, SPIKE_DAY, SPIKE_FACTOR = "aws-net", 0, 0, 16, 400.0


@dataclass(frozen=True)
class Spike:
    """The one day on which something went wrong."""

    day: date
    provider: str
    service: str
    sku_id: str
    region_id: str
    excess_usd: float


def quantities(sku: Sku, month: date, index: int, resources: int, rng: np.random.Generator) -> Floats:
    """(resources, days) pricing units, rounded to 4 places; `index` counts months from the first."""
    days = days_in(month)
    weekday = np.array([date(month.year, month.month, d + 1).weekday() for d in range(days)])
    shape = np.where(weekday < 5, 1.0, sku.weekend_ratio) * sku.monthly_growth**index
    size = np.exp(np.random.default_rng(len(sku.code) * 7919 + resources).normal(0, 0.3, (resources, 1)))
    noise = np.exp(rng.normal(0, 0.04, (resources, days)))
    return np.round(sku.per_resource * size * shape * noise, 4)


def tags_of(ledger: Ledger, resources: int, sku: Sku) -> Ints:
    """(resources,) tag sets: 16 of 20 are complete, one lacks `env`, one `team`, one is {}, one null."""
    out = np.zeros(resources, dtype=np.int64)
    for number in range(resources):
        team = TEAMS[(number + len(sku.code)) % len(TEAMS)]
        env = ENVIRONMENTS[number % 3 == 0]
        place = (number * 7 + len(sku.code) * 3) % 20
        full = {"team": team, "env": env, "application": APPLICATIONS[team]}
        if place == 16:
            del full["env"]
        elif place == 17:
            del full["team"]
        out[number] = {18: 1, 19: 0}.get(place, -1)
        if out[number] < 0:
            out[number] = ledger.tag(**full)
    return out


def list_price(sku: Sku, offset: int) -> float:
    """Price per unit in a month; `offset` is -1 for the newest."""
    price = sku.list_price
    for start, factor in sku.price_moves.items():
        price *= factor if offset >= start else 1.0
    return round(price, 12)


def add_usage(
    ledger: Ledger, month: date, index: int, count: int, rows: int, commitments: tuple[Commitment, ...],
    rng: np.random.Generator,
) -> Spike | None:  # fmt: skip
    """Add one month of use; `count` months in all. Returns the spike where it falls into this month."""
    offset, spike = index - count, None
    for sku in SKUS:
        if not sku.first <= offset <= sku.last:
            continue
        resources = max(1, round(sku.share / SHARES * rows / (days_in(month) * 6)))
        for place in range(2):
            for holder in range(3):
                made = _add(ledger, month, index, offset, sku, place, holder, resources, commitments, rng)
                spike = made or spike
    return spike


def _add(
    ledger: Ledger, month: date, index: int, offset: int, sku: Sku, place: int, holder: int, resources: int,
    commitments: tuple[Commitment, ...], rng: np.random.Generator,
) -> Spike | None:  # fmt: skip
    q = quantities(sku, month, index, resources, rng)
    listed = round(list_price(sku, offset) * REGION_PRICES[place], 12)
    contracted = round(listed * sku.contract_ratio, 12)
    extra = np.zeros_like(q)
    spiky = (sku.code, place, holder, offset) == (SPIKE_SKU, SPIKE_REGION, SPIKE_ACCOUNT, -1)
    if spiky:
        extra[:, SPIKE_DAY] = np.round(q[:, SPIKE_DAY] * SPIKE_FACTOR, 4)
        q = q + extra
    spot = sku.spot_ratio is not None and holder == SPOT_ACCOUNT
    zone = "abc"[holder] if sku.zonal else None
    named = {
        **fields.base(sku.provider), **fields.account(sku.provider, holder), **fields.region(sku.provider, place, zone),
        **fields.sku_fields(sku, listed, contracted, "spot" if spot else "od"),
        "_resource": f"{sku.code}-{place}{holder}-",
    }  # fmt: skip
    paid = listed * (sku.spot_ratio or 0) * (1 + 0.05 * index) if spot else contracted
    if spot:
        named |= {"PricingCategory": "Dynamic", "CommitmentProgramEligibilityDetails": None}
    day = np.broadcast_to(np.arange(q.shape[1]), q.shape).ravel()
    number = np.broadcast_to(np.arange(resources)[:, None], q.shape).ravel()
    tag = tags_of(ledger, resources, sku)[number]
    left = q.ravel()
    for one in commitments:
        if one.covers(sku, place, holder) and not spot:
            left = apply_commitment(ledger, one, named, month, left, day, number, tag, listed, contracted)
    keep = left > 0
    q1 = left[keep]
    ledger.add(
        named, month, day=day[keep], resource=number[keep], tag=tag[keep], quantity=q1, listed=q1 * listed,
        contracted=q1 * contracted, effective=q1 * paid, billed=q1 * paid, eligible=sku.eligible and not spot,
        gpus=sku.details.get("GpuCount", 0),
    )  # fmt: skip
    if not spiky:
        return None
    when = date(month.year, month.month, SPIKE_DAY + 1)
    return Spike(
        when, sku.provider, sku.service, sku.sku_id, named["RegionId"], float(extra.sum() * contracted)
    )
