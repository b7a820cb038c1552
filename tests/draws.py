"""How many examples and seeds the tests draw: few in the suite, all with `pytest --hypothesis-profile=thorough`.

A count in a test is that of the thorough profile; the suite takes `SUITE` of it. CI draws others for every tree, and
`benchmarks.properties` and `benchmarks.brute_force` draw many times as many. Counts that are promised (fuzzed files,
the exhaustive judge, workloads of the real catalog) are written as they are: no share of them is taken.
"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import HealthCheck, settings

SUITE = 0.4
WHOLE = 100  # examples of a property test that names no count, in the thorough profile
FEWEST = 5


def register_profiles() -> None:
    """Register both profiles with hypothesis and load that of the suite; `--hypothesis-profile` loads another.

    The same in CI and outside: no test fails for the speed of a busy machine, and a failure says how to draw it again.
    """
    base = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("planner", base, max_examples=round(SUITE * WHOLE))
    settings.register_profile("thorough", base, max_examples=WHOLE)
    settings.load_profile("planner")


def share_of(count: int) -> int:
    """How many of so many examples or seeds the profile at work draws."""
    return max(min(count, FEWEST), math.ceil(count * settings().max_examples / WHOLE))


def draws(count: int, **others: Any) -> settings:
    """Settings of a property test with so many examples in the thorough profile: `@draws(60)`."""
    return settings(max_examples=share_of(count), **others)
