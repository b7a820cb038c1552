"""Measured rates of decoding and loading samples, by what they are."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from planner.bundled import bundled_rows
from planner.inputs.resolved import Assumed
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.training_schema import Data


@record(frozen=True)
class LoadingRate:
    """One rate; `value` None where none is known."""

    value: float | None
    unit: str
    confidence: str
    source: str
    as_of: str
    note: str


@cache
def loading_rates() -> dict[str, LoadingRate]:
    """The rates by key: `image_cpu`, `audio_cpu`, `video_cpu` per core, `image_gpu`, `image_decoded`."""
    return {
        row["key"]: LoadingRate(
            float(row["value"]) if row["value"] else None, row["unit"], row["confidence"], row["source"],
            row["as_of"], row["note"],
        )
        for row in bundled_rows("loading.csv")
    }  # fmt: skip


def decode_rate(data: Data, noted: list[Assumed]) -> float | None:
    """Samples a core decodes per second: as given, else measured for what the samples are; None: not in the speed."""
    stated_rate = data.decode_samples_per_s_per_core
    if stated_rate is not None or data.encoded is None:
        return stated_rate
    rate = loading_rates()[f"{data.encoded}_cpu"]
    key, unit = "data.decode_samples_per_s_per_core", "samples/s per core"
    if rate.value is None:
        note = f"no measured rate of decoding {data.encoded}: it is not in the speed; measure yours"
        noted.append(Assumed(key, "unknown", unit, "default", note))
        return None
    noted.append(
        Assumed(key, f"{rate.value:g}", unit, "default", f"{rate.note} ({rate.source}, {rate.as_of})")
    )
    return rate.value
