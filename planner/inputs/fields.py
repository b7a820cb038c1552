"""Field types of the workload: what YAML may write, what Python gets, what the JSON Schema tells an editor.

Numbers are strict (`true` is not 1, "12" is not 12 unless the type says so): YAML already tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from planner.inputs.measured import EXAMPLE, MEASURED_PATTERN, parse_measured
from planner.units import (
    COUNT_PATTERN,
    DURATION_PATTERN,
    MONEY_PATTERN,
    SIZE_PATTERN,
    format_duration,
    parse_count,
    parse_duration,
    parse_money,
    parse_size,
)

PurchaseOption = Literal[
    "on_demand",
    "spot",
    "reserved_1y",
    "reserved_3y",
    "savings_plan_1y",
    "savings_plan_3y",
    "cud_1y",
    "cud_3y",
    "capacity_block",
    "flex_start",
    "future_reservation",
    "subscription",
    "dedicated",
    "owned",
]

QuotaUnit = Literal["vCPU", "GPU", "instances"]


_LIKE_A_DATE = re.compile(r"[0-9]{4}-")
DATE_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
DATETIME_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9:.]+([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?$"


def _validator(parse: Callable[[object], Any]) -> PlainValidator:
    def run(value: object) -> object:
        try:
            return parse(value)
        except ValueError as error:
            # As a custom error the message reaches the user unchanged; braces would be read as a template.
            raise PydanticCustomError("quantity", "{text}", {"text": str(error)}) from None

    return PlainValidator(run)


def parse_moment(value: object) -> date | datetime:
    """Read a date (`2026-12-01`) or a date and time (`2026-12-01T08:00+01:00`; UTC without offset)."""
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a date like 2026-12-01 or a date and time like 2026-12-01T08:00Z")
    text = value.strip()
    try:
        if len(text) == 10:
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        raise ValueError(f"is not a date: '{text}'; write like 2026-12-01 or 2026-12-01T08:00Z") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def parse_day(value: object) -> date:
    """Read a date (`2026-12-01`)."""
    moment = parse_moment(value)
    if isinstance(moment, datetime):
        raise ValueError("must be a date without time, like 2026-12-01")
    return moment


def parse_deadline(value: object) -> timedelta | date | datetime:
    """Read a length of time from the start, a date (its last moment counts) or a date and time."""
    if isinstance(value, date):
        return parse_moment(value)
    if isinstance(value, str) and _LIKE_A_DATE.match(value.strip()):
        return parse_moment(value)
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ValueError(f"{error}; a deadline may also be a date like 2026-12-01") from None


def parse_ratio(value: object) -> float:
    """Read a share from 0 (excluded) to 1; percent are refused with the ratio to write."""
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            percent = float(value.strip()[:-1])
        except ValueError:
            raise ValueError(f"must be a ratio above 0 and at most 1, got '{value}'") from None
        raise ValueError(f"must be a ratio above 0 and at most 1, not percent: write {percent / 100:g}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a ratio above 0 and at most 1, got '{value}'")
    if 1 < value <= 100:
        raise ValueError(
            f"must be a ratio above 0 and at most 1, not percent: write {value / 100:g} instead of {value:g}"
        )
    if not 0 < value <= 1:
        raise ValueError(f"must be a ratio above 0 and at most 1, got {value:g}")
    return float(value)


def parse_confidence(value: object) -> float:
    """Read a probability between 0 and 1, both excluded."""
    if not isinstance(value, bool) and isinstance(value, int | float) and value == 1:
        raise ValueError("must be below 1: certainty cannot be bought; write 0.99")
    return parse_ratio(value)


def parse_share(value: object) -> float:
    """Read a share from 0 to 1, both included."""
    if not isinstance(value, bool) and isinstance(value, int | float) and value == 0:
        return 0.0
    return parse_ratio(value)


def check_measured(value: object) -> str:
    """Accept a line such as `12500 tokens/s on 8 x h100-80gb-sxm`; it stays text."""
    if not isinstance(value, str):
        raise ValueError(f"must be a line like {EXAMPLE}, got '{value}'")
    parse_measured(value)
    return value.strip()


def _text_or_number(
    pattern: str, minimum: float | None, examples: list[Any], kind: str = "number"
) -> dict[str, Any]:
    number: dict[str, Any] = {"type": kind}
    if minimum is not None:
        number["exclusiveMinimum"] = minimum
    return {"anyOf": [number, {"type": "string", "pattern": pattern}], "examples": examples}


Duration = Annotated[
    timedelta,
    _validator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": DURATION_PATTERN, "examples": ["72h", "3d 4h", "2w", "P3DT4H"]}
    ),
]
Size = Annotated[
    int,
    _validator(parse_size),
    WithJsonSchema(_text_or_number(SIZE_PATTERN, 0, ["100GB", "1.6 TB", "80GiB"], "integer")),
]
Count = Annotated[
    int, _validator(parse_count), WithJsonSchema(_text_or_number(COUNT_PATTERN, 0, [3e11, 1536]))
]
Money = Annotated[
    Decimal,
    _validator(parse_money),
    PlainSerializer(lambda value: format(value, "f"), return_type=str),
    WithJsonSchema(_text_or_number(MONEY_PATTERN, 0, [5000, "$5,000"])),
]
MeasuredLine = Annotated[
    str,
    _validator(check_measured),
    WithJsonSchema({"type": "string", "pattern": MEASURED_PATTERN, "examples": [EXAMPLE]}),
]
Moment = Annotated[
    date | datetime,
    _validator(parse_moment),
    PlainSerializer(lambda value: value.isoformat(), return_type=str),
    WithJsonSchema({"type": "string", "pattern": DATETIME_PATTERN, "examples": ["2026-12-01"]}),
]
Day = Annotated[
    date,
    _validator(parse_day),
    PlainSerializer(lambda value: value.isoformat(), return_type=str),
    WithJsonSchema({"type": "string", "pattern": DATE_PATTERN, "examples": ["2026-12-01"]}),
]
Deadline = Annotated[
    timedelta | date | datetime,
    _validator(parse_deadline),
    PlainSerializer(
        lambda value: format_duration(value) if isinstance(value, timedelta) else value.isoformat(),
        return_type=str,
    ),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": DURATION_PATTERN},
                {"type": "string", "pattern": DATETIME_PATTERN},
            ],
            "examples": ["72h", "3w", "2026-12-01"],
        }
    ),
]
_RATIO_SCHEMA: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
Ratio = Annotated[float, _validator(parse_ratio), WithJsonSchema(_RATIO_SCHEMA)]
Share = Annotated[
    float, _validator(parse_share), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
]
Confidence = Annotated[
    float,
    _validator(parse_confidence),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
]
PositiveInt = Annotated[int, Field(strict=True, ge=1)]
NonNegativeInt = Annotated[int, Field(strict=True, ge=0)]
PositiveFloat = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
AnyFloat = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Bool = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(min_length=1, max_length=200)]
_SOFTWARE_NAMES = ("cuda", "rocm", "neuron", "tpu", "gaudi", "cann", "any")
_SOFTWARE_SCHEMA = {"type": "string", "enum": list(_SOFTWARE_NAMES)}
Software = Annotated[
    tuple[Literal["cuda", "rocm", "neuron", "tpu", "gaudi", "cann", "any"], ...],
    Field(min_length=1),
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [_SOFTWARE_SCHEMA, {"type": "array", "items": _SOFTWARE_SCHEMA}]}),
]
