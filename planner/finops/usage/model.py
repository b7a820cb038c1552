"""Accelerator use as the tools of a cluster report it, by day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta

from planner.errors import InputError
from planner.records import record

HOUR = timedelta(hours=1)
_LONGEST = timedelta(days=3_660)  # of a job or pod


@record(frozen=True)
class Allocated:
    """Accelerators that a scheduler gave to somebody, on one day.

    Attributes:
        machine: node as the source names it; empty where it does not say.
        team: whose they were (Slurm account, namespace).
        runs: names of the work (job name and id, pod, labels).
        places: accounts, clusters and the like that a charge may name.
        hours: accelerator hours.
        ended_badly: of these, hours of work that did not complete.
    """

    day: date
    machine: str
    team: str
    runs: tuple[str, ...]
    places: tuple[str, ...]
    hours: float
    ended_badly: float = 0.0


@record(frozen=True)
class Measured:
    """How busy accelerators were on one day.

    Attributes:
        machine, team, places: as of `Allocated`; an empty team: no workload is named.
        hours: accelerator hours that were watched.
        busy: of these, hours at work: the sum of duty x time.
    """

    day: date
    machine: str
    team: str
    places: tuple[str, ...]
    hours: float
    busy: float


@record(frozen=True)
class UsageFile:
    """One file, read.

    Attributes:
        kind: what it is, for people: `Slurm sacct`.
        days: days on which a machine without a row was free; empty where a missing row says nothing.
        remarks: what a reader must know of the figures.
    """

    path: str
    kind: str
    allocated: tuple[Allocated, ...] = ()
    measured: tuple[Measured, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] | None = None
    days: frozenset[date] = frozenset()
    remarks: tuple[str, ...] = ()


@record(frozen=True)
class Usage:
    """All files."""

    files: tuple[UsageFile, ...]

    @property
    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Node -> other names of it, such as the cloud's id of the machine."""
        return {name: others for file in self.files for name, others in (file.aliases or {}).items()}

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the files say of themselves, each once."""
        return tuple(dict.fromkeys(remark for file in self.files for remark in file.remarks))


def days_of(start: datetime, end: datetime, place: str) -> Iterator[tuple[date, float]]:
    """The days from one moment to another (UTC), each with its hours.

    Raises:
        InputError: they are further apart than a job lasts; names the place.
    """
    if end - start > _LONGEST:
        raise InputError(f"{place}: {start:%Y-%m-%d} to {end:%Y-%m-%d} is longer than ten years")
    while start < end:
        midnight = datetime(start.year, start.month, start.day, tzinfo=UTC) + timedelta(days=1)
        until = min(midnight, end)
        yield start.date(), (until - start) / HOUR
        start = until
