"""Commitments that end and are not renewed: what their use costs more from then on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from planner.finops.forecast.bill import TOTAL, scope_name, scope_of_bill
from planner.finops.forecast.plans import PlannedCost

if TYPE_CHECKING:
    import pandas as pd

    from planner.finops.read import Bill

USED_DAYS = 30  # of the last days, whose use is taken to go on
_AHEAD = timedelta(days=750)
# what the use would cost without the commitment, less what it and its unused rest cost now
_SAVING = (
    "SUM(CASE WHEN CommitmentDiscountStatus = 'Used' AND x_contracted_known THEN ContractedCost - EffectiveCost "
    "WHEN CommitmentDiscountStatus = 'Unused' THEN -EffectiveCost ELSE 0 END)"
)
_ENDS = (
    "SELECT ContractCommitmentId AS id, MAX(ContractCommitmentPeriodEnd) AS finish FROM ContractCommitment "
    "GROUP BY ContractCommitmentId",
    "SELECT CommitmentDiscountId AS id, MAX(ChargePeriodEnd) AS finish FROM focus WHERE ChargeCategory = 'Purchase' "
    "AND CommitmentDiscountId IS NOT NULL AND ChargeFrequency = 'One-Time' GROUP BY CommitmentDiscountId",
)


def ending_commitments(bill: Bill, by: str = TOTAL, *, exact_tags: bool = False) -> tuple[PlannedCost, ...]:
    """What ending commitments add from their last day on, if nothing takes their place.

    The end is the ContractCommitment dataset's, else that of the purchase's charge period; commitments that tell no
    end are taken to go on. Use and prices are those of the last 30 days.

    Args:
        bill: an open bill.
        by: the dimension of the scopes, as of `bill.daily_of_bill`.
        exact_tags: as of `bill.daily_of_bill`.
    """
    last = _moment(bill.engine.query("SELECT MAX(x_day) AS day FROM focus")["day"].iloc[0])
    ends: dict[str, datetime] = {}
    for sql in reversed(_ENDS):  # the dataset's word counts more
        ends |= {row["id"]: _moment(row["finish"]) for row in _rows(bill.engine.query(sql))}
    scope = scope_of_bill(bill, by, exact_tags=exact_tags)
    used = bill.engine.query(
        f"SELECT {scope} AS scope, CommitmentDiscountId AS id, MAX(CommitmentDiscountName) AS name, "  # noqa: S608
        f"{_SAVING} AS saving FROM focus WHERE CommitmentDiscountId IS NOT NULL AND ChargeCategory = 'Usage' "
        f"AND x_day > :first GROUP BY {scope}, CommitmentDiscountId",
        {"first": (last - timedelta(days=USED_DAYS)).date()},
    )
    found = []
    for row in _rows(used):
        end = ends.get(row["id"])
        if end is None or end <= last or end > last + _AHEAD or not row["saving"]:
            continue
        daily = float(row["saving"]) / USED_DAYS
        stop = last + _AHEAD
        cost = daily * ((stop - end) / timedelta(days=1))
        name = f"{row['name'] or row['id']} ends"
        owner = None if by == TOTAL else scope_name(row["scope"])
        found.append(PlannedCost(name, "", end, stop, cost, "bill", owner))
    return tuple(sorted(found, key=lambda one: (one.start, one.name)))


def _rows(frame: pd.DataFrame) -> list[pd.Series]:
    return [row for _, row in frame.iterrows() if isinstance(row["id"], str)]


def _moment(value: object) -> datetime:
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)
