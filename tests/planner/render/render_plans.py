"""Hand-made plans for the renderers: invented figures that exercise the layout, not prices of anyone."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from planner.job.frontier import Frontier, Point
from planner.job.other_limits import OtherLimits, Within
from planner.plan.brief import Choice, Summary
from planner.plan.ids import CostId, TimePartId
from planner.plan.launch import Checkpoints, Launch, SpotPlace
from planner.plan.layout import Layout
from planner.plan.model import (
    Assumption,
    CashMonth,
    CatalogSource,
    CostLine,
    FilterCount,
    FilterPair,
    Performance,
    Plan,
    PlanLine,
    Proof,
    QuotaNeed,
    Risk,
    Savings,
    TimePart,
)
from planner.plan.relaxation import Relaxation
from planner.plan.run import Goal

D = Decimal
HASH = "3f1c9a5be07d42c8a6e1f0b7d9c4e2a85b60713f9d8e4c2ab1706f5e3d9c8b7a"


def cost(kind: str, label: str, quantity: str, unit: str, unit_price: str, **changes: object) -> CostLine:
    line = CostLine(
        id=CostId({"data_storage": "dataset_storage", "data_transfer": "dataset_transfer"}.get(kind, kind)),
        kind=kind,
        label=label,
        quantity=D(quantity),
        unit=unit,
        unit_price=D(unit_price),
        currency="USD",
        usd_per_currency=D(1),
        amount_usd=D(quantity) * D(unit_price),
        basis="list",
        source="https://example.com/prices",
        as_of="2026-11-01",
    )
    return replace(line, **changes)  # type: ignore[arg-type]


LAYOUT = Layout(8, 1, 1, 4, 1, 2, 16, "selective")
QUOTA = QuotaNeed("Running On-Demand P instances", "L-417A185B", "region", "vCPU", 384.0, None, "not checked")

ON_DEMAND_LINE = PlanLine(
    offer_id="aws/us-east-1/-/p4d.24xlarge/on_demand/-",
    provider="aws",
    region="us-east-1",
    zone="",
    instance_type="p4d.24xlarge",
    accelerator="a100-40gb-sxm",
    accelerators_per_node=8.0,
    purchase_option="on_demand",
    option_variant="",
    nodes=4,
    billed_hours=D("101.25"),
    price_per_hour=D("21.957642"),
    currency="USD",
    usd_per_currency=D(1),
    throughput_per_s=98765.4,
    costs=(
        cost("compute", "4 x p4d.24xlarge on_demand", "405", "node-hours", "21.957642"),
        cost("data_storage", "training data in object storage", "512.5", "GiB-months", "0.023"),
        cost("checkpoint_storage", "checkpoints in object storage", "96", "GiB-months", "0.023"),
        cost("data_transfer", "training data from gcp/us-central1", "1024", "GB", "0.085"),
    ),
    price_basis="list",
    price_source="https://example.com/prices",
    price_as_of="2026-11-01",
    flags=(),
    quota=QUOTA,
    layout=LAYOUT,
)

BASELINE = Summary(
    "cheapest on-demand",
    "aws",
    "us-east-1",
    "",
    "p4d.24xlarge",
    "a100-40gb-sxm",
    32.0,
    "on_demand",
    "",
    4,
    101.25,
    D("8993.88"),
    D(0),
    0.0,
    "2026-11-01",
)


def alternative(**changes: object) -> Summary:
    return replace(BASELINE, **{"label": "", **changes})  # type: ignore[arg-type]


ASSUMPTIONS = (
    Assumption("training.tokens", "20000000000", "tokens", "workload"),
    Assumption("time.provisioning", "6", "minutes", "default", "a node of this family is up within"),
    Assumption("time.image_pull", "4", "minutes", "default"),
    Assumption("checkpoint.interval", "30", "minutes", "default"),
    Assumption("performance.efficiency", "0.52", "", "model", "fitted on measured runs"),
    Assumption("interconnect", "400", "Gbit/s", "catalog"),
    Assumption("data.egress_tier", "0", "GB used earlier this month", "unknown"),
)

TRAINING = Plan(
    status="planned",
    workload="llama-3-8b-pretraining",
    workload_sha256=HASH[::-1],
    kind="training",
    created_at="2026-11-20T11:43:00+00:00",
    planner_version="0.1.0",
    start="2026-11-20T12:00:00+00:00",
    deadline="2026-11-27T12:00:00+00:00",
    finish_expected="2026-11-24T17:15:00+00:00",
    objective="cost",
    lines=(ON_DEMAND_LINE,),
    total_usd=ON_DEMAND_LINE.cost_usd,
    hours=101.25,
    timeline=(
        TimePart(TimePartId.PROVISIONING, "provisioning", 0.1, "default"),
        TimePart(TimePartId.IMAGE_PULL, "image pull", 0.07, "default"),
        TimePart(TimePartId.DATA_STAGING, "data staging", 1.9, "model", "1,024 GB at 1.2 Gbit/s"),
        TimePart(TimePartId.TRAINING_STEPS, "training steps", 97.3, "model"),
        TimePart(TimePartId.CHECKPOINTS, "checkpoints", 1.38, "model"),
        TimePart(TimePartId.FINAL_EXPORT, "final export", 0.5, "default"),
    ),
    performance=Performance(
        "tokens",
        98765.4,
        84000.0,
        113000.0,
        10.62,
        0.4123,
        33.4,
        39.39,
        "compute",
        {
            "compute_s": 7.9,
            "memory_bound_s": 0.6,
            "tp_comm_s": 1.2,
            "pp_comm_s": 0.0,
            "dp_comm_s": 0.8,
            "optimizer_s": 0.1,
        },
    ),
    risk=Risk(1.0, 0.0, 0.0, 101.25, 117.0, D("8993.88"), D("10378.60"), "no interruptions on demand"),
    savings=Savings(BASELINE, D("0.00"), 0.0, "the plan is the baseline: no other option is cheaper"),
    cash=(CashMonth("2026-11", D("8993.88")),),
    alternatives=(
        alternative(
            nodes=8,
            accelerators=64.0,
            hours=55.1,
            cost_usd=D("9799.75"),
            delta_cost_usd=D("805.87"),
            delta_hours=-46.15,
        ),
        alternative(
            provider="gcp",
            region="us-central1",
            instance_type="a2-highgpu-8g",
            cost_usd=D("11420.11"),
            delta_cost_usd=D("2426.23"),
            delta_hours=3.6,
            hours=104.85,
        ),
        alternative(
            provider="azure",
            region="eastus",
            instance_type="Standard_ND96asr_v4",
            cost_usd=D("11980.00"),
            delta_cost_usd=D("2986.12"),
            delta_hours=0.0,
        ),
    ),
    assumptions=ASSUMPTIONS,
    filters=(
        FilterCount("memory", "does not fit in accelerator memory", 5210, 1033),
        FilterCount("deadline", "finishes after the deadline", 8121, 3900),
        FilterCount("providers", "provider not allowed", 0, 0),
    ),
    filter_pairs=(FilterPair("memory", "deadline", 2210),),
    relaxations=(),
    unknown_options=(
        "reserved_3y: no price published for p4d.24xlarge",
        "flex_start: no price known in gcp/us-central1",
    ),
    proof=Proof(
        "exact enumeration",
        "optimal",
        "",
        D("8993.88"),
        D("8993.88"),
        0.0,
        15321,
        3558,
        411,
        0.123,
        near_ties=2,
        verified=True,
    ),
    catalog=(
        CatalogSource("aws", "2026-06-01", "2026-11-01", HASH, 1204),
        CatalogSource("gcp", "2026-10-15", "2026-10-15", HASH[8:] + HASH[:8], 811),
    ),
    warnings=(),
    excluded=("taxes", "support plans", "people's time"),
    n_results=10,
    n_feasible=1377,
)

SPOT_LINE = replace(
    ON_DEMAND_LINE,
    offer_id="aws/us-east-1/use1-az4/p4d.24xlarge/spot/-",
    zone="use1-az4",
    purchase_option="spot",
    price_per_hour=D("8.1234"),
    price_basis="derived",
    price_as_of="2026-10-28",
    flags=("derived", "band_5_10"),
    billed_hours=D("121.5"),
    costs=(
        cost(
            "compute",
            "4 x p4d.24xlarge spot",
            "486",
            "node-hours",
            "8.1234",
            basis="derived",
            as_of="2026-10-28",
        ),
        cost(
            "checkpoint_storage",
            "checkpoints in object storage",
            "7100",
            "GiB-month",
            "0.023",
            basis="derived",
        ),
    ),
    quota=replace(QUOTA, name="All P4 Spot Instance Requests", code="L-7212CCBC"),
)

LAUNCH = Launch(
    strategy="spot",
    p_meet_deadline=0.9342,
    p_meet_spot_only_ratio=0.9342,
    p_on_demand_needed_ratio=0.0,
    expected_cost_usd=D("4112.1724"),
    cost_p10_usd=D("3700.10"),
    cost_p90_usd=D("5230.40"),
    expected_hours=121.5,
    p10_hours=104.0,
    p90_hours=161.0,
    finish_p10="2026-11-24T20:00+00:00",
    finish_p90="2026-11-27T05:00+00:00",
    expected_interruptions=3.4,
    spot_hours=121.5,
    on_demand_hours=0.0,
    waiting_hours=8.2,
    lost_hours=9.8,
    on_demand_acquire_s=0.0,
    checkpoints=Checkpoints(
        14.9, 0.75, 45.0, "object storage in aws/us-east-1", 120.0, "notice page (2026)", True, 18.0, 738.0
    ),
    places=(
        SpotPlace(
            "aws/us-east-1/use1-az4/p4d.24xlarge/spot/-",
            121.5,
            30.0,
            2.4,
            0.926,
            None,
            "band 5-10 % per month",
        ),
    ),
    why=("on-demand alone would cost $8,993.88",),
    notes=("=nothing that a spreadsheet runs",),
)

SPOT = replace(
    TRAINING,
    workload="bert-large",
    lines=(SPOT_LINE,),
    total_usd=SPOT_LINE.cost_usd,
    hours=121.5,
    timeline=(
        *TRAINING.timeline,
        TimePart(
            TimePartId.INTERRUPTIONS, "interruptions", 20.25, "model", "lost work, restarts and waiting"
        ),
    ),
    finish_expected="2026-11-25T13:30:00+00:00",
    risk=Risk(
        0.9342, 3.4, 9.8, 121.5, 161.0, D("4112.17"), D("5230.40"), "band 5-10 % per month, gang exponent 0.7"
    ),
    savings=Savings(BASELINE, D("4881.71"), 0.5428, "same constraints, bought on demand"),
    cash=(CashMonth("2026-11", D("3900.00")), CashMonth("2026-12", D("47.97"))),
    alternatives=(
        alternative(delta_cost_usd=D("4881.71"), delta_hours=-20.25, cost_usd=D("8993.88")),
        alternative(
            provider="gcp",
            region="us-central1",
            zone="us-central1-a",
            instance_type="a2-highgpu-8g",
            purchase_option="spot",
            flags=("derived",),
            cost_usd=D("4400.00"),
            delta_cost_usd=D("287.83"),
            delta_hours=2.0,
        ),
    ),
    warnings=("the spot price is derived from a savings ratio of 2026-10-28; check it before you start",),
    launch=LAUNCH,
)

FLEET_LINES = (
    replace(
        SPOT_LINE,
        nodes=12,
        instance_type="g5.xlarge",
        accelerator="a10g-24gb-pcie",
        accelerators_per_node=1.0,
        throughput_per_s=310.5,
        layout=None,
        price_per_hour=D("0.4021"),
        costs=(cost("compute", "12 x g5.xlarge spot", "1458", "node-hours", "0.4021", basis="derived"),),
        quota=replace(QUOTA, name="All G and VT Spot Instance Requests", code="L-3819A6DF", needed=48.0),
    ),
    replace(
        ON_DEMAND_LINE,
        nodes=5,
        instance_type="g5.xlarge",
        accelerator="a10g-24gb-pcie",
        accelerators_per_node=1.0,
        throughput_per_s=129.4,
        layout=None,
        price_per_hour=D("1.006"),
        costs=(cost("compute", "5 x g5.xlarge on_demand", "506.25", "node-hours", "1.006"),),
        quota=replace(QUOTA, name="Running On-Demand G and VT instances", code="L-DB2E81BA", needed=20.0),
    ),
    replace(
        ON_DEMAND_LINE,
        offer_id="alibaba/cn-beijing/-/ecs.gn7i-c16g1.4xlarge/on_demand/-",
        provider="alibaba",
        region="cn-beijing",
        instance_type="ecs.gn7i-c16g1.4xlarge",
        accelerator="a10-24gb-pcie",
        nodes=3,
        accelerators_per_node=1.0,
        throughput_per_s=71.0,
        layout=None,
        price_per_hour=D("13.2"),
        currency="CNY",
        usd_per_currency=D("0.138"),
        flags=("disk_separate",),
        price_source="https://example.cn/prices",
        costs=(
            cost(
                "compute",
                "3 x ecs.gn7i-c16g1.4xlarge on_demand",
                "303.75",
                "node-hours",
                "13.2",
                currency="CNY",
                usd_per_currency=D("0.138"),
                amount_usd=D("303.75") * D("13.2") * D("0.138"),
            ),
            cost(
                "system_disk",
                "system disks",
                "120",
                "GiB-months",
                "0.35",
                currency="CNY",
                usd_per_currency=D("0.138"),
                amount_usd=D("5.796"),
            ),
        ),
        quota=QuotaNeed("GPU instances", "", "account", "vCPU", 48.0, 200.0, "within the declared limit"),
    ),
)

FLEET = replace(
    TRAINING,
    workload="sweep",
    kind="fleet",
    deadline=None,
    lines=FLEET_LINES,
    total_usd=sum((line.cost_usd for line in FLEET_LINES), D(0)),
    performance=Performance("samples", 510.9, 480.0, 540.0, None, None, None, None, "", {}),
    risk=Risk(None, 1.2, 0.4, 101.25, 110.0, D("1654.63"), D("1820.10"), ""),
    savings=Savings(None, None, None, "no on-demand plan fits the budget"),
    alternatives=(),
    cash=(CashMonth("2026-11", D("1654.63")),),
    proof=Proof(
        "mixed-integer program",
        "feasible",
        "scipy/HiGHS",
        D("1654.63"),
        D("1653.36"),
        0.00077,
        1999,
        1999,
        87,
        1.8,
        note="stopped at the gap asked for",
    ),
)

INFEASIBLE = replace(
    TRAINING,
    status="infeasible",
    lines=(),
    total_usd=D(0),
    hours=0.0,
    finish_expected=None,
    timeline=(),
    performance=None,
    risk=None,
    savings=None,
    cash=(),
    alternatives=(),
    n_feasible=0,
    relaxations=(
        Relaxation(
            "deadline",
            "24 h",
            "31.4 h",
            alternative(nodes=16, accelerators=128.0, hours=31.4, cost_usd=D("11502.10")),
        ),
        Relaxation("budget_usd", "$5,000.00", "$8,993.88", alternative(), "before interruptions"),
        Relaxation("max_nodes", "4", "24", None),
    ),
    filter_pairs=(FilterPair("memory", "deadline", 2210), FilterPair("budget", "deadline", 811)),
    proof=Proof("exact enumeration", "infeasible", "", D(0), D(0), 0.0, 15321, 3558, 411, 0.1),
)

EVIL = "x" * 150 + "|<b>[link](http://e.example)</b>\n=cmd()\x1b[31m\x07\u202e @team `code` $(rm)"

SPOT = replace(
    SPOT,
    goal=Goal(200e9, "tokens", 0.9, D(50000)),
    choices=(
        Choice(("cheapest",), None, "2026-11-25T13:30:00+00:00", 0.9342),
        Choice(("firm", "on_demand"), SPOT.alternatives[0], "2026-11-24T17:15:00+00:00", 0.997),
        Choice(("provider",), SPOT.alternatives[1], "2026-11-25T15:30:00+00:00", None),
    ),
)
TRAINING = replace(TRAINING, goal=Goal(200e9, "tokens", 0.9, None))
HOSTILE = replace(
    SPOT,
    launch=None,
    workload='=HYPERLINK("http://e.example")\r\n' + EVIL,
    lines=(
        replace(
            SPOT_LINE,
            instance_type="@SUM(1+1)*cmd|' /C calc'!A0",
            region="-" + EVIL,
            zone="区域一\u0000名前",
            accelerator="加速器" * 30,
            flags=("+1", "|", "<script>alert(1)</script>"),
            price_source=EVIL,
            nodes=1_234_567,
            price_per_hour=D("0.0000123456"),
            billed_hours=D("123456789.987"),
            quota=replace(QUOTA, name=EVIL, code="*", needed=float("nan")),
        ),
    ),
    total_usd=D("123456789012345.678"),
    hours=float("inf"),
    deadline="not a date \x1b[2J",
    performance=Performance(
        "tokens", float("nan"), 1e-9, 1e30, float("inf"), 0.99996, 1.0, None, EVIL, {EVIL: 1.0}
    ),
    risk=Risk(0.99999, float("inf"), 0.0, 1.0, float("inf"), D("NaN"), D("Infinity"), EVIL),
    alternatives=(
        alternative(
            instance_type=EVIL,
            region="=1+1",
            label="  =2+2",
            delta_cost_usd=D("-0.001"),
            delta_hours=-0.001,
            cost_usd=D("1e20"),
        ),
    ),
    assumptions=(
        Assumption(EVIL, EVIL, "", "unknown", EVIL),
        Assumption("e\u0301" * 80, "👩‍🚀" * 70, "", "default"),
    ),
    unknown_options=(EVIL, "\ud800 lone surrogate"),
    warnings=(EVIL, "**bold** _it_ snake_case"),
    excluded=(EVIL,),
)

PLANS = {"training": TRAINING, "spot": SPOT, "fleet": FLEET, "infeasible": INFEASIBLE, "hostile": HOSTILE}


def other_limits_of(plan: Plan, region: str) -> OtherLimits:
    """Invented answers by deadline and by budget, in a region of that name."""
    bests = [alternative(region=region, hours=20.0 * at, cost_usd=D(9000) / at) for at in range(1, 5)]
    points = [
        Point(30.0 * at, best, at <= 2, at > 1, at == 2, 0.95) for at, best in enumerate(bests, start=1)
    ]
    budgets = [Within(best.cost_usd, best, 0.95, best is bests[1]) for best in reversed(bests)]
    return OtherLimits(Frontier(plan.workload, 0.9, tuple(points), 99, "sizes"), tuple(budgets))
