"""Bounds that inputs and plans share; imports nothing, as an answer from kept work reads it too."""

from __future__ import annotations

MOST_HOURS = 876_600.0  # a century: more is a clock's count or a slip of some zeros, not a length of time
