"""What actions on use save together: which part of a bill's use each concerns is asked of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from planner.finops.kpis import load_kpi
from planner.finops.things.ask import ask_things, keep_rows
from planner.records import record

if TYPE_CHECKING:
    import pandas as pd

    from planner.finops.engine.base import Engine, Parameter

_NOBODY = """
SELECT '' AS of_provider, '' AS of_service, 0.0 AS share, 0.0 AS plain_rate, 0.0 AS gpu_rate
"""
# named again: engines that keep no tables narrow each part of a union by the names of its columns
_OF_ONE = (
    "SELECT :provider_{0} AS of_provider, :service_{0} AS of_service, :share_{0} AS share, :plain_{0} AS plain_rate, "
    ":gpu_{0} AS gpu_rate\n"
)


@record(frozen=True)
class Rate:
    """What commitments on the steady use of a service would save.

    Attributes:
        provider, service: their names in the bill.
        share: of the steady use, that gets commitments.
        plain, gpu: saved of the cost of use without and with GPUs, as shares.
    """

    provider: str
    service: str
    share: float
    plain: float
    gpu: float


def ask_steady(engine: Engine, values: Mapping[str, Parameter]) -> pd.DataFrame:
    """Steady use by service (`provider, service, steady_cost, steady_gpu_cost`); that of SKUs is kept as `x_steady`.

    Args:
        engine: has the bill as the view `focus`.
        values: of the parameters of the KPI `uncovered_use`.
    """
    kpi = load_kpi("uncovered_use")
    engine.keep("x_steady", kpi.sql, {name: values[name] for name in kpi.parameters})
    return ask_things(engine, "steady_services")


def keep_together(engine: Engine, values: Mapping[str, Parameter], rates: Iterable[Rate]) -> None:
    """Make the tables `x_idle` and `x_rates`, which the query `together` joins.

    Args:
        engine: has the bill as the view `focus`, and the tables of `keep_names` and `ask_steady`.
        values: of the parameters of the queries.
        rates: of the services whose steady use gets commitments.
    """
    keep_rows(engine, "x_idle", "idle", values)
    given = list(rates)
    own: dict[str, Parameter] = {}
    for number, one in enumerate(given):
        own |= {
            f"provider_{number}": one.provider,
            f"service_{number}": one.service,
            f"share_{number}": one.share,
        }
        own |= {f"plain_{number}": one.plain, f"gpu_{number}": one.gpu}
    engine.keep(
        "x_rates", "UNION ALL\n".join((_NOBODY, *(_OF_ONE.format(n) for n in range(len(given))))), own
    )


def ask_together(engine: Engine, values: Mapping[str, Parameter], rates: Iterable[Rate]) -> float:
    """Saving of the listed commitments, moves and switches to spot, in the bill's currency, each use one way.

    Args:
        engine: as of `keep_together`.
        values: of the parameters of the queries.
        rates: as of `keep_together`.
    """
    keep_together(engine, values, rates)
    (saves,) = ask_things(engine, "together", values)["joint_saves"]
    return float(saves)
