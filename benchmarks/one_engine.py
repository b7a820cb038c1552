"""Do `optimize`, `frontier`, `portfolio` and `pipeline` agree? `python -m benchmarks.one_engine --n 10000`.

Small random catalogs with spot, zones, commitments and capacity blocks, each asked at six deadlines: a portfolio of one
job, a pipeline of one task, the frontier at that deadline and `optimize` must cost the same to the cent, or all be
infeasible. Each disagreement is printed when it is found. Exit code 1: there is one.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.planner.job.test_one_engine import check_one_engine


def main() -> int:
    """Ask all seeds; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="instances")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="most CPU seconds")
    given = parser.parse_args()
    begin, wrong, done = time.process_time(), 0, 0
    try:
        for seed in range(given.first, given.first + given.n):
            for text in check_one_engine(seed):
                wrong += 1
                print(text, flush=True)
            done += 1
            if time.process_time() - begin > given.seconds:
                break
    except KeyboardInterrupt:
        pass
    print(
        f"{done:,} instances x 6 deadlines: {wrong:,} disagreements, {time.process_time() - begin:.0f} CPU s"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
