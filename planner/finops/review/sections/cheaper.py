"""Which uses of the month would have been cheaper elsewhere: the same SKU in another region, or as spot."""

from __future__ import annotations

from typing import Any

SKU = ["provider", "service", "sku_id", "pricing_unit"]
CHEAPER_RATIO = 0.02  # a region that is cheaper by less is not worth a move


def cheaper_uses(frame: Any) -> Any:
    """Uses at standard price that this bill knows a cheaper price for.

    Args:
        frame: rows of the KPI `price_volume`.

    Returns:
        One row per SKU, region and kind: `kind` (`move_region`: the SKU's cheapest region; `switch_option`: spot in the
        same region), the columns of `SKU` as text, `region` and `to`, `price` and `there` (money per pricing unit, here
        and there) and `saves` (money of the month).
    """
    import pandas as pd

    own = frame[(frame["charge_kind"] == "use") & (frame["quantity"] > 0)].dropna(subset=SKU)
    uses = own[SKU].astype(str)
    uses["region"] = own["region_id"].astype(object).where(own["region_id"].notna(), "").astype(str)
    uses["price"] = own["effective_cost"].astype(float) / own["quantity"].astype(float)
    uses["quantity"] = own["quantity"].astype(float)
    option = own["pricing_category"].fillna("Standard")
    plain = uses[(option == "Standard") & (uses["region"] != "") & (uses["price"] > 0)]
    spot = uses.loc[option == "Dynamic", [*SKU, "region", "price"]].rename(columns={"price": "there"})
    made = pd.concat([_moves(plain), _switches(plain, spot)], ignore_index=True)
    made["saves"] = made["quantity"] * (made["price"] - made["there"])
    return made


def _moves(plain: Any) -> Any:
    """Uses in a region that is dearer than the SKU's cheapest."""
    best = plain.loc[plain.groupby(SKU, sort=False)["price"].idxmin(), [*SKU, "region", "price"]]
    best = best.rename(columns={"region": "to", "price": "there"})
    both = plain.merge(best, on=SKU)
    return both[both["there"] < both["price"] * (1 - CHEAPER_RATIO)].assign(kind="move_region")


def _switches(plain: Any, spot: Any) -> Any:
    """Uses in a region where spot costs less."""
    both = plain.merge(spot, on=[*SKU, "region"])
    is_cheaper = (both["there"] > 0) & (both["there"] < both["price"])
    return both[is_cheaper].assign(kind="switch_option", to=both["region"])
