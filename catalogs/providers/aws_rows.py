"""Rows of the catalog made from AWS answers: required fields, prices as decimal text, offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from catalogs.providers.base import SchemaChanged
from catalogs.tables.model import PurchaseOption
from catalogs.tables.normalize import decimal_text, number_of

PROVIDER = "aws"
Row = dict[str, str]
_HOURS = ("hrs", "hr", "hours", "hour")


def changed(api: str, where: str, region: str = "") -> SchemaChanged:
    """The error of an answer that is not as documented: `where` is the field's path."""
    return SchemaChanged(
        "the answer is not as this version understands it; update the planner",
        where=where,
        provider=PROVIDER,
        region=region,
        api=api,
    )


def field(payload: Any, path: str, api: str, region: str = "") -> Any:
    """Take a required field, `a.b.c`, of an answer.

    Raises:
        SchemaChanged: naming the first part of the path that is not there.
    """
    value, parents = payload, []
    for part in path.split("."):
        parents.append(part)
        if not isinstance(value, Mapping) or value.get(part) is None:
            raise changed(api, ".".join(parents), region)
        value = value[part]
    return value


def word(payload: Any, path: str, api: str, region: str = "") -> str:
    """Take a required field that is a text with something in it.

    Raises:
        SchemaChanged: naming the path.
    """
    value = field(payload, path, api, region)
    if not isinstance(value, str) or not value.strip():
        raise changed(api, path, region)
    return value


def listed(payload: Any, name: str, api: str, region: str = "") -> list[Any]:
    """Take a list that an answer must have; an answer without it is not an empty one.

    Botocore answers {} to JSON it cannot read, so an absent list must not pass as nothing to report.

    Raises:
        SchemaChanged: when it is absent or no list.
    """
    value = payload.get(name) if isinstance(payload, Mapping) else None
    if not isinstance(value, list):
        raise changed(api, name, region)
    return value


def amount(text: Any, where: str, api: str, region: str = "") -> Decimal:
    """Read a published amount.

    Raises:
        SchemaChanged: when it is not a finite number of zero or more.
    """
    try:
        number = number_of(text)
    except ValueError:
        raise changed(api, where, region) from None
    if number < 0:
        raise changed(api, where, region)
    return number


@dataclass(frozen=True)
class Price:
    """One way to buy one instance type, as published.

    Attributes:
        region: region id.
        instance_type: instance type.
        option: purchase option.
        variant: payment, class or scope of the option, "" for the usual one.
        per_hour: price of one machine per hour, in `currency`.
        source: API it was read from.
        as_of: ISO date of the answer.
        zone: AZ id, "" for the whole region.
        upfront: paid at the start per machine beside the hourly price; None for none.
        currency: ISO 4217 code.
        basis: `list`, `observed` or `derived`.
        band: interruption band, "" unknown.
        flags: ids of flags.csv joined by `;`.
        capacity: most machines that can be had, "" unknown.
    """

    region: str
    instance_type: str
    option: PurchaseOption
    variant: str
    per_hour: Decimal
    source: str
    as_of: str
    zone: str = ""
    upfront: Decimal | None = None
    currency: str = "USD"
    basis: str = "list"
    band: str = ""
    flags: str = ""
    capacity: str = ""

    def row(self) -> Row:
        """The row of the offers table."""
        term = self.option.term_hours
        return {
            "provider": PROVIDER,
            "region": self.region,
            "zone": self.zone,
            "instance_type": self.instance_type,
            "purchase_option": self.option.value,
            "option_variant": self.variant,
            "price_per_hour": decimal_text(self.per_hour),
            "currency": self.currency,
            "upfront_per_instance": decimal_text(self.upfront) if self.upfront else "",
            "term_hours": decimal_text(str(term)) if term > 0 else "",
            "capacity": self.capacity,
            "basis": self.basis,
            "interruption_band": self.band,
            "flags": self.flags,
            "source": self.source,
            "as_of": self.as_of,
        }


def option_of_term(years: str, payment: str, offering: str) -> tuple[PurchaseOption, str] | None:
    """Purchase option and variant of a reservation, from the words of its terms; None for other terms.

    Args:
        years: `1yr` or `3yr`.
        payment: `No Upfront`, `Partial Upfront` or `All Upfront`.
        offering: `standard` or `convertible`.
    """
    options = {"1yr": PurchaseOption.RESERVED_1Y, "3yr": PurchaseOption.RESERVED_3Y}
    option = options.get(years.strip().lower().replace(" ", ""))
    if option is None or not payment or not offering:
        return None
    return option, f"{offering.strip().lower()}.{payment_word(payment)}"


def payment_word(payment: str) -> str:
    """`No Upfront` to `no_upfront`."""
    return payment.strip().lower().replace(" ", "_")


@dataclass(frozen=True)
class Listing:
    """Position of a listed price: what several ways to buy one machine share."""

    region: str
    instance_type: str
    source: str
    as_of: str
    currency: str = "USD"

    def price(
        self,
        term: tuple[PurchaseOption, str],
        per_hour: Decimal,
        upfront: Decimal | None = None,
        remark: str = "",
    ) -> Price:
        """One way to buy it: purchase option and variant, and its amounts."""
        return Price(
            region=self.region,
            instance_type=self.instance_type,
            option=term[0],
            variant=term[1],
            per_hour=per_hour,
            upfront=upfront,
            currency=self.currency,
            source=f"{self.source}; {remark}" if remark else self.source,
            as_of=self.as_of,
        )


def reservation(
    listing: Listing, term: tuple[PurchaseOption, str], hourly: Decimal, upfront: Decimal
) -> Price | None:
    """Offer of a reservation; None where it costs nothing.

    Where everything is paid at the start, the hourly price is the fee over the hours of the term: the table
    needs a price per hour, and the option's own rule says when it is due. Otherwise fee and hourly price
    stay apart.

    Args:
        listing: the machine and the list.
        term: purchase option and variant.
        hourly: recurring price per hour.
        upfront: fee at the start.
    """
    if hourly > 0:
        return listing.price(term, hourly, upfront or None)
    if upfront <= 0:
        return None
    hours = Decimal(str(term[0].term_hours))
    return listing.price(
        term, upfront / hours, remark=f"{decimal_text(upfront)} at the start over {hours:.0f} h"
    )


def is_hourly(unit: str) -> bool:
    """Whether a price dimension is per hour."""
    return str(unit).strip().lower() in _HOURS


def is_fee(unit: str) -> bool:
    """Whether a price dimension is paid once, at the start of a term."""
    return str(unit).strip().lower() == "quantity"
