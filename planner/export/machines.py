"""What a provider calls the machines of a pool where the planner's name says more than the provider's."""

from __future__ import annotations

import re

from catalogs.tariffs import load_tariffs
from planner.errors import InputError
from planner.export.software import load_efa
from planner.export.view import Launch, Pool
from planner.records import record

_ATTACHED = re.compile(r"(?P<machine>[a-z0-9-]+)\+(?P<type>nvidia-[a-z0-9-]+?)x(?P<count>\d+)\Z")


@record(frozen=True)
class GcpMachine:
    """A machine type of Google Cloud, and the accelerators attached to it: empty and 0 where the type brings them."""

    machine_type: str
    accelerator_type: str = ""
    count: int = 0


def gcp_machine(pool: Pool) -> GcpMachine:
    """Split `n1-standard-32+nvidia-tesla-t4x4` into machine type and attached accelerators."""
    match = _ATTACHED.match(pool.instance_type)
    if match is None:
        return GcpMachine(pool.instance_type)
    return GcpMachine(match["machine"], match["type"], int(match["count"]))


def efa_interfaces(pool: Pool) -> tuple[int, int]:
    """EFA interfaces and network cards of an AWS instance; zeros without EFA."""
    return load_efa().get(pool.instance_type, (0, 0))


def discounts(launch: Launch) -> str:
    """Ways to buy of a plan that change the bill and not what is launched, in its order: `reserved_1y, cud_3y`."""
    tariffs = load_tariffs()
    return ", ".join(
        dict.fromkeys(
            pool.option
            for pool in launch.pools
            if tariffs.option_rule(pool.provider, pool.option, pool.variant).is_discount
        )
    )


def is_zone_id(zone: str) -> bool:
    """Whether a zone is named by its id, as AWS does: `use2-az3` is one zone for all accounts, `us-east-2b` is not."""
    return re.search(r"-az\d+\Z", zone) is not None


def refuse_others(launch: Launch, target: str, providers: frozenset[str]) -> None:
    """Refuse a plan with machines that the target cannot start.

    Raises:
        InputError: names the first such pool, and the remedy.
    """
    for pool in launch.pools:
        if pool.provider not in providers:
            raise InputError(
                f"--to {target}: {pool.place} ({pool.instance_type}) is on {pool.provider}; it starts machines of "
                f"{', '.join(sorted(providers))}: plan with constraints.providers, or take another target"
            )


def zone_names(text: str) -> dict[str, str]:
    """Read `use2-az3=us-east-2b,...`: names of AWS zones in the user's account, by zone id.

    Raises:
        InputError: not of this form.
    """
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    for key, _, value in pairs:
        if not re.fullmatch(r"[a-z0-9-]+", key.strip()) or not re.fullmatch(r"[a-z0-9-]+", value.strip()):
            raise InputError(
                f"--option zones={text!r}: write ZONE_ID=ZONE_NAME,... such as use2-az3=us-east-2b"
            )
    return {key.strip(): value.strip() for key, _, value in pairs}
