"""`joiner consolidate`: which nodes would go, in which order, what that saves and costs, and why others stay."""

from typing import Any

import click

from joiner.cli import inputs, output

EPILOG = """\b
Examples:
  eval "$(joiner dump)" | joiner consolidate -f -
  joiner consolidate --cluster
  joiner consolidate -f dump.yaml --horizon 24h
  joiner consolidate -f dump.yaml -o json | jq '.summary'

\b
Exit codes:
  0  the answer is there, also when nothing would move
  1  something is wrong with the input, or it has no node of a NodePool
  2  wrong usage of the command line
"""


@click.command(
    "consolidate", short_help="Show which nodes would go, in which order, and what that saves.", epilog=EPILOG
)
@inputs.option
@inputs.cluster_options
@inputs.catalogue_option
@inputs.reservations_option
@inputs.disruption_options
@output.option()
def command(
    filenames: tuple[str, ...],
    from_cluster: bool,
    kubeconfig: str | None,
    context: str | None,
    catalogue: str | None,
    reservations: str | None,
    form: str,
    **given: Any,
) -> None:
    """Play consolidation on the nodes and pods of files or of a live cluster, until no move pays any more.

    Reads what kubectl prints: NodePools, NodeClasses, Nodes, NodeClaims, Pods, PodDisruptionBudgets, overlays and settings.
    Moves are shown in the order in which they would be made, each within the budgets. Nothing is changed anywhere.
    """
    from joiner.cli.consolidate.report import ReportOptions, show

    live = inputs.named(filenames, from_cluster, kubeconfig, context)
    show(filenames, live, ReportOptions(catalogue=catalogue, reservations=reservations, **given), form)
