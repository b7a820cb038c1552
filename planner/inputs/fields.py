"""Field types of the workload: what YAML may write, what Python gets, what the JSON Schema tells an editor.

Numbers are strict (`true` is not 1, "12" is not 12 unless the type says so): YAML already tells them apart.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from planner.inputs.bounds import MOST_HOURS
from planner.inputs.measured import EXAMPLE, MEASURED_PATTERN
from planner.inputs.quantities import QUANTITIES, SOFTWARE
from planner.units import (
    COUNT_PATTERN,
    DURATION_PATTERN,
    MAX_COUNT,
    MAX_SIZE_BYTES,
    MAX_USD,
    MONEY_PATTERN,
    SIZE_PATTERN,
    format_duration,
)

QuotaUnit = Literal["vCPU", "GPU", "instances"]

DATE_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
DATETIME_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9:.]+([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?$"


def _quantity(name: str) -> PlainValidator:
    """Validate with the function of that name; refusals become messages."""
    parse = QUANTITIES[name]

    def run(value: object) -> object:
        try:
            return parse(value)
        except ValueError as error:
            # As a custom error the message reaches the user unchanged; braces would be read as a template.
            raise PydanticCustomError("quantity", "{text}", {"text": _brief(str(error), value)}) from None

    return PlainValidator(run)


def _brief(message: str, value: object) -> str:
    """The message with no more than the beginning of a long value."""
    text = value.strip() if isinstance(value, str) else ""
    return message if len(text) <= _MOST_QUOTED else message.replace(text, f"{text[: _MOST_QUOTED - 3]}...")


def _named(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema with the function that reads the value, for `plain`; editors skip keywords they do not know."""
    return {**schema, "x-quantity": name}


def _text_or_number(
    pattern: str, maximum: float, examples: list[Any], kind: str = "number"
) -> dict[str, Any]:
    number = {"type": kind, "exclusiveMinimum": 0, "maximum": maximum}
    return {"anyOf": [number, {"type": "string", "pattern": pattern}], "examples": examples}


Duration = Annotated[
    timedelta,
    _quantity("duration"),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        _named(
            "duration",
            {"type": "string", "pattern": DURATION_PATTERN, "examples": ["72h", "3d 4h", "2w", "P3DT4H"]},
        )
    ),
]
_SIZES = ["100GB", "1.6 TB", "80GiB"]
Size = Annotated[
    int,
    _quantity("size"),
    WithJsonSchema(_named("size", _text_or_number(SIZE_PATTERN, MAX_SIZE_BYTES, _SIZES, "integer"))),
]
Count = Annotated[
    int,
    _quantity("count"),
    WithJsonSchema(_named("count", _text_or_number(COUNT_PATTERN, MAX_COUNT, [3e11, 1536]))),
]
Money = Annotated[
    Decimal,
    _quantity("money"),
    PlainSerializer(lambda value: format(value, "f"), return_type=str),
    WithJsonSchema(_named("money", _text_or_number(MONEY_PATTERN, MAX_USD, [5000, "$5,000"]))),
]
Cost = Annotated[
    Decimal,
    _quantity("cost"),
    PlainSerializer(lambda value: format(value, "f"), return_type=str),
    WithJsonSchema(
        _named(
            "cost",
            {
                "anyOf": [
                    {"type": "number", "minimum": 0, "maximum": MAX_USD},
                    {"type": "string", "pattern": MONEY_PATTERN},
                ],
                "examples": [5000, "$5,000", 0],
            },
        )
    ),
]
MeasuredLine = Annotated[
    str,
    _quantity("measured"),
    WithJsonSchema(
        _named("measured", {"type": "string", "pattern": MEASURED_PATTERN, "examples": [EXAMPLE]})
    ),
]
Moment = Annotated[
    date | datetime,
    _quantity("moment"),
    PlainSerializer(lambda value: value.isoformat(), return_type=str),
    WithJsonSchema(
        _named("moment", {"type": "string", "pattern": DATETIME_PATTERN, "examples": ["2026-12-01"]})
    ),
]
Day = Annotated[
    date,
    _quantity("day"),
    PlainSerializer(lambda value: value.isoformat(), return_type=str),
    WithJsonSchema(_named("day", {"type": "string", "pattern": DATE_PATTERN, "examples": ["2026-12-01"]})),
]
Deadline = Annotated[
    timedelta | date | datetime,
    _quantity("deadline"),
    PlainSerializer(
        lambda value: format_duration(value) if isinstance(value, timedelta) else value.isoformat(),
        return_type=str,
    ),
    WithJsonSchema(
        _named(
            "deadline",
            {
                "anyOf": [
                    {"type": "string", "pattern": DURATION_PATTERN},
                    {"type": "string", "pattern": DATETIME_PATTERN},
                ],
                "examples": ["72h", "3w", "2026-12-01"],
            },
        )
    ),
]
_RATIO_SCHEMA: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
Ratio = Annotated[float, _quantity("ratio"), WithJsonSchema(_named("ratio", _RATIO_SCHEMA))]
Share = Annotated[
    float, _quantity("share"), WithJsonSchema(_named("share", {"type": "number", "minimum": 0, "maximum": 1}))
]
Confidence = Annotated[
    float,
    _quantity("confidence"),
    WithJsonSchema(_named("confidence", {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})),
]
# Every number has bounds that no run reaches, so that work and memory are bounded and no figure overflows.
MAX_NODES = 16_384  # 131,072 accelerators in machines of eight, above the largest jobs reported
MAX_SMALL = 10_000  # what is counted by hand: kept checkpoints, rows shown, GPUs of a group
MAX_ITEMS = 1_000  # of a list in a workload
_MOST_QUOTED = 80  # characters of a value in a message
MAX_WIDTH = 100_000_000  # of a layer, a vocabulary, an image or a batch
MAX_INT = 1_000_000_000
MAX_FLOAT = 1e15
PositiveInt = Annotated[int, Field(strict=True, ge=1, le=MAX_INT)]
NonNegativeInt = Annotated[int, Field(strict=True, ge=0, le=MAX_INT)]
SmallInt = Annotated[int, Field(strict=True, ge=1, le=MAX_SMALL)]
SmallCount = Annotated[int, Field(strict=True, ge=0, le=MAX_SMALL)]
Width = Annotated[int, Field(strict=True, ge=1, le=MAX_WIDTH)]
NodeCount = Annotated[int, Field(strict=True, ge=1, le=MAX_NODES)]
PositiveFloat = Annotated[float, Field(strict=True, ge=1e-12, le=MAX_FLOAT, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(strict=True, ge=0, le=MAX_FLOAT, allow_inf_nan=False)]
PositiveHours = Annotated[float, Field(strict=True, ge=1e-12, le=MOST_HOURS, allow_inf_nan=False)]
Hours = Annotated[float, Field(strict=True, ge=0, le=MOST_HOURS, allow_inf_nan=False)]
AnyFloat = Annotated[float, Field(strict=True, ge=-MAX_FLOAT, le=MAX_FLOAT, allow_inf_nan=False)]
Bool = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(min_length=1, max_length=200)]
Version = Annotated[
    str, Field(pattern=r"^v?[0-9]{1,6}(\.[0-9]{1,6}){0,3}([.+-]?[A-Za-z0-9.+-]*)$", max_length=60)
]
Texts = Annotated[tuple[Text, ...], Field(max_length=MAX_ITEMS)]
_SOFTWARE_SCHEMA = {"type": "string", "enum": list(SOFTWARE)}
Software = Annotated[
    tuple[Literal["cuda", "rocm", "neuron", "tpu", "gaudi", "cann", "any"], ...],
    Field(min_length=1),
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    WithJsonSchema(
        _named("software", {"anyOf": [_SOFTWARE_SCHEMA, {"type": "array", "items": _SOFTWARE_SCHEMA}]})
    ),
]
