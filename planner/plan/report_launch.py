"""The section that says what to expect of spot before it starts."""

from __future__ import annotations

from planner.plan.launch import Launch, Replay
from planner.plan.model import Plan
from planner.render.model import Section, Unit, Value, facts
from planner.render.numbers import UNKNOWN, hours, moment, number, percent, usd
from planner.render.words import join_some

_STRATEGIES = {
    "spot": "spot alone",
    "spot_with_fallback": "spot; on-demand takes over at the last moment at which the deadline can be met",
    "spot_with_steady": "spot plus instances that cannot be reclaimed",
    "spot_in_fleet": "spot for some or all of independent workers",
    "fallback_in_fleet": (
        "spot for some workers, from which on-demand takes over at the last moment at which they can meet the "
        "deadline; on-demand for the others"
    ),
}
_MAX_PLACES = 4


def strategy_words(plan: Plan) -> str:
    """How a plan that runs on one offer after another is bought: `spot in 3 zones, else on_demand`."""
    spot = [line for line in plan.lines if line.purchase_option == "spot"]
    zones = f" in {len(spot)} zones" if len(spot) > 1 else ""
    return f"spot{zones}" + (", else on_demand" if len(spot) < len(plan.lines) else "")


def launch(launch: Launch, *, inference: bool = False) -> Section:
    """Return chances, spread, hours, checkpoints and evidence."""
    spots = f" in {len(launch.places)} zones" if len(launch.places) > 1 else ""
    spread = f"P10-P90 {usd(launch.cost_p10_usd)} to {usd(launch.cost_p90_usd)}"
    costs = f"{usd(launch.expected_cost_usd)} expected, {spread}"
    middle = "at mean rates" if launch.strategy == "spot_in_fleet" else "expected"
    finish = (
        f"after {hours(launch.expected_hours)} h {middle}, P10-P90 {hours(launch.p10_hours)} to "
        f"{hours(launch.p90_hours)} h: {moment(launch.finish_p10)} to {moment(launch.finish_p90)}"
    )
    spent = (
        f"{hours(launch.spot_hours)} on spot, {hours(launch.on_demand_hours)} on-demand, "
        f"{hours(launch.waiting_hours)} waiting for spot (expected)"
    )
    way = _STRATEGIES[launch.strategy].replace("spot", f"spot{spots}", 1)
    lost = f"{number(launch.expected_interruptions)}, losing {hours(launch.lost_hours)} h (expected)"
    saved = "progress saved" if inference else "checkpoint"
    rows: list[tuple[str, str, Value, Unit, str]] = [
        ("strategy", "way to run", launch.strategy, "text", way),
        ("p_meet_deadline_ratio", "deadline met", launch.p_meet_deadline, "ratio", _deadline(launch)),
        ("expected_cost_usd", "cost", launch.expected_cost_usd, "usd", costs),
        ("expected_hours", "finish", launch.expected_hours, "hours", finish),
        ("spot_hours", "hours", launch.spot_hours, "hours", spent),
        ("expected_interruptions", "interruptions", launch.expected_interruptions, "quantity", lost),
        ("checkpoint_interval_hours", saved, launch.checkpoints.interval_hours, "hours", _checkpoint(launch)),
    ]
    if launch.strategy in ("spot_with_fallback", "fallback_in_fleet"):
        words = (
            f"assumed to be available within {hours(launch.on_demand_acquire_s / 3600.0)} h of the request"
        )
        if launch.p_on_demand_had_ratio is not None:
            words += f", with probability {percent(launch.p_on_demand_had_ratio)}"
        rows.append(("on_demand_acquire_s", "on-demand", launch.on_demand_acquire_s, "seconds", words))
    if launch.replay is not None:
        rows.append(
            ("replayed_usd", "replayed", launch.replay.expected_cost_usd, "usd", _replayed(launch.replay))
        )
    evidence = _evidence(launch)
    rows.append(("evidence", "evidence", evidence, "text", evidence))
    rows += [(f"why_{at}", "why", text, "text", text) for at, text in enumerate(launch.why, start=1)]
    rows += [
        (f"unknown_{at}", "unknown", text, "text", text) for at, text in enumerate(launch.notes, start=1)
    ]
    return facts("risk", "Risk", rows)


def _replayed(seen: Replay) -> str:
    spread = f"{usd(seen.cost_p10_usd)} to {usd(seen.cost_p90_usd)}"
    deadline_text = (
        f"deadline met {percent(seen.p_meet_deadline)}, on spot alone {percent(seen.p_meet_spot_only_ratio)}"
    )
    return (
        f"{seen.futures:,} futures, policy {seen.policy}: {usd(seen.expected_cost_usd)} ({spread}), {deadline_text}, "
        f"{hours(seen.on_demand_hours)} h on-demand"
    )


def _deadline(launch: Launch) -> str:
    if launch.p_meet_deadline is None:
        return "no deadline given"
    least = "at least " if launch.in_parts else ""
    text = f"with probability {least}{percent(launch.p_meet_deadline)}"
    if launch.in_parts:
        return f"{text}; a worker on spot needs on-demand with {percent(launch.p_on_demand_needed_ratio)}"
    if launch.strategy != "spot_with_fallback":
        return text
    return (
        f"{text}, {percent(launch.p_meet_spot_only_ratio)} on spot alone; "
        f"on-demand is needed with {percent(launch.p_on_demand_needed_ratio)}"
    )


def _checkpoint(launch: Launch) -> str:
    saved = launch.checkpoints
    text = (
        f"{number(saved.size_gib)} GiB every {number(saved.interval_hours * 60.0, 3)} min to {saved.stored_in}, "
        f"{number(saved.write_s, 3)} s to write"
    )
    if saved.read_s is not None and saved.restart_s is not None:
        text += (
            f", {number(saved.read_s, 3)} s to read; back at work {number(saved.restart_s / 60.0, 3)} min "
            "after an interruption"
        )
    if saved.notice_s is None:
        return f"{text}; no warning before an interruption is known"
    fits = "one fits into" if saved.fits_in_notice else "none fits into"
    return f"{text}: {fits} the warning of {number(saved.notice_s)} s"


def _evidence(launch: Launch) -> str:
    texts = []
    for place in launch.places:
        where = "/".join(part for part in place.offer_id.split("/")[1:3] if part != "-")
        up = f"{hours(place.mean_up_hours)} h up, {hours(place.mean_wait_hours)} h down in the mean"
        seen = "" if place.observed_ratio is None else f", in the records {percent(place.observed_ratio, 0)}"
        share = f"up {percent(place.availability_ratio, 0)} of the time{seen}"
        texts.append(f"{where}: {up}, {share} ({place.evidence or UNKNOWN})")
    return join_some(texts, _MAX_PLACES)
