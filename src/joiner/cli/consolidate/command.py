"""`joiner consolidate`: which nodes would go, in which order, what that saves and costs, and why others stay."""

from typing import Any

import click

from joiner.cli import inputs, output

EPILOG = """\b
Examples:
  kubectl get nodes,nodeclaims,nodepools,pods,poddisruptionbudgets -A -o yaml | joiner consolidate -f -
  joiner consolidate --cluster
  joiner consolidate -f dump.yaml --horizon 24h
  joiner consolidate -f dump.yaml --explain ip-10-0-1-17
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
@click.option("--horizon", default="1h", show_default=True, help="Within which time a move must be paid back.")
@click.option(
    "--eviction-cost",
    default="10m",
    show_default=True,
    help="What evicting a pod costs, in time of its own price, where its NodePool says nothing; 0s moves for any saving.",
)
@click.option("--spot-to-spot", is_flag=True, help="Let spot nodes be replaced by spot nodes.")
@click.option("--explain", "node", metavar="NODE", help="Only this node: why it would go, or why it would stay.")
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
    if not filenames and not from_cluster:
        raise click.UsageError("Name manifests with -f, or a live cluster with --cluster.")
    if (kubeconfig or context) and not from_cluster:
        raise click.UsageError("--kubeconfig and --context say which cluster is meant: they need --cluster.")
    from joiner.cli.consolidate.report import ReportOptions, show

    live = inputs.live(kubeconfig, context) if from_cluster else None
    show(filenames, live, ReportOptions(catalogue=catalogue, reservations=reservations, **given), form)
