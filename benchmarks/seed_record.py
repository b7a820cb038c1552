"""Which seeds of a search were tried: ranges by family in a file, so that searches on many days add up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.files import write_atomically

Range = tuple[int, int]  # the first seed, and the one after the last


@dataclass(frozen=True)
class Tried:
    """What is known of one family.

    Attributes:
        ranges: of seeds, apart from each other and in order.
        wrong: seeds that disagreed when they were tried.
        cpu_s: CPU seconds of all of them.
    """

    ranges: tuple[Range, ...] = ()
    wrong: tuple[int, ...] = ()
    cpu_s: float = 0.0

    @property
    def seeds(self) -> int:
        """How many were tried."""
        return sum(end - first for first, end in self.ranges)

    def missing(self, first: int, end: int) -> Iterator[Range]:
        """Seeds from `first` to before `end` that were not tried."""
        for known_first, known_end in self.ranges:
            if first < min(known_first, end):
                yield first, min(known_first, end)
            first = max(first, known_end)
        if first < end:
            yield first, end

    def plus(self, other: Tried) -> Tried:
        """Both together; a seed that both tried counts once."""
        wrong = tuple(sorted({*self.wrong, *other.wrong}))
        return Tried(joined([*self.ranges, *other.ranges]), wrong, self.cpu_s + other.cpu_s)


def joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same seeds in as few ranges as there can be."""
    out: list[Range] = []
    for first, end in sorted(ranges):
        if out and first <= out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        elif first < end:
            out.append((first, end))
    return tuple(out)


def load_record(path: Path) -> dict[str, Tried]:
    """What is recorded by family; nothing where there is no file."""
    if not path.exists():
        return {}
    families = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Tried(tuple((first, end) for first, end in one["ranges"]), tuple(one["wrong"]), one["cpu_s"])
        for name, one in families.items()
    }


def save_record(path: Path, record: Mapping[str, Tried]) -> None:
    """Write it, a line per family of which seeds were tried."""
    lines = (
        f"{json.dumps(name)}: "
        + json.dumps({"ranges": one.ranges, "wrong": one.wrong, "cpu_s": round(one.cpu_s, 1)})
        for name, one in record.items()
        if one.ranges
    )
    write_atomically(path, "{\n" + ",\n".join(lines) + "\n}\n")
