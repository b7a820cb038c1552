"""Data transfer: monthly cumulative tiers between two places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from catalogs.patterns import matches
from catalogs.tariffs.read import read_lists

_COLUMNS = ("provider", "kind", "src", "dst", "tier_from", "tier_to", "usd_per_unit", "unit", "use")
_TAIL = ("confidence", "note", "source", "as_of")
Values = tuple[str, ...]
Key = tuple[str, str, str, str]  # provider, kind, source, destination
_ZERO = Decimal(0)
_BYTES_PER_GIB = Decimal(2**30)


@dataclass(frozen=True)
class TierCurve:
    """Cost of a month's traffic: tier i runs from `edges_gb[i]` up to the next edge, the last one is open.

    Attributes:
        edges_gb: lower edges of the tiers in `unit`, ascending, the first is 0.
        usd_per_gb: USD per `unit` inside each tier.
        unit: what the provider counts in, `GB` or `GiB`; quantities passed in and returned are in it.
        kind: `same_region`, `inter_region`, `internet` or `ingress`.
        confidence: how the figures were had (`read`, `derived`, `suspect`, `declared`, ...).
    """

    edges_gb: tuple[Decimal, ...]
    usd_per_gb: tuple[Decimal, ...]
    unit: str
    kind: str
    source: str
    as_of: str
    confidence: str
    note: str = ""

    def lines(self, gb: Decimal, used_gb: Decimal = _ZERO) -> list[tuple[Decimal, Decimal]]:
        """Split `gb` (in `unit`), after `used_gb` used earlier this month, into (quantity, unit price).

        Raises:
            ValueError: a quantity is negative or not finite.
        """
        if not (gb.is_finite() and used_gb.is_finite()) or gb < 0 or used_gb < 0:
            raise ValueError(f"a transfer needs quantities >= 0, got {gb} after {used_gb}")
        end = used_gb + gb
        out: list[tuple[Decimal, Decimal]] = []
        for i, price in enumerate(self.usd_per_gb):
            low = max(self.edges_gb[i], used_gb)
            high = min(self.edges_gb[i + 1], end) if i + 1 < len(self.edges_gb) else end
            if high > low:
                out.append((high - low, price))
        return out

    def cost_usd(self, gb: Decimal, used_gb: Decimal = _ZERO) -> Decimal:
        """USD for `gb` (in `unit`) more after `used_gb` this month: exact, monotone, continuous."""
        return sum((quantity * price for quantity, price in self.lines(gb, used_gb)), _ZERO)

    def quantity(self, gb: Decimal) -> Decimal:
        """Convert decimal gigabytes (1e9 bytes) into `unit`."""
        return gb * Decimal(10**9) / _BYTES_PER_GIB if self.unit == "GiB" else gb


def flat_curve(price: Decimal, kind: str, source: str, as_of: str, confidence: str = "declared") -> TierCurve:
    """A curve with one open tier."""
    return TierCurve((_ZERO,), (price,), "GB", kind, source, as_of, confidence)


class TransferTable:
    """The transfer table, indexed by (provider, kind, source, destination)."""

    def __init__(self, rows: dict[Key, list[Values]], groups: list[Values]) -> None:
        """Take the usable rows by key and the region groups."""
        self._rows = rows
        self._groups: dict[str, list[tuple[str, str]]] = {}
        for provider, pattern, group in groups:
            self._groups.setdefault(provider, []).append((pattern, group))
        self._internet_targets = {(key[0], key[3]) for key in rows if key[1] == "internet"}
        self._known: dict[tuple[str, str], tuple[str, ...]] = {}
        self._called: dict[tuple[str, str], tuple[str, ...]] = {}
        self._curves: dict[Key, TierCurve | None] = {}
        # what tiers of a provider a place is served by, and the curve of a place's data to them
        self._targets: dict[tuple[str, str, str], str] = {}
        self._outward: dict[tuple[str, str, str], TierCurve | None] = {}

    @classmethod
    def read(cls, directory: Path) -> TransferTable:
        """Read transfer.csv and region_groups.csv."""
        rows: dict[Key, list[Values]] = {}
        for values in read_lists(directory / "transfer.csv", _COLUMNS + _TAIL):
            if values[8] == "yes":
                rows.setdefault((values[0], values[1], values[2], values[3]), []).append(values)
        return cls(rows, list(read_lists(directory / "region_groups.csv", ("provider", "region", "group"))))

    def groups(self, provider: str, region: str) -> tuple[str, ...]:
        """Groups that `region` belongs to, in table order."""
        key = (provider, region)
        if key not in self._known:
            matching = [g for pattern, g in self._groups.get(provider, ()) if matches(pattern, region)]
            self._known[key] = tuple(matching)
        return self._known[key]

    def curve(
        self, src_provider: str, src_region: str, dst_provider: str, dst_region: str
    ) -> TierCurve | None:
        """See `Tariffs.transfer_curve`; "" means None."""
        src_provider, dst_provider = src_provider or "onprem", dst_provider or "onprem"
        if src_provider == dst_provider:
            if src_region == dst_region:
                text = "definition: data stays in its region (cross-zone traffic not counted)"
                return flat_curve(_ZERO, "same_region", text, "2026-11-20")
            if src_provider != "onprem":
                return self._inter_region(src_provider, src_region, dst_region)
        return self._internet(src_provider, src_region, dst_provider, dst_region)

    def _inter_region(self, provider: str, src: str, dst: str) -> TierCurve | None:
        if not src or not dst:
            return None
        dst_names = self._names(provider, dst)
        for src_name in self._names(provider, src):
            for dst_name in dst_names:
                key = (provider, "inter_region", src_name, dst_name)
                if key in self._rows and self._applies(src_name, dst_name, provider, src, dst):
                    return self._curve(key)
        return None

    def _names(self, provider: str, region: str) -> tuple[str, ...]:
        """What rows between regions may call a region, the narrowest first."""
        key = (provider, region)
        if key not in self._called:
            group_names = (f"group:{group}" for group in self.groups(provider, region) if ":" not in group)
            self._called[key] = (region, *group_names, "group:continent", "*")
        return self._called[key]

    def _applies(self, src_name: str, dst_name: str, provider: str, src: str, dst: str) -> bool:
        """A continent-to-continent row holds only between two different, known continents."""
        if src_name != "group:continent" or dst_name != "group:continent":
            return True
        continents = [
            {g for g in self.groups(provider, region) if g.startswith("continent:")} for region in (src, dst)
        ]
        return bool(continents[0] and continents[1]) and continents[0] != continents[1]

    def _internet(self, provider: str, src: str, dst_provider: str, dst: str) -> TierCurve | None:
        to = (provider, dst_provider, dst)
        if to not in self._targets:
            special = [g for g in self.groups(dst_provider, dst) if g.startswith("internet:")]
            # A destination with its own tiers somewhere in the provider's table is not served by the general
            # ones.
            own = (target for target in special if (provider, target) in self._internet_targets)
            self._targets[to] = next(own, "internet")
        key = (provider, src, self._targets[to])
        if key not in self._outward:
            names = [src, *(f"group:{group}" for group in self.groups(provider, src)), "*"]
            self._outward[key] = self._first(provider, names, key[2])
        return self._outward[key]

    def dearest(self) -> TierCurve:
        """See `Tariffs.dearest_internet_curve`; GiB are taken as they are, the larger unit of the two."""
        internet = [values for key, rows in self._rows.items() if key[1] == "internet" for values in rows]
        worst = max(internet, key=lambda values: Decimal(values[6]))
        tier_curve = flat_curve(Decimal(worst[6]), "internet", worst[11], worst[12], "assumed")
        return replace(
            tier_curve,
            note=f"price not known: the highest known one is used ({worst[0]} {worst[2]} to {worst[3]})",
        )

    def _first(self, provider: str, names: list[str], target: str) -> TierCurve | None:
        for name in names:
            key = (provider, "internet", name, target)
            if key in self._rows:
                return self._curve(key)
        return None

    def _curve(self, key: Key) -> TierCurve | None:
        """The curve of one key: the same object for all the places it holds for."""
        if key not in self._curves:
            self._curves[key] = _curve(self._rows[key], key[1])
        return self._curves[key]


_DOUBT = ("suspect", "inferred", "unverified", "derived", "read", "declared")


def _curve(rows: list[Values], kind: str) -> TierCurve | None:
    """Join tiers; the last known price is carried on where the list stops (list tiers only fall)."""
    tiers = sorted(rows, key=lambda values: Decimal(values[4]))
    edges = tuple(Decimal(values[4]) for values in tiers)
    if edges[0] != 0 or len(set(edges)) != len(edges):
        return None
    paid = tiers[-1]
    if paid[5] and Decimal(paid[6]) == 0:
        return None  # only a free allowance is known, not what comes after it: unknown, never free
    curve = TierCurve(
        edges_gb=edges,
        usd_per_gb=tuple(Decimal(values[6]) for values in tiers),
        unit=paid[7],
        kind=kind,
        source=paid[11],
        as_of=paid[12],
        confidence=min((values[9] for values in tiers), key=_doubt),
        note=paid[10],
    )
    if paid[5]:
        carried = f"no price known above {paid[5]} {paid[7]}: the last one is carried on"
        return replace(curve, note="; ".join(text for text in (curve.note, carried) if text))
    return curve


def _doubt(confidence: str) -> int:
    return _DOUBT.index(confidence) if confidence in _DOUBT else 0
