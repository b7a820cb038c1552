"""Inference engines by year of release: shares of peak and bandwidth, fixed times (data/engines.csv)."""

from __future__ import annotations

from functools import cache

from planner.bundled import bundled_rows
from planner.records import record


@record(frozen=True)
class EngineRow:
    """One engine in one year.

    Attributes:
        name, year: of the release.
        compute, bandwidth: shares of peak FLOP/s and memory rate.
        step_s: fixed time of a decode step.
        most_running: requests at once.
        spread: half width in log of the 80 % interval of its rate.
        rows: measured rows behind it.
        quantised_tables: whether its quantised weights include the table of the input and the output layer of the
            vocabulary: they do in llama.cpp (q4_K and q6_K), MLC (q4f16_1), ExLlamaV2 (6 bit) and gpt-fast (each linear
            layer); GPTQ, AWQ and the fp8 and int8 recipes of the others leave them in 16 bits.
        sequence_s: time of the host for each sequence of a step, 0 of engines that hide it or were not measured so.
        step_tokens: most tokens of prompts in a step that also writes answers, by default of a server, 0 where steps do
            one or the other (`mixing` is where that is stated); `small_step_tokens` on cards of less than `large_gib`.
        most_prompt: tokens of a prompt for a token of its answer, at most of the rows that it was fitted on.
    """

    name: str
    year: int
    compute: float
    bandwidth: float
    step_s: float
    most_running: float
    spread: float
    rows: int
    sequence_s: float
    quantised_tables: bool
    step_tokens: float
    small_step_tokens: float
    large_gib: float
    most_prompt: float


@cache
def load_engines() -> tuple[EngineRow, ...]:
    """Read engines.csv."""
    return tuple(
        EngineRow(
            row["engine"], int(row["year"]), float(row["compute_ratio"]), float(row["bandwidth_ratio"]),
            float(row["step_s"]), float(row["most_running"]), float(row["spread"]), int(row["rows"]),
            float(row["sequence_s"]), row["quantised_tables"] == "true",
            float(row["step_tokens"]), float(row["small_step_tokens"]), float(row["large_gib"]),
            float(row["most_prompt"]),
        )
        for row in bundled_rows("engines.csv")
    )  # fmt: skip


def find_engine(name: str, year: int | None) -> EngineRow:
    """The engine in that year, else in the nearest one that was measured; without a year the newest.

    Raises:
        ValueError: no engine of that name.
    """
    rows = [row for row in load_engines() if row.name == name]
    if not rows:
        raise ValueError(f"inference engine {name!r} is not known")
    if year is None:
        return max(rows, key=lambda row: row.year)
    return min(rows, key=lambda row: (abs(row.year - year), -row.year))
