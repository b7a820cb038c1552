"""What renting costs: the cheapest fitting offer of each option at the price that plans expect, or a workload's plans.

Prices are those of `planner optimize`: spot at its expected price in the middle of the machine's life, list prices as
listed, contracts as quoted, each with its 80 % interval.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.offers.flags import admit_offers
from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.partitions import not_asked
from planner.inputs.faults import Fault, near
from planner.inputs.load import validate
from planner.owning.figures import WHOLE
from planner.owning.inputs import ends
from planner.owning.model import Factor, Rent
from planner.records import record

if TYPE_CHECKING:
    from datetime import date

    from catalogs.tables.model import Catalog
    from planner.inputs.schema import Workload
    from planner.inputs.tco_load import LoadedTco
    from planner.market.offers import OfferSet

_STAND_IN: dict[str, Any] = {
    "version": 1, "name": "unnamed", "model": {"preset": "bert-large"},
    "training": {"steps": 1, "global_batch": 1, "sequence_length": 128},
}  # fmt: skip
"""A workload that asks nothing of prices."""
_HOURS_PER_MONTH = 730.0


@record(frozen=True)
class Market:
    """Ways to rent, the factors of their prices and speeds, and what is not on sale.

    `missing`: options asked for without any offer that fits.
    """

    rents: tuple[Rent, ...]
    factors: tuple[Factor, ...]
    missing: tuple[str, ...]


def market_of(loaded: LoadedTco, catalog: Catalog, day: date, start: date, years: float) -> Market:
    """The cheapest offer of each option that fits.

    Args:
        loaded: the question.
        catalog: prices.
        day: of the question.
        start: of use.
        years: of use; prices are expected for their middle.

    Raises:
        InputError: nothing fits; names what was asked.
    """
    offer_set = _offers(catalog, day, start + timedelta(days=round(years * 365.0 / 2.0)))
    fitting = _fitting(loaded, offer_set)
    rents, factors, missing = [], [], []
    for option in loaded.tco.cloud.options:
        rows = fitting[offer_set.offers.equals("purchase_option", option)[fitting]]
        cheapest = _cheapest(loaded, offer_set, rows, option)
        if cheapest is None:
            missing.append(option)
        else:
            rents.append(cheapest[0])
            factors += cheapest[1]
    if not rents:
        raise loaded.document.source.error([_nothing_fits(loaded, offer_set)])
    return Market(tuple(rents), tuple(factors), tuple(missing))


def _offers(catalog: Catalog, day: date, middle: date) -> OfferSet:
    from catalogs.tariffs import load_tariffs
    from planner.market.offers import gather_offers

    workload: Workload | None = validate(_STAND_IN)[0]
    assert workload is not None
    return gather_offers(catalog, workload, load_tariffs(), ".", day, middle)


def _fitting(loaded: LoadedTco, offer_set: OfferSet) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows of usable offers of the accelerator, provider, region and type asked for; parts of a card are none."""
    cloud, offers = loaded.tco.cloud, offer_set.offers
    accelerators = offer_set.types.coded("accelerator")
    pattern = cloud.accelerator or loaded.tco.machine.accelerator
    hit = np.asarray([*(fnmatchcase(str(name), pattern) for name in accelerators.values), False])
    mask = hit[accelerators.codes][offer_set.type_of_offer] & np.isfinite(offer_set.usd_per_hour)
    mask &= admit_offers(offers, allow_flagged=False).mask & ~not_asked(offers, cloud.regions)
    mask &= offer_set.types["accelerator_count"][offer_set.type_of_offer] >= 1.0
    if cloud.providers:
        mask &= offers.is_in("provider", cloud.providers)
    if cloud.instance_types:
        mask &= _globs(offer_set, "instance_type", cloud.instance_types)
    rows = np.flatnonzero(mask)
    if cloud.regions:
        places = [f"{offers['provider'][row]}/{offers['region'][row]}" for row in rows.tolist()]
        near_by = [any(fnmatchcase(place, glob) for glob in cloud.regions) for place in places]
        rows = rows[np.asarray(near_by, dtype=np.bool_)]
    return rows


def _globs(offer_set: OfferSet, column: str, globs: tuple[str, ...]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    coded = offer_set.offers.coded(column)
    hit = [any(fnmatchcase(str(value), glob) for glob in globs) for value in coded.values]
    return np.asarray([*hit, False])[coded.codes]


def _cheapest(
    loaded: LoadedTco, offer_set: OfferSet, rows: np.ndarray[Any, np.dtype[np.int64]], option: str
) -> tuple[Rent, list[Factor]] | None:
    """The offer that costs least for the work of all owned accelerators: in whole instances where it is committed."""
    if not len(rows):
        return None
    types = offer_set.types
    kind = offer_set.type_of_offer[rows]
    count = types["accelerator_count"][kind].astype(np.float64)
    names = [str(types["accelerator"][at]) for at in kind.tolist()]
    speeds = {name: _speed(loaded, name) for name in set(names)}
    speed = np.asarray([0.0 if (one := speeds[name]) is None else one.value for name in names])
    months = _term_months(option)
    upfront = offer_set.upfront_usd[rows] / (months * _HOURS_PER_MONTH) if months else 0.0
    all_in = offer_set.usd_per_hour[rows] + upfront
    with np.errstate(divide="ignore", invalid="ignore"):
        instances = loaded.tco.machine.accelerators * loaded.tco.machine.machines / speed / count
        instances = np.ceil(instances - WHOLE) if months else instances
        each = np.where((speed > 0) & (all_in > 0) & (count > 0), all_in * instances, np.inf)
    ids = [offer_set.offer_id(row) for row in rows.tolist()]
    best = min(range(len(rows)), key=lambda at: (each[at], ids[at]))
    if not np.isfinite(each[best]):
        return None
    row, book, offers = int(rows[best]), offer_set.book, offer_set.offers
    price = float(offer_set.usd_per_hour[row]) / float(count[best])
    ratio = float(book.expected_ratio[row])
    rent = Rent(
        option, str(offers["option_variant"][row]), ids[best], names[best], float(count[best]), months,
        float(offer_set.upfront_usd[row]) if months else 0.0, _basis(offer_set, row), option == "spot",
        str(offers["source"][row]), str(offers["as_of"][row]),
    )  # fmt: skip
    ranged = Factor(
        rent.price_key, f"price of {option}", price * float(book.p10_ratio[row]) / ratio, price,
        price * float(book.p90_ratio[row]) / ratio, "USD/accelerator-hour", "catalog", rent.source, rent.as_of,
    )  # fmt: skip
    speed_factor = speeds[names[best]]
    assert speed_factor is not None
    return rent, [ranged, replace(speed_factor, key=rent.speed_key)]


def _speed(loaded: LoadedTco, accelerator: str) -> Factor | None:
    """Work of one rented accelerator over one owned; None where a peak is not known."""
    owned = loaded.tco.machine.accelerator
    stated = loaded.tco.cloud.speed_ratio
    words = f"speed of {accelerator} over {owned}"
    if stated is not None:
        return Factor(
            "speed_ratio", words, *ends(stated), "ratio", "given", stated.source or "", stated.as_of or ""
        )
    if accelerator == owned:
        return Factor("speed_ratio", words, 1.0, 1.0, 1.0, "ratio", "definition", "the same accelerator")
    peaks = [_peak(name) for name in (accelerator, owned)]
    if peaks[0] is None or peaks[1] is None:
        return None
    ratio = peaks[0] / peaks[1]
    return Factor(
        "speed_ratio", words, ratio, ratio, ratio, "ratio", "assumed", "ratio of their BF16 (else FP16) peaks"
    )


def _peak(accelerator: str) -> float | None:
    table = load_accelerators()
    at = table["accelerator"].tolist().index(accelerator)
    peaks = [float(table.number(name)[at]) for name in ("bf16_tflops", "fp16_tflops")]
    return next((value for value in peaks if value > 0), None)


def _term_months(option: str) -> int:
    """Length of what is paid whether it is used or not; 0 without."""
    return 12 * int(option[-2]) if option.endswith(("_1y", "_3y")) else 0


def _basis(offer_set: OfferSet, row: int) -> str:
    from planner.market.spot_prices import KINDS

    return KINDS[int(offer_set.book.kind[row])]


def _nothing_fits(loaded: LoadedTco, offer_set: OfferSet) -> Fault:
    """Which wish nothing in the catalog fits."""
    cloud = loaded.tco.cloud
    pattern = cloud.accelerator or loaded.tco.machine.accelerator
    path = ("cloud", "accelerator") if cloud.accelerator else ("cloud",)
    accelerators = sorted({str(name) for name in offer_set.types.coded("accelerator").values})
    if not any(fnmatchcase(name, pattern) for name in accelerators):
        text = f"no offer in the catalog has {pattern!r}; name one to rent instead in cloud.accelerator"
        return Fault(path, text, near(pattern, accelerators))
    return Fault(
        ("cloud",), f"no offer of {pattern!r} fits providers, regions, instance_types and options together"
    )
