"""A fake AWS: EC2 (XML), Price List and Service Quotas (JSON 1.1), Savings Plans (REST), and the public files.

Shapes are those of the SDK's service models; figures are our own, in tests/fixtures/aws. All regions answer at
one address: the region asked is read from the signature's scope.

    with fake_aws(faults={"DescribeSpotPriceHistory": "throttle_forever"}) as fake: os.environ |= environment(fake)
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tests.fakes.http_base import DEFAULT_CHANGES, FakeServer, Reply, Request

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "aws"
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SECRETS = ("AKIAFAKEKEYFORTESTS0", "wJalrFAKESECRETfaketests0000000000000000", "FwoFAKESESSIONTOKENfaketests")
# What each interface is called in a fault plan.
TARGETS: Mapping[str, str] = {
    "regions": "DescribeRegions",
    "zones": "DescribeAvailabilityZones",
    "types": "DescribeInstanceTypes",
    "offerings": "DescribeInstanceTypeOfferings",
    "spot": "DescribeSpotPriceHistory",
    "blocks": "DescribeCapacityBlockOfferings",
    "pricing": "AWSPriceListService.GetProducts",
    "savings": "/DescribeSavingsPlansOfferingRates",
    "quotas": "ServiceQuotasV20190624.ListServiceQuotas",
    "bulk_index": "/offers/*region_index.json",
    "bulk": "/offers/*.csv",
    "advisor": "/spot-advisor-data.json",
}
PREFIX = {"us-east-1": "", "eu-west-1": "EUW1-", "ap-east-1": "APE1-"}
CSV_HEADER = (
    "SKU OfferTermCode RateCode TermType PriceDescription EffectiveDate StartingRange EndingRange Unit PricePerUnit"
    " Currency RelatedTo LeaseContractLength PurchaseOption OfferingClass|Product Family|serviceCode Location"
    "|Location Type|Instance Type|Current Generation|Instance Family|vCPU|Physical Processor|Memory|Storage"
    "|Network Performance|Tenancy|Operating System|License Model|usageType|operation|CapacityStatus|GPU|GPU Memory"
    "|MarketOption|Normalization Size Factor|Pre Installed S/W|Region Code|serviceName"
)
COLUMNS = tuple(
    name
    for part in CSV_HEADER.split("|")
    for name in (part.split(" ") if part.startswith(("SKU", "serviceCode")) else [part])
)


def load(name: str) -> Any:
    """A fixture."""
    return json.loads((FIXTURES / name).read_text(encoding="utf-8"))


def environment(fake: FakeServer, *, account: bool = True) -> dict[str, str]:
    """Variables that make the SDK and the planner talk to the fake, with or without (fake) credentials."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    keys = SECRETS if account else ("", "", "")
    return {
        "AWS_ENDPOINT_URL": fake.url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "PLANNER_AWS_PRICE_LIST_URL": fake.url,
        "PLANNER_AWS_SPOT_ADVISOR_URL": f"{fake.url}/spot-advisor-data.json",
        **dict(zip(names, keys, strict=True)),
    }


class _AtOnePort(FakeServer):
    """Fakes that follow each other listen at the same port, so that clients can be shared."""

    first_port = 0

    def __enter__(self) -> FakeServer:
        self.port = _AtOnePort.first_port
        super().__enter__()
        _AtOnePort.first_port = _AtOnePort.first_port or self.port
        return self


@dataclass
class World:
    """What the fake cloud sells.

    Attributes:
        regions: DescribeRegions entries.
        types: DescribeInstanceTypes entries.
        prices: our own figures, see tests/fixtures/aws/prices.json.
        quotas: ListServiceQuotas entries.
        page_size: entries on one page.
    """

    regions: list[dict[str, Any]] = field(default_factory=lambda: load("regions.json"))
    types: list[dict[str, Any]] = field(default_factory=lambda: load("instance_types.json"))
    prices: dict[str, Any] = field(default_factory=lambda: load("prices.json"))
    quotas: list[dict[str, Any]] = field(default_factory=lambda: load("quotas.json"))
    advisor: dict[str, Any] = field(default_factory=lambda: load("spot_advisor.json"))
    page_size: int = 4

    @classmethod
    def large(cls, n_regions: int, n_types: int, n_accelerated: int = 85, page_size: int = 100) -> World:
        """A world of many regions and machines (copies of a few, with numbered names), for measuring.

        As in the real one most machines have no accelerator, so they are answered but have no row.
        """
        from catalogs.tables.regions import residency_groups

        names = sorted(
            region for provider, region in residency_groups() if provider == "aws" and "gov" not in region
        )
        world = cls(page_size=page_size)
        world.regions = [{"RegionName": name, "OptInStatus": "opted-in"} for name in names[:n_regions]]
        on_demand, spot = world.prices["on_demand"], world.prices["spot"]
        by_name = {one["InstanceType"]: one for one in world.types}
        plain = [by_name["m7i.large"]]
        kinds = [
            one
            for name, one in by_name.items()
            if name in on_demand and name not in ("dl1.24xlarge", "m7i.large")
        ]
        for number in range(max(0, n_types - len(by_name))):
            of = kinds if number < n_accelerated - len(by_name) else plain
            kind = of[number % len(of)]
            family, size = kind["InstanceType"].split(".")
            name = f"{family}.{number}{size}"
            world.types.append({**kind, "InstanceType": name})
            on_demand[name] = on_demand[kind["InstanceType"]]
            spot[name] = ["0.5", "0.6"]
        world.prices["regions"] = {one["RegionName"]: "1" for one in world.regions}
        world.prices["zones"] = {
            one["RegionName"]: {
                f"{one['RegionName']}{letter}": f"{one['RegionName']}-az{letter}" for letter in "abc"
            }
            for one in world.regions
        }
        return world

    def hourly(self, name: str, region: str) -> Decimal | None:
        """On-demand price, None where it has none."""
        base = self.prices["on_demand"].get(name)
        return None if base is None else Decimal(base) * Decimal(self.prices["regions"][region])

    def offered(self, region: str) -> list[dict[str, Any]]:
        """Types offered in a region."""
        missing = self.prices["not_offered"].get(region, [])
        return [one for one in self.types if one["InstanceType"] not in missing]


def fake_aws(
    faults: str | Mapping[str, str] | None = None, world: World | None = None, **settings: Any
) -> FakeServer:
    """The server; `faults` by the names of `TARGETS` or by patterns."""
    world = world or World()
    if isinstance(faults, Mapping):
        faults = {TARGETS.get(name, name): kind for name, kind in faults.items()}
    routes = {
        TARGETS["regions"]: lambda request: _regions(world),
        TARGETS["zones"]: lambda request: _zones(world, request),
        TARGETS["types"]: lambda request: _types(world, request),
        TARGETS["offerings"]: lambda request: _offerings(world, request),
        TARGETS["spot"]: lambda request: _spot(world, request),
        TARGETS["blocks"]: lambda request: _blocks(world, request),
        TARGETS["pricing"]: lambda request: _products(world, request),
        TARGETS["savings"]: lambda request: _savings(world, request),
        TARGETS["quotas"]: lambda request: _quotas(world, request),
        TARGETS["bulk_index"]: lambda request: _index(world),
        TARGETS["bulk"]: lambda request: _bulk(world, request),
        TARGETS["advisor"]: lambda request: _advisor(world, request),
    }
    return _AtOnePort(routes, faults, error_reply=error_reply, changes=CHANGES, **settings)


# --- errors and damaged bodies, in the shapes of the protocols ---------------------------------------------------

_CODES = {
    "ec2": ("RequestLimitExceeded", 503, "InternalError", "RequestExpired", "UnauthorizedOperation", 403),
    "json": (
        "ThrottlingException",
        400,
        "InternalServerError",
        "ExpiredTokenException",
        "AccessDeniedException",
        400,
    ),
}


def error_reply(kind: str, request: Request) -> Reply | None:
    """Errors as EC2 (XML) and the JSON services word them; the message holds the key id, as real ones may."""
    is_ec2 = request.query.get("Action") is not None
    if not is_ec2 and request.method == "GET":
        return None
    throttle, throttle_status, internal, expired, denied, denied_status = _CODES["ec2" if is_ec2 else "json"]
    code, status = {
        "throttle": (throttle, throttle_status),
        "http_500": (internal, 500),
        "expired_credentials": (expired, 400),
        "access_denied": (denied, denied_status),
    }[
        next(
            name
            for name in ("throttle", "http_500", "expired_credentials", "access_denied")
            if kind.startswith(name)
        )
    ]
    text = f"refused for {SECRETS[0]} {SECRETS[2]}"
    if is_ec2:
        body = f"<Code>{code}</Code><Message>{text}</Message>"
        xml = f"<Response><Errors><Error>{body}</Error></Errors><RequestID>r-1</RequestID></Response>"
        return Reply(xml, status, content_type="text/xml")
    return Reply(
        {"__type": code, "message": text}, status, {"x-amzn-ErrorType": code}, "application/x-amz-json-1.1"
    )


def _by_format(kind: str) -> Any:
    def change(data: bytes) -> bytes:
        if data[:1] == b"<":
            return _XML_CHANGES[kind](data.decode()).encode()
        if data[:1] == b'"':
            return _CSV_CHANGES[kind](data.decode()).encode()
        return DEFAULT_CHANGES[kind](data)

    return change


def _rename_sets(xml: str) -> str:
    return re.sub(r"<(/?)(\w*(?:Set|Info|set|info))>", r"<\1\2V2>", xml)


def _empty_set(xml: str) -> str:
    return re.sub(r"<item>.*</item>", "", xml, count=1, flags=re.S)


def _double_set(xml: str) -> str:
    return re.sub(r"(<item>.*</item>)", r"\1\1", xml, count=1, flags=re.S)


def _odd_set(xml: str) -> str:
    odd = "<item></item><item><instanceType>odd.large</instanceType></item>"
    return re.sub(r"(<item>.*</item>)", rf"{odd}\1{odd}", xml, count=1, flags=re.S)


def _csv_rows(change: Any) -> Any:
    def apply(text: str) -> str:
        lines = text.splitlines(keepends=True)
        head = next(number for number, line in enumerate(lines) if line.startswith('"SKU"')) + 1
        return "".join([*lines[:head], *change(lines[head:])])

    return apply


_XML_CHANGES = {
    "changed_schema": _rename_sets,
    "empty_page": _empty_set,
    "duplicate_rows": _double_set,
    "odd_rows": _odd_set,
}
_CSV_CHANGES = {
    "changed_schema": lambda text: text.replace('"Instance Type"', '"InstanceTypeV2"'),
    "empty_page": _csv_rows(lambda rows: []),
    "duplicate_rows": _csv_rows(lambda rows: rows + rows),
    "odd_rows": _csv_rows(lambda rows: ['"x","y"\n', *rows[:-1], '"x"\n', *rows[-1:]]),
}
CHANGES = {kind: _by_format(kind) for kind in _XML_CHANGES}


# --- EC2 ---------------------------------------------------------------------------------------------------------


@cache
def _model() -> Any:
    import botocore.session

    return botocore.session.get_session().get_service_model("ec2")


def ec2_reply(operation: str, payload: Mapping[str, Any]) -> Reply:
    """A reply in XML, element names by the service model."""
    shape = _model().operation_model(operation).output_shape
    body = "".join(_element(shape.members[name], name, value) for name, value in payload.items())
    xml = f"<{operation}Response><requestId>r-1</requestId>{body}</{operation}Response>"
    return Reply(xml, content_type="text/xml;charset=UTF-8")


def _element(shape: Any, name: str, value: Any) -> str:
    name = shape.serialization.get("name", name)
    return f"<{name}>{_inner(shape, value)}</{name}>"


def _inner(shape: Any, value: Any) -> str:
    if shape.type_name == "structure":
        return "".join(
            _element(shape.members[key], key, one) for key, one in value.items() if key in shape.members
        )
    if shape.type_name == "list":
        return "".join(f"<item>{_inner(shape.member, one)}</item>" for one in value)
    if isinstance(value, bool):
        return str(value).lower()
    return escape(value.isoformat() if isinstance(value, datetime) else str(value))


def region_of(request: Request) -> str:
    """Region of the signature's scope."""
    found = re.search(r"Credential=[^/]+/\d{8}/([a-z0-9-]+)/", request.headers.get("authorization", ""))
    return found.group(1) if found else ""


def _page(items: list[Any], token: str, size: int) -> tuple[list[Any], str]:
    start = int(token or 0)
    more = str(start + size) if start + size < len(items) else ""
    return items[start : start + size], more


def _ec2_page(world: World, request: Request, operation: str, name: str, items: list[Any]) -> Reply:
    page, more = _page(items, request.param("NextToken"), world.page_size)
    return ec2_reply(operation, {name: page, **({"NextToken": more} if more else {})})


def _form_list(request: Request, name: str) -> list[str]:
    return [values[0] for key, values in request.query.items() if re.fullmatch(rf"{name}\.\d+", key)]


def _matching(request: Request, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    patterns = _form_list(request, r"Filter\.1\.Value")
    if not patterns:
        return items
    return [one for one in items if any(fnmatchcase(one["InstanceType"], pattern) for pattern in patterns)]


def _regions(world: World) -> Reply:
    return ec2_reply("DescribeRegions", {"Regions": world.regions})


def _zones(world: World, request: Request) -> Reply:
    region = region_of(request)
    zones = [
        {
            "ZoneName": name,
            "ZoneId": zone,
            "RegionName": region,
            "ZoneType": "availability-zone",
            "State": "available",
        }
        for name, zone in world.prices["zones"][region].items()
    ]
    return ec2_reply("DescribeAvailabilityZones", {"AvailabilityZones": zones})


def _types(world: World, request: Request) -> Reply:
    items = _matching(request, world.offered(region_of(request)))
    return _ec2_page(world, request, "DescribeInstanceTypes", "InstanceTypes", items)


def _offerings(world: World, request: Request) -> Reply:
    region = region_of(request)
    items = [
        {"InstanceType": one["InstanceType"], "LocationType": "availability-zone-id", "Location": zone}
        for one in _matching(request, world.offered(region))
        for zone in world.prices["zones"][region].values()
    ]
    return _ec2_page(world, request, "DescribeInstanceTypeOfferings", "InstanceTypeOfferings", items)


def _spot(world: World, request: Request) -> Reply:
    region = region_of(request)
    items = []
    for name in _form_list(request, "InstanceType"):
        shares = world.prices["spot"].get(name, [])
        hourly = world.hourly(name, region)
        for zone in world.prices["zones"][region] if hourly else []:
            for age, share in enumerate(reversed(shares)):
                items.append(
                    {
                        "AvailabilityZone": zone,
                        "InstanceType": name,
                        "ProductDescription": "Linux/UNIX",
                        "SpotPrice": f"{hourly * Decimal(share):.6f}",
                        "Timestamp": NOW - timedelta(days=2 + 3 * age),
                    }
                )
    return _ec2_page(world, request, "DescribeSpotPriceHistory", "SpotPriceHistory", items)


def _blocks(world: World, request: Request) -> Reply:
    region, name = region_of(request), request.param("InstanceType")
    fee = world.prices["blocks"].get(name)
    items = []
    if fee is not None and name not in world.prices["not_offered"].get(region, []):
        zone = next(iter(world.prices["zones"][region]))
        for days, factor in ((1, Decimal(1)), (3, Decimal("0.9"))):
            items.append(
                {
                    "CapacityBlockOfferingId": f"cb-{region}-{name}-{days}",
                    "InstanceType": name,
                    "AvailabilityZone": zone,
                    "InstanceCount": 1,
                    "StartDate": NOW + timedelta(days=days),
                    "EndDate": NOW + timedelta(days=days + 1),
                    "CapacityBlockDurationHours": 24,
                    "UpfrontFee": f"{Decimal(fee) * factor * 24:.4f}",
                    "CurrencyCode": "USD",
                    "Tenancy": "default",
                }
            )
    return _ec2_page(world, request, "DescribeCapacityBlockOfferings", "CapacityBlockOfferings", items)


# --- JSON services -----------------------------------------------------------------------------------------------


def sku(name: str, region: str) -> str:
    """A stable stock-keeping unit."""
    return hashlib.sha256(f"{name}/{region}".encode()).hexdigest()[:16].upper()


def product(world: World, name: str, region: str) -> dict[str, Any]:
    """One element of a price list, before it is made a JSON text."""
    code, hourly = sku(name, region), world.hourly(name, region)
    assert hourly is not None
    terms: dict[str, Any] = {"OnDemand": {f"{code}.JRTCKXETXF": _term(code, "JRTCKXETXF", hourly, None, {})}}
    reserved = {}
    for years, payments in world.prices["reserved"].items():
        for payment, share in payments.items():
            for offering in ("standard", "convertible"):
                words = {"LeaseContractLength": years, "PurchaseOption": payment, "OfferingClass": offering}
                rate, fee = split(hourly * Decimal(share), payment, years)
                term = hashlib.sha256("/".join(words.values()).encode()).hexdigest()[:10].upper()
                reserved[f"{code}.{term}"] = _term(code, term, rate, fee, words)
    terms["Reserved"] = reserved
    attributes = {
        "instanceType": name,
        "regionCode": region,
        "location": region,
        "locationType": "AWS Region",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "licenseModel": "No License required",
        "usagetype": f"{PREFIX.get(region, '')}BoxUsage:{name}",
        "operation": "RunInstances",
        "servicecode": "AmazonEC2",
    }
    return {
        "product": {"productFamily": "Compute Instance", "attributes": attributes, "sku": code},
        "serviceCode": "AmazonEC2",
        "terms": terms,
        "version": "20261119000000",
        "publicationDate": "2026-11-19T00:00:00Z",
    }


def split(effective: Decimal, payment: str, years: str) -> tuple[Decimal, Decimal | None]:
    """Hourly price and fee of a reservation that costs `effective` per hour in all."""
    hours = Decimal(8760 * int(years[0]))
    if payment == "All Upfront":
        return Decimal(0), round(effective * hours)
    if payment == "Partial Upfront":
        return effective / 2, round(effective / 2 * hours)
    return effective, None


def _term(code: str, term: str, rate: Decimal, fee: Decimal | None, words: dict[str, str]) -> dict[str, Any]:
    dimensions = {
        f"{code}.{term}.6YS6EN2CT7": {
            "unit": "Hrs",
            "description": "per instance hour",
            "beginRange": "0",
            "endRange": "Inf",
            "pricePerUnit": {"USD": f"{rate:.10f}"},
        }
    }
    if fee is not None:
        dimensions[f"{code}.{term}.2TG2D8R56U"] = {
            "unit": "Quantity",
            "description": "Upfront Fee",
            "pricePerUnit": {"USD": str(fee)},
        }
    return {"sku": code, "offerTermCode": term, "priceDimensions": dimensions, "termAttributes": words}


def _json(payload: Mapping[str, Any]) -> Reply:
    return Reply(payload, content_type="application/x-amz-json-1.1")


def _products(world: World, request: Request) -> Reply:
    asked = request.json()
    wanted = {one["Field"]: one["Value"] for one in asked["Filters"]}
    pairs = [
        (one["InstanceType"], region)
        for one in world.types
        for region in world.prices["regions"]
        if world.hourly(one["InstanceType"], region) is not None
        and one["InstanceType"] == wanted.get("instanceType", one["InstanceType"])
        and region == wanted.get("regionCode", region)
    ]
    size = min(world.page_size, asked.get("MaxResults", 100))
    page, more = _page(pairs, asked.get("NextToken", ""), size)
    items = [json.dumps(product(world, *pair)) for pair in page]
    return _json({"FormatVersion": "aws_v1", "PriceList": items, **({"NextToken": more} if more else {})})


def _savings(world: World, request: Request) -> Reply:
    asked = request.json()
    wanted = {one["name"]: one["values"] for one in asked["filters"]}
    region = wanted["region"][0]
    items = []
    for one in world.types:
        hourly = world.hourly(one["InstanceType"], region)
        if hourly is None or one["InstanceType"].split(".")[0] not in wanted["instanceFamily"]:
            continue
        for seconds, payments in world.prices["savings"].items():
            for payment, share in payments.items():
                for plan, factor in (("Compute", Decimal("1.05")), ("EC2Instance", Decimal(1))):
                    items.append(
                        _rate(
                            one["InstanceType"],
                            region,
                            plan,
                            int(seconds),
                            payment,
                            hourly * Decimal(share) * factor,
                        )
                    )
    page, more = _page(items, asked.get("nextToken", ""), world.page_size * 8)
    return Reply({"searchResults": page, "nextToken": more})


def _rate(name: str, region: str, plan: str, seconds: int, payment: str, rate: Decimal) -> dict[str, Any]:
    words = {
        "region": region,
        "instanceType": name,
        "instanceFamily": name.split(".")[0],
        "tenancy": "shared",
        "productDescription": "Linux/UNIX",
    }
    return {
        "savingsPlanOffering": {
            "offeringId": sku(f"{plan}{seconds}{payment}", region).lower(),
            "paymentOption": payment,
            "planType": plan,
            "durationSeconds": seconds,
            "currency": "USD",
        },
        "rate": f"{rate:.5f}",
        "unit": "Hrs",
        "productType": "EC2",
        "serviceCode": "AmazonEC2",
        "usageType": f"{PREFIX.get(region, '')}BoxUsage:{name}",
        "operation": "RunInstances",
        "properties": [{"name": key, "value": value} for key, value in words.items()],
    }


def _quotas(world: World, request: Request) -> Reply:
    page, more = _page(world.quotas, request.json().get("NextToken", ""), world.page_size)
    return _json({"Quotas": page, **({"NextToken": more} if more else {})})


# --- public files ------------------------------------------------------------------------------------------------


def _index(world: World) -> dict[str, Any]:
    names = [*world.prices["regions"], "us-gov-west-1", "us-west-2-lax-1"]
    path = "/offers/v1.0/aws/AmazonEC2/20261119000000/{0}/index.json"
    return {
        "formatVersion": "v1.0",
        "publicationDate": "2026-11-19T00:00:00Z",
        "regions": {name: {"regionCode": name, "currentVersionUrl": path.format(name)} for name in names},
    }


def _bulk(world: World, request: Request) -> Reply:
    region = request.path.split("/")[-2]
    return Reply("".join(bulk_lines(world, region)), content_type="text/csv")


def bulk_lines(world: World, region: str) -> Iterator[str]:
    """Lines of a region's file of the bulk price list, with rows that a reader must leave out."""
    metadata = {
        "FormatVersion": "v1.0",
        "Disclaimer": 'none, "really"',
        "Publication Date": "2026-11-19T00:00:00Z",
    }
    yield from (
        _line((name, value))
        for name, value in (metadata | {"Version": "1", "OfferCode": "AmazonEC2"}).items()
    )
    yield _line(COLUMNS)
    for one in world.types:
        name = one["InstanceType"]
        hourly = world.hourly(name, region)
        if hourly is None:
            continue
        gpus = one.get("GpuInfo", {}).get("Gpus", [{}])[0].get("Count", 0)
        usual = {
            "SKU": sku(name, region),
            "Instance Type": name,
            "Region Code": region,
            "GPU": str(gpus) if gpus else "",
        }
        yield from (_line(cells) for cells in _bulk_rows(world, usual, hourly))


def _bulk_rows(world: World, usual: dict[str, str], hourly: Decimal) -> Iterator[list[str]]:
    yield _cells(usual, OfferTermCode="JRTCKXETXF", TermType="OnDemand", PricePerUnit=f"{hourly:.10f}")
    noise = (
        {"Operating System": "Windows"},
        {"Tenancy": "Dedicated"},
        {"CapacityStatus": "UnusedCapacityReservation"},
        {"Pre Installed S/W": "SQL Std"},
        {"MarketOption": "CapacityBlock"},
        {"Location Type": "AWS Local Zone"},
    )
    for number, other in enumerate(noise):
        code = f"{usual['SKU']}{number}"
        cells = {**usual, **other, "SKU": code}
        yield _cells(cells, OfferTermCode="JRTCKXETXF", TermType="OnDemand", PricePerUnit="0.0000000000")
    for years, payments in world.prices["reserved"].items():
        for payment, share in payments.items():
            rate, fee = split(hourly * Decimal(share), payment, years)
            words = {
                "LeaseContractLength": years,
                "PurchaseOption": payment,
                "OfferingClass": "standard",
                "TermType": "Reserved",
                "OfferTermCode": f"{years}{payment}",
            }
            if fee is not None:
                yield _cells(usual, **words, Unit="Quantity", PricePerUnit=str(fee))
            yield _cells(usual, **words, PricePerUnit=f"{rate:.10f}")


def _cells(row: Mapping[str, str], **more: str) -> list[str]:
    usual = {
        "Unit": "Hrs",
        "Currency": "USD",
        "Tenancy": "Shared",
        "Operating System": "Linux",
        "CapacityStatus": "Used",
        "Pre Installed S/W": "NA",
        "Location Type": "AWS Region",
        "MarketOption": "OnDemand",
        "Product Family": "Compute Instance",
        "PriceDescription": "per instance hour, as listed",
    }
    cells = {**usual, **row, **more}
    return [cells.get(name, "") for name in COLUMNS]


def _line(cells: Any) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _advisor(world: World, request: Request) -> Reply:
    tag = '"advisor-1"'
    if request.headers.get("if-none-match") == tag:
        return Reply(b"", 304, {"ETag": tag})
    return Reply(world.advisor, headers={"ETag": tag})
