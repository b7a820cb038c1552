"""Terraform: the plan's cluster on AWS, Google Cloud or Azure, with one place of the plan active at a time.

Arguments: providers aws 6, google 6 and azurerm 4. Each place of the plan has resources of its own; `var.place` says
which are made where the gang moves from place to place, and all are made where they run together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.export.files import ExportFile
from planner.export.hcl import Block, Comment, Entry, Raw, document
from planner.export.machines import discounts, refuse_others
from planner.export.program import heading
from planner.export.registry import Options
from planner.export.targets import terraform_aws, terraform_azure, terraform_gcp
from planner.export.targets.terraform_parts import Place, Variable, variable_blocks
from planner.export.view import Launch, Pool
from planner.records import record


@record(frozen=True)
class Cloud:
    """How one provider's places are written.

    `requirement` is the source and version of its Terraform provider, `provider` its configuration, `place` the
    resources of one place, `variables` what the user must say for the places given.
    """

    name: str
    requirement: tuple[str, str]
    provider: Callable[[Launch, tuple[Pool, ...]], Block]
    place: Callable[[Launch, Place], list[Entry]]
    variables: Callable[[Launch, tuple[Pool, ...]], list[Variable]]


CLOUDS: Mapping[str, Cloud] = {
    "aws": Cloud("aws", ("hashicorp/aws", "~> 6.0"), terraform_aws.provider, terraform_aws.place,
                 terraform_aws.variables),
    "gcp": Cloud("google", ("hashicorp/google", "~> 6.0"), terraform_gcp.provider, terraform_gcp.place,
                 terraform_gcp.variables),
    "azure": Cloud("azurerm", ("hashicorp/azurerm", "~> 4.0"), terraform_azure.provider, terraform_azure.place,
                   terraform_azure.variables),
}  # fmt: skip


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:  # noqa: ARG001
    """Return `main.tf` and `variables.tf`.

    Raises:
        InputError: a place is on another provider, or its machines are your own.
    """
    refuse_others(launch, "terraform", frozenset(CLOUDS))
    names = list(dict.fromkeys(pool.provider for pool in launch.pools))
    clouds = [(name, CLOUDS[name]) for name in names]
    places = [Place(launch, at, pool) for at, pool in enumerate(launch.pools)]
    resources: list[Entry] = []
    for place in places:
        resources.append(Comment(f"place {place.number}: {_words(place.pool)}"))
        resources += CLOUDS[place.pool.provider].place(launch, place)
    main = [
        *(Comment(line.removeprefix("# ")) for line in heading(launch, *_how(launch))), None,
        _settings([cloud for _, cloud in clouds]),
        *(cloud.provider(launch, _pools(launch, name)) for name, cloud in clouds), _locals(launch),
        *resources, _output(),
    ]  # fmt: skip
    asked = [item for name, cloud in clouds for item in cloud.variables(launch, _pools(launch, name))]
    return (
        ExportFile("main.tf", document(main)),
        ExportFile("variables.tf", document([*_place_variable(launch), *variable_blocks(asked)])),
    )


def _pools(launch: Launch, provider: str) -> tuple[Pool, ...]:
    return tuple(pool for pool in launch.pools if pool.provider == provider)


def _words(pool: Pool) -> str:
    return f"{pool.nodes} x {pool.instance_type} {pool.option} in {pool.place}"


def _settings(clouds: list[Cloud]) -> Block:
    needed = {
        cloud.name: {"source": cloud.requirement[0], "version": cloud.requirement[1]} for cloud in clouds
    }
    return Block(
        "terraform",
        (),
        (("required_version", ">= 1.6"), Block("required_providers", (), tuple(needed.items()))),
    )


def _locals(launch: Launch) -> Block:
    active: Raw | list[int] = Raw("[var.place]")
    if not launch.moves:
        active = list(range(len(launch.pools)))
    places = [_words(pool) for pool in launch.pools]
    return Block(
        "locals",
        (),
        (("run_id", launch.run_id), ("places", places), Comment("places that exist"), ("active", active)),
    )


def _place_variable(launch: Launch) -> list[Entry]:
    if not launch.moves:
        return []
    last = len(launch.pools) - 1
    check = Block(
        "validation", (),
        (
            ("condition", Raw(f"var.place >= 0 && var.place <= {last} && floor(var.place) == var.place")),
            ("error_message", f"place is 0 to {last}, in the order of the plan."),
        ),
    )  # fmt: skip
    return [
        Block(
            "variable", ("place",),
            (("description", "Place of the plan to use: 0 is the first choice; increase it if there is no capacity."),
             ("type", Raw("number")), ("default", 0), check),
        )
    ]  # fmt: skip


def _output() -> Block:
    return Block("output", ("places",), (("value", Raw("[for at in local.active : local.places[at]]")),))


def _how(launch: Launch) -> list[str]:
    lines = ["start: terraform init && terraform apply; end: terraform destroy (nodes cost money until then)"]
    if launch.moves:
        lines.append("no capacity at a place, or it was taken back: terraform apply -var place=1, and so on")
    if owed := discounts(launch):
        lines.append(f"{owed}: a discount on the bill, bought apart; nodes start as on-demand")
    return lines
