"""`joiner catalog`: what each NodePool can buy, at which price, and which object made it so."""

import asyncio

import click

from joiner.cli import inputs, output
from joiner.cli.catalog import data, tables
from joiner.cli.findings import load
from joiner.offline import catalogs, instancetypes, narrowing

EPILOG = """\b
Examples:
  joiner catalog -f examples/01-what-a-pool-can-buy
  joiner catalog -f pools.yaml -f overlays/ --nodepool default --explain
  joiner catalog -f pools.yaml --type m5.large --type c5.large --explain
  joiner catalog -f pools.yaml -o json | jq '.nodePools[].types[].name'

\b
Exit codes:
  0  every NodePool was shown
  1  something is wrong with the input, or one of the NodePools cannot be read or can buy nothing; the others are shown
  2  wrong usage of the command line
"""


@click.command("catalog", short_help="Show what NodePools can buy, at which price, and why.", epilog=EPILOG)
@inputs.option
@inputs.catalogue_option
@inputs.reservations_option
@inputs.narrowing_options
@click.option("--nodepool", metavar="NAME", help="Only this NodePool; all of the files otherwise.")
@click.option("--type", "names", multiple=True, metavar="NAME", help="Only this instance type; may be repeated.")
@click.option("--explain", "explained", is_flag=True, help="Show why types are left out and which object changed what.")
@click.option(
    "--limit", default=20, show_default=True, metavar="N", type=click.IntRange(min=0), help="Rows per table; 0 for all."
)
@output.option()
@click.pass_context
def command(
    ctx: click.Context,
    filenames: tuple[str, ...],
    catalogue: str | None,
    reservations: str | None,
    capacity_types: tuple[str, ...],
    zones: tuple[str, ...],
    nodepool: str | None,
    names: tuple[str, ...],
    explained: bool,
    limit: int,
    form: str,
) -> None:
    """Show what NodePools can buy: the instance types that are left after requirements, settings and overlays.

    Reads NodePools, their NodeClasses, InstanceType settings and NodeOverlays; other objects are passed over. Sizes are what
    pods can use on a node. Prices are dollars an hour, with the date of the data they come from.
    """
    if not filenames:
        raise click.UsageError("Name manifests with -f: a file, a folder, or - for standard input.")
    only = narrowing.parse(capacity_types, zones)
    manifests = only.of(instancetypes.stand_in(load(filenames), catalogue, reservations))
    opened = asyncio.run(catalogs.open_for(manifests, nodepool, names))
    only.check(opened)
    for each in manifests.ignored_of_node_classes():
        output.echo(output.Cell("note", "yellow"), f": {each}", err=True)
    if form == output.TABLE:
        tables.show(opened, names, explained, limit)
    else:
        output.data(data.of(opened, manifests, explained), form, "CatalogReport")
    for pool, problem in opened.problems:
        output.echo(f"Error: NodePool {pool}: {problem}", err=True)
    if opened.problems or not all(view.catalog.eligible for view in opened.views):
        ctx.exit(1)
