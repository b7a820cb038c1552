"""What people call what was bought: the bill's own words for a SKU, never its bare id where the bill has a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.finops.review.parts import text


def product_name(product: object, instance_type: object, otherwise: object) -> str:
    """`GPU, p5.48xlarge`: the product with the machine it is of, or the id where the bill has no words for it.

    Args:
        product: the first of SkuMeter, ChargeDescription and InstanceType that the bill states.
        instance_type: machine type, where it is known.
        otherwise: what stands in where there is no name, such as the SKU's id.
    """
    name, machine = text(product).strip(), text(instance_type).strip()
    if not name:
        return machine or text(otherwise)
    return f"{name}, {machine}" if machine and machine.lower() not in name.lower() else name


def product_names(frame: Any, rows: Sequence[int]) -> list[str]:
    """Names of some rows; SKUs of one service that share a name are told apart by their ids behind it.

    Args:
        frame: rows of the KPI `price_volume`, numbered from 0.
        rows: numbers of those to name.
    """
    own = frame.iloc[list(rows)]
    names = [
        product_name(row.product, row.instance_type, text(row.sku_id, text(row.charge_kind)))
        for row in own.itertuples()
    ]
    keys = ["provider", "service", "product", "instance_type"]
    alike = frame.loc[frame["product"].isin(own["product"].dropna()), [*keys, "sku_id"]]
    counts = alike.groupby(keys, dropna=False)["sku_id"].nunique()
    shared = {tuple(map(text, key)) for key in counts.index[counts > 1]}
    return [
        f"{name} ({text(row.sku_id)})" if tuple(text(getattr(row, key)) for key in keys) in shared else name
        for name, row in zip(names, own.itertuples(), strict=True)
    ]
