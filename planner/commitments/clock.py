"""Whether there is time for one more figure of an answer, after the time limit and after Ctrl-C."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """Tells whether there is time for one more figure, going by how long the last took; after Ctrl-C there is none."""

    def __init__(self, end: float) -> None:
        self._end, self._last, self.interrupted = end, 0.0, False

    def left_s(self) -> float:
        """Seconds until the end."""
        return max(self._end - time.perf_counter(), 0.0)

    def stop(self) -> None:
        """Ctrl-C was pressed: no further figure."""
        self._end, self.interrupted = 0.0, True

    def needed(self, figure: Callable[[], Any]) -> Any:
        """A figure that no answer is without: Ctrl-C only begins it again."""
        try:
            return self._timed(figure)
        except KeyboardInterrupt:
            self.stop()
            return figure()

    def optional(self, figure: Callable[[], Any]) -> Any | None:
        """A figure; None where there is no time for it, or Ctrl-C ends it."""
        if self.left_s() <= self._last:
            return None
        try:
            return self._timed(figure)
        except KeyboardInterrupt:
            self.stop()
            return None

    def _timed(self, figure: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        value = figure()
        self._last = time.perf_counter() - begun
        return value
