"""Service quotas of EC2: how many vCPUs of each family the account may run, on demand and as spot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from catalogs.providers.aws_rows import PROVIDER, Row, field, listed
from catalogs.providers.row_reader import RowReader, read_rows
from catalogs.tables.normalize import decimal_text

API = "service-quotas:ListServiceQuotas"
SERVICE = "ec2"
COLUMNS = ("provider", "region", "quota", "code", "unit", "limit")
# Quotas of whole families; EC2 counts them in vCPUs although it states no unit.
# Old quotas of one type ("Running On-Demand c3.large instances") count machines and are left out.
_FAMILY_QUOTA = re.compile(r"^(?:Running On-Demand [^.]+ instances|All [^.]+ Spot Instance Requests)$")


def parse_quotas(payload: Mapping[str, Any], region: str, reader: RowReader | None = None) -> list[Row]:
    """Family quotas of a ListServiceQuotas answer.

    Args:
        payload: the answer.
        region: region asked.
        reader: is told of quotas that cannot be read; without it the first one is an error.

    Raises:
        SchemaChanged: naming the required field that is missing.
    """

    def quota(item: Mapping[str, Any]) -> Row | None:
        name = field(item, "QuotaName", API, region)
        if not _FAMILY_QUOTA.match(name):
            return None
        limit = decimal_text(Decimal(str(field(item, "Value", API, region))))
        code = field(item, "QuotaCode", API, region)
        return dict(zip(COLUMNS, (PROVIDER, region, name, code, "vCPU", limit), strict=True))

    items = listed(payload, "Quotas", API, region)
    rows = read_rows(reader, items, quota, lambda item: item.get("QuotaName") or item["QuotaCode"])
    return [row for row in rows if row is not None]
