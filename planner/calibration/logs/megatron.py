"""Log lines of Megatron-LM: `iteration 10/ 100 | ... | elapsed time per iteration (ms): 5444.9 | ...`."""

from __future__ import annotations

import re
from pathlib import Path

from planner.calibration.logs import Log, ReadOptions, read_text
from planner.errors import InputError

_LINE = re.compile(
    r"iteration\s+(?P<at>\d+)\s*/\s*\d+.*?elapsed time per iteration \(ms\):\s*(?P<ms>[^\s|/]+)",
    re.IGNORECASE,
)
# One of Megatron's descendants has misspelt `global` for years.
_BATCH = re.compile(r"glo?ba?l batch size:\s*(\d+)|gloabl batch size:\s*(\d+)")


def read(path: Path, options: ReadOptions) -> Log:
    """Read the time of each logged iteration (the mean over a logging interval) and the global batch.

    Iterations whose batch differs from the last one's (a batch ramp) are left out.
    """
    del options
    iterations: list[tuple[int, float, int | None]] = []
    for number, line in enumerate(read_text(path).splitlines(keepends=True), start=1):
        hit = _LINE.search(line)
        # A last line without its end may be cut within the number: 701 of 70123.4.
        if hit is None or hit.end("ms") == len(line):
            continue
        try:
            took = float(hit["ms"]) / 1e3
        except ValueError:
            took = 0.0
        if not 0.0 < took < float("inf"):
            raise InputError(
                f"{path}:{number}: the time of iteration {hit['at']} is not a number above 0: {hit['ms']!r}; "
                "remove the line if it was cut short"
            )
        batch = _BATCH.search(line)
        iterations.append((int(hit["at"]), took, int(batch[1] or batch[2]) if batch else None))
    if not iterations:
        raise InputError(
            f"{path}: no line 'iteration ... | elapsed time per iteration (ms): ...'; run with --log-interval 1 and "
            "keep the output of the last rank"
        )
    last = iterations[-1][2]
    same_batch = [item for item in iterations if item[2] == last]
    gap = same_batch[1][0] - same_batch[0][0] if len(same_batch) > 1 else 1
    note = (
        ""
        if len(same_batch) == len(iterations)
        else f"{len(iterations) - len(same_batch)} iterations with another batch are ignored"
    )
    return Log(
        "megatron", tuple(item[1] for item in same_batch), steps=max(1, gap), global_batch=last, note=note
    )
