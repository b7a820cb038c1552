"""What a check expects of an answer, leaf by leaf, and what it finds; a leaf that nothing expects is a fault."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from planner.judge.document import MalformedError, Node, join, leaves
from planner.records import record

# of a figure computed by the same formula in another order
ROUNDING = 1e-8


@record(frozen=True)
class Verdict:
    """What a check found: `faults`, what was `checked`, what is `left_out` with the reason; `nothing` to check."""

    faults: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    summary: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    nothing: str = ""


@record(frozen=True)
class Near:
    """A number within `ratio` of `value`, or within `slack` of it (in its own unit)."""

    value: float | Fraction
    ratio: float = ROUNDING
    slack: float = 1e-9


@record(frozen=True)
class Printed:
    """A number printed to so many decimals of a value that is within `slack` of this one."""

    value: float
    places: int
    slack: float = 1e-9


@record(frozen=True)
class Between:
    """A number from `low` to `high`, rounding aside."""

    low: float
    high: float


@record(frozen=True)
class Exactly:
    """An amount that is this one, to the last digit."""

    value: Fraction


@record(frozen=True)
class Timestamp:
    """A date and time within a minute of this one."""

    value: datetime


@record(frozen=True)
class NotRecomputed:
    """A part that rests on what the judge does not read again; the reason names it."""

    why: str


@record(frozen=True)
class IfStated:
    """What a field must be where the answer has it: answers saved before there was such a field say nothing of it."""

    wanted: Any


_LEAVES = (Near, Printed, Between, Exactly, Timestamp, str, int, float, type(None))


class _Stated:
    """A leaf that is stated and not recomputed: it must be on the list of `planner.judge.stated`."""

    def __repr__(self) -> str:
        return "STATED"


STATED = _Stated()


def general(path: str) -> str:
    """A path without its positions: `$.lines[3].nodes` as `lines[*].nodes`."""
    return re.sub(r"\[[0-9]+\]", "[*]", path).removeprefix("$").removeprefix(".")


def is_stated(path: str, stated: Container[str]) -> bool:
    """Whether a leaf is on a list of what is stated, by its name or as a member of one that is open (`*`)."""
    name = general(path)
    return name in stated or f"{name.rpartition('.')[0]}.*" in stated


class Findings:
    """Faults of one answer, and the leaves that were looked at."""

    def __init__(self, answer: Node, stated: Mapping[str, str]) -> None:
        """Take the answer and the paths that are stated, with the reason of each."""
        self.answer, self.stated = answer, stated
        self.faults: list[str] = []
        self.seen: set[str] = set()
        self.not_checked: dict[str, str] = {}
        self.stopped = False

    def fault(self, path: str, text: str) -> None:
        """Note a fault at a path."""
        self.faults.append(f"{path.removeprefix('$.')}: {text}")

    def require(self, holds: bool, path: str, text: str) -> None:
        """Note a fault unless `holds`."""
        if not holds:
            self.fault(path, text)

    def saw(self, *nodes: Node) -> None:
        """Mark leaves as checked by other means."""
        for node in nodes:
            if isinstance(node.value, dict | list):
                self.seen.update(path for path, _ in leaves(node.value, node.path))
            else:
                self.seen.add(node.path)

    def skip(self, node: Node, why: str) -> None:
        """Leave a part out, and say so."""
        self.saw(node)
        self.not_checked[general(node.path)] = why

    def skip_unseen(self, node: Node, why: str) -> None:
        """Leave out what nothing has looked at in a part, and say so."""
        paths = [path for path, _ in leaves(node.value, node.path) if path not in self.seen]
        paths = [path for path in paths if not is_stated(path, self.stated)]
        self.seen.update(paths)
        self.not_checked |= dict.fromkeys(map(general, paths), why)

    def expect(self, node: Node, expected: Any) -> None:
        """Compare a part of the answer with what it must be.

        Args:
            node: the part.
            expected: the same structure with values, `Near`, `Printed`, `Between`, `Exactly`, `Timestamp`,
                `NotRecomputed`, `IfStated` or `STATED`.
        """
        if isinstance(expected, IfStated):
            expected = expected.wanted
        if expected is STATED:
            return
        if isinstance(expected, NotRecomputed):
            self.skip(node, expected.why)
            return
        if isinstance(expected, _LEAVES):  # what is a Mapping takes longer to tell
            self._expect_leaf(node, expected)
        elif isinstance(expected, Mapping):
            self._object(node, expected)
        elif isinstance(expected, Sequence):
            self._list(node, expected)
        else:
            self._expect_leaf(node, expected)

    def members(self, node: Node, expected: Mapping[str, Any]) -> None:
        """Compare some fields of an object, before what may not be recomputable."""
        keys = node.keys()
        for key, value in expected.items():
            if key in keys or not isinstance(value, IfStated):
                self.expect(node[key], value)

    def _object(self, node: Node, expected: Mapping[str, Any]) -> None:
        keys = node.keys()
        if not expected:
            self.saw(node)
        for key in keys:
            if key in expected:
                self.expect(node[key], expected[key])
            else:
                self.fault(join(node.path, key), "no such field")
        for key, value in expected.items():
            if key not in keys and not isinstance(value, IfStated):
                self.fault(join(node.path, key), "missing")

    def _list(self, node: Node, entries: Sequence[Any]) -> None:
        if not isinstance(node.value, list):
            node.fail("a list")
        if not entries:
            self.saw(node)
        if len(node) != len(entries):
            self.fault(node.path, f"{len(node)} entries, {len(entries)} expected")
        for item, expected in zip(node, entries, strict=False):
            self.expect(item, expected)

    def _expect_leaf(self, node: Node, expected: Any) -> None:
        self.saw(node)
        try:
            fault = _differs(node, expected)
        except MalformedError as error:
            if node.is_null:
                fault = f"null, expected {_shown(expected)}"
            else:
                raise error from None
        if fault:
            self.fault(node.path, fault)

    def stop(self, text: str) -> None:
        """Note a fault after which nothing else can be compared."""
        self.faults.append(text)
        self.stopped = True

    def finish(self) -> list[str]:
        """Return all faults; leaves that nothing expects included, unless the comparison was stopped."""
        for path, _ in [] if self.stopped else leaves(self.answer.value):
            if path not in self.seen and not is_stated(path, self.stated):
                self.fault(path, "not a field of this kind of answer")
        return list(dict.fromkeys(self.faults))

    def left_out(self) -> dict[str, str]:
        """What this answer states and nobody recomputed, with the reason, by path without positions."""
        paths = dict.fromkeys(general(path) for path, _ in leaves(self.answer.value) if path not in self.seen)
        reasons = {
            path: self.stated.get(path) or self.stated.get(f"{path.rpartition('.')[0]}.*") for path in paths
        }
        return {path: why for path, why in reasons.items() if why} | self.not_checked


def _differs(node: Node, expected: Any) -> str:
    if isinstance(expected, Near):
        return _far(node, expected)
    if isinstance(expected, Printed):
        return _misprinted(node, expected)
    if isinstance(expected, Between):
        slack = ROUNDING * max(abs(expected.low), abs(expected.high)) + 1e-9
        is_between = expected.low - slack <= float(node.money()) <= expected.high + slack
        return "" if is_between else f"{node.value} is not between {expected.low:g} and {expected.high:g}"
    if isinstance(expected, Exactly):
        return (
            "" if node.money() == expected.value else f"{node.value}, recomputed {_decimal(expected.value)}"
        )
    if isinstance(expected, Timestamp):
        off = abs((node.moment() - expected.value).total_seconds())
        return "" if off <= 60 else f"{node.value}, recomputed {expected.value.isoformat(timespec='minutes')}"
    if expected is None:
        return "" if node.is_null else f"{node.value!r}, expected null"
    same = node.value == expected and isinstance(node.value, bool) == isinstance(expected, bool)
    return "" if same else f"{node.value!r}, recomputed {expected!r}"


def _misprinted(node: Node, expected: Printed) -> str:
    stated = node.number()
    most = 0.5 * 10.0**-expected.places + expected.slack
    is_printed = round(stated, expected.places) == stated and abs(stated - expected.value) <= most
    return "" if is_printed else f"{node.value}, recomputed {expected.value:.10g}"


def _far(node: Node, expected: Near) -> str:
    value = expected.value
    if isinstance(node.value, float) and isfinite(value):
        # nearly all are equal: no exact arithmetic where floats, off by 1e-15 at most, leave no doubt
        near_to = float(value)
        off_by = abs(node.value - near_to) + 1e-15 * abs(near_to)
        if off_by <= 0.999 * max(expected.slack, expected.ratio * abs(near_to)):
            return ""
    stated = node.money()
    off = abs(stated - Fraction(value))
    near = off <= Fraction(expected.slack) or off <= abs(Fraction(value)) * Fraction(expected.ratio)
    return "" if near else f"{node.value}, recomputed {float(value):.10g}"


def _decimal(value: Fraction) -> str:
    return format((Decimal(value.numerator) / Decimal(value.denominator)).normalize(), "f")


def _shown(wanted: Any) -> str:
    return f"{float(wanted.value):.10g}" if isinstance(wanted, Near) else repr(wanted)
