"""What stops and checkpoints leave of the time in which a cluster trains.

Stops come at a rate that grows with the accelerators; each costs half a checkpoint interval, the time to find the fault
and restart, and the wait for a spare. To first order the closed form of Kokolis et al. (arXiv 2410.21680, section 4):

    ETTR = 1 / ((1 + w / D) (1 + N / M (D / 2 + u + q)))

The hours of a run are those of its work over ETTR. Other losses (evaluation, slow hosts, replays) are part of its work,
in `beside_steps_ratio` and `evaluation_share_ratio`; what a site loses of them more or less than a typical one is part
of the range.

N accelerators, M accelerator-hours per stop, D checkpoint interval, w stall of a checkpoint, u recovery, q wait for a
spare, all in hours. D = sqrt(2 w M / N) is the best interval (Young 1974), kept within bounds.

Who trains on thousands of accelerators has to repair by itself, and such operators report 0.9 and more. So beyond
`hardened_from` accelerators a typical site keeps what it reached there, as far as a hardened one could at that size,
and a first large run likewise against a typical site (the worst that is published is 0.67 to 0.71, on 1,024 to 6,144).
"""

from __future__ import annotations

import math
from functools import cache

from planner.bundled import bundled_rows
from planner.records import record

TYPICAL, LOW, HIGH = "typical", "first", "hardened"
SECONDS = 3600.0


@record(frozen=True)
class Site:
    """How reliable a cluster is and how it is run (data/goodput.csv)."""

    gpu_hours_per_stop: float
    recovery_hours: float
    checkpoint_stall_s: float
    other_loss_ratio: float
    spare_wait_hours: float
    shortest_interval_hours: float
    longest_interval_hours: float
    startup_hours: float
    hardened_from: float


@record(frozen=True)
class Goodput:
    """Shares of the wall time of a run, and its checkpoint interval.

    Attributes:
        kept_ratio: what stops and checkpoints leave of the wall time, start-up apart.
        low_ratio, high_ratio: the same at a first large run with manual restarts and at a hardened site, times what
            other losses leave there over what they leave at a typical site.
        stops: expected stops in the run's hours.
        interval_hours: best time between checkpoints.
    """

    kept_ratio: float
    low_ratio: float
    high_ratio: float
    stops: float
    interval_hours: float


@cache
def load_site(name: str) -> Site:
    """Read one preset of data/goodput.csv, with what holds for all.

    Raises:
        KeyError: there is no preset of that name.
    """
    rows = bundled_rows("goodput.csv")
    if name not in {row["site"] for row in rows}:
        raise KeyError(name)
    return Site(**{row["name"]: float(row["value"]) for row in rows if row["site"] in (name, "all")})


def checkpoint_interval_hours(site: Site, accelerators: float) -> float:
    """Best time between checkpoints, hours."""
    stall = site.checkpoint_stall_s / SECONDS
    best = math.sqrt(2.0 * stall * site.gpu_hours_per_stop / accelerators)
    return min(max(best, site.shortest_interval_hours), site.longest_interval_hours)


def kept_ratio(site: Site, accelerators: float) -> float:
    """What stops and checkpoints leave of the wall time of a synchronous job on `accelerators` devices, 0..1."""
    interval = checkpoint_interval_hours(site, accelerators)
    stall = site.checkpoint_stall_s / SECONDS / interval
    lost = interval / 2.0 + site.recovery_hours + site.spare_wait_hours
    return 1.0 / ((1.0 + stall) * (1.0 + accelerators / site.gpu_hours_per_stop * lost))


def _of_scale(site: Site, better: Site, accelerators: float) -> float:
    """`kept_ratio` of a site whose operator learns with its size: what a `better` one reaches bounds that."""
    alone = kept_ratio(site, accelerators)
    if accelerators <= site.hardened_from:
        return alone
    learnt = min(kept_ratio(site, site.hardened_from), kept_ratio(better, accelerators))
    return max(alone, learnt)


def estimate_goodput(accelerators: float, work_hours: float) -> Goodput:
    """What is left of a run of `work_hours` hours of work on a typical site, with its range."""
    first, site, best = (load_site(name) for name in (LOW, TYPICAL, HIGH))
    low, kept, high = (
        _of_scale(own, better, accelerators) for own, better in ((first, site), (site, best), (best, best))
    )
    usual = 1.0 - site.other_loss_ratio
    return Goodput(
        kept,
        low * (1.0 - first.other_loss_ratio) / usual,
        high * (1.0 - best.other_loss_ratio) / usual,
        stops=accelerators * work_hours / kept / site.gpu_hours_per_stop,
        interval_hours=checkpoint_interval_hours(site, accelerators),
    )
