"""`joiner explain`: why a node goes or stays, and which nodes an edit of a NodePool will have replaced."""

from typing import Any

import click

from joiner.cli import inputs, output

EPILOG = """\b
Examples:
  joiner explain node ip-10-0-1-17 --cluster
  joiner explain nodepool default --cluster -f edited-pool.yaml

\b
Exit codes:
  0  the answer is there
  1  something is wrong with the input, or nothing of that name is there
  2  wrong usage of the command line
"""

NODE_EPILOG = """\b
Examples:
  joiner explain node ip-10-0-1-17 --cluster
  joiner explain node ip-10-0-1-17 -f dump.yaml -o json
  kubectl get events -A -o yaml | joiner explain node ip-10-0-1-17 -f dump.yaml -f -
"""

NODEPOOL_EPILOG = """\b
Examples:
  joiner explain nodepool default --cluster -f edited-pool.yaml
  joiner explain nodepool default -f dump.yaml -f edited-pool.yaml -o json
"""


@click.group("explain", short_help="Say why a node goes or stays, or what a NodePool edit replaces.", epilog=EPILOG)
def command() -> None:
    """Say why a node goes or stays, or how many nodes an edit of a NodePool will have replaced.

    Nothing is changed anywhere.
    """


@command.command("node", short_help="Why a node goes or stays, or why it went.", epilog=NODE_EPILOG)
@click.argument("name")
@inputs.option
@inputs.cluster_options
@inputs.catalogue_option
@inputs.reservations_option
@inputs.disruption_options
@output.option()
def node(
    name: str,
    filenames: tuple[str, ...],
    from_cluster: bool,
    kubeconfig: str | None,
    context: str | None,
    catalogue: str | None,
    reservations: str | None,
    form: str,
    horizon: str,
    eviction_cost: str,
    spot_to_spot: bool,
) -> None:
    """Say of the node NAME (or of a NodeClaim of that name) why it goes or stays, and what would have to change.

    It is what the controllers would decide now, from the same values. What was told about the node in Events comes after it; of
    a node that is gone that is all there is: why it went, and what that saved.
    """
    from joiner.cli.explain.node import show
    from joiner.disruption.situation import Rules

    rules = Rules(
        horizon=inputs.duration("--horizon", horizon, positive=True),
        longest_horizon=inputs.duration("--horizon", horizon, positive=True),
        eviction_cost=inputs.duration("--eviction-cost", eviction_cost),
        spot_to_spot=spot_to_spot,
    )
    live = inputs.named(filenames, from_cluster, kubeconfig, context, events_of=name)
    show(name, inputs.Given(filenames, live, catalogue, reservations), rules, form)


@command.command("nodepool", short_help="Which nodes an edit of a NodePool replaces.", epilog=NODEPOOL_EPILOG)
@click.argument("name")
@inputs.option
@inputs.cluster_options
@inputs.catalogue_option
@inputs.reservations_option
@output.option()
def nodepool(name: str, form: str, **given: Any) -> None:
    """Say of the NodePool NAME how many of its nodes differ from what it would buy, and how many its budgets replace at a time.

    Give the nodes and claims, and then the NodePool as it would be after the edit: of two objects of one name the last one
    counts. The running controllers tell the same in the event DriftExpected, before the first node goes. What only a provider
    can tell, as that the images of a NodeClass moved, is not known here.
    """
    from joiner.cli.explain.nodepool import show

    live = inputs.named(given["filenames"], given["from_cluster"], given["kubeconfig"], given["context"])
    show(name, inputs.Given(given["filenames"], live, given["catalogue"], given["reservations"]), form)
