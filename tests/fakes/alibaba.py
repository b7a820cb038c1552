"""Alibaba Cloud's ECS interface on loopback: one URL, the call in `Action`, answers in the API's JSON shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from catalogs.providers.base import FetchOptions
from tests.fakes.http_base import FakeServer, Reply, Request

REGIONS = ("cn-beijing", "cn-hangzhou")
PER_PAGE = 2


def machine(name: str, **fields: Any) -> dict[str, Any]:
    """One entry of DescribeInstanceTypes."""
    return {
        "InstanceTypeId": name,
        "InstanceTypeFamily": ".".join(name.split(".")[:2]).split("-")[0],
        "CpuCoreCount": 16,
        "MemorySize": 62.0,
        "GPUAmount": 1,
        "GPUSpec": "NVIDIA T4",
        "GPUMemorySize": 16.0,
        "InstanceBandwidthTx": 6000000,
        "LocalStorageAmount": 0,
        "LocalStorageCapacity": 0,
        "EriQuantity": 0,
        "CpuArchitecture": "X86",
        "NvmeSupport": "unsupported",
        **fields,
    }


MACHINES = [
    machine("ecs.gn6i-c16g1.4xlarge"),
    machine(
        "ecs.gn7e-c16g1.32xlarge", GPUAmount=8, GPUSpec="NVIDIA A100", GPUMemorySize=80.0, CpuCoreCount=128
    ),
    machine("ecs.gn9x-new.8xlarge", GPUAmount=2, GPUSpec="NVIDIA L20", GPUMemorySize=48.0, EriQuantity=2),
    machine("ecs.gn8v-8x.48xlarge", GPUAmount=8, GPUSpec="H 96GB", GPUMemorySize=96.0),
    machine("ecs.gn7-unsold.3xlarge", GPUSpec="NVIDIA A10", GPUMemorySize=24.0),
]
ON_DEMAND = {
    "ecs.gn6i-c16g1.4xlarge": 13.26,
    "ecs.gn7e-c16g1.32xlarge": 236.9,
    "ecs.gn9x-new.8xlarge": 40.5,
    "ecs.gn8v-8x.48xlarge": 500.0,
}
PLAIN = machine("ecs.g7.large", GPUAmount=0, GPUSpec="", GPUMemorySize=0)


def routes() -> dict[str, Any]:
    """Handlers by action."""
    return {
        "DescribeRegions": _regions,
        "DescribeInstanceTypes": _types,
        "DescribeAvailableResource": _stock,
        "DescribePrice": _price,
        "DescribeSpotPriceHistory": _spot,
        "DescribeAccountAttributes": _attributes,
    }


def _regions(request: Request) -> Any:
    found = [{"RegionId": name, "LocalName": name, "Status": "available"} for name in REGIONS]
    return {"RequestId": "1", "Regions": {"Region": found}}


def _types(request: Request) -> Any:
    listed = MACHINES if request.param("MinimumGPUAmount") else [PLAIN, *MACHINES]
    at = int(request.param("NextToken") or 0)
    end = at + PER_PAGE
    token = {"NextToken": str(end)} if end < len(listed) else {"NextToken": ""}
    return {"RequestId": "1", "InstanceTypes": {"InstanceType": listed[at:end]}, **token}


def _stock(request: Request) -> Any:
    region = request.param("RegionId")
    values = [{"Value": name, "Status": "Available"} for name in ON_DEMAND]
    values.append({"Value": "ecs.gn7-unsold.3xlarge", "Status": "SoldOut"})
    resources = {
        "AvailableResource": [{"Type": "InstanceType", "SupportedResources": {"SupportedResource": values}}]
    }
    zones = [
        {
            "RegionId": region,
            "ZoneId": f"{region}-{letter}",
            "Status": "Available",
            "StatusCategory": "WithStock" if letter != "z" else "WithoutStock",
            "AvailableResources": resources,
        }
        for letter in "abz"
    ]
    return {"RequestId": "1", "AvailableZones": {"AvailableZone": zones}}


def _price(request: Request) -> Any:
    name = request.param("InstanceType")
    if name == "ecs.gn9x-new.8xlarge" and request.param("RegionId") == "cn-beijing":
        return Reply({"Code": "InvalidInstanceType.ValueNotSupported", "Message": "no"}, 403 - 3)
    amount = ON_DEMAND[name] * {"Hour": 1, "Month": 720 * 0.7, "Year": 8760 * 0.6}[request.param("PriceUnit")]
    detail = [
        {"Resource": "instanceType", "OriginalPrice": amount, "TradePrice": amount * 0.9},
        {"Resource": "systemDisk", "OriginalPrice": 0.084, "TradePrice": 0.084},
    ]
    price = {
        "Currency": "CNY",
        "OriginalPrice": amount + 0.084,
        "TradePrice": amount * 0.9,
        "DiscountPrice": amount * 0.1,
        "DetailInfos": {"DetailInfo": detail},
    }
    return {"RequestId": "1", "PriceInfo": {"Price": price, "Rules": {"Rule": []}}}


def _spot(request: Request) -> Any:
    name, region = request.param("InstanceType"), request.param("RegionId")
    now = datetime.now(UTC)
    at = int(request.param("Offset") or 0)
    rows = [
        {
            "ZoneId": f"{region}-{zone}",
            "InstanceType": name,
            "NetworkType": "vpc",
            "IoOptimized": "optimized",
            "OriginPrice": ON_DEMAND[name],
            "SpotPrice": round(ON_DEMAND[name] * share, 4),
            "Timestamp": f"{now - timedelta(hours=hours):%Y-%m-%dT%H:00:00Z}",
        }
        for zone in "ab"
        for hours, share in ((0, 0.3), (1, 0.4), (2, 0.5))
    ]
    end = at + 4
    more = {"NextOffset": end} if end < len(rows) else {"NextOffset": 0}
    return {"RequestId": "1", "Currency": "CNY", "SpotPrices": {"SpotPriceType": rows[at:end]}, **more}


def _attributes(request: Request) -> Any:
    def item(name: str, value: str) -> dict[str, Any]:
        values = {"ValueItem": [{"Value": value, "InstanceChargeType": "PostPaid"}]}
        return {"AttributeName": name, "AttributeValues": values}

    items = [item("max-postpaid-instance-vcpu-count", "1000"), item("max-spot-instance-vcpu-count", "0")]
    return {"RequestId": "1", "AccountAttributeItems": {"AccountAttributeItem": items}}


def error_reply(kind: str, request: Request) -> Reply | None:
    """Errors in the API's own shape."""
    said = {
        "throttle_then_ok": ("Throttling.User", 400),
        "throttle_forever": ("Throttling.User", 400),
        "http_500_once": ("InternalError", 500),
        "http_500_forever": ("InternalError", 500),
        "expired_credentials": ("InvalidSecurityToken.Expired", 400),
        "access_denied": ("Forbidden.RAM", 403),
    }
    if kind not in said:
        return None
    code, status = said[kind]
    return Reply({"RequestId": "1", "Code": code, "Message": "LTAIsecretKeyIdOfTheUser refused"}, status)


def server(faults: str | Mapping[str, str] | None = None, **more: Any) -> FakeServer:
    """The fake; faults by action."""
    return FakeServer(routes(), faults, error_reply=error_reply, **more)


class SdkLikeError(Exception):
    """An exception with the attributes of the SDK's: `code`, `statusCode`; its text holds request data."""

    def __init__(self, code: str, status: int, text: str) -> None:
        self.code = code
        self.statusCode = status
        super().__init__(f"Error: {code} {text} Response: everything that was sent")


class HttpClient:
    """Does over plain HTTP what the SDK's client does, without signatures."""

    def __init__(self, url: str, options: FetchOptions) -> None:
        self.url = url
        self.options = options

    def call(self, action: str, parameters: Mapping[str, Any]) -> Any:
        """Call an action; lists become `Name.1`, maps `Name.Part`, as in the SDK."""
        query: dict[str, Any] = {"Action": action}
        for name, value in parameters.items():
            if isinstance(value, dict):
                query.update({f"{name}.{part}": one for part, one in value.items()})
            elif isinstance(value, list):
                query.update({f"{name}.{at}": one for at, one in enumerate(value, 1)})
            else:
                query[name] = value
        with requests.Session() as session:
            answer = session.get(
                self.url, params=query, timeout=self.options.timeout_s, allow_redirects=False
            )
        if answer.status_code >= 300:
            body = answer.json()
            body = body if isinstance(body, dict) else {}
            raise SdkLikeError(body.get("Code", ""), answer.status_code, body.get("Message", ""))
        return json.loads(answer.content)
