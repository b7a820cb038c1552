"""The section of the study's page on later prices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.study.regret import replay, summarized
from benchmarks.study.savings import percent

Record = dict[str, Any]


def regret_lines(records: Sequence[Record], folder: Path) -> list[str]:
    """The regret study as Markdown; without histories: says so."""
    try:
        table, left_out = replay(records, folder)
    except FileNotFoundError as error:
        return ["## At the prices of later dates", "", f"Skipped: {error}.", ""]
    lines = [
        "## At the prices of later dates", "",
        "The same workloads, planned on past days with the offers of one provider (price histories of AWS and"
        " GCP), and paid at the prices of later days; the owner's cluster at its list price on those days."
        " *Surprise* is paid over predicted price, minus 1, with the 90 % interval of its mean (decision days"
        " resampled). *Saved* is the median against the owner's cluster, as predicted on the day and as realised"
        " later. *Over best* is the paid price over that of the cheapest offer of the later day. GCP's list prices"
        " are neither chosen nor a baseline, because its histories mix in queued prices. Only machine-hours count,"
        " on spot without interruptions; the days ahead are from the decision to the run.", "",
        f"{table['id'].nunique()} workloads, {len(table):,} choices.", "",
        "| provider, days ahead | chosen by | choices on days | surprise, mean | median / P90 | saved: predicted /"
        " realised | realised, lower quartile | losses | over best |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    lines += [_line(one) for one in summarized(table)]
    lines += ["", "Excluded:", ""]
    lines += [f"- {why}: {len(names)} ({', '.join(names)})" for why, names in sorted(left_out.items())]
    return [*lines, ""]


def _line(one: Record) -> str:
    return (
        f"| {one['provider']} {one['horizon']} d, {one['first']} to {one['last']} | {one['model']} |"
        f" {one['choices']} on {one['days']} | {one['surprise_mean']:+.1%} [{one['low']:+.1%}, {one['high']:+.1%}]"
        f" | {one['surprise_median']:+.1%} / {one['surprise_p90']:+.1%} | {percent(one['promised'])} /"
        f" {percent(one['kept'])} | {percent(one['kept_q25'])} | {one['losses']} | {one['over_best']:.2f} |"
    )
