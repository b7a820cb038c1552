"""Service quotas of EC2: how many vCPUs of each family the account may run, on demand and as spot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from catalogs.normalize import decimal_text
from catalogs.providers.aws_rows import PROVIDER, Row, field, listed

API = "service-quotas:ListServiceQuotas"
SERVICE = "ec2"
COLUMNS = ("provider", "region", "quota", "code", "unit", "limit")
# Quotas of whole families; EC2 counts them in vCPUs although it states no unit.
_FAMILY_QUOTA = re.compile(r"^(?:Running On-Demand .+ instances|All .+ Spot Instance Requests)$")


def parse_quotas(payload: Mapping[str, Any], region: str) -> list[Row]:
    """Family quotas of a ListServiceQuotas answer.

    Raises:
        SchemaChanged: naming the required field that is missing.
    """
    rows = []
    for item in listed(payload, "Quotas", API, region):
        name = field(item, "QuotaName", API, region)
        if _FAMILY_QUOTA.match(name):
            limit = decimal_text(Decimal(str(field(item, "Value", API, region))))
            code = field(item, "QuotaCode", API, region)
            cells = (PROVIDER, region, name, code, "vCPU", limit)
            rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows
