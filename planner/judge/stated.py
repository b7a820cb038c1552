"""The values of answers that are stated but not recomputed, each with the reason."""

from __future__ import annotations

_SEARCH = "a count of the search, which only another search could recompute"
_WORDS = "text; the figures in it are checked as fields of their own"
_RECORDS = "the user's own records by age, for `planner advise`; the plan's figures from them are recomputed"
_HAZARDS = "the bundled records by age, for `planner advise`; their hash and their mean spells are checked"
_WHEN = "when, by which version and in how long the answer was computed; nothing depends on it"

FRONTIER = {
    "planner_version": _WHEN,
    "candidates": _SEARCH,
    "deadlines_asked": _SEARCH,
    "unknown_candidates": _SEARCH,
    "searched": _WORDS,
    "points[*].wished": "whether the command line asked for this deadline",
}
_BOTH = "an interval of both pools, if their errors coincide; the expected cost is recomputed"
POOLS = {
    "cost_p10_usd": _BOTH,
    "cost_p90_usd": _BOTH,
    "planner_version": _WHEN,
    "pairs": _SEARCH,
    "colocated": _SEARCH,
    "colocated.*": _SEARCH,
    "same_ways": _SEARCH,
    "same_ways.*": _SEARCH,
    "divided": _SEARCH,
    "divided.*": _SEARCH,
    "one_chip": _SEARCH,
    "one_chip.*": _SEARCH,
    "reason": _WORDS,
}
_INTERVAL = (
    "an interval; `planner optimize` on a job's own workload gives it, and `verify` recomputes it there"
)
SERVING = {
    "planner_version": _WHEN,
    "proof.seconds": _WHEN,
    "proof.solver": "which solver answered",
    "proof.gap_asked_ratio": "an option of the command line",
}
SCHEDULE = dict(SERVING)
_PRICES = "a proof: any prices may be given, and the bound that they prove is recomputed"
SERVING |= {
    f"proof.proven.tree[*].{name}": _PRICES for name in ("machine", "most", "machine_price", "prices.*")
}
_SCENARIOS = "what candidates cost in scenarios; means, worst means and differences are checked"
RISK = {
    "risk.seed": "an option of the file, compared with it where it has `risk`",
    "risk.changed": _SCENARIOS,
    "risk.refused": _SCENARIOS,
    "risk.considered": _SEARCH,
    "risk.candidates": _SEARCH,
    "risk.solver": "which solver answered",
    "risk.seconds": _WHEN,
    **{
        f"risk.fresh.{name}": _SCENARIOS
        for name in ("scenarios", "seed", "chosen.worst_usd", "plain.worst_usd")
    },
}
PIPELINE = {
    **RISK,
    "planner_version": _WHEN,
    "cost_p10_usd": _INTERVAL,
    "cost_p90_usd": _INTERVAL,
    "proof.seconds": _WHEN,
    "proof.method": "how the bound was found; it is the solver's",
    "proof.status": "stated by the solver; its bound and gap are checked",
    "proof.about": _WORDS,
    "proof.gap_asked_ratio": "an option of the command line",
    "proof.dropped": _SEARCH,
    "proof.dropped.*": _SEARCH,
    "proof.candidates": _SEARCH,
    "proof.candidates.*": _SEARCH,
    "proof.durations": _SEARCH,
    "proof.durations.*": _SEARCH,
}
PORTFOLIO_FRONTIER = {"planner_version": _WHEN}
_CANDIDATE = (
    "of a candidate: of a workload `planner optimize` says the same, and `verify` recomputes it there"
)
PORTFOLIO_ROLLING = {
    "planner_version": _WHEN,
    "every_hours": "an option of the command line",
    "seconds": _WHEN,
    "notes": _WORDS,
    "notes[*]": _WORDS,
    "totals.plans": _SEARCH,
    "totals.lost_node_hours": "work that preemptions lost, times its instances; each run's lost hours are checked",
    **{
        f"limits[*].{name}": "a quota; commitments and teams' parts are checked"
        for name in ("kind", "team", "unit")
    },
    "limits[*].limit": _WORDS,
    "limits[*].available": "a quota; commitments and teams' parts are checked",
    "jobs[*].stints[*].*": _CANDIDATE,
    "jobs[*].stints[*].draws": _CANDIDATE,
    "jobs[*].stints[*].draws[*].*": _CANDIDATE,
}
PORTFOLIO = {
    **RISK,
    "planner_version": _WHEN,
    "totals.cost_p10_usd": _INTERVAL,
    "totals.cost_p90_usd": _INTERVAL,
    "seconds": _WHEN,
    "notes": _WORDS,
    "notes[*]": _WORDS,
    "relaxation.least_of": _WORDS,
    "proof.seconds": _WHEN,
    "proof.solver": "which solver answered",
    "proof.mode": "an option of the command line",
    "proof.gap_asked_ratio": "an option of the command line",
    "proof.message": _WORDS,
    "proof.about": _WORDS,
    "proof.interrupted": "whether the user stopped it; plan, bounds and gaps are checked",
    "proof.candidates": _SEARCH,
    "proof.in_model": _SEARCH,
    "proof.removed": _SEARCH,
    "proof.removed.*": _SEARCH,
    "proof.stages": _SEARCH,
    "proof.stages[*].*": _SEARCH,
    "filters[*].candidates": _SEARCH,
    "filters[*].passed": _SEARCH,
    "filters[*].removed": _SEARCH,
    "filters[*].removed.*": _SEARCH,
}
_ALONE = (
    "each future is solved alone by the search; that the figures fit together and to the costs is checked"
)
_PLAIN = "the choice at no price on losses, which the search makes; without such a price it is compared with the plan"
_OF_BILL = (
    "how the bill was asked; its rows are read and its scenarios drawn by the same code, asked so again"
)
COMMIT = {
    "planner_version": _WHEN,
    "seconds": _WHEN,
    "rounds": _SEARCH,
    "method": "how the bound was found; `planner commit --certificate` proves it",
    "reason": "why the search ended",
    "gap_asked_ratio": "an option of the command line",
    "notes": _WORDS,
    "notes[*]": _WORDS,
    "files[*].file": "where a file of the bill was; its hash is checked",
    **dict.fromkeys(
        ("bill.currency", "bill.seed", "bill.expires", "bill.expires[*]", "bill.mapping", "bill.mapping[*]"),
        _OF_BILL,
    ),
    "regret.mean_usd": _ALONE,
    "regret.p90_usd": _ALONE,
    "regret.worst_usd": _ALONE,
    "regret.scenarios": _ALONE,
    "loss.plain_chance_ratio": _PLAIN,
    "loss.plain_expected_usd": _PLAIN,
}
_TEST = "a test or a table of the parts list; the figures that it compares are the file's"
TCO = {
    "planner_version": _WHEN,
    "missing": _SEARCH,
    "missing[*]": _SEARCH,
    "fixed.rents[*].offer_id": "that no offer that fits costs less is the search's to show; that it fits is checked",
    "parts[*].note": _WORDS,
    **{f"{part}[*].{name}": _WORDS for part in ("factors", "bars") for name in ("words", "unit")},
    **{f"factors[*].{name}": _WORDS for name in ("source", "as_of")},
    **{name: _TEST for part in ("quotes", "checks", "resales") for name in (part, f"{part}[*].*")},
    "handover.text": "the machine written as a file; its figures are those of the inputs",
    **dict.fromkeys(("handover.lacks", "handover.lacks[*]"), _WORDS),
}
PLAN = {
    "planner_version": _WHEN,
    "proof.seconds": _WHEN,
    "proof.candidates": _SEARCH,
    "proof.shapes": _SEARCH,
    "proof.near_ties": _SEARCH,
    "proof.note": _WORDS,
    "proof.solver": "which solver answered; what it proved is checked",
    "proof.gap_asked_ratio": "an option of the command line",
    "proof.gap_exact_ratio": "proven by the certificate (`optimize --certificate`), which is checked separately",
    "n_feasible": _SEARCH,
    "relaxations": _SEARCH,
    "relaxations[*].current": _WORDS,
    "relaxations[*].needed": _WORDS,
    "relaxations[*].note": _WORDS,
    "folded": _SEARCH,
    "folded[*].rank": _SEARCH,
    "folded[*].differs_in": _SEARCH,
    "folded[*].count": _SEARCH,
    "filters": _SEARCH,
    "filters[*].name": _WORDS,
    "filters[*].description": _WORDS,
    "filters[*].removed": _SEARCH,
    "filters[*].removed_only_by_this": _SEARCH,
    "filter_pairs": _SEARCH,
    "filter_pairs[*].first": _SEARCH,
    "filter_pairs[*].second": _SEARCH,
    "filter_pairs[*].removed": _SEARCH,
    "warnings": _WORDS,
    "warnings[*]": _WORDS,
    "timeline[*].name": _WORDS,
    "timeline[*].note": _WORDS,
    "launch.why": _WORDS,
    "launch.why[*]": _WORDS,
    "launch.places[*].records.*": _RECORDS,
    "launch.places[*].hazards.*": _HAZARDS,
    "launch.replay.*": "a second opinion by drawing futures (`planner optimize --replays`)",
    "savings.note": _WORDS,
    "sensitivity[*].name": _WORDS,
    "sensitivity[*].note": _WORDS,
}
