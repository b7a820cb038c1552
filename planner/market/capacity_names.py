"""What a user states of capacity (obtainable, waiting, waited): words that would be passed over are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from catalogs.tables.accelerators import load_accelerators
from planner.inputs.faults import Fault
from planner.inputs.purchase_options import PurchaseOption
from planner.market.name_check import NameCheck

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from catalogs.tables.table import Table
    from planner.inputs.schema import Constraints, ObtainableLimit, SeenWait, StartWait


def capacity_faults(
    limits: Constraints, offers: Table, providers: Sequence[str], places: Sequence[str]
) -> Iterator[Fault]:
    """Yield a fault for each statement of capacity that would leave the planner's assumption as it is.

    Requests in a file of records may be of machines that are no longer sold.

    Args:
        limits: the workload's.
        offers: what is sold.
        providers: ids that may be stated.
        places: the catalog's, as `provider/region`.
    """
    for check in _checks(limits, offers, providers, places):
        yield from check.faults()
    for position, item in enumerate(limits.waiting):
        if item.purchase_option == "spot":
            text = "has no effect on spot, whose waits come from records: add yours with spot.evidence"
            yield Fault(("constraints", "waiting", position, "purchase_option"), text)


def _checks(
    limits: Constraints, offers: Table, providers: Sequence[str], places: Sequence[str]
) -> Iterator[NameCheck]:
    seen = () if limits.waiting_records else limits.waited
    stated: tuple[tuple[str, Sequence[ObtainableLimit | StartWait | SeenWait]], ...] = (
        ("obtainable", limits.obtainable), ("waiting", limits.waiting), ("waited", seen),
    )  # fmt: skip
    accelerators = [str(one) for one in load_accelerators()["accelerator"]]
    regions = sorted({place.partition("/")[2] for place in places})
    options = sorted({*get_args(PurchaseOption), *offers.coded("purchase_option").values} - {""})
    for key, items in stated:
        for position, item in enumerate(items):
            at = ("constraints", key, position)
            yield NameCheck(
                (*at, "accelerator"), [item.accelerator], accelerators, "accelerator", False, True
            )
            yield NameCheck((*at, "provider"), [item.provider or "*"], providers, "provider", False)
            yield NameCheck((*at, "region"), [item.region], regions, "region", False)
            yield NameCheck(
                (*at, "purchase_option"), [item.purchase_option], options, "purchase option", False
            )
