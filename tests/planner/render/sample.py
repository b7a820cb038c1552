"""A review with every section, unit, status and kind of chart; and one whose words are hostile."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from planner.finops.review.model import Chart, Column, Figure, Review, Section, Table

CREATED = datetime(2026, 11, 2, 6, 30, tzinfo=UTC)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"' onload=alert(1) x='",
    '=cmd|"/C calc"!A0',
    "+1+1",
    "@SUM(A1)",
    "-2+3",
    "</style></svg><img src=x onerror=alert(1)>",
    "| pipe ` tick * star _ under [link](javascript:alert(1))",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "\u202eevil\u202c",
    "\U0001f469\u200d\U0001f680 rocket \U0001f680",
    "x" * 500,
    "tab\tnew\nline\x00null\x1b[31m",
    "{{ 7 * 7 }} {% raw %}",
    "\ud800 lone",
    "",
    "]]>&amp;<!--",
)


def _section_quality() -> Section:
    figures = (
        Figure("list_known_ratio", "Cost with a known list price", 0.962, "ratio"),
        Figure("effective_zero_ratio", "Rows billed above 0 whose effective cost is 0", 0.002, "ratio", "flagged",
               "604 of 302,118 rows of aws: the savings rate leaves them out"),
        Figure("rows_count", "Rows read", 302_118, "count"),
        Figure("complete_through", "Complete through", "2026-10-29", "date"),
    )  # fmt: skip
    table = Table(
        "findings",
        "Findings",
        (Column("severity", "Severity", "text"), Column("what", "What", "text"), Column("rows", "Rows", "count"),
         Column("cost", "Cost", "money")),
        (("warning", "EffectiveCost is 0 while BilledCost is above 0 (aws, Amazon EC2)", 604, 18.15),
         ("info", "The last 2 days are grossed up by completion factors", 9_120, 21_004.5)),
        "Nothing was dropped: malformed rows would stand here.",
    )  # fmt: skip
    return Section("quality", "Can the figures be trusted?", ("Yes, with one exception.",), figures, (table,))


def _section_bridge() -> Section:
    names = ("September", "Price", "Volume", "Mix", "New", "Retired", "October")
    steps = (1_204_311.52, 18_220.11, 96_410.0, -12_777.4, 41_020.03, -22_001.26, 1_325_183.0)
    chart = Chart("bridge", "From September to October", "bridge", names, (("cost", steps),), "money",
                  "Cost rose by 120,871: more volume +96,410, new resources +41,020, retired -22,001.")  # fmt: skip
    small = Chart("bridge_small", "The same for one team", "bridge", names[:4],
                  (("cost", (100.0, -40.0, 20.0, 80.0)),), "money", "One team fell by 20.")  # fmt: skip
    figure = Figure("change", "Change against September", 120_871.48, "money")
    return Section(
        "bridge", "Why did cost change?", ("Mostly more GPU hours.",), (figure,), (), (chart, small)
    )


def _section_movers() -> Section:
    columns = (
        Column("sku", "SKU", "text"), Column("region", "Region", "text"), Column("change", "Change", "money"),
        Column("price", "Price effect", "money"), Column("unit", "Unit price", "unit_price"),
        Column("ratio", "Change", "ratio"), Column("reason", "Reason", "text"),
    )  # fmt: skip
    rows = tuple(
        (f"p5.48xlarge Linux hour {index}", "us-east-1", 90_000.0 / (index + 1) - 20_000, -120.5 * index,
         98.32 / (index + 1), 0.31 - 0.05 * index, "more volume (+412 h) at a lower price")
        for index in range(10)
    )  # fmt: skip
    rows += (
        ("a-very-long-sku-name-without-any-blank/" * 4, "eu-west-1", None, 0.0, 0.0000123, -1.0, "retired"),
    )
    chart = Chart("movers", "Top movers", "bars", tuple(str(row[0]) for row in rows[:6]),
                  (("change", tuple(float(row[2] or 0) for row in rows[:6])),), "money", "p5 moved most.")  # fmt: skip
    return Section(
        "movers", "What moved most?", (), (), (Table("movers", "Top movers", columns, rows),), (chart,)
    )


def _section_gpu() -> Section:
    funnel = Chart("waterfall", "GPU-hours: paid to useful", "funnel", ("paid", "allocated", "busy", "goodput"),
                   (("hours", (48_200.0, 41_377.0, 30_110.5, 27_904.0)),), "hours",
                   "Of 48,200 paid GPU-hours 27,904 did useful work (57.9 %).")  # fmt: skip
    figures = (
        Figure("per_run", "Cost per training run", 8_412.77, "money"),
        Figure("per_hour", "Cost per useful GPU-hour", 4.318, "money_per_hour"),
        Figure("per_mtok", "Cost per 1M tokens", 0.000412, "unit_price"),
        Figure("gpu_hours", "GPU-hours paid", 48_200.0, "hours"),
        Figure("flops", "Training compute, EFLOP", 12_345.678, "quantity"),
        Figure("spot_saved", "Spot savings", None, "ratio", "withheld", "no list price is known for 41 % of spot rows"),
    )  # fmt: skip
    shares = Chart("teams", "GPU-hours by team and option", "bars", ("research", "ranking", "speech"),
                   (("on demand", (100.0, 220.0, None)), ("spot", (410.0, 80.0, 20.0))), "hours",
                   "Research runs mostly on spot.")  # fmt: skip
    return Section("gpu", "What does a unit of GPU work cost?", ("57.9 % of paid hours were useful.",), figures, (),
                   (funnel, shares))  # fmt: skip


def _days(count: int) -> tuple[str, ...]:
    return tuple((date(2026, 9, 1) + timedelta(days=index)).isoformat() for index in range(count))


def _section_forecast() -> Section:
    labels = _days(91)
    level = [40_000 + 900 * ((index * 7) % 5) - (9_000 if index % 7 in (5, 6) else 0) for index in range(91)]
    actual = tuple(float(value) if index < 61 else None for index, value in enumerate(level))
    expected = tuple(None if index < 60 else float(value) for index, value in enumerate(level))
    low = tuple(
        None if value is None else value * (0.98 - 0.003 * (i - 60)) for i, value in enumerate(expected)
    )
    high = tuple(
        None if value is None else value * (1.02 + 0.004 * (i - 60)) for i, value in enumerate(expected)
    )
    fan = Chart("fan", "Daily cost and its forecast", "fan", labels,
                (("actual", actual), ("expected", expected), ("low", low), ("high", high)), "money",
                "November is expected at 1.31M, 80 % between 1.25M and 1.38M.")  # fmt: skip
    months = ("2026-05", "2026-06", "2026-07", "2026-08", "2026-09", "2026-10")
    record = Chart("record", "Earlier forecasts against the bill", "bars", months,
                   (("forecast", (1.0e6, 1.05e6, 1.1e6, 1.2e6, 1.19e6, 1.3e6)),
                    ("billed", (1.02e6, 1.01e6, 1.12e6, 1.18e6, 1.204e6, 1.325e6))), "money",
                   "Within 4 % in every month.")  # fmt: skip
    lines = Chart("clouds", "Cost by provider", "lines", months,
                  (("aws", (5e5, 5.2e5, 5.1e5, 6e5, 6.1e5, 6.6e5)), ("gcp", (3e5, None, 3.2e5, 3.1e5, 3.3e5, 3.4e5)),
                   ("azure", (1e5, 1.1e5, 1.2e5, 9e4, 1e5, 1.3e5))), "money", "All three rise.")  # fmt: skip
    figures = (
        Figure("p_over", "P(month-end over budget)", 0.37, "ratio"),
        Figure("landing", "November expected", 1_312_400.0, "money"),
        Figure("horizon", "Horizon", 30, "days"),
    )
    return Section("forecast", "Where will the month end?", (), figures, (), (fan, record, lines))


def _section_held() -> Section:
    return Section("plan_vs_actual", "Did plans match the bill?", ("No plan was given: --plans FOLDER.",),
                   status="withheld", reason="no run id of a plan stands in the tags")  # fmt: skip


def _section_actions() -> Section:
    columns = (
        Column("action", "Action", "text"),
        Column("save", "Saves per month", "money"),
        Column("by", "By", "date"),
        Column("owner", "Owner", "text"),
        Column("plan", "Plan", "text"),
    )
    rows = (
        (
            "Buy 40 more p5 compute savings plan hours",
            41_200.0,
            "2026-11-15",
            "platform",
            "planner commit --history bill",
        ),
        ("Delete 12 idle volumes", 1_310.4, "2026-11-07", "storage", ""),
        ("Move nightly sweeps to us-east-2", -20.0, "", "research", "planner optimize sweep.yaml"),
    )
    return Section(
        "actions",
        "What should be done?",
        ("Three actions save 42,490 USD a month.",),
        (),
        (Table("actions", "Actions", columns, rows), Table("none", "Declined", columns, ())),
    )


def sample_review() -> Review:
    """Every section, unit, status and chart."""
    held = Section(
        "allocation",
        "Whose cost is it?",
        ("83.1 % carries all tags.",),
        (Figure("allocated", "Allocated", 0.831, "ratio"),),
        status="flagged",
        reason="tags of azure arrive two days late",
    )
    empty = Section("anomalies", "Was anything unusual?", ("No day stands out.",))
    sections = (
        _section_quality(), _section_bridge(), _section_movers(), _section_gpu(), held, empty, _section_forecast(),
        _section_held(), _section_actions(),
    )  # fmt: skip
    verdict = (
        "October cost 1,325,183.00 USD, 10.0 % more than September and 2.1 % over budget; "
        "November is expected at 1,312,400 USD (37 % likely over budget)."
    )
    sources = (
        "bill/2026-10/aws-0001.parquet: 302,118 rows, FOCUS 1.2",
        "bill/2026-10/gcp.csv.gz: 88,020 rows, FOCUS 1.0",
    )
    return Review("2026-10", "USD", verdict, sections, sources, CREATED, "0.1.0")


def hostile_review() -> Review:
    """A review in which every text is hostile."""
    columns = tuple(
        Column(text or "k", text, "text" if index % 2 else "money") for index, text in enumerate(HOSTILE)
    )
    rows = tuple(
        tuple(HOSTILE[(index + shift) % len(HOSTILE)] for index in range(len(HOSTILE))) for shift in range(6)
    )
    sections = []
    for number, text in enumerate(HOSTILE):
        charts = tuple(
            Chart(
                text, text, kind, HOSTILE[:9], ((text, tuple(float(v) for v in range(-3, 6))),), "money", text
            )
            for kind in ("bridge", "bars", "lines", "fan", "funnel")
        )
        figures = (Figure(text, text, text, "text", "flagged", text), Figure(text, text, -1.5, "money"))
        sections.append(
            Section(
                text,
                text,
                (text,),
                figures,
                (Table(text, text, columns, rows, text),),
                charts[number % 5 :][:2],
                "flagged",
                text,
            )
        )
    return Review("2026-10", "USD", HOSTILE[0], tuple(sections), HOSTILE, CREATED, "0.1.0")
