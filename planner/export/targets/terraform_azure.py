"""Terraform for Azure: scale set in one placement group, spot, and capacity reservations."""

from __future__ import annotations

from planner.errors import InputError
from planner.export.fabric import fabric_of
from planner.export.hcl import Block, Entry, Raw
from planner.export.names import clean_tags
from planner.export.targets.terraform_parts import HOLD, Place, Variable, element_of
from planner.export.view import Launch, Pool

_DISK_GB = 200
_PREMIUM = (("caching", "ReadWrite"), ("storage_account_type", "Premium_LRS"))
_IMAGE = {"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2204", "version": "latest"}


def provider(launch: Launch, pools: tuple[Pool, ...]) -> Block:  # noqa: ARG001
    """The provider of the subscription that pays."""
    return Block(
        "provider", ("azurerm",), (("subscription_id", Raw("var.subscription_id")), Block("features"))
    )


def place(launch: Launch, at: Place) -> list[Entry]:
    """Resources of one place.

    Raises:
        InputError: a gang on several offers whose nodes talk by InfiniBand, which ends with the scale set.
    """
    if len(at.gang) > 1 and "infiniband" in fabric_of(at.pool).kinds:
        raise InputError(
            f"--to terraform: one gang on {len(at.gang)} offers of {at.pool.instance_type}: InfiniBand of Azure "
            "reaches nodes of one scale set only, and a scale set has one offer; plan with one of "
            "constraints.purchase_options"
        )
    held = _reservation(at) if _may_hold(at.pool) else []
    return [*held, _scale_set(launch, at)]


def variables(launch: Launch, pools: tuple[Pool, ...]) -> list[Variable]:  # noqa: ARG001
    """What the user must say for these places."""
    regions = ", ".join(dict.fromkeys(pool.region for pool in pools))
    out = [
        Variable("subscription_id", "string", "Subscription that pays.", required=True),
        Variable("resource_group_name", "string", "Resource group of the nodes.", required=True),
        Variable("azure_subnet_ids", "map(string)", f"Subnet by region: {regions}.", required=True),
        Variable("ssh_public_key", "string", "Public key of the administrator.", required=True),
        Variable("azure_image", "map(string)", "Image with drivers for GPUs and InfiniBand.", dict(_IMAGE)),
    ]
    return [*out, HOLD] if any(map(_may_hold, pools)) else out


def _may_hold(pool: Pool) -> bool:
    """Whether capacity can be reserved: not for spot, nor in one placement group, as InfiniBand needs it."""
    return not pool.is_spot and pool.nodes == 1


def _reservation(at: Place) -> list[Entry]:
    pool = at.pool
    zones: list[Entry] = [("zones", [pool.zone])] if pool.zone else []
    zone: list[Entry] = [("zone", pool.zone)] if pool.zone else []
    group = (
        at.held(), ("name", at.name), ("location", pool.region),
        ("resource_group_name", Raw("var.resource_group_name")), *zones,
    )  # fmt: skip
    sku = Block("sku", (), (("name", pool.instance_type), ("capacity", pool.nodes)))
    capacity = (
        at.held(), ("name", at.name), *zone,
        ("capacity_reservation_group_id", at.ref("azurerm_capacity_reservation_group", "id")), sku,
    )  # fmt: skip
    return [
        Block("resource", ("azurerm_capacity_reservation_group", at.key), group),
        Block("resource", ("azurerm_capacity_reservation", at.key), capacity),
    ]


def _scale_set(launch: Launch, at: Place) -> Block:
    pool = at.pool
    size = max(_DISK_GB, round(2 * (launch.checkpoints.size_gib or 0)))
    body: list[Entry] = [
        at.count, ("name", at.name), ("location", pool.region),
        ("resource_group_name", Raw("var.resource_group_name")), ("sku", pool.instance_type),
        ("instances", pool.nodes), *([("zones", [pool.zone])] if pool.zone else []), ("admin_username", "planner"),
        ("overprovision", False), ("upgrade_mode", "Manual"),
        # InfiniBand reaches nodes of one placement group only, which holds at most 100
        ("single_placement_group", at.gang_nodes > 1), *_price(at), ("tags", clean_tags(launch.tags, "azure")),
        Block("admin_ssh_key", (), (("username", "planner"), ("public_key", Raw("var.ssh_public_key")))),
        Block("os_disk", (), (*_PREMIUM, ("disk_size_gb", size))),
        Block("source_image_reference", (), tuple((key, Raw(f"var.azure_image.{key}")) for key in _IMAGE)),
        _network(at),
    ]  # fmt: skip
    if pool.is_spot:
        body.append(Block("termination_notification", (), (("enabled", True), ("timeout", "PT5M"))))
    return Block("resource", ("azurerm_linux_virtual_machine_scale_set", at.key), tuple(body))


def _price(at: Place) -> list[Entry]:
    """Spot up to the on-demand price, or regular machines that may use held capacity."""
    if at.pool.is_spot:
        return [("priority", "Spot"), ("eviction_policy", "Delete"), ("max_bid_price", -1)]
    if not _may_hold(at.pool):
        return [("priority", "Regular")]
    group = f"var.hold_capacity ? azurerm_capacity_reservation_group.{at.key}[0].id : null"
    return [("priority", "Regular"), ("capacity_reservation_group_id", Raw(group))]


def _network(at: Place) -> Block:
    address = (
        ("name", "internal"), ("primary", True), ("subnet_id", element_of("azure_subnet_ids", at.pool.region)),
    )  # fmt: skip
    return Block(
        "network_interface", (),
        (("name", "nic"), ("primary", True), ("enable_accelerated_networking", True),
         Block("ip_configuration", (), address)),
    )  # fmt: skip
