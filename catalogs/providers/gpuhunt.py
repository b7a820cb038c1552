"""More clouds through gpuhunt (extra `gpuhunt`, MPL-2.0, used as it is): its items become our offers.

gpuhunt collects Lambda, RunPod, Nebius, OCI, Vast and others. What it does not tell (links between accelerators,
networks, zones) stays unknown; the clouds with a fetcher of their own here are left out.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from catalogs.errors import CatalogError, install_command
from catalogs.providers.base import (
    ApiCall,
    FetchLog,
    FetchOptions,
    ProviderError,
    ProviderInfo,
    SchemaChanged,
    Unreachable,
    text_frame,
)
from catalogs.providers.known_types import known_types
from catalogs.providers.row_reader import RowReader
from catalogs.tables.accelerators import canonical
from catalogs.tables.model import PurchaseOption
from catalogs.tables.normalize import decimal_text, family_of

if TYPE_CHECKING:
    from pandas import DataFrame

INSTALL_HINT = f"install it: {install_command('gpuhunt')}"
API_CALLS = (ApiCall("gpuhunt.Catalog.query", "", "the clouds that gpuhunt collects"),)
# gpuhunt's name -> ours; others keep their name.
_NAMES: Mapping[str, str] = {"lambdalabs": "lambda"}
# Published as files that gpuhunt downloads; its other providers are asked live, if their keys are set.
_PUBLISHED = ("cloudrift", "lambdalabs", "nebius", "oci", "runpod", "verda")
_OWN_FETCHERS = frozenset({"aws", "azure", "gcp"})
# Their list prices are copied to every region that the cloud has: the place says nothing.
_PLACELESS = frozenset({"lambdalabs"})
# Such a name is shared by machines with any number of accelerators.
_NAMED_BY_CARD = frozenset({"runpod", "vastai"})
_ARCHITECTURES = {"x86": "x86_64", "arm": "arm64"}
_SPACE = re.compile(r"[^\w.:+-]+")
_DAY = re.compile(r"(20\d\d)-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])")
Row = dict[str, str]


def create(options: FetchOptions) -> GpuhuntProvider:
    """Make the provider; gpuhunt is imported at the first fetch."""
    return GpuhuntProvider(options)


class GpuhuntProvider:
    """The clouds that gpuhunt knows; its rows belong to several providers."""

    info = ProviderInfo(
        name="gpuhunt",
        needs_credentials=False,
        purchase_options=frozenset({PurchaseOption.ON_DEMAND.value, PurchaseOption.SPOT.value}),
        extra="gpuhunt",
        login_hint="no login for published lists; live ones read the keys that gpuhunt documents",
    )

    def __init__(self, options: FetchOptions, load: Callable[[], Any] | None = None) -> None:
        """Take settings; `load` returns the gpuhunt module."""
        self.options = options
        self._load = load or _import_gpuhunt
        self._items: dict[str, tuple[str, list[Any]]] | None = None

    def fetch_regions(self) -> list[str]:
        """Every location that occurs."""
        return sorted({str(item.location) for _, items in self._fetch().values() for item in items})

    def fetch_instance_types(self, regions: Sequence[str]) -> DataFrame:  # noqa: ARG002 - machines are not regional
        """One row per distinct machine of each provider."""
        rows: dict[tuple[str, str], Row] = {}
        for name, (as_of, items) in self._fetch().items():
            for row in parse_types(name, items, as_of, self.options.log):
                rows[row["provider"], row["instance_type"]] = row
        return text_frame("instance_types", rows.values())

    def fetch_offers(self, regions: Sequence[str], options: AbstractSet[str]) -> DataFrame:
        """On-demand and spot prices in `regions`; of equal offers (hosts of a market) the cheapest."""
        rows: list[Row] = []
        for name, (as_of, items) in self._fetch().items():
            rows += parse_offers(name, items, as_of, frozenset(regions), frozenset(options), self.options.log)
        return text_frame("offers", rows)

    def _fetch(self) -> dict[str, tuple[str, list[Any]]]:
        """Items per gpuhunt provider with their date; a provider that fails is recorded and left out."""
        if self._items is not None:
            return self._items
        catalog = _limited(lambda: self._load().default_catalog(), "default_catalog", self.options)
        live = [str(online.NAME) for online in getattr(catalog, "providers", ())]
        items_of: dict[str, tuple[str, list[Any]]] = {}
        errors: list[ProviderError] = []
        for name in sorted({*_PUBLISHED, *live} - _OWN_FETCHERS):
            try:
                items = _limited(lambda n=name: catalog.query(provider=n), f"query {name}", self.options)  # type: ignore[misc]
            except ProviderError as error:
                errors.append(error)
                continue
            if self.options.accelerated_only:
                items = [item for item in items if _field(item, "gpu_count")]
            if items:
                items_of[name] = (_as_of(catalog, name), list(items))
                self.options.log.progress(name, "gpuhunt:query", len(items_of[name][1]))
            else:
                self.options.log.remark(f"gpuhunt knows no offer of {name} today")
        if errors and not items_of:
            raise errors[0]
        for fault in errors:
            self.options.log.remark(f"{fault}: its last good prices stay in use")
        self._items = items_of
        return items_of


def _import_gpuhunt() -> Any:
    try:
        return importlib.import_module("gpuhunt")
    except ImportError:
        raise ProviderError(f"gpuhunt is not installed; {INSTALL_HINT}", provider="gpuhunt") from None


def _limited(call: Callable[[], Any], api: str, options: FetchOptions) -> Any:
    """Call with a time limit: gpuhunt itself opens its URLs without one."""
    answer: list[Any] = []
    fault: list[Exception] = []

    def work() -> None:
        try:
            answer.append(call())
        except Exception as error:  # noqa: BLE001 - any failure of the library is reported below
            fault.append(error)

    thread = threading.Thread(target=work, daemon=True, name=f"gpuhunt {api}")
    thread.start()
    limit_s = options.timeout_s * (options.retries + 1)
    thread.join(limit_s)
    if answer:
        return answer[0]
    if fault and isinstance(fault[0], ProviderError):
        raise fault[0]
    words = f"{type(fault[0]).__name__} in gpuhunt" if fault else f"no answer within {limit_s:g} s"
    raise Unreachable(f"{words}; check the network and try again", provider="gpuhunt", api=api)


def _as_of(catalog: Any, name: str) -> str:
    """Date of a published list by its version; today for a live one."""
    published = getattr(catalog, "catalog", None)
    version = (
        str(getattr((published or {}).get(name), "version", "")) if isinstance(published, Mapping) else ""
    )
    match = _DAY.search(version)
    return "-".join(match.groups()) if match else datetime.now(UTC).date().isoformat()


def _field(item: Any, name: str) -> Any:
    if not hasattr(item, name):
        raise SchemaChanged(
            "this version of gpuhunt has other items; update the planner",
            where=f"CatalogItem.{name}",
            provider="gpuhunt",
        )
    return getattr(item, name)


def type_name(name: str, item: Any) -> str:
    """Our instance type of an item: its name without blanks, with the number of cards where that is left open."""
    plain = _SPACE.sub("-", str(_field(item, "instance_name"))).strip("-")
    counted = name in _NAMED_BY_CARD and plain
    return f"{int(_field(item, 'gpu_count') or 0)}x-{plain}" if counted else plain


def parse_types(name: str, items: Iterable[Any], as_of: str, log: FetchLog) -> list[Row]:
    """Machines of one gpuhunt provider; of variants with one name the smallest is described."""
    provider = _NAMES.get(name, name)
    smallest: dict[str, Any] = {}
    shapes: dict[str, set[tuple[float, float]]] = {}

    def sized(item: Any) -> tuple[str, tuple[float, float], Any]:
        _cards(item)  # an odd number is refused with its item, not later
        size = float(_field(item, "cpu") or 0), float(_field(item, "memory") or 0)
        return type_name(name, item), size, item

    reader = RowReader("instance_type", log)
    for key, size, item in reader.read(items, sized, lambda item: f"{name} {item.instance_name}"):
        if not key:
            log.skip("instance_type", "(no name)", f"{name}: an item without a name")
            continue
        shapes.setdefault(key, set()).add(size)
        if key not in smallest or size < (float(smallest[key].cpu or 0), float(smallest[key].memory or 0)):
            smallest[key] = item
    reader.require_some()
    return [
        _type_row(provider, key, item, len(shapes[key]), as_of, log) for key, item in sorted(smallest.items())
    ]


def _cards(item: Any) -> tuple[int, float]:
    """How many cards a machine has, and the memory of one in GiB; 0 where the item states none."""
    return int(_field(item, "gpu_count") or 0), float(_field(item, "gpu_memory") or 0)


def _type_row(provider: str, key: str, item: Any, variants: int, as_of: str, log: FetchLog) -> Row:
    recorded = known_types(provider).get(key, {})
    count, memory = _cards(item)
    arch = str(getattr(getattr(item, "cpu_arch", None), "value", "x86"))
    row = {
        "provider": provider,
        "instance_type": key,
        "family": recorded.get("family", "") or family_of(provider, key),
        "vcpus": _number(_field(item, "cpu")),
        "memory_gib": _number(_field(item, "memory")),
        "arch": _ARCHITECTURES.get(arch, arch),
        "internode_gbps": recorded.get("internode_gbps", ""),
        "rdma": recorded.get("rdma", ""),
        "local_nvme_gib": recorded.get("local_nvme_gib", ""),
        "status": "current",
        "source": "gpuhunt (dstackai/gpuhunt)",
        "as_of": as_of,
        "note": f"the smallest of {variants} variants of this name" if variants > 1 else "",
    }
    if not count:
        return row
    return {
        **row,
        "accelerator": recorded.get("accelerator", "") or _accelerator(provider, item, memory, log),
        "accelerator_name": str(_field(item, "gpu_name") or "not stated"),
        "accelerator_count": str(count),
        "accelerator_memory_gib": _number(memory or recorded.get("accelerator_memory_gib", "")),
        "intra_node": recorded.get("intra_node", "") or ("single" if count == 1 else "unknown"),
        "intra_node_gb_per_s": recorded.get("intra_node_gb_per_s", ""),
    }


def _accelerator(provider: str, item: Any, memory_gib: float, log: FetchLog) -> str:
    word = f"{item.gpu_name}-{memory_gib:g}GB"
    try:
        return canonical(word, "gpuhunt", str(item.instance_name))
    except CatalogError:
        log.skip("accelerator", word, f"{provider} {item.instance_name}: no canonical id")
        return ""


def parse_offers(
    name: str,
    items: Iterable[Any],
    as_of: str,
    regions: AbstractSet[str],
    options: AbstractSet[str],
    log: FetchLog,
) -> list[Row]:
    """Offers of one gpuhunt provider; prices are USD per machine and hour."""
    provider = _NAMES.get(name, name)
    cheapest: dict[tuple[str, ...], Row] = {}

    def offer(item: Any) -> Row | None:
        option = (PurchaseOption.SPOT if _field(item, "spot") else PurchaseOption.ON_DEMAND).value
        region, key = str(_field(item, "location")), type_name(name, item)
        if region not in regions or option not in options or not key:
            return None
        try:
            price = decimal_text(str(_field(item, "price")))
        except ValueError:
            price = ""  # validation refuses it, with this row's key
            log.skip("price", f"{provider}/{region}/{key}", f"{item.price!r} is not a price")
        return {
            "provider": provider,
            "region": region,
            "zone": "",
            "instance_type": key,
            "purchase_option": option,
            "price_per_hour": price,
            "currency": "USD",
            "basis": "observed" if option == PurchaseOption.SPOT.value else "list",
            "flags": "region_availability_not_reflected" if name in _PLACELESS else "",
            "source": "gpuhunt (dstackai/gpuhunt)",
            "as_of": as_of,
        }

    reader = RowReader("price", log)
    rows = reader.read(items, offer, lambda item: f"{name} {item.instance_name}")
    reader.require_some()
    for row in rows:
        if row is not None:
            place = (row["region"], row["instance_type"], row["purchase_option"])
            if place not in cheapest or _is_cheaper(row, cheapest[place]):
                cheapest[place] = row
    return [cheapest[place] for place in sorted(cheapest)]


def _is_cheaper(new: Row, known: Row) -> bool:
    """Whether `new` has a lower price; a price of 0 is unknown."""
    price, before = (float(row["price_per_hour"] or 0) for row in (new, known))
    return price > 0 and (before <= 0 or price < before)


def _number(value: Any) -> str:
    return f"{float(value):.10g}" if value not in ("", None) else ""
