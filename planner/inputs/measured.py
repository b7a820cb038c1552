"""One measured throughput in a line: `12500 tokens/s on 8 x h100-80gb-sxm`."""

from __future__ import annotations

import re

from planner.records import record

MEASURED_PATTERN = r"^[0-9][0-9_,]*(\.[0-9]+)? *[kM]? *(tokens|samples|images|steps)/s +on +[0-9]+ *x +[^ ]+$"
_LINE = (
    r"(?P<value>[0-9][0-9_,]*(?:\.[0-9]+)?)\s*(?P<scale>[kM]?)\s*(?P<unit>tokens|samples|images|steps)/s"
    r"(?:\s+on\s+(?P<count>[0-9]+)\s*x\s+(?P<device>\S+))?"
)
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6}
EXAMPLE = "12500 tokens/s on 8 x h100-80gb-sxm"


@record(frozen=True)
class Measured:
    """A measured throughput: `value` of `unit` (tokens, samples, steps) per second on `count` x `device`.

    `device` is an instance type or an accelerator; `count` 0 and `device` empty where the line does not tell.
    """

    value: float
    unit: str
    count: int
    device: str


def parse_measured(text: str, *, whole: bool = True) -> Measured:
    """Read a measured throughput.

    Args:
        text: the line.
        whole: the line must say on what; else `12500 tokens/s` is enough.

    Raises:
        ValueError: says how to write it.
    """
    hit = re.fullmatch(_LINE, text.strip())
    if hit is None or (whole and hit["count"] is None):
        example = EXAMPLE if whole else "12500 tokens/s"
        raise ValueError(f"is not a measured throughput: {text!r}; write like {example}")
    value = float(re.sub("[_,]", "", hit["value"])) * _SCALES[hit["scale"]]
    count = int(hit["count"] or 0)
    if value <= 0 or (hit["count"] is not None and count < 1):
        raise ValueError(f"must be above zero: {text!r}")
    unit = "samples" if hit["unit"] == "images" else hit["unit"]
    return Measured(value, unit, count, hit["device"] or "")
