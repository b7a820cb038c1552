"""Questions to the catalog: which offers, in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from catalogs.errors import CatalogInputError
from catalogs.offers.flags import admit_offers
from catalogs.offers.naming import fits_name
from catalogs.patterns import matches
from catalogs.tables.model import INSTANCE_TYPE_KEY, OFFER_KEY, Catalog, PurchaseOption, places_of
from catalogs.tables.table import Bools, Coded, Floats, Ints, Table
from catalogs.tariffs import usd_per

SORT_KEYS = {
    "price": "usd_per_hour",
    "price-per-accelerator-hour": "usd_per_accelerator_hour",
    "price-per-pflop-hour": "usd_per_pflop_hour",
    "price-per-gib-hour": "usd_per_gib_hour",
}
_JOINED = (
    "family", "accelerator", "accelerator_count", "accelerator_memory_gib", "vcpus", "memory_gib", "arch", "status",
)  # fmt: skip


@dataclass(frozen=True)
class OfferQuery:
    """What to look for; an empty field asks nothing. Globs know `*`, `?` and `[...]`.

    Attributes:
        accelerators: globs over canonical ids; `a100` also fits every `a100-...`.
        providers: provider ids.
        regions: globs over `provider/region`; without a slash over the region alone.
        purchase_options: purchase options.
        instance_types: globs over instance types.
        max_usd_per_hour: highest price of one machine, USD per hour.
        min_accelerators: least accelerators per machine.
        min_memory_gib: least accelerator memory per machine, GiB.
        allow_flagged: include offers with refusing flags.
        sort: a key of `SORT_KEYS`; unknown values come last, ties go by offer_id.
    """

    accelerators: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    purchase_options: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    max_usd_per_hour: float | None = None
    min_accelerators: float | None = None
    min_memory_gib: float | None = None
    allow_flagged: bool = False
    sort: str = "price"


@dataclass(frozen=True, eq=False)
class QueryResult:
    """The answer to a query.

    Attributes:
        offers: matching offers in order, with the machine's columns, `refused_by` and the USD columns of
            `SORT_KEYS`.
        n_offers: offers in the catalog.
        n_flagged: offers that match but are kept out by a refusing flag.
        unmatched: filters that fit nothing in the catalog, as (field, text, near misses).
        unpriced: machines that were asked for by name or accelerator and have no price where it was asked.
    """

    offers: Table
    n_offers: int
    n_flagged: int
    unmatched: tuple[tuple[str, str, tuple[str, ...]], ...] = field(default=())
    unpriced: tuple[str, ...] = ()


def query_offers(catalog: Catalog, query: OfferQuery) -> QueryResult:
    """Answer `query`.

    Raises:
        CatalogInputError: when the sort key, a provider or a purchase option is unknown.
    """
    _check(catalog, query)
    mask, unmatched = _match(catalog, query)
    unpriced = _unpriced(catalog, query, mask)
    selected = Catalog(
        catalog.instance_types, catalog.offers.take(mask), catalog.accelerators, catalog.manifests
    )
    # Joined last: a question to hundreds of thousands of offers mostly concerns a few of them.
    offers = with_machines(selected)
    if query.max_usd_per_hour:
        offers = offers.take(~(offers["usd_per_hour"] > query.max_usd_per_hour))
    admission = admit_offers(offers, allow_flagged=query.allow_flagged)
    admitted = np.flatnonzero(admission.mask)
    ordered = admitted[_order(offers.take(admitted), SORT_KEYS[query.sort])]
    chosen = offers.with_columns(refused_by=admission.refused_by).take(ordered)
    return QueryResult(
        chosen, catalog.offers.n_rows, offers.n_rows - len(admitted), tuple(unmatched), unpriced
    )


def with_machines(catalog: Catalog) -> Table:
    """Join offers with their machines and add prices in USD.

    Returns:
        The offers with the machine's columns and `usd_per_hour`, `usd_per_accelerator_hour`,
        `usd_per_gib_hour` (accelerator memory) and `usd_per_pflop_hour` (dense BF16, else FP16, peak); NaN
        where not known.
    """
    offers, types = catalog.offers, catalog.instance_types
    at = offers.lookup(types, INSTANCE_TYPE_KEY)
    machines = types.take(at)
    peaks = machines.lookup(catalog.accelerators, ("accelerator",))
    bf16, fp16 = (catalog.accelerators.number(name)[peaks] for name in ("bf16_tflops", "fp16_tflops"))
    count = machines.number("accelerator_count")
    pflops = count * np.where(np.isnan(bf16), fp16, bf16) / 1e3
    usd = usd_per_hour(offers)
    return offers.with_columns(
        **{name: machines.column(name) for name in _JOINED},
        usd_per_hour=usd,
        usd_per_accelerator_hour=usd / count,
        usd_per_gib_hour=usd / _memory_gib(machines),
        usd_per_pflop_hour=usd / pflops,
    )


def _memory_gib(machines: Table) -> Floats:
    """Accelerator memory of each machine, GiB; the memory of a share of an accelerator is the share's own."""
    whole = np.maximum(machines.number("accelerator_count"), 1.0)
    return np.asarray(whole * machines.number("accelerator_memory_gib"), dtype=np.float64)


def usd_per_hour(offers: Table) -> Floats:
    """Price of each offer in USD per hour at the newest dated exchange rate, shape `(n_offers,)`."""
    currency = offers.coded("currency")
    rates = np.asarray([float(usd_per(code)) if code else np.nan for code in (*currency.values, "")])
    return np.asarray(offers.number("price_per_hour") * rates[currency.codes], dtype=np.float64)


def near_misses(text: str, names: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Known words that begin with `text`, shortest first; else close ones, closest first; else words containing it."""
    import difflib

    lowered: dict[str, str] = {}
    for word in sorted(filter(None, names)):
        lowered.setdefault(word.lower(), word)
    close = difflib.get_close_matches(text.lower(), lowered, n=count, cutoff=0.5)
    within = sorted((word for word in lowered if len(text) > 1 and text.lower() in word), key=len)
    longer = [word for word in within if word.startswith(text.lower())]
    return tuple(lowered[word] for word in (longer or close or within)[:count])


def _check(catalog: Catalog, query: OfferQuery) -> None:
    faults = []
    if query.sort not in SORT_KEYS:
        faults.append(_unknown("sort key", query.sort, SORT_KEYS))
    providers = {manifest.provider for manifest in catalog.manifests}
    faults += [_unknown("provider", name, providers) for name in query.providers if name not in providers]
    faults += _option_faults(query.purchase_options)
    if faults:
        raise CatalogInputError("\n".join(faults))


def check_purchase_options(names: Iterable[str]) -> None:
    """Refuse unknown purchase options.

    Raises:
        CatalogInputError: names each, with a near miss.
    """
    faults = _option_faults(names)
    if faults:
        raise CatalogInputError("\n".join(faults))


def check_provider(name: str, known: Iterable[str]) -> None:
    """Refuse a provider that is not among the known ones; "" means all.

    Raises:
        CatalogInputError: with a near miss, or those that there are.
    """
    known = set(known)
    if name and name not in known:
        raise CatalogInputError(_unknown("provider", name, known))


def _option_faults(names: Iterable[str]) -> list[str]:
    options = {option.value for option in PurchaseOption}
    return [_unknown("purchase option", name, options) for name in names if name not in options]


def _unknown(label: str, text: str, values: Iterable[str]) -> str:
    close = near_misses(text, values, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(values))}"
    return f"unknown {label} {text!r} ({hint})"


Unmatched = list[tuple[str, str, tuple[str, ...]]]


def _match(catalog: Catalog, query: OfferQuery) -> tuple[Bools, Unmatched]:
    """Offers that fit every filter but the price, and filters that fit nothing."""
    offers = catalog.offers
    mask = np.ones(offers.n_rows, dtype=np.bool_)
    unmatched: Unmatched = []
    machines = _match_machines(catalog.instance_types, query, unmatched)
    if not machines.all():
        mask &= machines[offers.lookup(catalog.instance_types, INSTANCE_TYPE_KEY)]
    for column, selected in (("provider", query.providers), ("purchase_option", query.purchase_options)):
        if selected:
            mask &= offers.is_in(column, selected)
    if query.regions:
        place = tuple(text if "/" in text else f"*/{text}" for text in query.regions)
        mask &= _match_texts("region", place, places_of(offers), unmatched)
    return mask, unmatched


def _unpriced(catalog: Catalog, query: OfferQuery, mask: Bools) -> tuple[str, ...]:
    """Machines asked for by name or accelerator without an offer in `mask`; none where neither is asked for."""
    if not (query.accelerators or query.instance_types):
        return ()
    types = catalog.instance_types
    machines = _match_machines(types, query, [])
    machines[catalog.offers.take(mask).lookup(types, INSTANCE_TYPE_KEY)] = False
    return tuple(sorted({str(name) for name in types["instance_type"][machines]}))


def _match_machines(types: Table, query: OfferQuery, unmatched: Unmatched) -> Bools:
    """Machines that fit the filters on hardware, shape `(n_instance_types,)`."""
    mask = np.ones(types.n_rows, dtype=np.bool_)
    if query.accelerators:
        mask &= _match_texts("accelerator", query.accelerators, types.coded("accelerator"), unmatched)
    if query.instance_types:
        mask &= _match_texts("instance type", query.instance_types, types.coded("instance_type"), unmatched)
    if query.providers:
        mask &= types.is_in("provider", query.providers)
    if query.min_accelerators:
        mask &= types["accelerator_count"] >= query.min_accelerators
    if query.min_memory_gib:
        mask &= _memory_gib(types) >= query.min_memory_gib
    return mask


def _match_texts(name: str, texts: Sequence[str], coded: Coded, unmatched: Unmatched) -> Bools:
    """Rows whose text fits one of `texts`; those that fit nothing go to `unmatched`."""
    values = (*coded.values, "")
    for text in texts:
        if not any(_fits(name, text, word) for word in values):
            words = values if "/" in text.removeprefix("*/") else [word.split("/")[-1] for word in values]
            plain = text.removeprefix("*/")
            unmatched.append((name, plain, near_misses(plain.strip("*"), words)))
    hit = np.asarray([any(_fits(name, text, word) for text in texts) for word in values], dtype=np.bool_)
    return np.asarray(hit[coded.codes], dtype=np.bool_)


def _fits(field_name: str, text: str, word: str) -> bool:
    """Whether a filter fits; plain words for machines (`a100`, `gn7`) match all names that start with them.

    `word` is empty where a row has no name, which no filter asks for.
    """
    if not word:
        return False
    text, word = text.lower(), word.lower()
    if field_name in ("accelerator", "instance type"):
        return fits_name(text, word)
    return matches(text, word)


def _order(offers: Table, column: str) -> npt.NDArray[np.intp]:
    """Positions sorted by `column` (unknown last), ties by offer_id, whatever the row order."""
    order = np.argsort(offers[column], kind="stable")
    values = offers[column][order]
    # Few prices are equal: only rows within such a tie are compared by their ids.
    tied = np.zeros(len(values), dtype=np.bool_)
    same = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
    tied[1:] |= same
    tied[:-1] |= same
    at = order[tied]
    keys = [
        _ranks(Coded(offers.coded(name).codes[at], offers.coded(name).values)) for name in reversed(OFFER_KEY)
    ]
    order[tied] = at[np.lexsort((*keys, offers[column][at]))]
    return order


def _ranks(column: Coded) -> Ints:
    order: Sequence[str] = sorted(column.values)
    rank = {text: at for at, text in enumerate(order)}
    return np.asarray([rank[text] for text in column.values] or [0], dtype=np.int64)[column.codes]
