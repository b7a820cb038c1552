"""`planner catalog keygen`, `sign` and `verify`: catalogs that a signer answers for."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import DAY, DAYS, examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

_DIRECTORY = "catalog_dir"


@click.command(
    "keygen",
    epilog=examples("planner catalog keygen prices.key", "planner catalog keygen ~/keys/prices-2027.key"),
)
@click.argument("file", type=click.Path(path_type=Path))
def keygen_command(file: Path) -> None:
    """Write a private key to FILE (mode 0600) and its public key to FILE.pub."""
    from catalogs.store.signing import make_key_pair

    public, name = make_key_pair(file)
    click.echo(
        f"key {name}: {file} (private, keep it), {public} (to pin: PLANNER_CATALOG_KEY={public})",
        file=sys.stdout,
    )


@click.command(
    "sign",
    epilog=examples(
        "planner catalog sign --key prices.key --out signed-2026-11-23",
        "planner catalog --catalog-dir mirror/snapshot sign --key prices.key --expires 7d --out signed",
    ),
)
@click.option("--key", type=click.Path(path_type=Path), required=True, help="Private key (`catalog keygen`).")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory to make.")
@click.option(
    "--expires", type=DAYS, default="30d", show_default=True, metavar="DAYS", help="How long it holds."
)
@click.option(
    "--as-of", type=DAY, default=None, metavar="DATE", help="Use the newest snapshots up to this day."
)
@click.pass_context
def sign_command(ctx: click.Context, key: Path, out: Path, expires: int, as_of: datetime | None) -> None:
    """Copy the catalog in use to a new directory with a signed statement of its contents and its end."""
    from catalogs.store.signing import sign_catalog

    statement = sign_catalog(
        key, out, expires, directory=ctx.meta.get(_DIRECTORY), as_of=as_of and as_of.date()
    )
    click.echo(
        f"{out}: {', '.join(sorted(statement.providers))} signed by key {statement.key_id}, "
        f"holds until {statement.expires_at:%Y-%m-%d %H:%M} UTC",
        file=sys.stdout,
    )


@click.command(
    "verify",
    epilog=examples(
        "planner catalog verify signed-2026-11-23 --key prices.key.pub",
        "planner catalog verify signed --key prices.key.pub -o json",
    ),
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--key", type=click.Path(path_type=Path), required=True, help="Public key, or several in one file."
)
@output_options(ANSWER_FORMATS)
def verify_command(directory: Path, key: Path, output: str, out: Path | None) -> None:
    """Check that DIRECTORY is what a key signed, whole and not expired.

    Exit code 0: it is; 2: it is not signed by the key, or has expired; 4: its files cannot be read or were changed.
    """
    from catalogs.store.signing import verify_catalog
    from planner.catalog.signed import statement_answer

    show_answer(statement_answer(verify_catalog(directory, key)), output, out)
