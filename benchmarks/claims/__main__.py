"""Published claims beside our numbers: `python -m benchmarks.claims [--out docs/claims.md]`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.claims.ledger import render
from planner.files import write_atomically


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the ledger or write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claims", description=__doc__)
    parser.add_argument("--out", type=Path, help="the page to write")
    chosen = parser.parse_args(arguments)
    text = render()
    if chosen.out:
        write_atomically(chosen.out, text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
