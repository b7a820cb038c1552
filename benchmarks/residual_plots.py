"""Residual plots of the performance model as small SVG files, one per part of the model.

`python -m benchmarks.residual_plots [--data FILE] [--group-folds K] [--out docs/performance]`. Each plot shows, per
value of one property, how predicted over measured throughput spreads: thin bar from the 10th to the 90th percentile,
thick bar the middle half, white line the median, below it the number of rows. A part that is modelled well lies on 1
at every value.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from benchmarks.measured import Case
from benchmarks.throughput import Scored, score_file
from catalogs.tables.table import Floats

LEAST_ROWS = 5
STEP, HEIGHT, LEFT, TOP, BOTTOM = 54, 200, 46, 34, 58
# The axis: predicted over measured, both ways by the same factor.
LIMIT = 2.5
GRID = (0.4, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5)


@dataclass(frozen=True)
class Plot:
    """One plot: file name, title and the property of a case that it is drawn over (None leaves the case out)."""

    name: str
    title: str
    key: Callable[[Case], tuple[float, str] | None]


def _layout(case: Case, name: str) -> float:
    return float((case.layout or {}).get(name, 1) or 1)


def _size(value: float) -> tuple[float, str]:
    """A power-of-two bin: its order and its label."""
    exponent = math.floor(math.log2(max(value, 1e-9)))
    return float(exponent), f"{2**exponent:g}" if exponent < 10 else f"{2 ** (exponent - 10):g}k"


def _word(text: str) -> tuple[float, str]:
    return 0.0, text


def _tokens(case: Case) -> float:
    return _layout(case, "micro_batch") * case.training.sequence_length / _layout(case, "cp")


def _transformer(key: Callable[[Case], tuple[float, str]]) -> Callable[[Case], tuple[float, str] | None]:
    return lambda case: key(case) if case.kind == "transformer" else None


def _sampled(key: Callable[[Case], tuple[float, str]]) -> Callable[[Case], tuple[float, str] | None]:
    return lambda case: key(case) if case.kind != "transformer" else None


def _experts(case: Case) -> tuple[float, str] | None:
    return _size(case.model.experts) if case.kind == "transformer" and case.model.experts else None


PLOTS = (
    Plot("matmul-tokens", "Matmul shape: tokens per micro-batch", _transformer(lambda c: _size(_tokens(c)))),
    Plot("matmul-width", "Matmul shape: width over tensor parallel degree",
         _transformer(lambda c: _size((c.model.hidden or 1) / _layout(c, "tp")))),
    Plot("attention", "Attention: sequence length", _transformer(lambda c: _size(c.training.sequence_length))),
    Plot("attention-kernel", "Attention kernel and software stack",
         _transformer(lambda c: _word(f"{c.training.attention[:5]} {c.training.stack}"))),
    Plot("launch-floor", "Launch floor: micro-batch",
         _transformer(lambda c: _size(_layout(c, "micro_batch")))),
    Plot("recompute", "Recompute: none, selective, full",
         _transformer(lambda c: (float((c.layout or {}).get("recompute", 0)),
                                 ("none", "select", "full")[int((c.layout or {}).get("recompute", 0))]))),
    Plot("tensor-parallel", "Tensor parallel degree", _transformer(lambda c: _size(_layout(c, "tp")))),
    Plot("pipeline", "Pipeline stages", _transformer(lambda c: _size(_layout(c, "pp")))),
    Plot("experts", "Experts of the model", _experts),
    Plot("gradient-sync", "Accelerators", _transformer(lambda c: _size(c.accelerators))),
    Plot("zero", "ZeRO stage", _transformer(lambda c: (float((c.layout or {}).get("zero", 0)),
                                                       f"{(c.layout or {}).get('zero', 0):.0f}"))),
    Plot("generation", "Accelerator generation", _transformer(lambda c: _word(c.generation))),
    Plot("precision", "Precision", _transformer(lambda c: _word(c.training.precision))),
    Plot("publisher", "Publisher of the figures", _transformer(lambda c: _word(c.group))),
    Plot("vision-flops", "CNN, ViT: forward GFLOPs per sample",
         _sampled(lambda c: _size((c.model.forward_flops_per_sample or 1e9) / 1e9))),
    Plot("vision-generation", "CNN, ViT: accelerator generation", _sampled(lambda c: _word(c.generation))),
)  # fmt: skip


def bins(cases: Sequence[Case], ratio: Floats, plot: Plot) -> list[tuple[str, Floats]]:
    """Label and ratios of each value of the property, in order; values with few rows are left out."""
    found: dict[tuple[float, str], list[float]] = {}
    for case, value in zip(cases, ratio.tolist(), strict=True):
        key = plot.key(case)
        if key is not None:
            found.setdefault(key, []).append(value)
    return [(label, np.asarray(v)) for (_, label), v in sorted(found.items()) if len(v) >= LEAST_ROWS]


def _y(ratio: float) -> float:
    share = math.log(min(max(ratio, 1.0 / LIMIT), LIMIT)) / math.log(LIMIT)
    return TOP + HEIGHT / 2.0 * (1.0 - share)


def draw(plot: Plot, columns: Sequence[tuple[str, Floats]]) -> str:
    """The plot as SVG text."""
    width = LEFT + STEP * max(len(columns), 4) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + BOTTOM}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{TOP + HEIGHT + BOTTOM}" fill="#fff"/>',
        f'<text x="8" y="18" font-size="13">{escape(plot.title)}</text>',
    ]
    for tick in GRID:
        y = _y(tick)
        colour = "#555" if tick == 1.0 else "#ddd"
        lines.append(f'<path d="M{LEFT} {y:.1f}H{width - 8}" stroke="{colour}"/>')
        lines.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for number, (label, ratios) in enumerate(columns):
        x = LEFT + STEP * (number + 0.5)
        low, lower, middle, upper, high = (
            _y(float(q)) for q in np.quantile(ratios, (0.1, 0.25, 0.5, 0.75, 0.9))
        )
        lines.append(f'<path d="M{x} {low:.1f}V{high:.1f}" stroke="#4878a8" stroke-width="3"/>')
        lines.append(f'<path d="M{x} {lower + 1:.1f}V{upper - 1:.1f}" stroke="#4878a8" stroke-width="16"/>')
        lines.append(f'<path d="M{x - 8} {middle:.1f}h16" stroke="#fff" stroke-width="2"/>')
        lines.append(f'<text x="{x}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{len(ratios)}</text>')
        lines.append(
            f'<text x="{x}" y="{TOP + HEIGHT + 30}" text-anchor="end" font-size="10"'
            f' transform="rotate(-25 {x} {TOP + HEIGHT + 30})">{escape(label[:16])}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def write_plots(scored: Scored, out: Path) -> list[Path]:
    """Write all plots that have rows; returns their paths."""
    out.mkdir(parents=True, exist_ok=True)
    ratio = scored.predicted / scored.measured
    written = []
    for plot in PLOTS:
        columns = bins(scored.cases, ratio, plot)
        if columns:
            written.append(out / f"{plot.name}.svg")
            written[-1].write_text(draw(plot, columns), encoding="utf-8")
    return written


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the plots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, help="CSV with the columns of dev.csv; the bundled points by default"
    )
    parser.add_argument(
        "--group-folds", type=int, default=0, metavar="K", help="plot rows left out of the fit"
    )
    parser.add_argument("--out", type=Path, default=Path("docs/performance"))
    chosen = parser.parse_args(arguments)
    scored, _ = score_file(chosen.data, group_folds=chosen.group_folds)
    for path in write_plots(scored, chosen.out):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
