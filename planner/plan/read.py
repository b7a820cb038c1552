"""The one reader of saved plans: parsed JSON of any schema version to a typed `Plan`, or every fault by its path."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar, get_args

from planner.errors import InputError
from planner.inputs.faults import Fault, Path, Source, near
from planner.plan.fields import (
    TEXT_FORMS,
    FieldRule,
    derived_hints,
    hints_of,
    kind_of,
    load_rules,
    split_optional,
)
from planner.plan.upgrade import OLDEST_VERSION, SCHEMA_VERSION, upgrade
from planner.records import record

REMEDY = "save the plan again: planner optimize WORKLOAD -o json --out FILE"
P = TypeVar("P")
_KEYS = frozenset({"schema_version", "status", "lines", "catalog", "created_at"})
_SAVE = "save one with `planner optimize ... -o json --out FILE`"
_OWN = frozenset({"lines", "timeline"})  # which answers to other questions lack
_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?", re.ASCII)
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])", re.ASCII)
_MOST = 2.0**53  # whole numbers up to it survive other JSON tools
_YEARS = range(1970, 2970)  # a plan and what is added to its moments stay within what a date can hold
_MAX_RUN_ID = 200
_SHOWN = 60


def read_plan(kind: type[P], values: object, name: str) -> P:
    """Read parsed JSON of a plan.

    Args:
        kind: the class `Plan` (its module imports this one).
        values: what a JSON parser or `Plan.to_dict` gives.
        name: of the file, for messages.

    Raises:
        InputError: not a plan, of a version this planner does not read, or faulty; names each place and the remedy.
    """
    if not isinstance(values, dict):
        raise InputError(f"{name}: JSON, but not a plan; {_SAVE}")
    if len(_KEYS & values.keys()) < len(_KEYS) // 2 or not _OWN & values.keys():
        of_kind = f": its kind is {_shown(values['kind'])}" if "kind" in values else ""
        raise InputError(f"{name}: JSON, but not a plan{of_kind}; {_SAVE}")
    version = values.get("schema_version")
    if type(version) is not int or not OLDEST_VERSION <= version <= SCHEMA_VERSION:
        newer = type(version) is int and version > SCHEMA_VERSION
        raise InputError(
            f"{name}: schema_version: {_shown(version)}, this planner reads {OLDEST_VERSION} to {SCHEMA_VERSION}: "
            + ("read it with the planner that saved it, or update this one" if newer else REMEDY)
        )
    reader = _Reader()
    values = upgrade(values, reader.faults)
    plan = reader.part(kind, values, ())
    if plan is not None:
        reader.check_lines(plan)
    if reader.faults:
        raise InputError(f"{Source(name, '').error(reader.faults)}\n{REMEDY}")
    stated = values.get("run_id", plan.run_id)
    plan = plan if stated == plan.run_id else replace(plan, stated_run_id=stated)
    assert isinstance(plan, kind)
    return plan


@record(frozen=True)
class _Form:
    """What a value must be.

    Attributes:
        word: of `FieldRule.kind`, without what follows its colon.
        inner: the type, without `None`, which it may be where `optional`.
        item: of a list's or a map's members.
        choices: by the text that stands for each.
        rule: of the field.
    """

    word: str
    inner: Any
    optional: bool
    item: _Form | None
    choices: Mapping[str, Any] | None
    rule: FieldRule


def _form(hint: Any, rule: FieldRule) -> _Form:
    inner, optional = split_optional(hint)
    word, _, argument = (rule.kind if rule.kind in TEXT_FORMS else kind_of(inner)).partition(":")
    item = _form(get_args(inner)[word == "map"], rule) if word in ("list", "map") else None
    choices = None
    if word == "id":
        choices = {member.value: member for member in inner}
    elif word == "one_of":
        choices = {choice: choice for choice in argument.split("|")}
    return _Form(word, inner, optional, item, choices, rule)


@functools.cache
def _fields_of(kind: Any) -> Mapping[str, tuple[_Form, bool]]:
    """The form of each saved field, and whether it must be there."""
    hints, rules, missing = hints_of(kind), load_rules(), dataclasses.MISSING
    return {
        field.name: (
            _form(hints[field.name], rules[kind.__name__, field.name]),
            field.default is missing and field.default_factory is missing,
        )
        for field in dataclasses.fields(kind)
        if field.name in hints
    }


@functools.cache
def _derived_of(kind: Any) -> Mapping[str, _Form]:
    """The form of each derived value."""
    return {
        name: _form(hint, load_rules()[kind.__name__, name]) for name, hint in derived_hints(kind).items()
    }


class _Reader:
    """Reads values by the types of the dataclasses and the bounds of the table; faults are collected by path."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def part(self, kind: Any, value: object, path: Path) -> Any:
        """An object of JSON as the dataclass `kind`, None where something in it is wrong."""
        if not isinstance(value, dict):
            return self._wrong(path, f"must be an object, got {_shown(value)}")
        before = len(self.faults)
        fields, derived = _fields_of(kind), _derived_of(kind)
        for key in value.keys() - fields.keys() - derived.keys():
            hint = near(str(key), hints_of(kind))
            self.faults.append(Fault((*path, str(key)), "unknown key of a plan of this version", hint))
        values = {}
        for name, (form, required) in fields.items():
            if name in value:
                values[name] = self._value(form, value[name], (*path, name))
            elif required:
                self.faults.append(Fault((*path, name), "is missing"))
        if len(self.faults) > before:
            return None
        instance = kind(**values)
        self._check_derived(instance, value, path)
        return instance

    def check_lines(self, plan: Any) -> None:
        """A plan buys something, an infeasible answer does not."""
        if (plan.status == "planned") != bool(plan.lines):
            text = (
                "is empty though the status is planned" if not plan.lines else "has lines though infeasible"
            )
            self.faults.append(Fault(("lines",), text))

    def _check_derived(self, instance: Any, value: Mapping[str, Any], path: Path) -> None:
        """Derived values may be left out; those that are there agree with the fields they come from."""
        kind: Any = type(instance)
        for name, form in _derived_of(kind).items():
            if name not in value:
                continue
            where, before = (*path, name), len(self.faults)
            stated = self._value(form, value[name], where)
            if len(self.faults) > before:
                continue
            if name == "run_id":
                if not 0 < len(stated) <= _MAX_RUN_ID:
                    self.faults.append(Fault(where, f"must have 1 to {_MAX_RUN_ID} characters"))
            elif not _agree(stated, derived := getattr(instance, name)):
                self.faults.append(Fault(where, f"is {_shown(stated)}, but its parts give {_shown(derived)}"))

    def _value(self, form: _Form, value: object, path: Path) -> Any:
        if value is None and form.rule.is_unbounded:
            return math.inf
        if value is None and form.optional:
            return None
        if form.word == "part":
            return self.part(form.inner, value, path)
        if form.item is not None and form.word == "list":
            if not isinstance(value, list):
                return self._wrong(path, f"must be a list, got {_shown(value)}")
            item = form.item
            return tuple([self._value(item, entry, (*path, at)) for at, entry in enumerate(value)])
        if form.item is not None:
            if not isinstance(value, dict):
                return self._wrong(path, f"must be an object, got {_shown(value)}")
            item = form.item
            return {str(key): self._value(item, entry, (*path, str(key))) for key, entry in value.items()}
        if form.choices is not None:
            choice = form.choices.get(value) if isinstance(value, str) else None
            return self._not_one_of(path, value, form.choices) if choice is None else choice
        return self._scalar(form.word, value, path, form.rule)

    def _scalar(self, word: str, value: object, path: Path, rule: FieldRule) -> Any:
        if word in TEXT_FORMS:
            return self._text(word, value, path)
        if word == "boolean":
            return (
                value
                if isinstance(value, bool)
                else self._wrong(path, f"must be true or false, got {_shown(value)}")
            )
        number = _READERS[word](value)
        if number is None:
            return self._wrong(path, f"must be {_WORDS[word]}, got {_shown(value)}")
        if not (math.isfinite(number) or (rule.is_unbounded and number > 0)):
            return self._wrong(path, f"must be a finite number, got {_shown(value)}")
        if rule.minimum is not None and number < rule.minimum:
            return self._wrong(path, f"must be at least {rule.minimum:g}, got {_shown(value)}")
        if rule.maximum is not None and number > rule.maximum:
            return self._wrong(path, f"must be at most {rule.maximum:g}, got {_shown(value)}")
        return number

    def _text(self, word: str, value: object, path: Path) -> Any:
        if not isinstance(value, str):
            return self._wrong(path, f"must be text, got {_shown(value)}")
        if word == "month" and not _MONTH.fullmatch(value):
            return self._wrong(path, f"must be a month like 2026-11, got {_shown(value)}")
        if word == "moment" and not _is_moment(value):
            return self._wrong(path, f"must be a moment like 2026-11-20T08:00+00:00, got {_shown(value)}")
        return value

    def _not_one_of(self, path: Path, value: object, choices: Any) -> Any:
        hint = near(value, choices) if isinstance(value, str) else ""
        self.faults.append(Fault(path, f"must be one of {', '.join(choices)}, got {_shown(value)}", hint))

    def _wrong(self, path: Path, text: str) -> Any:
        """Note a fault; returns None in place of the value."""
        self.faults.append(Fault(path, text))
        return None


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).year in _YEARS
    except ValueError:
        return False


def _decimal(value: object) -> Decimal | None:
    return Decimal(value) if isinstance(value, str) and _DECIMAL.fullmatch(value) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST else None


def _float(value: object) -> float | None:
    if isinstance(value, float):
        return value
    whole = _integer(value)
    return None if whole is None else float(whole)


_READERS = {"decimal": _decimal, "integer": _integer, "number": _float}
_WORDS = {
    "decimal": "a decimal number in quotes, without an exponent",
    "integer": "a whole number",
    "number": "a number",
}


def _agree(stated: Any, known: Any) -> bool:
    if isinstance(stated, float) and isinstance(known, float):
        return math.isclose(stated, known, rel_tol=1e-9, abs_tol=1e-9)
    return bool(stated == known)


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MOST:
        return "a number above 2^53"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f"'{text}'" if isinstance(value, str) else text
