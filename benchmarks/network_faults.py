"""`python -m benchmarks.network_faults`: every fault of the table at every provider's interfaces.

Each must end in the answer or in an error of an allowed kind, without a secret and within 5 s; the table is
tests/catalogs/providers/network_faults.py, the servers are on loopback.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time

from tests.catalogs.providers.network_faults import FAULTS
from tests.catalogs.providers.network_harness import INTERFACES, NEEDED, opened, outcome


def main() -> int:
    """Run; exit code 1 where something ends otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="an interface")
    asked = parser.parse_args()
    wrong = 0
    for interface in asked.only or INTERFACES:
        if (module := NEEDED.get(interface)) and importlib.util.find_spec(module) is None:
            print(f"{interface}: left out, {module} is not installed", flush=True)
            continue
        cpu_s, wall_s, amiss = time.process_time(), time.monotonic(), 0
        with opened(interface) as one:
            for fault in FAULTS:
                said = outcome(one, fault)
                if said:
                    amiss += 1
                    print(f"  {interface}: {fault.name}: {said}", flush=True)
        cpu_s, wall_s = time.process_time() - cpu_s, time.monotonic() - wall_s
        print(
            f"{interface}: {len(FAULTS)} faults, {amiss} amiss, {cpu_s:.0f} CPU s, {wall_s:.0f} s", flush=True
        )
        wrong += amiss
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
