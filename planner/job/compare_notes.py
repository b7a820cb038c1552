"""What is said of single rows below a comparison: terms that are owed, speeds, limits that are broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalogs.tariffs import load_tariffs
from planner.plan.report_storage import KINDS as STORAGE_KINDS
from planner.render.numbers import usd
from planner.render.precision import with_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.job.compare import Row

_MISSES = {
    "deadline": "too late", "unrecorded": "spot alone without recorded availability, which cannot guarantee a deadline",
    "confidence": "too unsure to be in time", "budget": "over budget", "throughput": "too slow",
    "no_discount": "spot without a discount",
}  # fmt: skip
_YEAR_HOURS = 8760  # least term of what `planner commit` weighs


def owed_notes(rows: Sequence[Row]) -> list[str]:
    """Rows whose plan is bought for a term that is owed used or not: those of years, then shorter ones."""
    tariffs = load_tariffs()
    years: list[str] = []
    shorter: list[str] = []
    for row in rows:
        best = row.best
        bought = [] if best is None else best.parts or [best]
        rules = [
            tariffs.option_rule(best.provider, part.purchase_option, part.option_variant)
            for part in bought
            if best is not None and part.option_variant != "already_owned"
        ]
        owed = [rule.min_term_hours for rule in rules if rule.whole_term]
        if owed:
            (years if max(owed) >= _YEAR_HOURS else shorter).append(row.name)
    said = "the whole term, owed in full"
    return [
        *([f"{', '.join(years)}: {said}; planner commit weighs one for all your work"] if years else []),
        *([f"{', '.join(shorter)}: {said}"] if shorter else []),
    ]


def _data_note(row: Row) -> str:
    """Where the data are and what storage costs; empty where there are none."""
    if row.data_in is None or row.storage_usd is None:
        return ""
    return f", data in {STORAGE_KINDS[row.data_in]} (storage {usd(row.storage_usd)})"


def speed_note(row: Row) -> str:
    """Speed, memory and age of the prices of a row."""
    speed, best = row.performance, row.best
    assert speed is not None and best is not None
    low, high = speed.throughput_low_per_s, speed.throughput_high_per_s
    memory = ""
    if speed.memory_needed_gib is not None and speed.memory_available_gib is not None:
        memory = f", {speed.memory_needed_gib:.0f} of {speed.memory_available_gib:.0f} GiB"
    return (
        f"{row.name}: {with_interval(speed.throughput_per_s, low, high, f'{speed.unit}/s')}{memory}, prices of "
        f"{best.price_as_of}{_data_note(row)}"
    )


def miss_note(rows: Sequence[Row]) -> str:
    """Which limits rows with a star break."""
    missed = dict.fromkeys(_MISSES[key] for row in rows for key in row.misses)
    return f"* breaks a limit ({'; '.join(missed)}): no plan of that row meets all of them"
