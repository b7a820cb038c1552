"""Counts how often use ends on a public bill, for the prior of `planner.commitments.walk`.

python -m benchmarks.commit_ends --data DIR

DIR holds mybinder_sku_daily_2017-12_2018-06.csv.gz: daily cost of mybinder.org on Google Cloud by project and line
item. Cost stands for use, as prices did not change. Items above some costs, of all of Compute Engine (disks and network
included) and of machines alone, by blocks of 28 days.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from planner.commitments.walk import moves_of

FILE = "mybinder_sku_daily_2017-12_2018-06.csv.gz"
LEAST_USD = (20, 100, 500)


def count(daily: pd.DataFrame, least_usd: float) -> tuple[int, int, int]:
    """Return items above a cost, their ends, and the blocks that they lived."""
    kept = daily.loc[:, daily.sum() > least_usd]
    moves = moves_of(kept.to_numpy(dtype=float))
    return kept.shape[1], moves.ended, moves.lived


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    rows = pd.read_csv(parser.parse_args().data / FILE)
    rows = rows[rows["category"] == "compute-engine"]
    machines = rows[rows["description"].str.contains("VCPU running")]
    for name, part in (("all items", rows), ("machines", machines)):
        daily = part.pivot_table(
            index="date", columns=["project_id", "line_item"], values="cost", aggfunc="sum"
        ).fillna(0.0)
        for least in LEAST_USD:
            items, ended, lived = count(daily, least)
            print(f"{name} above ${least}: {items} items, {ended} ends among {lived} blocks")


if __name__ == "__main__":
    main()
