"""What people call what was bought: the bill's own words for a SKU, never its bare id where the bill has a name."""

from __future__ import annotations

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


def thing_name(row: Any) -> str:
    """The name of a thing; SKUs of one service that share a name are told apart by their ids behind it.

    Args:
        row: has `product`, `instance_type`, `sku_id`, `charge_kind` and `skus_of_name`, how many SKUs go by the name.
    """
    sku = text(row.sku_id)
    name = product_name(row.product, row.instance_type, sku or text(row.charge_kind))
    return f"{name} ({sku})" if row.skus_of_name > 1 else name
