"""The same run on what people own or rent by the seat: one card in a workstation, a notebook service, CPUs alone.

hours = accelerator-hours of the plan x peak of its accelerator / peak of the card (at the same share of the peak);
those of the plan are at work, without start, checkpoints and stops
CPUs  = hours on one A100 x 10 to 120 (published ratios of an A100 to a 28-core server)
"""

from __future__ import annotations

import math
from functools import cache

from catalogs.tables.accelerators import load_accelerators
from planner.bundled import bundled_rows
from planner.records import record

A100 = "a100-40gb-sxm"
CPU_SLOWER = (10.0, 120.0)  # rules R43 (10 to 100 x) and R47 (30 days to 6 h)
_USABLE = 0.95  # of a card's memory


@record(frozen=True)
class Seat:
    """One place to run outside the catalog; prices None: not known.

    Attributes:
        accelerator: canonical id, empty for CPUs.
        usd_low, usd_high: price of the card; usd_per_hour: rent.
        condition: what the price is of, or why there is none.
    """

    name: str
    accelerator: str
    usd_low: float | None
    usd_high: float | None
    usd_per_hour: float | None
    condition: str
    source: str
    as_of: str


@record(frozen=True)
class Alternative:
    """The run on a seat.

    Attributes:
        hours_low, hours_high: of the run; None where a peak is not known, or it does not fit.
        usd_low, usd_high: to pay: the card, or the rent of the hours; None: unknown.
        fits: `yes`, `no` with what is missing, or nothing where it is not known.
        said: what the price is of.
    """

    name: str
    hours_low: float | None
    hours_high: float | None
    usd_low: float | None
    usd_high: float | None
    fits: str
    said: str
    source: str
    as_of: str


@cache
def load_seats() -> tuple[Seat, ...]:
    """All seats, in the order of the file."""

    def number(text: str) -> float | None:
        return float(text) if text else None

    return tuple(
        Seat(
            row["name"], row["accelerator"], number(row["usd_low"]), number(row["usd_high"]),
            number(row["usd_per_hour"]), row["condition"], row["source"], row["as_of"],
        )
        for row in bundled_rows("workstations.csv")
    )  # fmt: skip


def peak_tflops(accelerator: str) -> float | None:
    """Dense half-precision peak; None unknown."""
    table = load_accelerators()
    found = [at for at, name in enumerate(table["accelerator"]) if str(name) == accelerator]
    if not found:
        return None
    peaks = (float(table[name][found[0]]) for name in ("bf16_tflops", "fp16_tflops"))
    return next((peak for peak in peaks if not math.isnan(peak)), None)


def memory_gib(accelerator: str) -> float | None:
    """Nominal memory; None unknown."""
    table = load_accelerators()
    found = [at for at, name in enumerate(table["accelerator"]) if str(name) == accelerator]
    return float(table["memory_gib"][found[0]]) if found else None


def with_memory(least_gib: float) -> tuple[str, ...]:
    """Accelerators with at least so much memory each."""
    table = load_accelerators()
    pairs = zip(table["accelerator"], table["memory_gib"], strict=True)
    return tuple(str(name) for name, gib in pairs if float(gib) >= least_gib)


def alternatives_to(
    accelerator: str, accelerator_hours: float, needed_gib: float | None
) -> tuple[Alternative, ...]:
    """The run on every seat.

    Args:
        accelerator: of the plan.
        accelerator_hours: of the plan.
        needed_gib: memory of one accelerator that the plan's layout needs; None unknown.
    """
    return tuple(_on(seat, accelerator, accelerator_hours, needed_gib) for seat in load_seats())


def _on(seat: Seat, accelerator: str, accelerator_hours: float, needed_gib: float | None) -> Alternative:
    own, other = peak_tflops(accelerator), peak_tflops(seat.accelerator or A100)
    hours = None if own is None or other is None else accelerator_hours * own / other
    if not seat.accelerator:
        low, high = (None, None) if hours is None else (hours * CPU_SLOWER[0], hours * CPU_SLOWER[1])
        said = f"28 cores; {seat.condition}"
        return Alternative(seat.name, low, high, None, None, "", said, "rules R43 and R47", "2026-11")
    rent = None if seat.usd_per_hour is None or hours is None else seat.usd_per_hour * hours
    low, high = (seat.usd_low, seat.usd_high) if rent is None else (rent, rent)
    fits = _fits(seat.accelerator, needed_gib)
    return Alternative(seat.name, hours, hours, low, high, fits, seat.condition, seat.source, seat.as_of)


def _fits(accelerator: str, needed_gib: float | None) -> str:
    room = memory_gib(accelerator)
    if needed_gib is None or room is None:
        return ""
    if needed_gib <= room * _USABLE:
        return "yes"
    return f"no: {needed_gib:.3g} of {room * _USABLE:.3g} GiB"
