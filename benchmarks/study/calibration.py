"""Published over predicted time of each named baseline: how far the model behind the savings may be believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.study.savings import cluster_of, interval_of_median, running_error
from benchmarks.study.suite import Published

Record = dict[str, Any]
CLOSE = 1.5


def calibration(records: Sequence[Record]) -> dict[str, Any]:
    """Figures of predicted over published hours without waiting, of all rows and of all that can be expressed.

    `by_source_median` counts every source once. Rows marked suspect and rows without hours are not in it. `steps`: rows
    whose published hours are of the steps, and compared with them; `as_runs`: the same rows and all that can be
    expressed, compared with the whole run.
    """
    whole = [record for record in records if running_error(record) is not None]
    sound = [record for record in whole if record["published"]["expressible"] != "no"]
    of_steps = [record for record in sound if Published(**record["published"]).is_of_steps]
    kinds = dict.fromkeys(record["published"]["kind"] for record in sound)
    return {
        "all": _figures(whole),
        "without_stand_ins": _figures(sound),
        "steps": _figures(of_steps),
        "as_runs": {
            "steps": _figures(of_steps, as_runs=True),
            "without_stand_ins": _figures(sound, as_runs=True),
        },
        "steps_rows": [record["id"] for record in of_steps],
        "by_class": {
            kind: _figures([one for one in sound if one["published"]["kind"] == kind]) for kind in kinds
        },
        "rows": {record["id"]: 1.0 / (running_error(record) or 1.0) for record in whole},
    }


def _figures(records: Sequence[Record], *, as_runs: bool = False) -> dict[str, Any]:
    if not records:
        return {"n": 0}
    ratios = np.asarray([1.0 / (running_error(record, as_runs=as_runs) or 1.0) for record in records])
    sources = [cluster_of(record) for record in records]
    low, high = interval_of_median(ratios, sources)
    q25, median, q75 = np.quantile(ratios, (0.25, 0.5, 0.75))
    own = [
        np.median([ratio for ratio, other in zip(ratios, sources, strict=True) if other == source])
        for source in sorted(set(sources))
    ]
    close = (ratios >= 1.0 / CLOSE) & (ratios <= CLOSE)
    return {
        "n": len(records), "sources": len(own), "median": float(median), "low": low, "high": high,
        "q25": float(q25), "q75": float(q75), "close": int(close.sum()), "by_source_median": float(np.median(own)),
    }  # fmt: skip


def calibration_text(records: Sequence[Record]) -> list[str]:
    """The same in one line."""
    made = calibration(records)["without_stand_ins"]
    if not made["n"]:
        return ["predicted over published hours: no row states its hours"]
    return [
        f"predicted over published hours of {made['n']} baselines from {made['sources']} sources: median"
        f" {made['median']:.2f} [{made['low']:.2f}, {made['high']:.2f}], quartiles {made['q25']:.2f} to"
        f" {made['q75']:.2f}, within {CLOSE} x {made['close']} of {made['n']}"
    ]
