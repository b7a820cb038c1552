"""The normal distribution: what standard deviations mean as shares. Its functions of arrays are in `arrays`.

The judge (`planner.judge`) has its own, as it shares no code with what it judges.
"""

from __future__ import annotations

Z80 = 1.2815515655446004
"""Half of an interval that holds 80 %, in standard deviations: the quantile of 0.9."""
Z90 = 1.6448536269514722
"""The same of 90 %: the quantile of 0.95."""
Z95 = 1.959963984540054
"""The same of 95 %: the quantile of 0.975."""
