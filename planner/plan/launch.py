"""What a plan with spot says before it starts: a part of the plan (`planner.plan.model`), by units in the key names."""

from __future__ import annotations

import hashlib
import json
from dataclasses import field, fields
from decimal import Decimal
from typing import Literal

from planner.records import record


@record(frozen=True)
class Checkpoints:
    """How a run on spot saves its work, and whether the provider's warning is long enough for a last save.

    `write_s` is the time of one checkpoint, `stored_in` the place of the object store it is written to; `notice_s` is
    None where the provider warns of nothing that is known. `read_s` is the time to read one back; `restart_s`, from
    capacity back to the first useful step, holds it unless the workload gives a restart of its own. Both are None in
    plans saved before they were stated.
    """

    size_gib: float
    interval_hours: float
    write_s: float
    stored_in: str
    notice_s: float | None
    notice_source: str
    fits_in_notice: bool
    read_s: float | None = None
    restart_s: float | None = None


@record(frozen=True)
class SpotRecords:
    """What your own records say of the spells of one zone, at the gang of the plan: `planner advise` decides by it.

    `down_per_hour` and `up_per_hour` are the hazards of leaving up and of leaving down by the age of the spell
    (`planner.spot.hazards_cells.AGE_EDGES_HOURS`), `frailty_sd_*` the sd of the log of their levels, `hours_seen` the
    hours of record behind them, and `source` says which records.
    """

    down_per_hour: tuple[float, ...]
    up_per_hour: tuple[float, ...]
    frailty_sd_down: float
    frailty_sd_up: float
    hours_seen: float
    source: str


@record(frozen=True)
class SpotHazards:
    """What the planner knew of the spells of one place at the gang of the plan, when the plan was saved to a file.

    `planner advise` decides by it without fitting the bundled records again, unless the user names records. The fields
    are those of `planner.spot.hazards_table.HazardTable`; `sha256` is over all others (`hazards_sha256`), so a table
    that something else changed is not used.
    """

    age_edges_hours: tuple[float, ...]
    down_per_hour: tuple[float, ...]
    up_per_hour: tuple[float, ...]
    frailty_sd_down: float
    frailty_sd_up: float
    hours_seen: float
    of_family: bool
    observed_ratio: float | None
    source: str
    sha256: str


def hazards_sha256(hazards: SpotHazards) -> str:
    """Hash of a table's JSON with sorted keys and no spaces, without its own hash."""
    values = {item.name: getattr(hazards, item.name) for item in fields(hazards) if item.name != "sha256"}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@record(frozen=True)
class SpotPlace:
    """One zone (or region, where the catalog knows no zones) that spot is taken in, and the evidence on it.

    `spot_hours` are expected there; `mean_up_hours`, `mean_wait_hours` and `availability_ratio` are the model's for the
    whole gang, `observed_ratio` is the share of time up in the records behind them as seen, None without a record.
    `records` holds your own records where the plan rests on them, `hazards` the planner's where the plan was saved to
    a file that `planner advise` can follow.
    """

    offer_id: str
    spot_hours: float
    mean_up_hours: float
    mean_wait_hours: float
    availability_ratio: float
    observed_ratio: float | None = field(
        default=None, kw_only=True
    )  # older plans lack it; its place in files stays
    evidence: str
    records: SpotRecords | None = None
    hazards: SpotHazards | None = None


@record(frozen=True)
class Replay:
    """A second opinion on the plan: replays on futures drawn from hazards by age, under the policy named."""

    policy: str
    futures: int
    expected_cost_usd: Decimal
    cost_p10_usd: Decimal
    cost_p90_usd: Decimal
    p10_hours: float
    p90_hours: float
    p_meet_deadline: float
    p_meet_spot_only_ratio: float
    expected_interruptions: float
    spot_hours: float
    on_demand_hours: float


@record(frozen=True)
class Launch:
    """What to expect of a plan with spot, as known before it starts.

    Attributes:
        strategy: `spot`; `spot_with_fallback` (on-demand takes over at the last moment that meets the deadline);
            `spot_with_steady` (some instances are bought otherwise and run beside spot); `spot_in_fleet` (independent
            workers; hours are summed over them); `fallback_in_fleet` (workers on the first line fall back on the
            second, others are on the third; of the probability of the deadline a lower bound).
        p_meet_deadline: None without a deadline; with a fall-back, by spot or by on-demand, whichever comes.
        p_meet_spot_only_ratio: the same without on-demand.
        p_on_demand_needed_ratio: 0 without a fall-back.
        spot_hours, on_demand_hours: expected, paid, of the whole cluster.
        waiting_hours: expected for spot capacity; lost_hours: paid without progress.
        cost_p10_usd, cost_p90_usd: over interruptions, speed and spot prices.
        p10_hours, p90_hours, finish_p10, finish_p90: over interruptions and speed.
        on_demand_acquire_s: assumed; left from asking for on-demand to having it.
        p_on_demand_had_ratio: probability that the fall-back comes within that time (planner/data/waiting.csv,
            constraints.waiting); None without one.
        first_wait_hours: expected from asking for spot to the first start, on-demand's where that takes over before;
            0 of a fleet on spot alone: workers start one by one.
        why: why this way to buy, against the others.
        notes: what the answer cannot know.
        replay: of the plan on drawn futures (`--replays`), None without.
    """

    strategy: Literal["spot", "spot_with_fallback", "spot_with_steady", "spot_in_fleet", "fallback_in_fleet"]
    p_meet_deadline: float | None
    p_meet_spot_only_ratio: float | None
    p_on_demand_needed_ratio: float
    expected_cost_usd: Decimal
    cost_p10_usd: Decimal
    cost_p90_usd: Decimal
    expected_hours: float
    p10_hours: float
    p90_hours: float
    finish_p10: str
    finish_p90: str
    expected_interruptions: float
    spot_hours: float
    on_demand_hours: float
    waiting_hours: float
    lost_hours: float
    on_demand_acquire_s: float
    checkpoints: Checkpoints
    places: tuple[SpotPlace, ...]
    why: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    replay: Replay | None = None
    first_wait_hours: float = 0.0
    p_on_demand_had_ratio: float | None = None

    @property
    def in_turn(self) -> bool:
        """Whether the whole cluster is on one line of the plan at a time; else its lines run together."""
        return self.strategy in ("spot", "spot_with_fallback")

    @property
    def in_parts(self) -> bool:
        """Whether some workers of a fleet are on its first or its second line at a time, and others on the rest."""
        return self.strategy == "fallback_in_fleet"
