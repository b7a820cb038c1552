"""One time limit for all searches that an answer needs, one after the other."""

from __future__ import annotations

import time

LEAST_SHARE = 0.05  # of the limit: what a search may take that an answer needs, however late it begins


class Clock:
    """Runs from when it is first asked what is left."""

    def __init__(self, limit_s: float) -> None:
        """Take the limit, seconds; it may be infinite."""
        self._limit_s = limit_s
        self._began: float | None = None

    def left_s(self, share: float = 1.0) -> float:
        """Seconds until this share of the limit has passed; negative afterwards."""
        if self._began is None:
            self._began = time.perf_counter()
        return self._limit_s * share - (time.perf_counter() - self._began)

    def for_next_s(self, share: float = 1.0, least: float = LEAST_SHARE) -> float:
        """Seconds that the next search may take: until this share has passed, but at least `least` of the limit."""
        return max(self.left_s(share), self._limit_s * least)
