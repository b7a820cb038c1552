"""What trainers' own pages say that a job needs, next to `planner estimate`: `python -m benchmarks.stated_needs`.

`data/stated_needs.csv` holds memory, speeds and least numbers of accelerators from the pages and examples of the tools
that people train with. No constant was fitted to them. The table is printed as docs/performance/stated-needs.md
shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.other_publishers import FILE, Scored, report, score
from benchmarks.rows import read_csv

STATED = FILE.with_name("stated_needs.csv")
HEAD = (
    "| set-up | accelerators | GiB, stated | predicted | ratio | s per step, stated | predicted | ratio | offered |",
    "|---|---|---:|---:|---:|---:|---:|---:|---|",
)


def table(rows: Sequence[dict[str, str]], found: Sequence[Scored]) -> list[str]:
    """Rows of the file and their predictions as lines of Markdown."""
    lines = list(HEAD)
    for row, one in zip(rows, found, strict=True):
        memory = one.memory or (None, None)
        step = (one.step[0], one.step[1]) if one.step else (None, None)
        cells = [one.key, f"{row['accelerators']} {row['accelerator']}", *_pair(*memory), *_pair(*step)]
        lines.append(f"| {' | '.join([*cells, 'yes' if one.fits else 'no'])} |")
    return lines


def _pair(stated: float | None, ours: float | None) -> tuple[str, str, str]:
    if stated is None or ours is None:
        return "", "", ""
    return f"{stated:.3g}", f"{ours:.3g}", f"{ours / stated:.2f}"


def main(path: Path = STATED) -> int:
    """Print the table and the figures by class."""
    found = score(path)
    print("\n".join([*table(read_csv(path), found), "", *report(found)]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
