"""`python -m tools.import_catalog --from DIR [--out DIR]`: build the bundled snapshot from collected price lists."""

from __future__ import annotations

from pathlib import Path

import click

from catalogs.errors import CatalogError
from catalogs.tables.columns import DATA_DIRECTORY
from tools.import_catalog import import_catalog


@click.command()
@click.option(
    "--from",
    "source",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Directory of the collected lists (it holds catalog/ and performance/).",
)
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Data directory; default: the bundled one."
)
def main(source: Path, out: Path | None) -> None:
    """Build the snapshot from collected price lists; the same lists give the same bytes."""
    try:
        report = import_catalog(source, out or DATA_DIRECTORY)
    except CatalogError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{'provider':<10}{'types':>7}{'offers':>8}  {'oldest':<12}{'newest':<12}sha256")
    for one in report.manifests:
        line = f"{one.provider:<10}{one.n_instance_types:>7}{one.n_offers:>8}  {one.oldest_as_of:<12}"
        click.echo(f"{line}{one.newest_as_of:<12}{one.sha256[:16]}")
    click.echo(
        f"{report.n_instance_types} instance types, {report.n_offers} offers, "
        f"{report.n_regional_offers} unique regional offers, {report.n_admitted} admitted, "
        f"{len(report.faults)} faults"
    )
    for fault in report.faults[:20]:
        click.echo(f"refused: {fault}", err=True)


if __name__ == "__main__":
    main()
