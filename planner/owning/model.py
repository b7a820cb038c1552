"""Plain values of the question: factors with their ranges, sites, rents, and the figures that follow from them."""

from __future__ import annotations

from dataclasses import field

from planner.records import record

SCHEMA_VERSION = 1
OWN_SITE, COLOCATION = "own_site", "colocation"
SITE_KEYS = (
    "usd_per_kwh", "pue", "hosting_usd_per_month", "usd_per_kw_month", "staff_fte", "staff_usd_per_year",
)  # fmt: skip


@record(frozen=True)
class Factor:
    """One input with its range.

    Attributes:
        key: stable name with its unit, such as `own_site.usd_per_kwh`.
        words: for people.
        low, value, high: ends and centre; equal where no range is known.
        unit: in words.
        origin: `given` in the file, `default` (a published figure of tco_defaults.csv), `assumed` there, `catalog`,
            `parts` (sum over the parts), or `definition`.
    """

    key: str
    words: str
    low: float
    value: float
    high: float
    unit: str
    origin: str
    source: str = ""
    as_of: str = ""


@record(frozen=True)
class Rent:
    """One way to rent.

    Attributes:
        option, variant: how it is bought.
        offer_id: of the offer whose price it is; a workload's plan names its first one.
        accelerators: per instance.
        term_months: length of the commitment; 0: paid by the hour that is used.
        upfront_usd: due per instance at the start of every term.
        basis: how the price is known, such as `expected` or `listed`.
        spot: whether hours are lost to interruptions on top of the price.
    """

    option: str
    variant: str
    offer_id: str
    accelerator: str
    accelerators: float
    term_months: int
    upfront_usd: float
    basis: str
    spot: bool
    source: str
    as_of: str

    @property
    def price_key(self) -> str:
        """Key of the factor that holds its price per accelerator-hour."""
        return f"cloud.{self.option}.usd_per_accelerator_hour"

    @property
    def speed_key(self) -> str:
        """Key of the factor that holds its speed against an owned accelerator."""
        return f"cloud.{self.option}.speed_ratio"


@record(frozen=True)
class Fixed:
    """What has no range.

    Attributes:
        accelerators: per machine; machines: bought.
        sites: `own_site`, `colocation` or both.
        accelerator_share: price of one accelerator over that of the whole machine.
        warranty_years: failed accelerators are replaced at no charge so long.
        residual_after_years: when the residual value was seen.
    """

    accelerators: int
    machines: int
    sites: tuple[str, ...]
    accelerator_share: float
    warranty_years: float
    residual_after_years: float
    rents: tuple[Rent, ...]

    @property
    def all_accelerators(self) -> int:
        """Of all machines."""
        return self.accelerators * self.machines


@record(frozen=True)
class Way:
    """One way to have the accelerators, over the machine's life.

    Attributes:
        name: `own_site`, `colocation`, or a purchase option.
        cash_usd: paid at the start and at the end of each month; resale is negative.
        total_usd: their sum; npv_usd: the same discounted at the cost of capital.
        usd_per_useful_hour: npv_usd over the discounted useful accelerator-hours.
    """

    name: str
    cash_usd: tuple[float, ...]
    total_usd: float
    npv_usd: float
    usd_per_useful_hour: float


@record(frozen=True)
class Figures:
    """All ways of one case.

    Attributes:
        months: of use.
        useful_hours_per_month: accelerator-hours of useful work.
        discount: factor of the start and of the end of each month.
    """

    months: int
    useful_hours_per_month: float
    discount: tuple[float, ...]
    own: tuple[Way, ...]
    rent: tuple[Way, ...]


@record(frozen=True)
class Pair:
    """Owning at one site against renting in one way.

    Attributes:
        saving_usd: NPV of renting less NPV of owning; negative where owning costs more.
        break_even_month: first month by whose end owning has cost no more, in cash; None: not within the life.
        holds: where owning costs less by NPV: `from` or `up_to` the utilisation beside it, `always` or `never`.
        break_even_utilisation_ratio: utilisation at which both cost the same; None: there is none from 0 to 1.
    """

    own: str
    rent: str
    saving_usd: float
    break_even_month: int | None
    holds: str
    break_even_utilisation_ratio: float | None


@record(frozen=True)
class End:
    """The answer with one factor at one end of its range."""

    value: float
    saving_usd_per_useful_hour: float
    saving_usd: float
    break_even_month: int | None


@record(frozen=True)
class Bar:
    """What one factor does to the saving per useful hour; `turns`: whether it changes which is cheaper."""

    key: str
    words: str
    unit: str
    low: End
    high: End
    turns: bool


@record(frozen=True)
class Spread:
    """Cost per useful hour of a way: centre, and the interval that the factors' ranges make together."""

    name: str
    low: float
    value: float
    high: float


@record(frozen=True)
class PartLine:
    """A line of the bill of materials for one machine, with the published prices that stand beside it."""

    name: str
    kind: str
    count: int
    low_usd: float
    usd: float
    high_usd: float
    source: str
    as_of: str
    note: str = ""


@record(frozen=True)
class Quote:
    """A published price beside that of a part: `ratio_low` to `ratio_high` is it over the part's own."""

    part: str
    item: str
    condition: str
    low_usd: float
    high_usd: float
    ratio_low: float
    ratio_high: float
    disagrees: bool
    source: str
    as_of: str


@record(frozen=True)
class Check:
    """One test of the machine: what it needs, what it has, and a published rule on it with its verdict.

    Attributes:
        verdict: `holds`, `broken`, or `unknown`.
    """

    key: str
    words: str
    needs: str
    has: str
    verdict: str
    rule_id: str = ""
    rule: str = ""
    rule_verdict: str = ""
    why: str = ""


@record(frozen=True)
class Resale:
    """What a generation was worth after some years; `yearly_ratio` is what it kept each year."""

    item: str
    years: float
    low: float
    high: float
    yearly_low: float
    yearly_high: float
    source: str
    as_of: str


@record(frozen=True)
class Handover:
    """The machine as `planner optimize` takes it: text of the file, and what an hour of one machine costs."""

    text: str
    marginal_usd_per_hour: float
    full_usd_per_hour: float
    lacks: tuple[str, ...] = field(default=())
