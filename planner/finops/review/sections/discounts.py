"""What the commitments of a bill save, apart for machines with GPUs: one discount does not show the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.parts import money, percent
from planner.finops.review.sections.turned_commitments import ended_within
from planner.records import record


@record(frozen=True)
class Discounts:
    """What the used commitments of one provider save against contracted prices, as shares; None: there are none.

    Attributes:
        every: all of them together.
        plain: on use without GPUs.
        gpu: on machines with GPUs.
        month: the earlier one that they are of, in words; empty: the reviewed one.
    """

    every: float | None = None
    plain: float | None = None
    gpu: float | None = None
    month: str = ""

    def saved(self, plain: float, gpu: float) -> float | None:
        """What commitments on such use would save; None where no part's discount is known.

        Args:
            plain: cost of use without GPUs and without commitments.
            gpu: that of machines with GPUs.
        """
        parts = [
            cost * rate
            for cost, rate in ((plain, self.plain), (gpu, self.gpu))
            if cost > 0 and rate is not None
        ]
        return sum(parts) if parts else None

    def untold(self, plain: float, gpu: float) -> float:
        """The cost of such use of which no discount is known; arguments as of `saved`."""
        return sum(cost for cost, rate in ((plain, self.plain), (gpu, self.gpu)) if cost > 0 and rate is None)

    def words(self, plain: float, gpu: float, provider: str, currency: str) -> str:
        """How the saving is known, and what is not known; empty where nothing is.

        Args:
            plain: cost of use without GPUs, of a month.
            gpu: cost of machines with GPUs, of a month.
            provider: its name.
            currency: of the costs.
        """
        out = []
        if plain > 0 and self.plain is not None:
            out.append(f"your {provider} commitments {self._save(self.plain)}")
        if gpu > 0 and self.gpu is not None:
            also = "those" if out else f"your {provider} commitments"
            out.append(f"{also} on GPU machines {self._save(self.gpu)}")
        for cost, rate, kind in (
            (plain, self.plain, "use without GPUs"),
            (gpu, self.gpu, "GPU machines"),
        ):
            if cost > 0 and rate is None and self.every is not None:
                of = f"{money(cost, currency)} of it" if plain > 0 and gpu > 0 else "all of it"
                out.append(
                    f"{of} is {kind}, and none of your {provider} commitments shows what that would save"
                )
        return "; ".join(out)

    def _save(self, rate: float) -> str:
        return f"saved {percent(rate, 0)} in {self.month}" if self.month else f"save {percent(rate, 0)}"


def discounts(inputs: Inputs) -> Mapping[str, Discounts]:
    """What used commitments save, by provider: those of the month, or of the month before where all of them ended."""
    frame = inputs.ask("commitment_utilisation")
    if inputs.before is None:
        return _discounts(inputs.of_month(frame))
    before = _discounts(inputs.of_month(frame, inputs.before), month_name(inputs.before))
    return before | _discounts(inputs.of_month(frame))


def _discounts(own: Any, month: str = "") -> dict[str, Discounts]:
    # use that costs nothing, as in a bill without effective cost, says nothing of what is saved
    own = own[own["used_cost"] > 0].groupby("provider").sum(numeric_only=True)
    # nor does use without a contracted price
    own["priced"] = own["used_cost"] - own["used_unpriced_cost"]
    own["gpu_priced"] = own["used_gpu_cost"] - own["used_gpu_unpriced_cost"]
    return {
        str(provider): Discounts(
            _rate(row["priced"], row["used_contracted_cost"]),
            _rate(
                row["priced"] - row["gpu_priced"],
                row["used_contracted_cost"] - row["used_gpu_contracted_cost"],
            ),
            _rate(row["gpu_priced"], row["used_gpu_contracted_cost"]),
            month,
        )
        for provider, row in own.iterrows()
    }


def unused_room(inputs: Inputs, known: Mapping[str, Discounts]) -> dict[str, float]:
    """Per provider: use at contracted prices that its unused commitments could carry."""
    own = inputs.of_month(inputs.ask("commitment_utilisation"))
    own = own[~own["commitment_id"].isin(ended_within(inputs))]
    unused = own.groupby("provider")["unused_cost"].sum()
    paid = {name: 1 - one.every for name, one in known.items() if one.every is not None and one.every < 1}
    return {str(name): max(0.0, float(cost)) / paid.get(str(name), 1.0) for name, cost in unused.items()}


def _rate(cost: float, contracted: float) -> float | None:
    """The share saved; None without use that costs something, or where nothing is saved."""
    return 1 - float(cost) / float(contracted) if 0 < cost < contracted else None
