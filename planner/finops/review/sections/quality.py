"""Can the figures be trusted?"""

from __future__ import annotations

from planner.finops.provider_days import spans
from planner.finops.read.tag_keys import bare_key
from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.model import Figure, Section
from planner.finops.review.parts import money, table
from planner.finops.review.sections.things import least_amount

TITLE = "Can the figures be trusted?"
_FINDINGS = 20
_LINE = 100  # characters of reasons in the sentence that stands below the verdict


def build(inputs: Inputs) -> Section:
    """The gate's checks, what the reader found, and the files."""
    bill, gate = inputs.bill, inputs.gate
    figures = [
        # what a check measured is always shown: it is the reason why other figures are not
        Figure(f"{check.key}_ratio", check.label, check.value, "ratio", "ok" if check.status == "ok" else "flagged",
               check.reason)
        for check in gate.checks
        if check.value is not None
    ]  # fmt: skip
    before = gate.before
    figures += [
        Figure(f"before_{check.key}_ratio", f"{month_name(before.month)}: {check.label}", check.value, "ratio",
               "flagged", check.reason)
        for check in (before.checks if before is not None else ())
        if before is not None and check.value is not None and check.status != "ok"
    ]  # fmt: skip
    rows = sum(source.rows for source in bill.sources)
    figures.append(Figure("rows_read_count", "Rows read", rows, "count"))
    figures.append(Figure("complete_through", "Use is there through", inputs.last_day.isoformat(), "date"))
    files = table(
        "sources", "Files", [("path", "File", "text"), ("dataset", "Dataset", "text"), ("rows", "Rows", "count"),
        ("version", "FOCUS", "text"), ("months", "Months", "text")],
        [(s.path, s.dataset, s.rows, s.focus_version + (f" from {s.adapter}" if s.adapter else ""), _months(s.months))
         for s in bill.sources],
    )  # fmt: skip
    shown = bill.findings[:_FINDINGS]
    more = len(bill.findings) - len(shown)
    findings = table(
        "findings", "Found while reading", [("severity", "Severity", "text"), ("where", "Where", "text"),
        ("message", "What", "text"), ("rows", "Rows", "count"), ("cost", "Billed", "money")],
        [(f.severity, f.where, f.message, f.rows or None, f.cost) for f in shown],
        f"and {more} more" if more > 0 else "",
    )  # fmt: skip
    days = table(
        "provider_days", "Days with use by provider", [("month", "Month", "text"), ("provider", "Provider", "text"),
        ("days", "Days", "count"), ("of", "Of", "count"), ("missing", "Without use", "text")],
        [(month_name(one.month), p.provider, p.days, p.of, spans(p.missing))
         for one in (gate, before) if one is not None for p in one.providers if p.missing],
    )  # fmt: skip
    tables = tuple(one for one in (days, files, findings) if one.rows)
    gaps = inputs.account_gaps()
    lacking = f"But some of the cost may be missing: {gaps}." if gaps else ""
    first, rest = _checks(inputs)
    said = (
        " ".join(filter(None, (first, lacking, _other_months(inputs)))),
        " ".join(filter(None, (rest, _undated(inputs), _spellings(inputs)))),
    )
    return Section(
        "quality", TITLE, tuple(filter(None, said)), tuple(figures), tables, detail=_passes(inputs)
    )


def _other_months(inputs: Inputs) -> str:
    """Months beside the reviewed one and its neighbour that lack charges, or have some twice: trends include them."""
    apart = {inputs.month, inputs.before}
    found = [(one, month, cost) for one in inputs.bill.findings for month, cost in one.by_month]
    found = [(one, month, cost) for one, month, cost in found if month not in apart]
    lacking = [month_name(month) for one, month, _ in found if one.code == "missing_months"]
    twice: dict[str, float] = {}
    for one, month, cost in found:
        if one.code == "repeated_charges":
            twice[month_name(month)] = twice.get(month_name(month), 0.0) + cost
    out = [f"no charge of {', '.join(lacking)} is there"] if lacking else []
    out += [f"{money(cost, inputs.bill.currency)} of {name} is counted twice" for name, cost in twice.items()]
    return f"But of other months, {'; '.join(out)}." if out else ""


def _undated(inputs: Inputs) -> str:
    """Corrections that may be of closed months or of this one's use: no billing period tells them apart."""
    cost = float(inputs.ask("restated_months")["unknown_period_cost"].sum())
    if abs(cost) < least_amount(inputs):
        return ""
    return (
        f"{money(cost, inputs.bill.currency)} of corrections name no billing period (BillingPeriodStart) and "
        "count as use of the month of their date: it and its prices may include changes of earlier months."
    )


def _spellings(inputs: Inputs) -> str:
    """Keys of tags that are spelled or named in several ways and count as one."""
    found = inputs.spellings
    merged = [f"{key}: {', '.join(others)}" for key, (_, *others) in found.items()]
    pairs = [(key, one) for key, own in found.items() for one in own]
    differ = "differ in spelling or name"
    if all(one.casefold() == key.casefold() for key, one in pairs):
        differ = "differ by case only"
    elif all(bare_key(one) == bare_key(key) for key, one in pairs):
        differ = "differ only by case or by a prefix such as user:"
    return f"Keys of tags that {differ} count as one ({'; '.join(merged)})." if merged else ""


def _passes(inputs: Inputs) -> bool:
    """Whether no check fails, of the month and of the one it is compared with, and no account or month lacks charges.

    A page folds the section then.
    """
    gates = [gate for gate in (inputs.gate, inputs.gate.before) if gate is not None]
    is_whole = not inputs.account_gaps() and not _other_months(inputs)
    return is_whole and all(check.status == "ok" for gate in gates for check in gate.checks)


def _months(months: tuple[object, ...]) -> str:
    names = [f"{m:%Y-%m}" for m in months]
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}" if names else ""


def _checks(inputs: Inputs) -> tuple[str, str]:
    """How many checks fail and why, as much of it as fits a line; and what else there is to say of them."""
    checks = [check for check in inputs.gate.checks if check.value is not None]
    failed = [check for check in checks if check.status != "ok"]
    before = inputs.gate.before
    weak = [check.reason for check in before.checks if check.status != "ok"] if before else []
    other = month_name(before.month) if before else ""
    own = {check.reason for check in failed}
    more = [reason for reason in weak if reason not in own]
    compared = f"In {other}, the month compared with: {'; '.join(more)}." if more else ""
    if not failed:
        return " ".join(filter(None, (f"All {len(checks)} checks of the data pass.", compared))), ""
    reasons = [
        f"{one.reason} (in {other} too)" if one.reason in weak and own - set(weak) else one.reason
        for one in failed
    ]
    count = 1
    while count < len(reasons) and sum(map(len, reasons[: count + 1])) <= _LINE:
        count += 1
    named, others = reasons[:count], reasons[count:]
    fail = "fails" if len(failed) == 1 else "fail"
    tail = f"; and {len(others)} more" if others else ""
    first = f"{len(failed)} of {len(checks)} checks of the data {fail}: {'; '.join(named)}{tail}."
    held = any(check.status == "withheld" for check in failed)
    it = "it" if len(failed) == 1 else "them"
    said = [f"Also: {'; '.join(others)}."] if others else []
    said.append(f"Figures that depend on {it} are {'withheld' if held else 'marked'}.")
    if own <= set(weak):
        said.append(f"{other} has the same fault{'s' * (len(failed) > 1)}.")
    return first, " ".join(filter(None, (*said, compared)))
