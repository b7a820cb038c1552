"""Rules of purchase options (billing, terms, blocks) and of quotas."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from catalogs.patterns import matches
from catalogs.tariffs.read import Row, number, read_rows

_OPTION_COLUMNS = (
    "provider", "purchase_option", "option_variant", "billing_granularity_s", "minimum_charge_s", "min_term_hours",
    "max_term_hours", "block_hours", "max_instances", "notice_s", "whole_term", "upfront", "cancellable",
    "book_days", "confidence", "note", "source", "as_of",
)  # fmt: skip
_QUOTA_COLUMNS = (
    "provider", "family", "accelerator", "options", "name", "code", "scope", "unit", "default_value", "use",
    "confidence", "note", "source", "as_of",
)  # fmt: skip


class OptionRule(NamedTuple):
    """How one purchase option is billed.

    Attributes:
        billing_granularity_s: usage is rounded up to a multiple of this many seconds.
        minimum_charge_s: at least this many seconds are charged per instance.
        min_term_hours: shortest commitment or run; 0 none.
        max_term_hours: longest run or the term's end; None no limit.
        block_hours: the only lengths sold, ascending; () when any length is.
        max_instances: most instances of one purchase; None no limit known.
        notice_s: seconds between an interruption's warning and the end; None when never interrupted.
        whole_term: the whole term is owed, used or not.
        upfront_all: everything is paid at the start.
        upfront: `none`, `partial` or `all`.
        cancellable: whether it can be given back before its end for what is left of its price; None unknown.
        is_booked: machines are asked for by day and length, ahead or when they are needed.
        book_days: most days before its start that it can be booked, 0: only when it is needed; None unknown.
        confidence: `assumed` marks a cautious default for a provider without a known rule.
    """

    provider: str
    purchase_option: str
    option_variant: str
    billing_granularity_s: int
    minimum_charge_s: int
    min_term_hours: float
    max_term_hours: float | None
    block_hours: tuple[int, ...]
    max_instances: int | None
    notice_s: float | None
    whole_term: bool
    upfront_all: bool
    upfront: str
    cancellable: bool | None
    is_booked: bool
    book_days: int | None
    confidence: str
    note: str
    source: str
    as_of: str

    @property
    def is_owed(self) -> bool:
        """Whether a term or a block is owed from its start to its end, used or not."""
        return self.whole_term or self.min_term_hours > 0

    @property
    def is_discount(self) -> bool:
        """Whether it changes the bill and not what is launched: machines start as on-demand.

        A term of a known least length is owed whole, whatever runs; a future reservation, which has no least term,
        holds machines of its own.
        """
        return self.whole_term and self.min_term_hours > 0


class QuotaRule(NamedTuple):
    """A quota: `needed` is counted in `unit` over `scope`; `code` is "" where the source gives none."""

    name: str
    code: str
    scope: str
    unit: str
    default_value: str
    confidence: str
    note: str
    source: str
    as_of: str


class OptionTable:
    """Purchase-option rules by (provider, option, variant)."""

    def __init__(self, rules: dict[tuple[str, str, str], OptionRule]) -> None:
        """Take the rules by key; `*` is the default provider or option."""
        self._rules = rules

    @classmethod
    def read(cls, directory: Path) -> OptionTable:
        """Read purchase_options.csv."""
        rows = read_rows(directory / "purchase_options.csv", _OPTION_COLUMNS)
        rules = [_option_rule(row) for row in rows]
        return cls({(rule.provider, rule.purchase_option, rule.option_variant): rule for rule in rules})

    def rule(self, provider: str, option: str, variant: str) -> OptionRule:
        """The most specific rule: variant, option, default of the option, default of all."""
        keys = ((provider, option, variant), (provider, option, ""), ("*", option, ""), ("*", "*", ""))
        return next(self._rules[key] for key in keys if key in self._rules)


def _option_rule(row: Row) -> OptionRule:
    limit, days = number(row["max_instances"]), row["book_days"]
    return OptionRule(
        provider=row["provider"],
        purchase_option=row["purchase_option"],
        option_variant=row["option_variant"],
        billing_granularity_s=int(row["billing_granularity_s"] or 3600),
        minimum_charge_s=int(row["minimum_charge_s"] or 0),
        min_term_hours=number(row["min_term_hours"]) or 0.0,
        max_term_hours=number(row["max_term_hours"]),
        block_hours=parse_lengths(row["block_hours"]),
        max_instances=None if limit is None else int(limit),
        notice_s=number(row["notice_s"]),
        whole_term=row["whole_term"] == "yes",
        upfront_all=row["upfront"] == "all",
        upfront=row["upfront"],
        cancellable={"yes": True, "no": False}.get(row["cancellable"]),
        is_booked=bool(days),
        book_days=int(days) if days.isdigit() else None,
        confidence=row["confidence"],
        note=row["note"],
        source=row["source"],
        as_of=row["as_of"],
    )


def parse_lengths(text: str) -> tuple[int, ...]:
    """Expand `24-336/24 504-4368/168` (from-to/step, in hours) into the allowed lengths, ascending."""
    lengths: set[int] = set()
    for part in text.split():
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        lengths.update(range(int(low), int(high or low) + 1, int(step or 1)))
    return tuple(sorted(lengths))


class QuotaTable:
    """Quota rules in table order; the first one whose patterns match is taken."""

    def __init__(self, rows: list[Row]) -> None:
        """Take all rows; only those with `use = yes` are quotas that the planner can apply."""
        self._rows = [row for row in rows if row["use"] == "yes"]
        self._unapplied = [row for row in rows if row["use"] != "yes"]
        self._known: dict[tuple[str, str, str, str], QuotaRule | None] = {}

    @classmethod
    def read(cls, directory: Path) -> QuotaTable:
        """Read quota_rules.csv."""
        return cls(read_rows(directory / "quota_rules.csv", _QUOTA_COLUMNS))

    def unapplied(self, provider: str, name: str) -> str | None:
        """Name and scope of a quota by its name or code that exists but that no offer is counted against here."""
        for row in self._unapplied:
            if row["provider"] == provider and name in (row["name"], row["code"]):
                return f"{row['name']}, {row['scope']}"
        return None

    def rule(self, provider: str, family: str, accelerator: str, option: str) -> QuotaRule | None:
        """See `Tariffs.quota_rule`."""
        key = (provider, family, accelerator, option)
        if key not in self._known:
            self._known[key] = self._first(*key)
        return self._known[key]

    def _first(self, provider: str, family: str, accelerator: str, option: str) -> QuotaRule | None:
        for row in self._rows:
            if row["provider"] != provider or option not in row["options"].split():
                continue
            if matches(row["family"], family) and matches(row["accelerator"], accelerator):
                names = ("code", "scope", "unit", "default_value", "confidence", "note", "source", "as_of")
                name = row["name"].replace("{family}", family)
                return QuotaRule(name, *(row[column] for column in names))
        return None
