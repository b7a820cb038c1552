"""Replies and error bodies that others recorded: each becomes rows, or refusals that name the row.

The replies are not part of the project; the test runs where they are. Their shapes are pinned by rows of the same shape
in the tests of each provider.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from catalogs.providers import (
    alibaba,
    alibaba_rows,
    aws_commitments,
    aws_ec2,
    aws_pricing,
    aws_quotas,
    aws_spot,
)
from catalogs.providers.azure_retail import in_force, parse_retail_page
from catalogs.providers.azure_types import parse_resource_skus
from catalogs.providers.base import FetchLog
from catalogs.providers.gcp_skus import build_rate_book, parse_skus, sku_reader
from catalogs.providers.gcp_types import parse_machine, parse_quotas, type_rows
from catalogs.providers.row_reader import RowReader

pytestmark = pytest.mark.shared
AS_OF = "2026-11-22"
Rows = list[Any]
Reader = Callable[[Any, FetchLog], Rows]


def _snake(value: Any) -> Any:
    """Field names as the SDK of Google spells them."""
    if isinstance(value, dict):
        return {
            "".join(f"_{c.lower()}" if c.isupper() else c for c in k): _snake(v) for k, v in value.items()
        }
    return [_snake(one) for one in value] if isinstance(value, list) else value


def _alibaba_types(body: Any, log: FetchLog) -> Rows:
    return alibaba_rows.parse_instance_types(body, AS_OF, log)


def _alibaba_spot(body: Any, log: FetchLog) -> Rows:
    return alibaba_rows.newest_per_zone(alibaba_rows.parse_spot(body, "cn-hangzhou", log))


def _aws_types(body: Any, log: FetchLog) -> Rows:
    return aws_ec2.parse_instance_types(body, AS_OF, "us-east-1", RowReader("instance_type", log))


def _aws_spot(body: Any, log: FetchLog) -> Rows:
    return aws_spot.parse_spot_history(body, {}, "us-west-2", RowReader("spot price", log))


def _aws_prices(body: Any, log: FetchLog) -> Rows:
    options = {"on_demand", "reserved_1y", "reserved_3y"}
    return aws_pricing.parse_price_list(body, AS_OF, ["eu-central-1"], options, RowReader("price", log))


def _aws_quotas(body: Any, log: FetchLog) -> Rows:
    return aws_quotas.parse_quotas(body, "us-west-2", RowReader("quota", log))


def _aws_blocks(body: Any, log: FetchLog) -> Rows:
    return aws_commitments.parse_blocks(body, {}, "us-east-1", AS_OF, RowReader("capacity block", log))


def _aws_advisor(body: Any, log: FetchLog) -> Rows:
    return list(aws_spot.parse_advisor(body, list(body["spot_advisor"]), RowReader("band", log)))


def _azure_prices(body: Any, log: FetchLog) -> Rows:
    page = parse_retail_page(body if "Items" in body else {"Items": body})
    for name, reason in page.odd:
        log.skip("price", name, reason)
    return in_force(page.prices, AS_OF, log)


def _azure_sizes(body: Any, log: FetchLog) -> Rows:
    reader = RowReader("instance_type", log)
    parse_resource_skus(body["value"], reader)
    return [None] * reader.n_read


def _gcp_skus(body: Any, log: FetchLog) -> Rows:
    skus = parse_skus(body, sku_reader(log))
    for note in build_rate_book(skus).notes:
        log.skip("sku", note.description, note.reason)
    return skus


def _gcp_machines(body: Any, log: FetchLog) -> Rows:
    items = body["items"]
    listed = [(zone, one) for zone, scope in items.items() for one in _in_scope(zone, scope)]
    reader = RowReader("instance_type", log)
    machines = reader.read(
        listed, lambda pair: parse_machine(_snake(pair[1]), pair[0].removeprefix("zones/"))
    )
    return type_rows([m for m in machines if m.accelerator_type], AS_OF, log) or machines


def _in_scope(zone: str, scope: Any) -> Rows:
    return scope if isinstance(scope, list) else scope.get("machineTypes", [])


def _gcp_quotas(body: Any, log: FetchLog) -> Rows:
    regions = body.get("items") or [body]
    return [row for one in regions for row in parse_quotas(str(one.get("name")), one["quotas"], log)]


# Lists of other services, or of a project without a GPU quota: no row, and nothing odd either.
NOTHING_OF_OURS = ("list_page", "page_", "project_quotas")
# Folder to reader; "" in place of a file name stands for every file of the folder.
READERS: Mapping[tuple[str, str], Reader] = {
    ("alibaba_ecs", "describe_instance_types"): _alibaba_types,
    ("alibaba_ecs", "describe_spot"): _alibaba_spot,
    ("aws_ec2_describe_instance_types", ""): _aws_types,
    ("aws_ec2_spot_price_history", ""): _aws_spot,
    ("aws_pricing_get_products", "m"): _aws_prices,
    ("aws_service_quotas", ""): _aws_quotas,
    ("aws_ec2_capacity", "block"): _aws_blocks,
    ("aws_spot_advisor", ""): _aws_advisor,
    ("azure_retail_prices", ""): _azure_prices,
    ("azure_resource_skus", ""): _azure_sizes,
    ("gcp_billing_skus", ""): _gcp_skus,
    ("gcp_compute", "machine"): _gcp_machines,
    ("gcp_compute", "regions"): _gcp_quotas,
    ("gcp_compute", "project"): _gcp_quotas,
}


def _body(path: Path) -> Any:
    """The body as the SDK gives it: an answer in XML goes through botocore's own reader."""
    if path.suffix == ".json":
        return json.loads(path.read_bytes())
    import botocore.parsers
    import botocore.session

    model = botocore.session.get_session().get_service_model("ec2")
    shape = model.operation_model("DescribeSpotPriceHistory").output_shape
    reply = {"status_code": 200, "headers": {}, "body": path.read_bytes()}
    return botocore.parsers.create_parser("ec2").parse(reply, shape)


def test_every_reply_becomes_rows_or_named_refusals(shared_dir: Path) -> None:
    root = shared_dir / "catalog" / "replies"
    read = 0
    for path in sorted((*root.glob("*/*.json"), *root.glob("aws_ec2_spot_price_history/*.xml"))):
        reader = next(
            (
                r
                for (folder, start), r in READERS.items()
                if path.parent.name == folder and path.name.startswith(start)
            ),
            None,
        )
        if reader is None:
            continue
        log = FetchLog()
        rows = reader(_body(path), log)
        read += 1
        assert rows or log.not_understood or path.name.startswith(NOTHING_OF_OURS), path.name
        assert all(
            one.name and one.reason and "cannot be read" not in one.reason for one in log.not_understood
        ), (
            path.name,
            log.not_understood,
        )
    assert read >= 25


def test_known_facts_of_the_replies(shared_dir: Path) -> None:
    root = shared_dir / "catalog" / "replies"
    log = FetchLog()
    machines = _aws_types(_body(root / "aws_ec2_describe_instance_types" / "g_family_fractional.json"), log)
    shares = {row["accelerator_count"] for row in machines if row["family"] == "g6f"}
    assert shares and shares <= {"0.125", "0.25", "0.5"}
    (block,) = _aws_blocks(_body(root / "aws_ec2_capacity/block_offering_one.json"), log)
    assert block["price_per_hour"] == "33.12"
    quotas = _aws_quotas(_body(root / "aws_service_quotas/list_page_1.json"), log)
    assert not any("." in row["quota"] for row in quotas)
    prices = _azure_prices(_body(root / "azure_retail_prices/ncc40_srs_win_2026-07.json"), log)
    assert {(p.option, str(p.per_hour)) for p in prices} == {("on_demand", "6.98"), ("spot", "1.419034")}
    skus = _gcp_skus(_body(root / "gcp_billing_skus/mixed_2020.json"), log)
    assert len(skus) == 11 and any(sku.price is None for sku in skus)
    machines = _gcp_machines(_body(root / "gcp_compute/machine_types_quoted_2026.json"), log)
    found = {row["instance_type"]: (row["accelerator_count"], row["local_nvme_gib"]) for row in machines}
    assert found["g4-standard-6"] == ("0.125", "") and found["a4x-maxgpu-4g-metal"] == ("4", "12000")
    assert found["ct5lp-hightpu-4t"][0] == "4"


def test_the_quoted_skus_price_what_their_words_say(shared_dir: Path) -> None:
    body = _body(shared_dir / "catalog" / "replies" / "gcp_billing_skus" / "page_made_from_quotes.json")
    book = build_rate_book(parse_skus(body))
    assert book.rate("gpu", "nvidia-b200", "spot", "us-central1") == Decimal("4.9542")
    assert book.rate("gpu", "nvidia-rtx-pro-6000 1/8", "on_demand", "us-central1") == Decimal("0.64688")
    assert book.rate("gpu", "nvidia-h100-mega-80gb", "flex_start", "us-central1") == Decimal("4.423936")
    assert not any(key[0] == "gpu" and price <= 0 for key, price in book.rates.items())


KINDS = {
    "throttle": "rate_limited",
    "throttle_day": "rate_limited",
    "no_permission": "permission_denied",
    "api_off": "permission_denied",
    "expired_token": "credentials_missing",
    "wrong_key": "credentials_missing",
}


def test_every_alibaba_refusal_is_of_its_row_region_or_account(shared_dir: Path) -> None:
    from tests.fakes.alibaba import SdkLikeError

    rows = json.loads((shared_dir / "catalog/replies/errors/alibaba.json").read_bytes())
    place = {"provider": "alibaba", "region": "cn-beijing", "api": "ecs:DescribePrice"}
    of_the_row = {"no_stock", "invalid_disk", "not_sold", "invalid_type", "no_price"}
    for row in rows:
        fault = alibaba.explain(SdkLikeError(row["code"], row["status"], "secret"), place, 1)
        assert fault is not None
        if row["kind"] in of_the_row:
            assert "not sold here" in fault.message, row["code"]
        else:
            assert fault.kind == KINDS.get(row["kind"], "failed"), row["code"]


def test_every_aws_refusal_says_what_it_is(shared_dir: Path) -> None:
    from botocore.exceptions import ClientError

    from catalogs.providers.aws_client import mapped
    from catalogs.providers.base import ProviderError

    kinds = {**KINDS, "region_disabled": "failed", "not_there": "not_sold", "bad_request": "schema_changed"}
    for row in json.loads((shared_dir / "catalog/replies/errors/aws.json").read_bytes()):
        answer = {"Error": {"Code": row["code"]}, "ResponseMetadata": {"HTTPStatusCode": row["status"]}}
        with pytest.raises(ProviderError) as caught, mapped("ec2:DescribeInstanceTypes", "ap-east-1"):
            raise ClientError(answer, "DescribeInstanceTypes")  # type: ignore[arg-type]
        assert caught.value.kind == kinds[row["kind"]], row["code"]


def test_prices_collected_by_others_have_none_at_zero(shared_dir: Path) -> None:
    """A list of DescribePrice answers: a type at 0 is refused by name, the others are prices in CNY."""
    listed = json.loads(
        (shared_dir / "catalog/replies/alibaba_ecs/on_demand_gpu_prices_karpenter.json").read_bytes()
    )
    refused = []
    for region, prices in listed.items():
        reader = RowReader("price", FetchLog())

        def one(item: tuple[str, Any], region: str = region) -> Rows:
            answer = {"PriceInfo": {"Price": {"Currency": "CNY", "OriginalPrice": item[1]}}}
            return alibaba_rows.parse_price(answer, region, item[0], (), AS_OF)

        reader.read(prices.items(), one, lambda item: item[0])
        refused += [note.name for note in reader.log.not_understood]
    assert {name.rpartition("/")[2] for name in refused} == {
        "ecs.ebmgn7ix.32xlarge",
        "ecs.vgn6i-m16-vws.5xlarge",
    }


def test_the_quotes_are_read_with_their_text(shared_dir: Path) -> None:
    """Every quoted SKU that names an accelerator is priced, known as another product, or noted with a reason."""
    path = shared_dir / "catalog/replies/gcp_billing_skus/sku_quotes_2025_2026.csv"
    with path.open(encoding="utf-8", newline="") as file:
        words = {row["description"] for row in csv.DictReader(file) if row["resource_group"] == "GPU"}
    body = _body(path.parent / "page_made_from_quotes.json")
    book = build_rate_book([sku for sku in parse_skus(body) if sku.description in words])
    assert {note.reason for note in book.notes} <= {"its price is zero", "its price is tiered or absent"}
