"""Images per second of vision networks on measured rows: the planner's rate, and the fit of what they move.

python -m benchmarks.items --data measured.csv

Rows are those of the class `vision` from timm: each states its network, multiply-adds and activations. The fit is of
`items.passes.*` by class, in log and robust; each card is left out once to see what the form is worth on another.
ResNet-50 in 8 bit on the cards of MLPerf Inference says what its engines move there (`items.eight_bit_passes.cnn`).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.accelerators import find_device, load_devices
from benchmarks.rows import number, read_csv
from catalogs.tables.table import Floats
from planner.inputs.presets import load_presets
from planner.performance.constants import load_constants
from planner.records import record

_VIT = re.compile("vit|swin|beit|deit|xcit|eva|cait|mixer")
_CARDS = {"RTX-PRO-6000-MaxQ": "RTX PRO 6000"}  # the table's card, of which it is a variant


@record(frozen=True)
class Row:
    """A measured row: class of network, card, FLOPs and activations of an image, rates of the card, images/s."""

    kind: str
    card: str
    flops: float
    activations: float
    peak: float
    memory_rate: float
    images_per_s: float


def load_rows(path: Path) -> list[Row]:
    """Rows of timm on cards of the planner's table."""
    devices, rows = load_devices(), []
    for line in read_csv(path):
        stated = re.search(r"GMACs=([\d.]+), Mact=([\d.]+)", line["note"])
        card = line["accelerator"]
        device = find_device(devices, _CARDS.get(card, card))
        rate = number(line, "requests_or_items_per_s")
        if line["id"].startswith("timm/") and stated and device and rate:
            kind = "vit" if _VIT.search(line["model"]) else "cnn"
            macs, activations = (float(word) for word in stated.groups())
            rows.append(Row(
                kind, card, 2e9 * macs, 1e6 * activations, float(device["fp16_tflops"]) * 1e12,
                float(device["memory_gb_per_s"]) * 1e9, rate,
            ))  # fmt: skip
    return rows


def load_eight_bit(path: Path, peak_ratio: float) -> list[Row]:
    """Offline rows of MLPerf's ResNet-50 in 8 bit, per card, on cards of the planner's table."""
    devices, rows, network = load_devices(), [], load_presets()["resnet-50"].values
    for line in read_csv(path):
        device, rate = find_device(devices, line["accelerator"]), number(line, "requests_or_items_per_s")
        asked = (
            line["model"] == "ResNet-50" and line["scenario"] == "offline" and "mlcommons" in line["source"]
        )
        if asked and line["precision"] in ("int8", "fp8") and device and rate:
            flops, activations = (
                float(network[f"{name}_per_sample"]) for name in ("forward_flops", "activations")
            )
            rows.append(Row(
                "cnn", line["accelerator"], flops, activations, peak_ratio * float(device["fp16_tflops"]) * 1e12,
                float(device["memory_gb_per_s"]) * 1e9, rate / (number(line, "accelerators") or 1.0),
            ))  # fmt: skip
    return rows


def factors(rows: Sequence[Row], passes: float, share: float) -> Floats:
    """Predicted over measured images per second."""
    seconds = [r.flops / (share * r.peak) + passes * 2.0 * r.activations / r.memory_rate for r in rows]
    result: Floats = 1.0 / (np.asarray(seconds) * np.asarray([r.images_per_s for r in rows]))
    return result


def fit(rows: Sequence[Row], share: float) -> float:
    """The passes with the least mean absolute error in log, from a grid of 0.5 per cent."""
    grid = np.exp(np.arange(np.log(0.1), np.log(30.0), 0.005))
    errors = [float(np.mean(np.abs(np.log(factors(rows, each, share))))) for each in grid]
    return float(grid[int(np.argmin(errors))])


def _line(name: str, found: Floats) -> str:
    off = np.abs(np.log(found))
    median, ninety, worst = np.exp([np.median(off), np.quantile(off, 0.9), np.max(off)])
    return (
        f"{name:28} {len(found):4} rows  predicted/measured {np.median(found):.2f}  "
        f"factor off: median {median:.2f}, p90 {ninety:.2f}, worst {worst:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    path = parser.parse_args().data
    rows = load_rows(path)
    c = load_constants()
    share = c["items.compute_ratio"]
    for kind in ("cnn", "vit"):
        of_kind = [row for row in rows if row.kind == kind]
        print(_line(kind, factors(of_kind, c[f"items.passes.{kind}"], share)))
        print(f"  fitted to these rows: {fit(of_kind, share):.2f} passes")
        for card in sorted({row.card for row in of_kind}):
            others = fit([row for row in of_kind if row.card != card], share)
            left = [row for row in of_kind if row.card == card]
            print("  " + _line(f"left out: {card}", factors(left, others, share)))
    eight = load_eight_bit(path, c["items.int8_peak_ratio"])
    print(_line("ResNet-50 in 8 bit", factors(eight, c["items.eight_bit_passes.cnn"] / 2.0, share)))
    print(f"  fitted to these rows: {2.0 * fit(eight, share):.2f} passes of one byte")


if __name__ == "__main__":
    main()
