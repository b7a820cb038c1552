"""Terraform for Google Cloud: instance template, managed instance group, resize requests and reservations."""

from __future__ import annotations

from functools import cache

from planner.bundled import bundled_rows
from planner.export.hcl import Block, Entry, Raw, Value
from planner.export.machines import gcp_machine
from planner.export.names import clean_tags
from planner.export.targets.terraform_parts import HOLD, Place, Variable, element_of
from planner.export.view import Launch, Pool

_DISK_GB = 200
_COMPACT = ("a2-", "a3-", "a4-", "g2-")
_IMAGE_TEXT = "Image with drivers: gcloud compute images list --project deeplearning-platform-release."
_HYPERDISK = ("a3-ultragpu", "a4", "g4-")


@cache
def _extra_networks() -> dict[str, tuple[int, int]]:
    """Networks beyond the first by machine type: of GVNIC and of RDMA (gcp_networks.csv)."""
    return {
        row["machine_type"]: (int(row["gvnic"]), int(row["rdma"])) for row in bundled_rows("gcp_networks.csv")
    }


def provider(launch: Launch, pools: tuple[Pool, ...]) -> Block:  # noqa: ARG001
    """The provider; each resource names its own region or zone."""
    return Block("provider", ("google",), (("project", Raw("var.project")),))


def place(launch: Launch, at: Place) -> list[Entry]:
    """Resources of one place."""
    out: list[Entry] = []
    if at.lends and _is_compact(at):
        policy = Block("group_placement_policy", (), (("collocation", "COLLOCATED"),))
        body = (at.count, ("name", at.name), ("region", at.pool.region), policy)
        out.append(Block("resource", ("google_compute_resource_policy", at.key), body))
    if at.pool.option == "on_demand":
        out.append(_reservation(at))
    out += [_template(launch, at), _group(at)]
    if at.pool.option == "flex_start":
        out.append(_request(at))
    return out


def variables(launch: Launch, pools: tuple[Pool, ...]) -> list[Variable]:
    """What the user must say for these places."""
    out = [
        Variable("project", "string", "Project that pays.", required=True),
        Variable("subnetworks", "map(string)", f"Subnetwork by region: {_regions(pools)}.", required=True),
        Variable("source_image", "string", _IMAGE_TEXT, required=True),
        Variable(
            "service_account", "string", "Account that reads data and writes checkpoints.", required=True
        ),
    ]
    networks = max((sum(_networks(launch, pool)) for pool in pools), default=0)
    if networks:
        text = f"Subnetworks of the GPUs' own interfaces by region, {networks} each, in order."
        out.append(Variable("gpu_subnetworks", "map(list(string))", text, required=True))
    if any(not Place(launch, launch.pools.index(pool), pool).zone for pool in pools):
        out.append(Variable("zones", "map(string)", f"Zone by region: {_regions(pools)}.", required=True))
    if any(pool.option == "future_reservation" for pool in pools):
        out.append(
            Variable("reservation", "string", "Name of the reservation that was granted.", required=True)
        )
    if any(pool.option == "on_demand" for pool in pools):
        out.append(HOLD)
    return out


def _regions(pools: tuple[Pool, ...]) -> str:
    return ", ".join(dict.fromkeys(pool.region for pool in pools))


def _networks(launch: Launch, pool: Pool) -> tuple[int, int]:
    return _extra_networks().get(pool.instance_type, (0, 0)) if launch.gang(pool) > 1 else (0, 0)


def _is_compact(at: Place) -> bool:
    return at.gang_nodes > 1 and at.pool.instance_type.startswith(_COMPACT)


def _zone(at: Place) -> tuple[str, Value]:
    return ("zone", at.zone or element_of("zones", at.pool.region))


def _accelerators(pool: Pool, block: str) -> list[Entry]:
    machine = gcp_machine(pool)
    if not machine.accelerator_type:
        return []
    prefix = "accelerator_" if block == "guest_accelerators" else ""
    return [
        Block(block, (), ((f"{prefix}type", machine.accelerator_type), (f"{prefix}count", machine.count)))
    ]


def _reservation(at: Place) -> Block:
    properties: list[Entry] = [("machine_type", gcp_machine(at.pool).machine_type)]
    properties += _accelerators(at.pool, "guest_accelerators")
    specific = (("count", at.pool.nodes), Block("instance_properties", (), tuple(properties)))
    return Block(
        "resource", ("google_compute_reservation", at.key),
        (at.held(), ("name", at.name), _zone(at), Block("specific_reservation", (), specific)),
    )  # fmt: skip


def _template(launch: Launch, at: Place) -> Block:
    pool = at.pool
    size = max(_DISK_GB, round(2 * (launch.checkpoints.size_gib or 0)))
    kind = "hyperdisk-balanced" if pool.instance_type.startswith(_HYPERDISK) else "pd-ssd"
    disk = (
        ("boot", True), ("auto_delete", True), ("source_image", Raw("var.source_image")), ("disk_size_gb", size),
        ("disk_type", kind),
    )  # fmt: skip
    body: list[Entry] = [
        at.count, ("name_prefix", f"{at.name[:30]}-"), ("region", pool.region),
        ("machine_type", gcp_machine(pool).machine_type), ("labels", clean_tags(launch.tags, "gcp")),
    ]  # fmt: skip
    if _is_compact(at):
        body.append(("resource_policies", [at.shared("google_compute_resource_policy", "id")]))
    body += [Block("disk", (), disk), *_accelerators(pool, "guest_accelerator"), *_interfaces(launch, pool)]
    body += [Block("scheduling", (), tuple(_scheduling(pool))), *_affinity(pool)]
    account = (("email", Raw("var.service_account")), ("scopes", ["cloud-platform"]))
    replace_first = Block("lifecycle", (), (("create_before_destroy", True),))
    body += [Block("service_account", (), account), replace_first]
    return Block("resource", ("google_compute_instance_template", at.key), tuple(body))


def _interfaces(launch: Launch, pool: Pool) -> list[Entry]:
    """The first interface, then those of the GPUs."""
    out: list[Entry] = [
        Block("network_interface", (), (("subnetwork", element_of("subnetworks", pool.region)), ("nic_type", "GVNIC")))
    ]  # fmt: skip
    gvnic, rdma = _networks(launch, pool)
    own = element_of("gpu_subnetworks", pool.region).text
    for count, start, kind in ((gvnic, 0, "GVNIC"), (rdma, gvnic, "MRDMA")):
        if count:
            content = (("subnetwork", Raw("network_interface.value")), ("nic_type", kind))
            each = ("for_each", Raw(f"slice({own}, {start}, {start + count})"))
            out.append(Block("dynamic", ("network_interface",), (each, Block("content", (), content))))
    return out


def _scheduling(pool: Pool) -> list[Entry]:
    common: list[Entry] = [("on_host_maintenance", "TERMINATE")]
    if pool.is_spot:
        return [("provisioning_model", "SPOT"), ("preemptible", True), ("automatic_restart", False),
                ("instance_termination_action", "DELETE"), *common]  # fmt: skip
    if pool.option == "flex_start":
        longest = Block("max_run_duration", (), (("seconds", _run_seconds(pool)),))
        return [("provisioning_model", "FLEX_START"), ("automatic_restart", False),
                ("instance_termination_action", "DELETE"), *common, longest]  # fmt: skip
    return [("provisioning_model", "STANDARD"), ("automatic_restart", True), *common]


def _affinity(pool: Pool) -> list[Entry]:
    """Which reservation the nodes use: open ones match by themselves."""
    if pool.option == "flex_start":
        return [Block("reservation_affinity", (), (("type", "NO_RESERVATION"),))]
    if pool.option != "future_reservation":
        return []
    names = (("key", "compute.googleapis.com/reservation-name"), ("values", [Raw("var.reservation")]))
    specific = Block("specific_reservation", (), names)
    return [Block("reservation_affinity", (), (("type", "SPECIFIC_RESERVATION"), specific))]


def _group(at: Place) -> Block:
    queued = at.pool.option == "flex_start"
    version = Block("version", (), (("instance_template", at.ref("google_compute_instance_template", "id")),))
    policy = (("type", "OPPORTUNISTIC"), ("minimal_action", "REPLACE"), ("max_surge_fixed", 0),
              ("max_unavailable_fixed", at.pool.nodes))  # fmt: skip
    body: list[Entry] = [
        at.count, ("name", at.name), _zone(at), ("base_instance_name", at.name),
        *([] if queued else [("target_size", at.pool.nodes)]), version, Block("update_policy", (), policy),
    ]  # fmt: skip
    if at.pool.option == "on_demand":
        body.append(("depends_on", [Raw(f"google_compute_reservation.{at.key}")]))
    if queued:
        body.append(Block("instance_lifecycle_policy", (), (("default_action_on_failure", "DO_NOTHING"),)))
    return Block("resource", ("google_compute_instance_group_manager", at.key), tuple(body))


def _request(at: Place) -> Block:
    """All nodes at once, or none: the request waits until it can be met."""
    return Block(
        "resource", ("google_compute_resize_request", at.key),
        (
            at.count, ("name", at.name), _zone(at),
            ("instance_group_manager", at.ref("google_compute_instance_group_manager", "name")),
            ("resize_by", at.pool.nodes),
            Block("requested_run_duration", (), (("seconds", str(_run_seconds(at.pool))),)),
        ),
    )  # fmt: skip


def _run_seconds(pool: Pool) -> int:
    """The run's hours, at most the seven days that flex-start gives."""
    return min(round(pool.hours * 3600), 7 * 86400)
