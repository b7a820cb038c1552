"""The renewal model of spot written apart: hours, interruptions and the chance of a deadline, one job at a time.

It follows docs/risk.md, not the code of `planner.spot`: scalars instead of arrays, the exact normal distribution
instead of a table, quadrature nodes from numpy. The two agree within the tolerances that docs/optimisation/verify.md
states, as long as both evaluate the model rightly.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache, cached_property
from math import cbrt, ceil, erfc, exp, expm1, inf, isfinite, log, log1p, sqrt
from pathlib import Path
from statistics import NormalDist

from planner.records import record

POOLS = Path(__file__).parents[1] / "data" / "spot" / "pools.csv"
CALIBRATION = POOLS.with_name("meet_calibration.csv")
LARGEST_EXPONENT = 700.0
_FAR = 8.0  # standard deviations beyond which a chance counts as 0 or 1


@record(frozen=True)
class Capacity:
    """How a gang's capacity comes and goes: interruptions per up-hour, mean waits in hours, spread."""

    rate: float
    wait: float
    first_wait: float
    frailty_sd: float
    dispersion: float

    def level(self, sign: float) -> Capacity:
        """Mean levels from medians (1), or back (-1)."""
        factor = exp(sign * self.frailty_sd**2 / 2.0)
        return Capacity(
            self.rate * factor, self.wait * factor, self.first_wait * factor, self.frailty_sd, self.dispersion
        )


@cache
def recorded() -> dict[tuple[str, str, str, str], tuple[list[list[float]], str]]:
    """Recorded pools: (gang, rate, wait, first wait, frailty, dispersion, observed) per gang, and the source."""
    pools: dict[tuple[str, str, str, str], tuple[list[list[float]], str]] = {}
    with POOLS.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        for provider, kind, region, zone, *numbers, source in rows:
            at = pools.setdefault((provider, kind, region, zone), ([], source))
            at[0].append([float(number) for number in numbers])
    return pools


def nearest_pool(
    provider: str, kind: str, region: str, zone: str, accelerators: float
) -> tuple[list[list[float]], str] | None:
    """Record of the zone, its region, the type, or another size of its family, its gangs counted in instances."""
    family = f"{kind.split('.', 1)[0].split('-', 1)[0]}*"
    for name in (kind, family):
        for place in ((region, zone), (region, ""), ("", "")):
            if (provider, name, *place) in recorded():
                rows, source = recorded()[(provider, name, *place)]
                if name == family:  # counted in accelerators
                    rows = [[gang / max(accelerators, 1.0), *figures] for gang, *figures in rows]
                return rows, source
    return None


def between_gangs(rows: list[list[float]], nodes: float) -> tuple[Capacity, float]:
    """Figures of a gang between those recorded, straight in logarithms, constant beyond them.

    Returns:
        The figures, and the share of time up in the records.
    """
    rows = sorted(rows)
    place = min(max(log(nodes), log(rows[0][0])), log(rows[-1][0]))
    low = max(k for k in range(len(rows)) if log(rows[k][0]) <= place)
    high = min(low + 1, len(rows) - 1)
    gap = log(rows[high][0]) - log(rows[low][0])
    share = (place - log(rows[low][0])) / gap if gap else 0.0
    figures = (
        exp(log(a) * (1.0 - share) + log(b) * share)
        for a, b in zip(rows[low][1:-1], rows[high][1:-1], strict=True)
    )
    return Capacity(*figures), rows[low][-1] * (1.0 - share) + rows[high][-1] * share


@cache
def _calibration() -> tuple[float, float]:
    """Slope and shift of the log odds of plans' chances."""
    with CALIBRATION.open(encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["estimator"] == "renewal")
    return float(row["slope"]), float(row["shift"])


def calibrated(chance: float) -> float:
    """A chance of the model as it came true on recorded days."""
    slope, shift = _calibration()
    if not 0.0 < chance < 1.0:
        return min(max(chance, 0.0), 1.0)
    return 1.0 / (1.0 + exp(-shift - slope * log(chance / (1.0 - chance))))


def model_chance(chance: float) -> float:
    """The model's chance behind a calibrated one."""
    slope, shift = _calibration()
    if not 0.0 < chance < 1.0:
        return min(max(chance, 0.0), 1.0)
    return 1.0 / (1.0 + exp((shift - log(chance / (1.0 - chance))) / slope))


@record(frozen=True)
class Course:
    """Work in hours, cut by checkpoints: `segments` whole intervals and a remainder; `scale` slows the work."""

    work: float
    interval: float
    write: float
    restart: float
    notice: float
    scale: float = 1.0

    @property
    def segments(self) -> float:
        """Whole intervals, each ended by a checkpoint; the end of the work seals itself."""
        if not isfinite(self.interval):
            return 0.0
        return max(ceil(self.work / self.interval - 1e-9) - 1.0, 0.0) * self.scale

    @property
    def remainder(self) -> float:
        """Work behind the last checkpoint."""
        whole = self.segments / self.scale * self.interval if self.segments else 0.0
        return (self.work - whole) * self.scale

    @property
    def floor(self) -> float:
        """Hours if nothing is interrupted."""
        return self.work * self.scale + self.segments * self.write

    @property
    def saved(self) -> bool:
        """Whether a checkpoint fits into the warning."""
        return self.notice >= self.write

    def slower(self, factor: float) -> Course:
        """The same with the work times `factor`."""
        return Course(self.work, self.interval, self.write, self.restart, self.notice, self.scale * factor)


def _mean_part(y: float) -> float:
    """E[X | X < c] / c, X exponential, y = rate c."""
    return 0.5 - y / 12.0 if y < 1e-2 else 1.0 / y - 1.0 / expm1(min(y, LARGEST_EXPONENT))


def _square_part(y: float) -> float:
    """E[X^2 | X < c] / c^2."""
    if y < 2e-2:
        return 1.0 / 3.0 - y / 12.0 + y * y / 360.0
    y = min(y, LARGEST_EXPONENT)
    return 2.0 / y**2 - (1.0 + 2.0 / y) / expm1(y)


def _attempts(rate: float, need: float, wait: float) -> tuple[float, float]:
    """Mean and variance of the time until `need` hours in a row are had; failed attempts are geometric in number."""
    y = rate * need
    odds = expm1(min(y, LARGEST_EXPONENT))
    up = need * _mean_part(y)
    lap = up + wait
    of_lap = max(need * need * _square_part(y) - up * up, 0.0) + wait * wait
    return need + odds * lap, odds * of_lap + odds * (1.0 + odds) * lap * lap


def _segment_variance(rate: float, length: float, restart: float, wait: float) -> float:
    """Variance of a segment of `length` up-hours whose first attempt needs no restart."""
    y = rate * length
    fails = -expm1(-y)
    up = length * _mean_part(y)
    again, of_again = _attempts(rate, restart + length, wait)
    late = up + wait + again
    of_late = max(length * length * _square_part(y) - up * up, 0.0) + wait * wait + of_again
    mean = exp(-y) * length + fails * late
    return max(exp(-y) * length * length + fails * (of_late + late * late) - mean * mean, 0.0)


def paid_hours(course: Course, rate: float) -> float:
    """Mean up-time: e^(L d) (e^(L x) - 1) / L a segment (Daly 2006); what is saved in time loses its notice alone."""
    if course.saved:
        return course.floor * exp(min(rate * (course.restart + course.notice), LARGEST_EXPONENT))

    def segment(length: float) -> float:
        y = rate * length
        grown = 1.0 if y < 1e-8 else expm1(min(y, LARGEST_EXPONENT)) / y
        return length * grown * exp(min(rate * course.restart, LARGEST_EXPONENT))

    whole = course.interval + course.write if course.segments else 0.0
    return course.segments * segment(whole) + segment(course.remainder)


def elapsed_variance(course: Course, rate: float, wait: float) -> float:
    """Variance of the elapsed time at a rate of interruptions, each followed by a wait of this mean."""
    if course.saved:
        back, of_back = _attempts(rate, course.restart + course.notice, wait)
        pause = wait + back
        return rate * course.floor * (wait * wait + of_back + pause * pause)
    whole = course.interval + course.write if course.segments else 0.0
    return course.segments * _segment_variance(rate, whole, course.restart, wait) + _segment_variance(
        rate, course.remainder, course.restart, wait
    )


@record(frozen=True)
class Means:
    """Expected hours and interruptions; `lost` is paid without progress."""

    elapsed: float
    paid: float
    interruptions: float
    lost: float


def means(course: Course, pool: Capacity) -> Means:
    """Expected course of a job, averaged over the frailty of its interruptions by two points."""
    elapsed = paid = count = 0.0
    for sign in (-1.0, 1.0):
        rate = pool.rate * exp(pool.frailty_sd * sign - pool.frailty_sd**2 / 2.0)
        up = paid_hours(course, rate)
        down = rate * pool.wait / (1.0 + rate * pool.wait)
        elapsed += 0.5 * (max(up, course.floor) + rate * up * pool.wait + pool.first_wait * down)
        paid += 0.5 * up
        count += 0.5 * rate * up
    return Means(elapsed, paid, count, max(paid - course.floor, 0.0))


def normal(x: float) -> float:
    """Standard normal distribution function, 0 and 1 beyond eight standard deviations."""
    return 0.0 if x <= -_FAR else 1.0 if x >= _FAR else 0.5 * erfc(-x / sqrt(2.0))


def normal_point(level: float) -> float:
    """Its inverse."""
    if not 0.0 < level < 1.0:
        return -_FAR if level <= 0.0 else _FAR
    return min(max(NormalDist().inv_cdf(level), -_FAR), _FAR)


class Skewed:
    """A positive variable of given mean and variance: gamma (Wilson and Hilferty 1931) and log-normal."""

    def __init__(self, mean: float, variance: float) -> None:
        """Take mean and variance."""
        self.mean, self.square = mean, max(variance / (mean * mean), 1e-12)

    def gamma(self, x: float) -> float:
        """Distribution function of the gamma form."""
        if x < 0:
            return 0.0
        root = cbrt(x / self.mean)
        return normal((root - (1.0 - self.square / 9.0)) / (sqrt(self.square) / 3.0))

    def lognormal(self, x: float) -> float:
        """Distribution function of the log-normal form."""
        if x <= 0:
            return 0.0
        spread = log1p(self.square)
        return normal((log(x) - log(self.mean) + spread / 2.0) / sqrt(spread))

    def gamma_at(self, level: float) -> float:
        """Quantile of the gamma form."""
        root = 1.0 - self.square / 9.0 + normal_point(level) * sqrt(self.square) / 3.0
        return self.mean * max(root, 0.0) ** 3

    def lognormal_at(self, level: float) -> float:
        """Quantile of the log-normal form."""
        spread = log1p(self.square)
        return self.mean * exp(normal_point(level) * sqrt(spread) - spread / 2.0)


class Elapsed:
    """The elapsed time of a job: the undisturbed one with chance `still`, else more by a skewed excess."""

    def __init__(self, course: Course, pool: Capacity) -> None:
        """Average the moments over three frailties of the interruptions; those of the waits scale the waits."""
        self.floor = course.floor
        spread = expm1(pool.frailty_sd**2)
        total = square = paid = still = within = 0.0
        points = ((-sqrt(3.0), 1 / 6), (0.0, 2 / 3), (sqrt(3.0), 1 / 6)) if pool.frailty_sd else ((0.0, 1.0),)
        for node, weight in points:
            rate = pool.rate * exp(pool.frailty_sd * node - pool.frailty_sd**2 / 2.0)
            ready = 1.0 / (1.0 + rate * pool.wait)
            up = paid_hours(course, rate)
            over = max(up - self.floor, 0.0)
            start = pool.first_wait * (1.0 - ready)
            waits = rate * up * pool.wait + start
            chance = (
                elapsed_variance(course, rate, pool.wait) * pool.dispersion
                + 2.0 * pool.first_wait**2 * (1.0 - ready)
                - start * start
            )
            mean = over + waits
            total += weight * mean
            paid += weight * over
            within += weight * chance
            square += weight * (chance * (1.0 + spread) + waits * waits * spread + mean * mean)
            still += weight * ready * exp(-rate * self.floor)
        moved = max(1.0 - still, 1e-300)
        self.still, self.mean = still, total / moved
        self.variance = max(square / moved - self.mean**2, 0.0)
        self.paid_share = paid / total if total > 0 else 0.0
        whole = square - total * total
        self.skew = min(max(1.0 - within / whole, 0.0), 1.0) if whole > 0 else 0.0
        self.calm = still >= 1.0 or self.mean <= 1e-12

    @cached_property
    def _excess(self) -> Skewed:
        return Skewed(self.mean, self.variance)

    def _blend(self, even: Callable[[Skewed], float], skewed: Callable[[Skewed], float]) -> float:
        return (1.0 - self.skew) * even(self._excess) + self.skew * skewed(self._excess)

    @property
    def said_still(self) -> float:
        """Calibrated chance of the undisturbed time."""
        return 1.0 if self.calm else calibrated(self.still)

    def said_moved(self, hours: float) -> float:
        """P(elapsed <= hours, and more than undisturbed), calibrated."""
        if self.calm:
            return 0.0
        return calibrated(min(self.still + self.moved(hours), 1.0)) - self.said_still

    def moved(self, hours: float) -> float:
        """P(elapsed <= hours, and more than undisturbed)."""
        if self.calm:
            return 0.0
        x = hours - self.floor
        late = 1.0 if x == inf else self._blend(lambda e: e.gamma(x), lambda e: e.lognormal(x))
        return (1.0 - self.still) * late

    def within(self, hours: float) -> float:
        """P(elapsed <= hours)."""
        if hours < self.floor * (1.0 - 1e-9):
            return 0.0
        return min((1.0 if self.calm else self.still) + self.moved(hours), 1.0)

    def excess_within(self, hours: float) -> float:
        """E[excess, where elapsed <= hours]."""
        if self.calm:
            return 0.0
        x, grown = hours - self.floor, 1.0 + self.variance / self.mean**2
        share = (1.0 - self.skew) * Skewed(self.mean * grown, self.variance * grown).gamma(
            x
        ) + self.skew * Skewed(self.mean * grown, self.variance * grown * grown).lognormal(x)
        return min((1.0 - self.still) * self.mean * share, max(x, 0.0) * self.moved(hours))

    def at(self, level: float) -> tuple[float, float]:
        """Elapsed and paid hours that are not exceeded with chance `level`."""
        if self.calm:
            return self.floor, self.floor
        inside = min(max((level - self.still) / max(1.0 - self.still, 1e-300), 0.0), 1.0)
        if inside <= 0.0:
            return self.floor, self.floor
        excess = self._blend(lambda e: e.gamma_at(inside), lambda e: e.lognormal_at(inside))
        return self.floor + excess, self.floor + excess * self.paid_share


@cache
def _normal_quadrature(points: int) -> tuple[tuple[float, float], ...]:
    from numpy.polynomial.hermite_e import hermegauss

    nodes, weights = hermegauss(points)
    return tuple(zip(nodes.tolist(), (weights / weights.sum()).tolist(), strict=True))


def chance_within(course: Course, pool: Capacity, hours: float, sigma: float, more: float = 0.0) -> float:
    """Calibrated P(a job on spot ends within `hours`, `more` of them left), the log of its speed off by `sigma`."""
    if hours <= 0.0:
        return 0.0
    if not sigma:
        return calibrated(Elapsed(course, pool).within(hours - more))
    moved = still = 0.0
    for node, weight in _normal_quadrature(7):
        slower = exp(sigma * node)
        elapsed = Elapsed(course.slower(slower), pool)
        moved += weight * elapsed.said_moved(hours - more * slower)
        still += weight * elapsed.said_still
    return min(still * normal(log(hours / (course.floor + more)) / sigma) + moved, 1.0)


def steady_chance(need: float, hours: float, sigma: float) -> float:
    """P(work that takes `need` hours on capacity nobody takes back ends within `hours`)."""
    if hours <= 0.0:
        return 0.0
    room = log(hours / need)
    return normal(room / sigma) if sigma > 0 else float(room >= -1e-12)
