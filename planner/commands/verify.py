"""`planner verify`: re-check a saved plan or certificate in exact arithmetic."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from catalogs.table import Table
    from planner.inputs.load import LoadedWorkload

_MOST_FAULTS = 20


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--workload", type=click.Path(path_type=Path), default=None, help="Its workload file: checks limits too."
)
@click.option(
    "--prices/--no-prices", default=True, show_default=True, help="Compare prices with the catalog."
)
def verify(plan: Path, workload: Path | None, prices: bool) -> None:
    """Re-check PLAN (JSON of `planner optimize -o json`): sums, limits, prices, without the code that made it.

    Given a certificate instead (`planner optimize --certificate FILE`), re-check the point, its cost, and the bound
    that no point is below, in whole numbers and without any solver.

    Exit code 0: it holds; 5: it does not.
    """
    from planner.errors import GateError
    from planner.plan.certificates import is_certificate
    from planner.plan.file import as_plan, load_saved
    from planner.plan.verify import verify_plan

    saved = load_saved(plan)
    if is_certificate(saved):
        _verify_certificate(plan, saved)
        return
    made = as_plan(plan, saved)
    given, loaded = None, None
    if workload is not None:
        from planner.inputs.load import load_workload

        loaded = load_workload(workload)
        given = loaded.workload
        if loaded.sha256 != made.get("workload_sha256"):
            click.echo(f"note: {workload} is not the file this plan was made from", err=True)
    offers = _offers(made, loaded) if prices else None
    if made["status"] == "infeasible" and not made["lines"]:
        click.echo(f"{plan}: an infeasible answer: there is no plan to check")
        return
    faults = verify_plan(made, given, offers)
    if faults:
        raise GateError(f"{plan}: the plan does not hold:\n" + "\n".join(f"  {fault}" for fault in faults))
    checked = ["sums", "timeline", *(["limits", "work"] if given else []), *(["prices"] if prices else [])]
    click.echo(
        f"{plan}: holds ({', '.join(checked)}); total {made['currency']} {float(made['total_usd']):,.2f}"
    )


def _verify_certificate(path: Path, certificate: dict[str, Any]) -> None:
    from planner.errors import GateError
    from planner.plan.certificates import check_certificate, summary

    faults = check_certificate(certificate)
    if faults:
        shown = [f"  {fault}" for fault in faults[:_MOST_FAULTS]]
        if len(faults) > len(shown):
            shown.append(f"  ... and {len(faults) - len(shown)} more")
        raise GateError(f"{path}: the certificate does not hold:\n" + "\n".join(shown))
    click.echo(f"{path}: holds; {summary(certificate)}")


def _offers(made: dict[str, Any], loaded: LoadedWorkload | None) -> Table:
    """The offers of the snapshots the plan was made from, with what the workload adds of its own."""
    from catalogs.store.history import catalog_by_hash
    from catalogs.store.load import load_catalog
    from catalogs.store.read import is_named

    hashes = {source["provider"]: source["sha256"] for source in made["catalog"]}
    catalog = load_catalog() if is_named(None) else catalog_by_hash(hashes)
    if loaded is None:
        return catalog.offers
    from catalogs.tariffs import load_tariffs
    from planner.market.offers import gather_offers

    on = datetime.fromisoformat(made["created_at"]).date()
    return gather_offers(catalog, loaded.workload, load_tariffs(), str(loaded.path.parent), on).offers
