"""A record behaves as a dataclass with the same fields does."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import pytest

from planner.records import record


@dataclass(frozen=True)
class Plain:
    """The original."""

    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)

    @cached_property
    def twice(self) -> int:
        """Twice `a`."""
        return 2 * self.a


@record(frozen=True)
class Shared:
    """The same fields."""

    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)

    @cached_property
    def twice(self) -> int:
        """Twice `a`."""
        return 2 * self.a


@record
class Open:
    """May be changed."""

    a: int = 0


@record(frozen=True, eq=False)
class Identity:
    """Equal only to itself."""

    a: int = 0


@record(frozen=True)
class Child(Shared):
    """Has one field more."""

    d: float = 0.5

    def __repr__(self) -> str:
        return "a child"


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, "y"), {}),
    ((1, "y", [3]), {}),
    ((), {"b": "y", "a": 2}),
    ((), {}),
    ((1, "y", [3], 4), {}),
    ((1,), {"a": 2}),
    ((1,), {"d": 2}),
    ((), {"b": "z"}),
]


@pytest.mark.parametrize(("args", "given"), CALLS)
def test_it_is_made_and_shown_as_a_dataclass(args: tuple[Any, ...], given: dict[str, Any]) -> None:
    try:
        plain = Plain(*args, **given)
    except TypeError:
        with pytest.raises(TypeError, match="Shared: "):
            Shared(*args, **given)
        return
    shared = Shared(*args, **given)
    assert asdict(shared) == asdict(plain)
    assert repr(shared) == repr(plain).replace("Plain", "Shared")
    assert shared == Shared(*args, **given)
    assert asdict(replace(shared, a=9)) == asdict(replace(plain, a=9))
    assert shared.twice == plain.twice
    assert shared != plain  # type: ignore[comparison-overlap]


def test_fields_are_a_dataclass_s() -> None:
    assert is_dataclass(Shared)
    assert [(f.name, f.type, f.default) for f in fields(Shared)] == [
        (f.name, f.type, f.default) for f in fields(Plain)
    ]
    assert Shared.__match_args__ == Plain.__match_args__
    assert Shared(1).c is not Shared(1).c


def test_frozen_means_frozen() -> None:
    one = Shared(1)
    with pytest.raises(FrozenInstanceError):
        one.a = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del one.b
    assert one.a == 1


def test_equality_and_hash_follow_the_options() -> None:
    assert hash(Child(1, "y", ())) == hash(Child(1, "y", ()))  # type: ignore[arg-type]
    assert Open(1) == Open(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Open(1))
    changed = Open(1)
    changed.a = 2
    assert changed == Open(2)
    one = Identity(1)
    assert one != Identity(1)
    assert {one: 1}[one] == 1


def test_inheritance_adds_fields_and_own_methods_win() -> None:
    child = Child(1, d=2.0)
    assert (child.a, child.b, child.d) == (1, "x", 2.0)
    assert repr(child) == "a child"
    assert child != Shared(1)


def test_copies() -> None:
    one = Shared(1, "y", [2])
    assert copy.copy(one) == one
    assert copy.deepcopy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one


@record(frozen=True)
class Beside:
    """A field that does not tell records apart."""

    a: int
    note: str = field(default="", compare=False)


def test_a_field_that_is_not_compared_tells_no_records_apart() -> None:
    assert Beside(1, "x") == Beside(1, "y") != Beside(2, "x")
    assert hash(Beside(1, "x")) == hash(Beside(1, "y"))
    assert "note='x'" in repr(Beside(1, "x"))
