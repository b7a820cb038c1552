"""Parts that the clouds' Terraform share: names and counts of a place, and variables."""

from __future__ import annotations

from planner.export.hcl import Block, Entry, Raw, Value, quote
from planner.export.names import KUBERNETES_NAME, clean
from planner.export.view import Launch, Pool
from planner.records import record

_NAME_MOST = 40


@record(frozen=True)
class Place:
    """One place of the plan: its number from 0, and the names of its resources."""

    launch: Launch
    number: int
    pool: Pool

    @property
    def key(self) -> str:
        """Name of its resources in the configuration."""
        return f"place_{self.number}"

    @property
    def count(self) -> tuple[str, Value]:
        """1 where the place is active."""
        return ("count", Raw(f"contains(local.active, {self.number}) ? 1 : 0"))

    def held(self) -> tuple[str, Value]:
        """1 where the place is active and its capacity is to be held while nothing runs on it."""
        return ("count", Raw(f"var.hold_capacity && contains(local.active, {self.number}) ? 1 : 0"))

    @property
    def name(self) -> str:
        """Name of its resources in the cloud."""
        return f"{clean(self.launch.name, KUBERNETES_NAME, most=_NAME_MOST)}-{self.number}"

    @property
    def gang(self) -> tuple[int, ...]:
        """Numbers of the places whose nodes must reach each other: all where one gang runs on several at once."""
        return tuple(range(len(self.launch.pools))) if self.launch.way == "together" else (self.number,)

    @property
    def gang_nodes(self) -> int:
        """Nodes that must reach each other: those of one run."""
        return self.launch.gang(self.pool)

    @property
    def lends(self) -> bool:
        """Whether it has the resources that its gang shares: its first place has."""
        return self.number == self.gang[0]

    @property
    def zone(self) -> str:
        """Its zone, else that of another part of its gang, which runs in one zone; empty where none is stated."""
        zones = (self.launch.pools[at].zone for at in self.gang)
        return self.pool.zone or next((zone for zone in zones if zone), "")

    def ref(self, kind: str, attribute: str) -> Raw:
        """An attribute of one of its resources."""
        return Raw(f"{kind}.{self.key}[0].{attribute}")

    def shared(self, kind: str, attribute: str) -> Raw:
        """An attribute of a resource that its gang shares."""
        return Raw(f"{kind}.place_{self.gang[0]}[0].{attribute}")


@record(frozen=True)
class Variable:
    """What the user says: without a default Terraform asks for it and does nothing before."""

    name: str
    type: str
    description: str
    default: Value = None
    required: bool = False


def element_of(variable: str, key: str) -> Raw:
    """An element of a map that the user gives; the key may be any text."""
    return Raw(f"var.{variable}[{quote(key)}]")


def variable_blocks(variables: list[Variable]) -> list[Entry]:
    """Blocks of the variables, each name once."""
    out: list[Entry] = []
    for item in {item.name: item for item in variables}.values():
        body: list[Entry] = [("description", item.description), ("type", Raw(item.type))]
        if not item.required:
            body.append(("default", item.default))
        out.append(Block("variable", (item.name,), tuple(body)))
    return out


HOLD = Variable(
    "hold_capacity", "bool",
    "Reserve on-demand capacity before nodes start: billed as if they ran, until terraform destroy.", False,
)  # fmt: skip
