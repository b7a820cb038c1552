"""Spread of the spot hazards per level, gang exponent, correlation of zones and price slope: hazard_scales.csv.

`python -m benchmarks.fit_spot_scales --traces DIR [--days 4]`

Records are cut into windows of `--days`. The log level of each window against one common age shape is normal around
its zone, region and pool: variances by restricted maximum likelihood (Poisson noise `1 / (N + 1/2)` known), with the
gang exponent as a fixed effect. Correlations are of availability per tick; `simulated` is what the bundled weather
gives for the same tables. Days that zones share: the same variances with the mean of a pool's window, and of a
region's, as effects of their own, for records at half of the gang that was asked for; futures of weather alone say how
much of them is weather, and `days_sd` is what is left. The spread of the gang exponent is that of zones seen at several
gangs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.fit_spot import traces_of_file
from catalogs.tables.table import Floats
from planner.records import record
from planner.spot.futures import sample_futures
from planner.spot.hazards import fit_hazards
from planner.spot.hazards_cells import (
    N_AGES,
    HazardCell,
    age_bucket,
    plain_type,
    plain_zone,
    spell_age_ticks,
)
from planner.spot.hazards_shrink import common_shape
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.trace import ZoneTrace
from planner.spot.traces.run_length import read_run_length

_DRAWS = 6  # futures of weather alone
_FEW = 3  # ends at a gang: fewer say little of a slope


@record(frozen=True, eq=False)
class Window:
    """Counts of one side over some days of one zone: hours and ends by age."""

    trace: ZoneTrace
    number: int
    hours: Floats
    ends: Floats


def windows(trace: ZoneTrace, days: float, side_up: bool) -> list[Window]:
    """A record cut into windows of about `days`; ages run on over the cuts."""
    age = age_bucket(spell_age_ticks(trace.up)[:-1] * trace.tick_hours)
    here = trace.up[:-1] if side_up else ~trace.up[:-1]
    end = here & (trace.up[1:] != trace.up[:-1])
    n = max(1, round(trace.hours / (24.0 * days)))
    out = []
    for number, part in enumerate(np.array_split(np.arange(len(here)), n)):
        ends = np.bincount(age[part][end[part]], minlength=N_AGES).astype(float)
        hours = np.bincount(age[part][here[part]], minlength=N_AGES) * trace.tick_hours
        out.append(Window(trace, number, hours - ends * trace.tick_hours / 2.0, ends))
    return out


def spread(found: Sequence[Window], *, days: bool = False) -> tuple[Floats, Floats, Floats]:
    """Sds of drift, zone, region and pool; intercept and gang exponent; standard errors of the latter two.

    With `days` the sds of a pool's window and of a region's window follow those of the pool; drift is what is left to
    single zones.
    """
    ends, hours = np.stack([w.ends for w in found]), np.stack([w.hours for w in found])
    same: dict[object, int] = {}
    probes = [(w.trace.source, w.trace.zone, w.trace.instance_type) for w in found]
    for one in probes:
        same[one] = same.get(one, 0) + 1
    shape, _ = common_shape(ends, hours, np.asarray([1.0 / same[one] for one in probes]))
    count, expected = ends.sum(axis=1), hours @ shape
    used = np.flatnonzero(expected > 1.0).tolist()
    level = np.log((count + 0.5) / (expected + 0.5))[used]
    noise = 1.0 / (count + 0.5)[used]
    traces = [found[i].trace for i in used]
    pool = [(plain_type(t.instance_type), t.gang) for t in traces]
    region = [(*p, t.region) for p, t in zip(pool, traces, strict=True)]
    zone = [(*r, plain_zone(t.zone)) for r, t in zip(region, traces, strict=True)]
    when = [(found[i].trace.source, found[i].trace.start, found[i].number) for i in used]
    levels: list[Sequence[object]] = [zone, region, pool]
    if days:
        levels += [list(zip(pool, when, strict=True)), list(zip(region, when, strict=True))]
    blocks = [np.asarray([[a == b for b in keys] for a in keys], dtype=float) for keys in levels]
    design = np.stack([np.ones(len(used)), np.log([t.gang for t in traces])], axis=1)
    return _restricted_likelihood(level, noise, blocks, design)


def _restricted_likelihood(
    level: Floats, noise: Floats, blocks: Sequence[Floats], design: Floats
) -> tuple[Floats, Floats, Floats]:
    """Sds of what is left and of each block's effect; fixed effects and their standard errors."""
    from scipy.optimize import minimize

    def parts(log_sd: Floats) -> tuple[float, Floats, Floats]:
        variance = np.exp(2.0 * log_sd)
        total = np.diag(noise + variance[0])
        for v, block in zip(variance[1:], blocks, strict=True):
            total = total + v * block
        lower = np.linalg.cholesky(total)
        x, y = np.linalg.solve(lower, design), np.linalg.solve(lower, level)
        gram = x.T @ x
        beta = np.linalg.solve(gram, x.T @ y)
        rest = y - x @ beta
        loss = 0.5 * rest @ rest + np.log(np.diag(lower)).sum() + 0.5 * np.linalg.slogdet(gram)[1]
        return float(loss), beta, np.sqrt(np.diag(np.linalg.inv(gram)))

    first = np.log(np.full(len(blocks) + 1, 0.4))
    best = minimize(lambda p: parts(p)[0], first, method="Nelder-Mead", options={"maxiter": 2000}).x
    _, beta, error = parts(best)
    return np.exp(best), beta, error


def exponent_spread(cells: Sequence[HazardCell], shape: Floats, up: bool) -> tuple[float, float, int]:
    """Mean of the gang exponents of zones, their spread beyond noise, and how many zones were seen at several gangs.

    A zone's exponent is the slope of `log((N + 1/2) / (E + 1/2))` over log gang, N ends where `shape` expects E, gangs
    weighted by `N + 1/2`. Between zones: the moment estimator of DerSimonian and Laird (Controlled Clinical Trials
    7(3), 1986). Gangs of a zone are cut from the same probes, so noise is if anything taken too large.

    Args:
        cells: counts of zones at gangs.
        shape: hazard per hour by age, shape `(k,)`.
        up: ends of up spells, else of down spells.
    """
    seen: dict[object, list[tuple[float, float, float]]] = {}
    for cell in cells:
        ends, hours = (cell.downs, cell.up_hours) if up else (cell.ups, cell.down_hours)
        if not cell.never_up and ends.sum() >= _FEW:
            same = (cell.source, cell.as_of, cell.instance_type, cell.zone)
            seen.setdefault(same, []).append((cell.gang, float(ends.sum()), float(hours @ shape)))
    slopes, precisions = [], []
    for rows in seen.values():
        gang, count, expected = np.asarray(rows).T
        x, weight = np.log(gang), count + 0.5
        x = x - np.average(x, weights=weight)
        if (precision := float((weight * x * x).sum())) > 0:
            slopes.append(float((weight * x * np.log(weight / (expected + 0.5))).sum()) / precision)
            precisions.append(precision)
    slope, trust = np.asarray(slopes), np.asarray(precisions)
    mean = float(np.average(slope, weights=trust))
    beyond = float((trust * (slope - mean) ** 2).sum()) - (len(slope) - 1)
    total = float(trust.sum())
    variance = max(beyond / (total - float((trust**2).sum()) / total), 0.0)
    return mean, variance**0.5, len(slope)


def weather_alone(traces: Sequence[ZoneTrace], seed: int) -> list[ZoneTrace]:
    """The same records as the bundled weather would have them, without frailty."""
    model = fit_hazards(traces)
    zones = tuple(SpotZone(t.zone, t.region, t.instance_type, 1.0, t.provider, t.gang) for t in traces)
    tables = {z.name: replace(model.table_for(z), frailty_sd_down=0.0, frailty_sd_up=0.0) for z in zones}
    n = max(len(t.up) for t in traces)
    drawn = sample_futures(SpotJob(1.0, 1.0, 0.0, 1.0, zones), tables, 1, n, seed)[0]
    return [replace(t, up=up[: len(t.up)]) for t, up in zip(traces, drawn, strict=True)]


def correlations(path: Path) -> str:
    """Mean correlation of availability within and across regions of one file, recorded and simulated."""
    traces = [t for t in read_run_length(path) if 0.02 < t.up.mean() < 0.98]
    model = fit_hazards(traces)
    zones = tuple(SpotZone(t.zone, t.region, t.instance_type, 1.0, t.provider, t.gang) for t in traces)
    tables = {z.name: model.table_for(z) for z in zones}
    n = min(len(t.up) for t in traces)
    made = sample_futures(SpotJob(1.0, 1.0, 0.0, 1.0, zones), tables, 20, n, 1)
    real = np.corrcoef(np.stack([t.up[:n] for t in traces]).astype(float))
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = np.nanmean([np.corrcoef(one.astype(float)) for one in made], axis=0)
    pairs = [(i, j) for i in range(len(traces)) for j in range(i)]
    kinds = {
        "same region and type": [(i, j) for i, j in pairs if _near(traces[i], traces[j])],
        "other region": [(i, j) for i, j in pairs if traces[i].region != traces[j].region],
    }
    return "; ".join(
        f"{kind} {np.mean([real[p] for p in at]):.2f} (simulated {np.mean([drawn[p] for p in at]):.2f})"
        for kind, at in kinds.items()
        if at
    )


def _near(a: ZoneTrace, b: ZoneTrace) -> bool:
    return a.region == b.region and a.instance_type == b.instance_type


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--days", type=float, default=4.0)
    given = parser.parse_args()
    files = sorted(given.traces.glob("*.json"))
    by_file = [traces_of_file(path) for path in files]
    traces = [trace for found in by_file for trace in found]
    halves = [[t for t in found if t.gang == max(found[-1].gang // 2, 1)] for found in by_file]
    drawn = [[t for found in halves for t in weather_alone(found, seed)] for seed in range(_DRAWS)]
    whole = fit_hazards(traces)
    for name, up in (("down", True), ("up", False)):
        sds, beta, error = spread([w for trace in traces for w in windows(trace, given.days, up)])
        levels = " ".join(
            f"{k} {v:.2f}" for k, v in zip(("drift", "zone", "region", "pool"), sds, strict=True)
        )
        print(f"{name:5s} sd of {levels}; gang exponent {beta[1]:+.3f} (s.e. {error[1]:.3f})")
        mean, alike, n = exponent_spread(whole.cells, whole.sides["down" if up else "up"].shape, up)
        print(
            f"      gang exponent of {n} zones seen at several gangs {mean:+.3f}, sd from zone to zone {alike:.3f}"
        )
        records, *weather = (
            spread([w for t in found for w in windows(t, given.days, up)], days=True)[0]
            for found in ([t for found in halves for t in found], *drawn)
        )
        variance = float(np.mean([np.square(sds[4:]).sum() for sds in weather]))
        left = max(float(np.square(records[4:]).sum()) - variance, 0.0) ** 0.5
        print(
            f"      days shared: sd of a zone's own drift {records[0]:.2f}, of days {records[4]:.2f}, of days in a "
            f"region {records[5]:.2f}; weather alone {variance**0.5:.2f}; left {left:.2f}"
        )
    for path in files:
        print(f"{path.stem:28s} correlation {correlations(path)}")


if __name__ == "__main__":
    main()
