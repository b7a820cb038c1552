"""The clock of an export: whether days and months are those of the offsets that its moments are written with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from planner.records import record

_MOMENT = re.compile(rb"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:[.]\d+)? ?([+-]\d\d(?::?\d\d)?)?")


@record(frozen=True)
class Clock:
    """Moments at the start of a file.

    Attributes:
        moments, midnights: how many there are, and how many are midnights of their own clock.
        offsets: from UTC, as written; an empty one is a moment without any, or in UTC.
        days: on how many days its midnights are.
    """

    moments: int
    midnights: int
    offsets: frozenset[bytes]
    days: int = 0

    @property
    def is_daily(self) -> bool:
        """Whether it is by days, months or both: nine of ten moments are midnights, of two days or more."""
        return self.days > 1 and 10 * self.midnights >= 9 * self.moments


def clock_of(chunk: bytes) -> Clock:
    """Look at the moments in the first bytes of a file of texts."""
    found = _MOMENT.findall(chunk)
    midnights = [day for day, time, _ in found if time.strip(b"0:") == b""]
    return Clock(len(found), len(midnights), frozenset(offset for *_, offset in found), len({*midnights}))


def own_clocks(clocks: Mapping[str, Clock], headers: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the files whose days are those of their own clock.

    Files with the same columns are parts of one export, so they are judged together: the part of a last day may have
    next to no midnights, and a part of a winter in London has the offset of UTC. All moments have an offset, some have
    another than that of UTC, and at least half are midnights, such as the ends of days and of billing periods; or one
    part is by days, for one by hours, however long, tells nothing else. A file with other moments among them is in
    UTC, and so is one of an export without offsets.

    Args:
        clocks: file -> its clock.
        headers: file -> its columns.
    """
    exports: dict[tuple[str, ...], list[str]] = {}
    for file, clock in clocks.items():
        if clock.moments and all(clock.offsets):
            exports.setdefault(tuple(headers[file]), []).append(file)
    own: set[str] = set()
    for files in exports.values():
        parts = [clocks[file] for file in files]
        # in London's winter the offset is that of UTC
        is_away = any(offset.strip(b"+-0:") for part in parts for offset in part.offsets)
        is_half = 2 * sum(part.midnights for part in parts) >= sum(part.moments for part in parts)
        if is_away and (is_half or any(part.is_daily for part in parts)):
            own.update(files)
    return frozenset(own)
