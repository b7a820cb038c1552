"""What a named cluster costs a job: the owner's, and the one that SkyPilot's rule picks among the same offers.

SkyPilot's published rule, as its documentation and optimizer have it: the user states an accelerator and its count per
machine; in every cloud the cheapest machine with exactly that many of it by price per hour is a candidate, and the
cheapest of all clouds and regions wins. Nothing else of the job is asked. It is applied to the offers that the planner
admits for the workload. The rule knows names such as A100 and A100-80GB, so machines with bridges and with NVSwitch
compete. Alibaba is none of its clouds. Owned machines come first (they are free to it).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.constraints.registry import BIT
from planner.candidates.engine import candidates_of

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.engine import CandidateSearch
    from planner.inputs.schema import Baseline
    from planner.market.model import Market


UNPLACED = "not-stated"
_FORMS = ("sxm", "pcie", "nvl", "sxm2", "sxm4", "sxm5", "oam")
_NOT_SKYPILOT = ("alibaba",)
_LATE = BIT["deadline"]


@dataclass(frozen=True)
class Cluster:
    """A cluster and what it costs the job.

    Attributes:
        hours: from the start to the end, with waiting for capacity; running_hours: without it; step_hours: of the
            steps alone, None for a fleet.
        status: `ok`, `late` (expected to miss the deadline), `does not fit` or `not in the catalog`.
        note: what else to know: limits of the workload that it breaks, a price without a place.
    """

    provider: str
    region: str
    instance_type: str
    nodes: int
    purchase_option: str
    status: str
    note: str = ""
    zone: str = ""
    accelerator: str = ""
    price_per_hour: float | None = None
    price_as_of: str = ""
    cost_usd: float | None = None
    hours: float | None = None
    running_hours: float | None = None
    step_hours: float | None = None
    p_meet_deadline: float | None = None

    @property
    def comparable(self) -> bool:
        """Whether a saving may be counted against it."""
        return self.status == "ok" and bool(self.cost_usd)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def rows_of(market: Market, baseline: Baseline) -> tuple[Ints, str]:
    """Offers of the named baseline, and a remark; a provider that lists one price for every region has it there."""
    offers = market.offer_set.offers
    hit = np.isnan(market.offer_set.owned_share)
    for name in ("provider", "instance_type", "purchase_option"):
        hit &= offers.equals(name, getattr(baseline, name))
    here = np.flatnonzero(hit & offers.equals("region", baseline.region))
    if len(here):
        return here, ""
    return np.flatnonzero(hit & offers.equals("region", UNPLACED)), "its list price states no region"


def priced(found: CandidateSearch, rows: Ints, nodes: int, note: str = "") -> Cluster | None:
    """The cheapest of some offers at a number of machines; None where the job does not fit on them."""
    made = candidates_of(found, rows, (nodes,))
    if not len(made.offer):
        return None
    at = int(np.argmin(made.cost_usd))
    row, bits = int(made.offer[at]), int(made.bits[at])
    offers, types = found.context.market.offer_set.offers, found.context.market.offer_set.types
    broken = [name for name, bit in BIT.items() if bits & bit and name != "deadline"]
    remarks = [note] if note else []
    remarks += [f"breaks {', '.join(broken)}"] if broken else []
    names = ("provider", "region", "zone", "instance_type", "purchase_option")
    chance = float(made.p_meet[at])
    usd = float(found.context.market.offer_set.usd_per_hour[row])
    cost = float(made.cost_usd[at])
    if (
        str(offers["purchase_option"][row]) == "on_demand"
    ):  # a list price without a place counts as listed here
        listed = float(quoted_usd(found.context.market)[row])
        cost, usd = cost - float(made.instance_hours[at]) * (usd - listed), listed
    return Cluster(
        **{name: str(offers[name][row]) for name in names},
        nodes=nodes,
        status="late" if bits & _LATE else "ok",
        note="; ".join(remarks),
        accelerator=str(types["accelerator"][found.context.market.offer_set.type_of_offer[row]]),
        price_per_hour=usd,
        price_as_of=str(offers["as_of"][row]),
        cost_usd=cost,
        hours=float(made.hours[at]),
        running_hours=float(made.hours[at] - made.waiting_hours[at]),
        step_hours=float(made.work_hours[at]) / found.context.asked.assumptions.work_ratio,
        p_meet_deadline=None if np.isnan(chance) else chance,
    )


def named_cluster(found: CandidateSearch, baseline: Baseline) -> Cluster:
    """The workload's named baseline."""
    rows, note = rows_of(found.context.market, baseline)
    told: dict[str, Any] = {
        name: getattr(baseline, name) for name in ("provider", "region", "instance_type", "purchase_option")
    }
    if not len(rows):
        return Cluster(**told, nodes=baseline.nodes, status="not in the catalog")
    made = priced(found, rows, baseline.nodes, note)
    return made or Cluster(
        **told, nodes=baseline.nodes, status="does not fit", note=note,
        accelerator=accelerator_of(found.context.market, int(rows[0])),
    )  # fmt: skip


def accelerator_of(market: Market, row: int) -> str:
    """Accelerator id of an offer."""
    return str(market.offer_set.types["accelerator"][market.offer_set.type_of_offer[row]])


def sky_name(accelerator: str) -> str:
    """An accelerator without its form: SkyPilot asks for A100-80GB, not for SXM or PCIe."""
    return "-".join(part for part in accelerator.split("-") if part not in _FORMS)


def quoted_usd(market: Market) -> Floats:
    """Price per instance-hour as quoted or listed, in USD, shape `(n_offers,)`."""
    offer_set = market.offer_set
    return np.asarray(offer_set.usd_per_hour / offer_set.book.expected_ratio, dtype=np.float64)


def sky_row(market: Market, admitted: Bools, like: int, option: str) -> int | None:
    """The offer that SkyPilot's rule picks for the accelerator and count of offer `like`; None: no cloud has it.

    Args:
        market: what can be bought.
        admitted: mask of offers that may be compared, shape `(n_offers,)`.
        like: an offer of the owner's machine.
        option: `on_demand` or `spot`.
    """
    offer_set = market.offer_set
    kinds = offer_set.types
    names = np.asarray([sky_name(str(name)) for name in kinds["accelerator"]])
    kind = int(offer_set.type_of_offer[like])
    counts = np.asarray(kinds["accelerator_count"], dtype=np.float64)
    same = (names == names[kind]) & (counts == counts[kind])
    usd = quoted_usd(market)
    hit = admitted & same[offer_set.type_of_offer] & offer_set.offers.equals("purchase_option", option)
    hit &= ~offer_set.offers.is_in("provider", _NOT_SKYPILOT) & np.isfinite(usd) & (usd > 0)
    rows = np.flatnonzero(hit)
    if not len(rows):
        return None
    return int(rows[np.lexsort((market.id_rank[rows], usd[rows]))[0]])


def sky_cluster(found: CandidateSearch, baseline: Baseline, option: str) -> Cluster | None:
    """What SkyPilot's rule would run the job on, priced as the planner prices it; None where it cannot choose."""
    market = found.context.market
    rows, _ = rows_of(market, baseline)
    if not len(rows):
        return None
    if baseline.purchase_option == "owned":
        return named_cluster(found, baseline)
    row = sky_row(market, found.offer_bits == 0, int(rows[0]), option)
    if row is None:
        return None
    made = priced(found, np.asarray([row]), baseline.nodes)
    offers = market.offer_set.offers
    names = ("provider", "region", "instance_type", "purchase_option")
    told: dict[str, Any] = {name: str(offers[name][row]) for name in names}
    return made or Cluster(**told, nodes=baseline.nodes, status="does not fit")
