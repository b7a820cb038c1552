"""A saved answer read with care: every value has its JSON path, and what is not of the expected type says where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any, NoReturn

from planner.errors import InputError
from planner.files.limited import read_limited

MAX_BYTES = 128 * 2**20
MAX_DEPTH = 64
MAX_MAGNITUDE = 1e18
MAX_CERTIFICATE_MAGNITUDE = 1e300
_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,2})?")


class MalformedError(InputError):
    """A file that is not an answer of this program; names the JSON path. Exit code 2."""


def read_answer(path: Path) -> Any:
    """Read a JSON file whose numbers are finite and whose nesting is limited.

    Raises:
        MalformedError: no such file, too large, not JSON, not finite, or nested too deeply; names the JSON path.
    """
    try:
        value = json.loads(read_limited(path, MAX_BYTES).decode("utf-8"))
    except OSError as error:
        raise MalformedError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        hint = "save one with `planner optimize ... -o json --out FILE`"
        raise MalformedError(f"{path}: not JSON ({error or 'nested too deeply'}); {hint}") from error
    exact = isinstance(value, dict) and "certificate_version" in value  # whole numbers of any size
    try:
        check_values(value, magnitude=MAX_CERTIFICATE_MAGNITUDE if exact else MAX_MAGNITUDE)
    except MalformedError as error:
        raise MalformedError(f"{path}: {error}") from error
    return value


def check_values(value: Any, magnitude: float = MAX_MAGNITUDE) -> None:
    """Refuse what no answer holds: numbers that are not finite or too large, and deep nesting.

    Raises:
        MalformedError: names the JSON path.
    """
    fault = _fault(value, 0, magnitude)
    if fault is not None:
        steps, text = fault
        raise MalformedError(f"{reduce(join, reversed(steps), '$')}: {text}")


def _fault(value: Any, depth: int, magnitude: float) -> tuple[list[str | int], str] | None:
    """What is wrong first, and the steps to it from the last to the first: no path is written for what is right."""
    if depth > MAX_DEPTH:
        return [], f"nested more than {MAX_DEPTH} levels deep"
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            if depth < MAX_DEPTH and (type(item) is str or (type(item) is float and abs(item) <= magnitude)):
                continue  # most values, without a call
            fault = _fault(item, depth + 1, magnitude)
            if fault is not None:
                fault[0].append(step)
                return fault
    elif isinstance(value, int | float) and not abs(value) <= magnitude:  # NaN is not, either
        return [], f"{str(value)[:24]} is not a finite number below {magnitude:g}"
    return None


def join(path: str, key: str | int) -> str:
    """The path of a member of `path`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


class Node:
    """A value of the answer with its path; the readers name the path where the type is wrong."""

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str = "$") -> None:
        """Take a JSON value."""
        self.value, self.path = value, path

    def __getitem__(self, key: str | int) -> Node:
        """A member.

        Raises:
            MalformedError: there is none.
        """
        whole: Any = self.value
        if isinstance(key, str):
            if not isinstance(whole, dict):
                self.fail("an object")
            if key not in whole:
                raise MalformedError(f"{join(self.path, key)}: missing")
        elif not isinstance(whole, list) or not 0 <= key < len(whole):
            self.fail(f"a list with an element {key}")
        return Node(whole[key], join(self.path, key))

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def __iter__(self) -> Iterator[Node]:
        if not isinstance(self.value, list):
            self.fail("a list")
        return (Node(item, join(self.path, position)) for position, item in enumerate(self.value))

    def __len__(self) -> int:
        if not isinstance(self.value, list | dict):
            self.fail("a list")
        return len(self.value)

    @property
    def is_null(self) -> bool:
        """Whether it is null."""
        return self.value is None

    def keys(self) -> list[str]:
        """Names of an object's members."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        return list(self.value)

    def text(self) -> str:
        """A string."""
        return self.value if isinstance(self.value, str) else self.fail("a text")

    def flag(self) -> bool:
        """True or false."""
        return self.value if isinstance(self.value, bool) else self.fail("true or false")

    def number(self) -> float:
        """A number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail("a number")
        return float(self.value)

    def count(self) -> int:
        """A whole number of at least 0."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            self.fail("a whole number of at least 0")
        return self.value

    def money(self) -> Fraction:
        """An amount, exactly: a decimal text, or a number taken as it is printed."""
        if isinstance(self.value, str) and _DECIMAL.fullmatch(self.value):
            return _exact(self.value)
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            return _exact(repr(self.value))
        return self.fail("an amount as decimal text")

    def moment(self) -> datetime:
        """A moment with its offset from UTC."""
        try:
            parsed = datetime.fromisoformat(self.text())
        except ValueError:
            self.fail("a moment such as 2026-11-20T00:00+00:00")
        return parsed if parsed.tzinfo is not None else self.fail("a moment with its offset from UTC")

    def fail(self, expected: str) -> NoReturn:
        """Say what was expected here.

        Raises:
            MalformedError: always.
        """
        value_text = json.dumps(self.value, default=str)
        value_text = value_text if len(value_text) <= 40 else f"{value_text[:40]}..."
        raise MalformedError(f"{self.path}: expected {expected}, got {value_text}")


@lru_cache(maxsize=4096)
def _exact(text: str) -> Fraction:
    """The number that a text says; amounts of one answer repeat."""
    return Fraction(text)


def leaves(value: Any, path: str = "$") -> list[tuple[str, Any]]:
    """Every leaf of a JSON value with its path; an empty object or list is a leaf."""
    gathered: list[tuple[str, Any]] = []
    _gather(value, path, gathered)
    return gathered


def _gather(value: Any, path: str, values: list[tuple[str, Any]]) -> None:
    if value and isinstance(value, dict):
        for key, item in value.items():
            _gather(item, f"{path}.{key}" if path else key, values)
    elif value and isinstance(value, list):
        for position, item in enumerate(value):
            _gather(item, f"{path}[{position}]", values)
    else:
        values.append((path, value))
