"""Common handling of calls from Python: arguments are checked, errors belong to one class.

Bounds and choices are those of the commands' options (`tests/planner/test_api_errors.py` holds both side by side).
"""

from __future__ import annotations

import csv
import functools
import inspect
from collections.abc import Callable, Collection
from decimal import Decimal
from errno import ENAMETOOLONG
from math import inf, nan
from numbers import Integral, Real
from os import PathLike
from typing import NamedTuple, ParamSpec, TypeVar

from catalogs.errors import CatalogError as StoreError
from catalogs.errors import CatalogInputError, missing_extra
from planner.errors import CatalogError, InputError, OutputError, PlannerError, shortened, with_short_values
from solvers.problem.errors import BackendError, SpreadError

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


class Bounds(NamedTuple):
    """The numbers that an argument may have.

    Attributes:
        low: the least; itself outside where `above`.
        high: the most; None: any finite number.
        above: whether `low` itself is too little.
        below: whether `high` itself is too much.
        whole: whether it is counted, so that parts of one mean nothing.
    """

    low: float
    high: float | None = None
    above: bool = False
    below: bool = False
    whole: bool = False

    def holds(self, value: object) -> bool:
        """Whether a value is a number inside; a count is compared as it is, since it may be too large for a float."""
        number = _as_count(value) if self.whole else _as_float(value)
        if number is None:
            return False
        high = inf if self.high is None else self.high
        enough = number > self.low if self.above else number >= self.low
        return enough and (number < high if self.below or self.high is None else number <= high)

    def __str__(self) -> str:
        low = f"{'whole ' if self.whole else ''}number {'above' if self.above else 'at least'} {self.low:g}"
        return low if self.high is None else f"{low} and {'below' if self.below else 'at most'} {self.high:g}"


def _as_count(value: object) -> int | None:
    """A whole number; None for what is not one."""
    return int(value) if isinstance(value, Integral) else None


def _as_float(value: object) -> float | None:
    """A number as a float, NaN where it is too large for one; None for what is not a number."""
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else nan
    if not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return nan


NUMBERS = {
    "best_within": Bounds(0, above=True),
    "budget_usd": Bounds(0, above=True),
    "deadlines_hours": Bounds(0, 100 * 366 * 24, above=True),
    "draws": Bounds(0, 100_000, whole=True),
    "drop_days": Bounds(0, 31, whole=True),
    "fail_late": Bounds(0, 1),
    "fail_over": Bounds(0, 1),
    "gap": Bounds(0, 1, below=True),
    "horizon_days": Bounds(0, 750, whole=True),
    "max_age_days": Bounds(0),
    "max_results": Bounds(1, whole=True),
    "nodes": Bounds(1, whole=True),
    "periods": Bounds(1, 24, whole=True),
    "replays": Bounds(0, 100_000, whole=True),
    "robust": Bounds(0, 1, below=True),
    "seed": Bounds(0, whole=True),
    "skip": Bounds(0, whole=True),
    "time_limit_s": Bounds(0, above=True),
}
"""Numbers by argument; the same name means the same in every function."""

CHOICES = {
    "cost": ("effective", "billed"),
    "effort": ("small", "medium", "large"),
    "kind": ("auto", "csv", "progress", "megatron", "hf", "torch", "tensorboard", "wandb", "nsys"),
    "mode": ("auto", "fast", "full"),
    "objective": ("cost", "time", "carbon"),
    "over": ("region", "type", "option", "provider"),
    "period": ("month", "quarter", "year"),
    "solver": ("enumerate", "milp", "both"),
}
"""Words by argument."""


def question(ask: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """A function of the API: its values are checked first, and what users can mend is raised as a `PlannerError`."""
    signature = inspect.signature(ask)

    @functools.wraps(ask)
    def run(*args: _Given.args, **given: _Given.kwargs) -> _Answer:
        try:
            arguments = signature.bind(*args, **given).arguments
        except TypeError as error:
            raise TypeError(f"{ask.__name__}() {error}") from None
        for name, value in arguments.items():
            _check(name, value)
        try:
            return ask(*args, **given)
        except Exception as error:
            message = as_planner_error(error)
            if message is not None:
                texts = [str(value) for value in arguments.values() if isinstance(value, str | PathLike)]
                message.args = tuple(with_short_values(str(arg), texts) for arg in message.args)
            if message is None or message is error:
                raise
            raise message from error

    return run


_FILES = ("workload", "path")  # arguments that name a file


def _check(name: str, value: object) -> None:
    """Check one argument.

    Raises:
        InputError: it is none of the choices, or outside the bounds.
    """
    if value is None:
        return
    if name in _FILES and isinstance(value, dict | list):
        text = "must be the path of a file, or what planner.load returned"
        raise InputError(f"{name}: {text}, not a {type(value).__name__}: write it to a YAML file first")
    if name in CHOICES and value not in CHOICES[name]:
        raise InputError(f"{name} {value!r}: must be one of {', '.join(CHOICES[name])}")
    if name in NUMBERS:
        for number in value if isinstance(value, Collection) and not isinstance(value, str) else (value,):
            if not NUMBERS[name].holds(number):
                raise InputError(f"{name} {_written(number)}: must be a {NUMBERS[name]}")


def _written(value: object) -> str:
    """A value as its user wrote it; Python writes no whole number of more than some thousand digits."""
    try:
        return repr(value)
    except ValueError:
        return "with so many digits"


def as_planner_error(error: Exception) -> PlannerError | None:
    """The error with a message for the user that an exception amounts to; None for a defect of ours.

    Errors of the catalog and of the solvers, which know nothing of the planner, become those of `planner.errors`, as do
    a missing extra, a CSV file that cannot be read and a file that cannot be written.

    Args:
        error: what was raised; a `PlannerError` is returned as it is.
    """
    if isinstance(error, PlannerError):
        return error
    if isinstance(error, ImportError):
        extra = missing_extra(error)
        return None if extra is None else InputError(extra)
    if isinstance(error, CatalogInputError | SpreadError):
        return InputError(str(error))
    if isinstance(error, StoreError):
        return CatalogError(str(error))
    if isinstance(error, BackendError):
        return InputError(f"--backend: {error}")
    if isinstance(error, csv.Error):  # a reader that names no file: better than a defect
        detail = str(error).partition(" - ")[0]
        return InputError(f"a CSV file cannot be read: {detail}; quote the cell or save the file again")
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        if error.errno == ENAMETOOLONG:
            return InputError(f"{shortened(str(error.filename))}: {error.strerror}")
        return OutputError(f"{error.filename}: {error.strerror}")
    return None
