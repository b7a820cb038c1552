"""Savings from records: which rows count against which baseline, and the figures of a set of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.study.suite import Published

Record = dict[str, Any]
LOW, HIGH = 0.40, 0.70  # the claim
DRAWS, SEED = 4000, 1
LEAST_SOURCES = 3  # fewer say nothing of how far sources differ
AGAINST = {
    "named": "(a) the owner's named cluster, predicted",
    "accelerator": "(b) the cheapest on-demand plan on the same accelerator",
    "sky": "(c) SkyPilot's choice, on demand",
    "sky_spot": "(c) SkyPilot's choice, on spot",
    "owner": "(d) the owner's published hours x list price",
    "owner_corrected": "(d) with the plan's hours times the row's own error of prediction",
}


@dataclass(frozen=True)
class Figures:
    """Savings of some rows; ratios, 1 = all of the baseline saved. NaN where there is no row.

    `low` and `high` bound the median with 90 % (bootstrap over sources); `weighted` is of the total money.
    """

    n: int
    sources: int
    median: float
    low: float
    high: float
    q25: float
    q75: float
    worst: float
    losses: int
    within: int
    above: int
    weighted: float

    @property
    def below(self) -> int:
        """Rows that save less than the claim says."""
        return self.n - self.within - self.above

    @property
    def verdict(self) -> str:
        """Whether the claim of 40-70 % holds of the median."""
        if self.n == 0:
            return "no rows"
        if self.n < 3:
            return f"undecided ({self.n} row{'s' if self.n > 1 else ''})"
        if self.sources < LEAST_SOURCES:
            return f"undecided ({self.n} rows of {self.sources} source{'s' if self.sources > 1 else ''})"
        if self.low >= LOW and self.high <= HIGH:
            return "holds in the median"
        if self.low > HIGH:
            return "more than claimed"
        if self.high < LOW:
            return "does not hold"
        return f"undecided ({percent(self.low)} to {percent(self.high)})"


@dataclass(frozen=True)
class Pair:
    """A row's plan beside what it is compared with, in USD."""

    name: str
    kind: str
    cluster: str
    plan: float
    baseline: float

    @property
    def saving(self) -> float:
        """Share of the baseline that the plan saves; negative: it costs more."""
        return 1.0 - self.plan / self.baseline


def percent(value: float) -> str:
    """A share as text."""
    text = "-" if np.isnan(value) else f"{value:.0%}"
    return "0%" if text == "-0%" else text


def cluster_of(record: Record) -> str:
    """Source repository of a record."""
    return Published(**record["published"]).cluster


def running_error(record: Record, *, as_runs: bool = False) -> float | None:
    """Published over predicted hours of the named baseline; None where either is unknown or the source suspect.

    Like is compared with like: hours that a source multiplies out of a speed with those of the steps, all others with
    those of the whole run.

    Args:
        record: of a workload.
        as_runs: compare every published time with the whole run.
    """
    published, named = Published(**record["published"]), record.get("baseline")
    if named is None or not published.wall_hours or published.suspect:
        return None
    hours = named.get("step_hours") if published.is_of_steps and not as_runs else named["running_hours"]
    return float(published.wall_hours / hours) if hours else None


def baseline_usd(record: Record, against: str) -> tuple[float | None, str]:
    """What a record's plan is compared with, in USD; else None and why not."""
    if record["status"] in ("refused", "failed"):
        return None, f"not planned: {record['status']}"
    named = record["baseline"]
    if named is None:
        unknown = record.get("baseline_fault")
        return None, "baseline is not in the catalog" if unknown else "no baseline in the file"
    if against in ("owner", "owner_corrected"):
        return _owner_usd(record)
    if against == "named":
        return (named["cost_usd"], "") if named["status"] == "ok" else (None, f"baseline {_words(named)}")
    if against == "accelerator":
        step = next((item for item in record["steps"] if item["step"] == "place"), None)
        value = None if step is None else step["cost_usd"]
        return value, "" if value is not None else "no feasible on-demand plan on that accelerator"
    made = record["sky_on_demand" if against == "sky" else "sky_spot"]
    if made is None:
        return None, "SkyPilot's rule has nothing to choose from: no cloud offers that accelerator and count"
    return (made["cost_usd"], "") if made["status"] == "ok" else (None, f"SkyPilot's choice {_words(made)}")


def _words(cluster: Record) -> str:
    status = cluster["status"]
    return {
        "late": "is expected to miss the deadline",
        "does not fit": "cannot run the job (memory, layout, or a network between machines that is not known)",
    }.get(status, f"is {status}")


def _owner_usd(record: Record) -> tuple[float | None, str]:
    published, named = Published(**record["published"]), record["baseline"]
    if published.suspect:
        return None, "published hours contradict physics"
    if not published.wall_hours:
        return None, "no published hours"
    if published.usd:
        return published.usd, ""
    if named["price_per_hour"]:
        return named["price_per_hour"] * named["nodes"] * published.wall_hours, ""
    return None, "no price of the published cluster"


def is_sure(record: Record) -> bool:
    """Whether the baseline meets the deadline as surely as is asked of the plan."""
    named = record.get("baseline")
    return named is not None and "confidence" not in named["note"]


def plan_usd(record: Record, arm: str, against: str, high: bool = False) -> float | None:
    """Cost of a record's plan in an arm, as compared with a baseline; None without a plan.

    Args:
        record: of a workload.
        arm: key of `arms.ARMS`.
        against: key of `AGAINST`; `owner_corrected` multiplies by the row's own error of prediction.
        high: the cost at P90 instead of the expected one.
    """
    plan = record["arms"][arm]
    if plan["status"] != "planned":
        return None
    cost = plan["cost_p90_usd" if high else "cost_usd"]
    if against == "owner_corrected":
        error = running_error(record)
        return None if error is None else cost * error
    return float(cost)


def pairs_of(
    records: Iterable[Record], arm: str, against: str, *, high: bool = False, counted: bool = False
) -> tuple[list[Pair], dict[str, list[str]]]:
    """The rows that count, and the ids of those that do not by reason. Stand-ins (`expressible: no`) never count.

    Args:
        records: of the suite.
        arm: key of `arms.ARMS`.
        against: key of `AGAINST`.
        high: at the plan's P90 cost.
        counted: only plans at prices seen for their place that meet the deadline as surely as asked.
    """
    made: list[Pair] = []
    left_out: dict[str, list[str]] = {}
    for record in records:
        why, pair = _pair(record, arm, against, high)
        if pair is not None and counted:
            why = why_not_counted(record, arm)
        if why:
            left_out.setdefault(why, []).append(record["id"])
        elif pair is not None:
            made.append(pair)
    return made, left_out


def _pair(record: Record, arm: str, against: str, high: bool) -> tuple[str, Pair | None]:
    published = Published(**record["published"])
    if published.expressible == "no":
        return "stand-in: the file cannot express what moves the cost", None
    base, why = baseline_usd(record, against)
    if not base:
        return why or "baseline costs nothing", None
    cost = plan_usd(record, arm, against, high)
    if cost is None:
        status = record["arms"][arm]["status"]
        return ("no published hours to correct by" if status == "planned" else f"{status} in this arm"), None
    return "", Pair(record["id"], published.kind, published.cluster, cost, base)


def why_not_counted(record: Record, arm: str) -> str:
    """Why a plan's saving is not certain enough to count; empty where it is."""
    plan = record["arms"][arm]
    if any(line["price_kind"] not in ("firm", "observed", "listed") for line in plan["lines"]):
        return "price not seen for that place"
    chance = plan["p_meet_deadline"]
    if chance is not None and chance < record["deadline_confidence"]:
        return "P(meet) below what is asked"
    return ""


def figures(pairs: Sequence[Pair]) -> Figures:
    """Figures of some rows."""
    if not pairs:
        nan = float("nan")
        return Figures(0, 0, nan, nan, nan, nan, nan, nan, 0, 0, 0, nan)
    savings = np.asarray([pair.saving for pair in pairs])
    low, high = interval_of_median(savings, [pair.cluster for pair in pairs])
    q25, median, q75 = np.quantile(savings, (0.25, 0.5, 0.75))
    whole = sum(pair.baseline for pair in pairs)
    return Figures(
        n=len(pairs), sources=len({pair.cluster for pair in pairs}),
        median=float(median), low=low, high=high, q25=float(q25), q75=float(q75),
        worst=float(savings.min()), losses=int((savings < -1e-9).sum()),
        within=int(((savings >= LOW) & (savings <= HIGH)).sum()), above=int((savings > HIGH).sum()),
        weighted=1.0 - sum(pair.plan for pair in pairs) / whole,
    )  # fmt: skip


def interval_of_median(values: np.ndarray[Any, Any], clusters: Sequence[str]) -> tuple[float, float]:
    """90 % interval of the median: sources are drawn with replacement, with all their rows."""
    names = sorted(set(clusters))
    of_source = [values[np.asarray(clusters) == name] for name in names]
    rng, medians = np.random.default_rng(SEED), list[float]()
    for _ in range(DRAWS if len(names) > 1 else 1):
        sources = rng.integers(len(names), size=len(names))
        drawn = np.sort(np.concatenate([of_source[at] for at in sources]))
        medians.append((drawn[(len(drawn) - 1) // 2] + drawn[len(drawn) // 2]) / 2.0)
    low, high = np.quantile(medians, (0.05, 0.95))
    return float(low), float(high)
