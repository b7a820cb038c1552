"""What the generated company buys: SKUs, regions, accounts and teams. Prices are invented round figures."""

from __future__ import annotations

from dataclasses import dataclass, field

AWS, GOOGLE, MICROSOFT = "AWS", "Google Cloud", "Microsoft"
CLOUDS = (AWS, GOOGLE, MICROSOFT)
REGIONS = {
    AWS: (("us-east-1", "US East (N. Virginia)"), ("eu-west-1", "EU (Ireland)")),
    GOOGLE: (("us-central1", "Iowa"), ("europe-west4", "Netherlands")),
    MICROSOFT: (("eastus", "East US"), ("westeurope", "West Europe")),
}
BILLING_ACCOUNTS = {
    AWS: ("900000000001", "Northwind Payer", "Payer Account"),
    GOOGLE: ("01A2B3-C4D5E6-F70819", "Northwind Billing", "Billing Account"),
    MICROSOFT: ("8611537", "Northwind Enrolment", "Enrolment"),
}
SUB_ACCOUNT_TYPES = {AWS: "Linked Account", GOOGLE: "Project", MICROSOFT: "Subscription"}
SUB_ACCOUNTS = ("prod-platform", "data-analytics", "ml-research")
TEAMS = ("search", "payments", "platform", "research")
APPLICATIONS = {"search": "finder", "payments": "checkout", "platform": "core", "research": "lab"}
ENVIRONMENTS = ("prod", "dev")
MANDATORY_TAGS = ("team", "env")
PROGRAMS = {
    AWS: ("Savings Plan", "Reserved Instance"),
    GOOGLE: ("Committed Use Discount",),
    MICROSOFT: ("Reservation", "Savings Plan"),
}


@dataclass(frozen=True)
class Sku:
    """One metered thing.

    Attributes:
        code: our short name; ids are made from it.
        list_price: per pricing unit, in the billing currency.
        contract_ratio: contracted over list price (negotiated discount).
        per_resource: pricing units of one resource on a usual weekday.
        weekend_ratio: weekend over weekday use.
        monthly_growth: factor of use from month to month.
        price_moves: month index -> factor on list price from that month on.
        first, last: month indices, counted from the end (-1 is the newest), between which it is sold.
        share: of the rows to be generated.
        spot_ratio: price over list where it is also bought on the spot market (None: it is not).
        eligible: a commitment programme could cover it.
    """

    code: str
    provider: str
    service: str
    category: str
    subcategory: str
    meter: str
    unit: str
    list_price: float
    contract_ratio: float
    per_resource: float
    share: float
    weekend_ratio: float = 0.6
    monthly_growth: float = 1.03
    price_moves: dict[int, float] = field(default_factory=dict)
    first: int = -99
    last: int = -1
    spot_ratio: float | None = None
    eligible: bool = False
    details: dict[str, object] = field(default_factory=dict)
    resource_type: str = "Instance"
    zonal: bool = False

    @property
    def sku_id(self) -> str:
        """The SkuId in the bill."""
        return f"SKU-{self.code}"


def _cloud(provider: str, names: dict[str, str], code: str, k: float) -> tuple[Sku, ...]:
    """The usual SKUs of one cloud; `k` moves its prices."""
    vm = {"InstanceType": f"{code}-std-8", "CoreCount": 8, "MemorySize": 32, "OperatingSystem": "Linux"}
    gpu = {"InstanceType": f"{code}-gpu-8", "CoreCount": 96, "GpuCount": 8, "MemorySize": 1152}
    compute, machines = "Compute", "Virtual Machines"
    disk = {"DiskType": "SSD", "StorageClass": "Hot", "Redundancy": "Zone"}
    return (
        Sku(f"{code}-vm", provider, names["vm"], compute, machines, "Compute", "Hours", 0.40 * k, 0.95, 20.0, 0.34,
            eligible=True, details=vm, zonal=True),
        Sku(f"{code}-vm-big", provider, names["vm"], compute, machines, "Compute", "Hours", 1.60 * k, 0.95, 12.0, 0.10,
            monthly_growth=1.10, spot_ratio=0.35, eligible=True, details={**vm, "CoreCount": 32}, zonal=True),
        Sku(f"{code}-gpu", provider, names["vm"], compute, machines, "GPU", "Hours", 40.0 * k, 0.9, 6.0, 0.02,
            weekend_ratio=0.9, spot_ratio=0.4, eligible=True, details=gpu, zonal=True),
        Sku(f"{code}-store", provider, names["store"], "Storage", "Object Storage", "Storage", "GB-Months", 0.023 * k,
            1.0, 40.0, 0.20, weekend_ratio=1.0, monthly_growth=1.05, details=disk, resource_type="Bucket"),
        Sku(f"{code}-db", provider, names["db"], "Databases", "Relational Databases", "Database", "Hours", 0.9 * k,
            0.97, 24.0, 0.08, weekend_ratio=1.0, monthly_growth=0.98, price_moves={-1: 1.10},
            details={"CoreCount": 4, "MemorySize": 16}, resource_type="Database", zonal=True),
        Sku(f"{code}-net", provider, names["net"], "Networking", "Network Connectivity", "Data Transfer", "GB",
            0.08 * k, 1.0, 30.0, 0.16, resource_type="Gateway"),
    )  # fmt: skip


SKUS: tuple[Sku, ...] = (
    *_cloud(AWS, {"vm": "AmazonEC2", "store": "AmazonS3", "db": "AmazonRDS", "net": "AWSDataTransfer"}, "aws", 1.0),
    *_cloud(GOOGLE, {"vm": "Compute Engine", "store": "Cloud Storage", "db": "Cloud SQL", "net": "Networking"}, "gcp",
            0.95),
    *_cloud(MICROSOFT, {"vm": "Virtual Machines", "store": "Storage Accounts", "db": "SQL Database",
                        "net": "Bandwidth"}, "az", 1.05),
    # a price cut in the newest month, a SKU that begins there and one that ends before it
    Sku("aws-fn", AWS, "AWSLambda", "Compute", "Serverless Compute", "Compute", "GB-Seconds", 0.0000166667, 1.0,
        90_000.0, 0.05, price_moves={-1: 0.8}, details={"x_Architecture": "arm64"}, resource_type="Function"),
    Sku("aws-queue", AWS, "AmazonSQS", "Integration", "Messaging", "Requests", "Requests", 0.0000004, 1.0, 3_000_000.0,
        0.02, first=-1, resource_type="Queue"),
    Sku("gcp-batch", GOOGLE, "Dataflow", "Analytics", "Data Processing", "Compute", "Hours", 0.07, 1.0, 20.0, 0.03,
        last=-2, resource_type="Job"),
)  # fmt: skip
