"""A checked statement of a signed catalog as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.render.model import Answer, Column, table_section, versioned

if TYPE_CHECKING:
    from catalogs.store.statement import Statement


def statement_answer(statement: Statement) -> Answer:
    """What was signed, by which key, and until when it holds."""
    columns = (
        Column("provider", "provider", "text"), Column("n_offers", "offers", "count"),
        Column("newest_as_of", "newest price", "date"), Column("sha256", "sha256", "text"),
    )  # fmt: skip
    providers = sorted(statement.providers.items())
    rows = [
        (name, stated["n_offers"], stated["newest_as_of"], stated["sha256"]) for name, stated in providers
    ]
    said = (
        f"signed by key {statement.key_id} on {statement.signed_at:%Y-%m-%d %H:%M} UTC, "
        f"holds until {statement.expires_at:%Y-%m-%d %H:%M} UTC"
    )
    keys = ("provider", "n_offers", "newest_as_of", "sha256")
    flat = [dict(zip(keys, row, strict=True)) for row in rows]
    values = {
        "key_id": statement.key_id,
        "signed_at": statement.signed_at.isoformat(),
        "expires_at": statement.expires_at.isoformat(),
        "providers": flat,
    }
    section = table_section("signed", "Signed snapshots", columns, rows)
    return Answer("Signed catalog", f"The catalog is {said}", (), (section,), versioned(values), keys, flat)
