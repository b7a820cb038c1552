"""docs/study.md from the records of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.study.arms import ARMS, HEADLINES
from benchmarks.study.calibration import CLOSE, calibration
from benchmarks.study.pictures import STEP_NAMES, STEPS, pictures, step_shares
from benchmarks.study.record import StudyOptions
from benchmarks.study.rows import left_out_lines, row_lines, worst_lines
from benchmarks.study.savings import AGAINST, Figures, figures, is_sure, pairs_of, percent
from benchmarks.study.summary import classes_of, proofs
from planner.files import write_atomically

Record = dict[str, Any]
_HEAD = "| n | median [90 %] | quartiles | worst | losses | 40-70 % | above | of all money |"
_RULE = "|---:|---:|---:|---:|---:|---:|---:|---:|"


def write_report(page: Path, records: Sequence[Record], options: StudyOptions, prices: Path | None) -> None:
    """Write the page, and its charts to the folder `pictures` beside it.

    Args:
        page: the Markdown file.
        records: of the suite.
        options: of the study.
        prices: folder of price histories for the regret study; None leaves it out.
    """
    folder = page.parent / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pictures(records).items():
        write_atomically(folder / name, text)
    write_atomically(page, render(records, options, prices))


def render(records: Sequence[Record], options: StudyOptions, prices: Path | None) -> str:
    """The page as Markdown."""
    lines = [
        "# What plans save: the study", "",
        f"Generated on {len(records)} real training runs by", "",
        "    python -m benchmarks.study --suite DIR --doc docs/study.md --prices HISTORIES", "",
        f"as on {options.as_of}, with the bundled snapshot of prices (dates of every price below), no measurements"
        f" of our",
        "own, bootstrap seed 1. The claim under test: choosing machines systematically costs 40 to 70 % less.", "",
        *_proofs(records), *_verdict(records), *_calibration(records), *_headline(records), *_classes(records),
        *_baselines(records), *_waterfall(records), *_beside(records),
    ]  # fmt: skip
    if prices is not None:
        from benchmarks.study.regret_page import regret_lines

        lines += regret_lines(records, prices)
    lines += [*left_out_lines(records), *worst_lines(records), *row_lines(records), *_weak()]
    return "\n".join(lines) + "\n"


def _proofs(records: Sequence[Record]) -> list[str]:
    """How the plans of all arms were proven."""
    counted = [f"{count:,} by {method}" for method, count in proofs(records).items()]
    return [f"Plans of all arms, by proof: {'; '.join(counted)}.", ""] if counted else []


def _verdict(records: Sequence[Record]) -> list[str]:
    lines = ["## Verdict", ""]
    for arm, words in HEADLINES.items():
        made = figures(pairs_of(records, arm, "named")[0])
        lines.append(
            f"- **{words}**: {made.verdict}; median {percent(made.median)}, {made.within} of {made.n} rows within"
            f" 40-70 %, {made.above} above, {made.below} below, of which {made.losses} cost more than the baseline."
        )
    for arm in ("anywhere", "spot"):
        made = figures(pairs_of(records, arm, "owner_corrected")[0])
        if made.n:
            lines.append(
                f"- {HEADLINES[arm]}, against the {made.n} published bills, the plan's hours corrected by each row's"
                f" own error of time: median {percent(made.median)} [{percent(made.low)}, {percent(made.high)}],"
                f" {made.losses} losses."
            )
    failing = []
    for kind in classes_of(records):
        told = []
        for arm in ("anywhere", "spot"):
            pairs = [pair for pair in pairs_of(records, arm, "named")[0] if pair.kind == kind]
            made = figures(pairs)
            if made.verdict != "holds in the median":
                told.append(f"{'on demand' if arm == 'anywhere' else 'with spot'} {made.verdict}")
        if told:
            failing.append(f"- {kind}: {'; '.join(told)}")
    lines += [
        "",
        "Classes in which the claim does not hold as stated (the median's 90 % interval within 40-70 %):",
        "",
    ]
    lines += failing or ["- none"]
    sound = calibration(records)["without_stand_ins"]
    if sound["n"]:
        outside = not (sound["q25"] >= 1 / CLOSE and sound["q75"] <= CLOSE)
        lines += [
            "",
            f"All of it rests on predicted times: {sound['close']} of {sound['n']} baselines are predicted within"
            f" {CLOSE} x of their published time"
            + (
                ", so read each saving with the rows corrected by their own error beside it."
                if outside
                else "."
            ),
        ]
    return [*lines, ""]


def _of_steps(names: Sequence[str]) -> str:
    return f" (times of steps: {', '.join(names)})" if names else ""


def _calibration(records: Sequence[Record]) -> list[str]:
    made = calibration(records)
    lines = [
        "## Predicted against published time", "",
        "Predicted over published hours of the named baseline, without waiting for capacity. Below 1 the planner"
        " predicts less time than its owners needed. Intervals resample sources, not rows. The workload files"
        " state model, data and steps, but not the software, kernels and layout of the time.", "",
        "Like is compared with like. Where a source multiplies its time out of a speed (step time x steps, tokens over"
        " throughput), it is compared with the predicted steps; every other time, also one whose source does not say,"
        " with the predicted whole run. `benchmarks/data/study_times.csv` has what the sources state"
        f"{_of_steps(made['steps_rows'])}. The last two lines compare every time with the whole run.", "",
        "![Predicted over published hours](pictures/study-times.svg)", "",
        "| rows | n | sources | median [90 %] | quartiles | within 1.5 x | median of sources |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    named = {
        "all": made["all"], "without stand-ins": made["without_stand_ins"], **made["by_class"],
        "times of steps": made["steps"], "times of steps, as whole runs": made["as_runs"]["steps"],
        "without stand-ins, all as whole runs": made["as_runs"]["without_stand_ins"],
    }  # fmt: skip
    for name, one in named.items():
        if one["n"]:
            lines.append(
                f"| {name} | {one['n']} | {one['sources']} | {one['median']:.2f} [{one['low']:.2f},"
                f" {one['high']:.2f}] | {one['q25']:.2f} to {one['q75']:.2f} | {one['close']} |"
                f" {one['by_source_median']:.2f} |"
            )
    return [*lines, ""]


def cells(made: Figures) -> str:
    """Figures as cells of a row."""
    if not made.n:
        return "| 0 | - | - | - | - | - | - | - |"
    return (
        f"| {made.n} | {percent(made.median)} [{percent(made.low)}, {percent(made.high)}] | {percent(made.q25)} to"
        f" {percent(made.q75)} | {percent(made.worst)} | {made.losses} | {made.within} | {made.above} |"
        f" {percent(made.weighted)} |"
    )


def _headline(records: Sequence[Record]) -> list[str]:
    lines = [
        "## Against the owner's cluster", "",
        "Savings against the named baseline. Both sides are predicted, with storage, transfer, interruptions and"
        " idle hours, at expected prices. Rows whose file is only a stand-in, and baselines that are expected to"
        " miss the deadline or cannot hold the job, are left out; they are listed below.", "",
        "![Distribution](pictures/study-savings.svg)", "", f"| arm {_HEAD}", f"|---{_RULE}",
    ]  # fmt: skip
    lines += [
        f"| {words} {cells(figures(pairs_of(records, arm, 'named')[0]))}" for arm, words in HEADLINES.items()
    ]
    lines += ["", "At the P90 of the plan's cost against the expected cost of the baseline:", ""]
    lines += [f"| arm {_HEAD}", f"|---{_RULE}"]
    lines += [
        f"| {words} {cells(figures(pairs_of(records, arm, 'named', high=True)[0]))}"
        for arm, words in HEADLINES.items()
    ]
    lines += [
        "", "Only plans whose price was quoted for that place and whose P(meet) is as required (the planner itself"
        " requires software measured on that kind of model):", "", f"| arm {_HEAD}", f"|---{_RULE}",
    ]  # fmt: skip
    lines += [
        f"| {words} {cells(figures(pairs_of(records, arm, 'named', counted=True)[0]))}"
        for arm, words in HEADLINES.items()
    ]
    sure = [record for record in records if is_sure(record)]
    lines += ["", "Only baselines that meet the deadline with the probability required of the plan:", ""]
    lines += [f"| arm {_HEAD}", f"|---{_RULE}"]
    lines += [
        f"| {words} {cells(figures(pairs_of(sure, arm, 'named')[0]))}" for arm, words in HEADLINES.items()
    ]
    return [*lines, ""]


def _classes(records: Sequence[Record]) -> list[str]:
    lines = ["## By class", "", "![Savings by class](pictures/study-classes.svg)", ""]
    lines += [f"| class, arm | claim of 40-70 % {_HEAD}", f"|---|---{_RULE}"]
    for kind in classes_of(records):
        for arm, words in HEADLINES.items():
            made = figures([pair for pair in pairs_of(records, arm, "named")[0] if pair.kind == kind])
            lines.append(f"| {kind}, {words} | {made.verdict} {cells(made)}")
    return [*lines, ""]


def _baselines(records: Sequence[Record]) -> list[str]:
    lines = [
        "## Against other baselines", "",
        "(b) is the planner's best on-demand plan with the owner's accelerator. (c) is SkyPilot's published rule"
        " on the same offers: given an accelerator and its count per machine, take the cheapest price per hour of"
        " any cloud and region, with the owner's number of machines; for the arm with spot also its choice on"
        " spot. Alibaba is not one of its clouds; owned machines come first. (d) is the published hours times the"
        " list price on the date in the table of rows. Its second line multiplies the plan's cost by the row's"
        " own error of time.", "",
        f"| arm | against {_HEAD}", f"|---|---{_RULE}",
    ]  # fmt: skip
    for arm, words in HEADLINES.items():
        for against, named in AGAINST.items():
            if against == "sky_spot" and arm != "spot":
                continue
            pairs, _ = pairs_of(records, arm, against)
            lines.append(f"| {words} | {named} {cells(figures(pairs))}")
    return [*lines, ""]


def _waterfall(records: Sequence[Record]) -> list[str]:
    means, count = step_shares(records)
    lines = [
        "## Where it comes from", "", "![Waterfall](pictures/study-waterfall.svg)", "",
        f"Mean cost relative to the named baseline after each degree of freedom in turn, on {count} workloads whose"
        " baseline meets the deadline with the required probability. Another order would split the same sum"
        " differently. `Plain layout`: data parallelism alone on the owner's cluster (FSDP with full"
        " recomputation for transformers, otherwise DDP). The named baseline already has the best layout, so this"
        " step is in no headline. `Way to buy`: done no later than the on-demand plan's P90; `time to the"
        " deadline` is what waiting adds. If a step has no feasible plan, its cost is that of the step before.", "",
        "| after | cost, baseline = 100 % | step |", "|---|---:|---:|",
    ]  # fmt: skip
    before = means["plain layout"]
    for name in STEPS:
        lines.append(f"| {STEP_NAMES.get(name, name)} | {means[name]:.1%} | {means[name] - before:+.1%} |")
        before = means[name]
    return [*lines, ""]


def _beside(records: Sequence[Record]) -> list[str]:
    lines = [
        "## Beside the headlines", "",
        "Savings against the named baseline. Price lists without a place (Lambda, OCI) do not say which region"
        " has stock. Derived prices were computed from a ratio and never quoted.", "", f"| arm {_HEAD}", f"|---{_RULE}",
    ]  # fmt: skip
    for arm, words in ARMS.items():
        if arm not in HEADLINES:
            lines.append(f"| {words} {cells(figures(pairs_of(records, arm, 'named')[0]))}")
    return [*lines, ""]


def _weak() -> list[str]:
    return [
        "## What is weak", "",
        "- Both sides of (a), (b) and (c) use one performance model, so an error that differs between machines is"
        " part of the saving. In (d) the error is on the plan's side only.",
        "- Newer accelerators, at list prices of their first years, bring most of the gain of `machine type`."
        " Owners of the published runs could not buy them then.",
        "- Spot prices are months old (dates below); the regret section shows what months do to them. A price"
        " says nothing about capacity: the chances of getting it are the planner's estimates, from few records.",
        "- Commitments never win for a single run that pays for their whole term. The shared arm assumes that"
        " other work pays the rest.",
        "- SkyPilot's rule is applied by us, without its own catalog, blocklists and fail-over.",
        "- Rows of one repository are not independent. Intervals resample repositories, and some classes have"
        " only two.",
        "",
    ]  # fmt: skip
