"""The figures of a study as JSON and as a short text."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.study.arms import ARMS, HEADLINES
from benchmarks.study.calibration import calibration, calibration_text
from benchmarks.study.record import StudyOptions
from benchmarks.study.savings import AGAINST, Figures, figures, pairs_of, percent

Record = dict[str, Any]
SCHEMA_VERSION = 2


def classes_of(records: Sequence[Record]) -> list[str]:
    """Classes of workloads in the order in which they first come."""
    return list(dict.fromkeys(record["published"]["kind"] for record in records))


def _plain(made: Figures) -> dict[str, Any]:
    values = asdict(made) | {"below": made.below, "verdict": made.verdict}
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in values.items()
    }


def all_figures(records: Sequence[Record]) -> dict[str, Any]:
    """Figures by arm: against each baseline, at P90 cost, of savings that count, and by class."""
    made: dict[str, Any] = {}
    for arm in ARMS:
        against = {}
        for name in AGAINST:
            pairs, left_out = pairs_of(records, arm, name)
            against[name] = _plain(figures(pairs)) | {"left_out": left_out}
        pairs, _ = pairs_of(records, arm, "named")
        made[arm] = {
            "against": against,
            "at_p90_cost": _plain(figures(pairs_of(records, arm, "named", high=True)[0])),
            "counted": _plain(figures(pairs_of(records, arm, "named", counted=True)[0])),
            "by_class": {
                kind: _plain(figures([pair for pair in pairs if pair.kind == kind])) for kind in classes_of(records)
            },
        }  # fmt: skip
    return made


def figures_json(records: Sequence[Record], options: StudyOptions) -> str:
    """Records and figures as JSON text; the same records give the same bytes."""
    made = {
        "schema_version": SCHEMA_VERSION,
        "as_of": options.as_of,
        "statuses": dict(sorted(Counter(record["status"] for record in records).items())),
        "proofs": proofs(records),
        "figures": all_figures(records),
        "calibration": calibration(records),
        "records": list(records),
    }
    return json.dumps(made, indent=1, allow_nan=False) + "\n"


def text_summary(records: Sequence[Record], options: StudyOptions) -> str:
    """What to read first."""
    counts = Counter(record["status"] for record in records)
    told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    lines = [f"{len(records)} workloads as on {options.as_of}: {told}"]
    lines += [
        f"  {record['id']}: {record['status']}: {record['reason']}"
        for record in records
        if record["status"] != "planned"
    ]
    lines += proofs_text(records)
    lines.append("saved against the owner's named cluster, predicted (claim: 40-70 %):")
    for arm, words in HEADLINES.items():
        pairs, left_out = pairs_of(records, arm, "named")
        lines.append(f"  {words:36} {figures_line(figures(pairs))}")
        lines += [f"      left out {len(ids):2}: {why}" for why, ids in sorted(left_out.items())]
    lines += calibration_text(records)
    return "\n".join(lines)


def proofs(records: Sequence[Record]) -> dict[str, int]:
    """How many plans of all arms were proven in which way."""
    plans = [plan for record in records for plan in record.get("arms", {}).values()]
    return dict(sorted(Counter(plan["proof"] for plan in plans if plan.get("proof")).items()))


def proofs_text(records: Sequence[Record]) -> list[str]:
    """What proved the plans, one line."""
    return [f"plans by proof: {count} {method}" for method, count in proofs(records).items()]


def figures_line(made: Figures) -> str:
    """Figures of some rows in one line."""
    if not made.n:
        return "no rows"
    return (
        f"n {made.n:2}, median {percent(made.median)} [{percent(made.low)}, {percent(made.high)}], quartiles"
        f" {percent(made.q25)} to {percent(made.q75)}, worst {percent(made.worst)}, losses {made.losses}, within"
        f" {made.within}, above {made.above}, of all money {percent(made.weighted)}: {made.verdict}"
    )
