"""Terraform for AWS: launch template with EFA, placement group, autoscaling group, reservations and capacity blocks."""

from __future__ import annotations

from planner.export.hcl import Block, Comment, Entry, Raw
from planner.export.machines import efa_interfaces
from planner.export.names import clean_tags
from planner.export.software import platform_of
from planner.export.targets.terraform_parts import HOLD, Place, Variable, element_of
from planner.export.view import Launch, Pool

_IMAGES = {
    "amd64": "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
    "arm64": "/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
}
_DISK_GB = 200


def provider(launch: Launch, pools: tuple[Pool, ...]) -> Block:
    """The provider; each resource names its own region."""
    tags = Block("default_tags", (), (("tags", clean_tags(launch.tags, "aws")),))
    return Block("provider", ("aws",), (("region", pools[0].region), tags))


def place(launch: Launch, at: Place) -> list[Entry]:
    """Resources of one place."""
    pool = at.pool
    out: list[Entry] = [_subnet(at), _image(at), *([_security_group(at)] if at.lends else [])]
    if at.lends and at.gang_nodes > 1:
        out.append(
            Block(
                "resource", ("aws_placement_group", at.key),
                (at.count, ("region", pool.region), ("name", at.name), ("strategy", "cluster")),
            )
        )  # fmt: skip
    out += _reservation(at)
    return [*out, _template(launch, at), _group(launch, at)]


def variables(launch: Launch, pools: tuple[Pool, ...]) -> list[Variable]:
    """What the user must say for these places."""
    zones = ", ".join(dict.fromkeys(at.zone or at.pool.region for at in _places(launch, pools)))
    out = [
        Variable("subnet_ids", "map(string)", f"Private subnet by zone id: {zones}.", required=True),
        Variable(
            "image_parameters",
            "map(string)",
            "SSM parameter of the machine image by platform.",
            dict(_IMAGES),
        ),
        Variable("instance_profile", "string", "Instance profile that reads data and writes checkpoints."),
    ]
    if any(pool.option == "capacity_block" for pool in pools):
        text = "Offering to buy: aws ec2 describe-capacity-block-offerings. Applying buys it, without refund."
        out.append(Variable("capacity_block_offering_id", "string", text, required=True))
    if any(_may_hold(pool) for pool in pools):
        out.append(HOLD)
    return out


def _places(launch: Launch, pools: tuple[Pool, ...]) -> list[Place]:
    return [Place(launch, number, pool) for number, pool in enumerate(launch.pools) if pool in pools]


def _may_hold(pool: Pool) -> bool:
    return not pool.is_spot and pool.option != "capacity_block"


def _subnet(at: Place) -> Block:
    key = at.zone or at.pool.region
    return Block(
        "data", ("aws_subnet", at.key),
        (at.count, ("region", at.pool.region), ("id", element_of("subnet_ids", key))),
    )  # fmt: skip


def _image(at: Place) -> Block:
    name = element_of("image_parameters", platform_of(at.pool))
    return Block(
        "data", ("aws_ssm_parameter", at.key), (at.count, ("region", at.pool.region), ("name", name))
    )


def _security_group(at: Place) -> Block:
    """All traffic between the nodes of a gang, as EFA needs it, and out; one for all its places."""
    anything = (("from_port", 0), ("to_port", 0), ("protocol", "-1"))
    return Block(
        "resource", ("aws_security_group", at.key),
        (
            at.count, ("region", at.pool.region), ("name_prefix", f"{at.name}-"),
            ("vpc_id", Raw(f"data.aws_subnet.{at.key}[0].vpc_id")),
            Block("ingress", (), (*anything, ("self", True))),
            Block("egress", (), (*anything, ("self", True))),
            Block("egress", (), (*anything, ("cidr_blocks", ["0.0.0.0/0"]))),
        ),
    )  # fmt: skip


def _reservation(at: Place) -> list[Entry]:
    pool = at.pool
    if pool.option == "capacity_block":
        return [
            Block(
                "resource", ("aws_ec2_capacity_block_reservation", at.key),
                (
                    at.count, ("region", pool.region), ("instance_platform", "Linux/UNIX"),
                    ("capacity_block_offering_id", Raw("var.capacity_block_offering_id")),
                ),
            )
        ]  # fmt: skip
    if not _may_hold(pool):
        return []
    return [
        Block(
            "resource", ("aws_ec2_capacity_reservation", at.key),
            (
                at.held(), ("region", pool.region),
                ("availability_zone", Raw(f"data.aws_subnet.{at.key}[0].availability_zone")),
                ("instance_type", pool.instance_type), ("instance_platform", "Linux/UNIX"),
                ("instance_count", pool.nodes), ("instance_match_criteria", "open"),
                ("end_date_type", "unlimited"),
                *([("placement_group_arn", at.shared("aws_placement_group", "arn"))] if at.gang_nodes > 1 else []),
            ),
        )
    ]  # fmt: skip


def _template(launch: Launch, at: Place) -> Block:
    pool = at.pool
    size = max(_DISK_GB, round(2 * (launch.checkpoints.size_gib or 0)))
    disk = (
        ("volume_size", size),
        ("volume_type", "gp3"),
        ("encrypted", True),
        ("delete_on_termination", True),
    )
    body: list[Entry] = [
        at.count, ("region", pool.region), ("name_prefix", f"{at.name}-"),
        ("image_id", Raw(f"data.aws_ssm_parameter.{at.key}[0].value")), ("instance_type", pool.instance_type),
        ("update_default_version", True), *_market(at), *_networks(at),
        Block("block_device_mappings", (), (("device_name", "/dev/sda1"), Block("ebs", (), disk))),
        Block("metadata_options", (), (("http_tokens", "required"), ("http_endpoint", "enabled"))),
        Block(
            "dynamic", ("iam_instance_profile",),
            (("for_each", Raw("var.instance_profile == null ? [] : [var.instance_profile]")),
             Block("content", (), (("name", Raw("iam_instance_profile.value")),))),
        ),
    ]  # fmt: skip
    if at.gang_nodes > 1:
        body.append(Block("placement", (), (("group_name", at.shared("aws_placement_group", "name")),)))
    if not at.lends:
        body.append(_one_network(at))
    tags = clean_tags(launch.tags, "aws")
    body += [
        Block("tag_specifications", (), (("resource_type", kind), ("tags", tags)))
        for kind in ("instance", "volume", "network-interface")
    ]
    return Block("resource", ("aws_launch_template", at.key), tuple(body))


def _one_network(at: Place) -> Block:
    """A gang lies in one zone of one network: EFA reaches no other, and a security group belongs to one."""
    mine, lent = f"data.aws_subnet.{at.key}[0]", f"data.aws_subnet.place_{at.gang[0]}[0]"
    same = f"{mine}.vpc_id == {lent}.vpc_id && {mine}.availability_zone == {lent}.availability_zone"
    text = f"The subnets of places {at.gang[0]} and {at.number} must be in one zone of one VPC (one gang)."
    check = Block("precondition", (), (("condition", Raw(same)), ("error_message", text)))
    return Block("lifecycle", (), (check,))


def _market(at: Place) -> list[Entry]:
    """How the nodes are bought."""
    if at.pool.is_spot:
        spot = (("spot_instance_type", "one-time"), ("instance_interruption_behavior", "terminate"))
        return [
            Block("instance_market_options", (), (("market_type", "spot"), Block("spot_options", (), spot)))
        ]
    if at.pool.option == "capacity_block":
        block = at.ref("aws_ec2_capacity_block_reservation", "id")
        target = Block("capacity_reservation_target", (), (("capacity_reservation_id", block),))
        return [
            Block("instance_market_options", (), (("market_type", "capacity-block"),)),
            Block("capacity_reservation_specification", (), (target,)),
        ]
    return [Block("capacity_reservation_specification", (), (("capacity_reservation_preference", "open"),))]


def _networks(at: Place) -> list[Entry]:
    """EFA on every network card; the first card also carries IP, unless it has no EFA."""
    efa, cards = efa_interfaces(at.pool)
    groups = ("security_groups", [at.shared("aws_security_group", "id")])
    common: tuple[Entry, ...] = (groups, ("delete_on_termination", True))
    if at.gang_nodes == 1 or not efa:
        return [Block("network_interfaces", (), (("device_index", 0), *common))]
    kind: list[Entry] = [("interface_type", "efa")] if efa == cards else [Comment("this card carries no EFA")]
    first = Block("network_interfaces", (), (("network_card_index", 0), ("device_index", 0), *kind, *common))
    if cards == 1:
        return [first]
    content = (
        ("network_card_index", Raw("network_interfaces.value")), ("device_index", 1), ("interface_type", "efa-only"),
        *common,
    )  # fmt: skip
    rest = (("for_each", Raw(f"range(1, {cards})")), Block("content", (), content))
    return [first, Block("dynamic", ("network_interfaces",), rest)]


def _held_first(at: Place) -> list[Entry]:
    """Nodes start when their capacity is held."""
    return [("depends_on", [Raw(f"aws_ec2_capacity_reservation.{at.key}")])] if _may_hold(at.pool) else []


def _group(launch: Launch, at: Place) -> Block:
    pool = at.pool
    template = (
        ("id", at.ref("aws_launch_template", "id")), ("version", at.ref("aws_launch_template", "latest_version")),
    )  # fmt: skip
    tags = [
        Block("tag", (), (("key", key), ("value", value), ("propagate_at_launch", False)))
        for key, value in clean_tags(launch.tags, "aws").items()
    ]
    return Block(
        "resource", ("aws_autoscaling_group", at.key),
        (
            at.count, ("region", pool.region), ("name", at.name), ("min_size", pool.nodes), ("max_size", pool.nodes),
            ("desired_capacity", pool.nodes), ("vpc_zone_identifier", [Raw(f"data.aws_subnet.{at.key}[0].id")]),
            ("capacity_rebalance", False), ("suspended_processes", ["AZRebalance"]),
            ("wait_for_capacity_timeout", "0"), *_held_first(at), Block("launch_template", (), template), *tags,
        ),
    )  # fmt: skip
