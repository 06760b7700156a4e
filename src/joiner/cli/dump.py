"""`joiner dump`: the kubectl command whose output holds everything that a plan reads of a cluster."""

import shlex

import click

from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.offline.kinds import known
from joiner.offline.manifests import KUBERNETES

EPILOG = """\b
Examples:
  joiner dump
  eval "$(joiner dump)" > cluster.yaml && joiner plan -f cluster.yaml
  eval "$(joiner dump)" | joiner plan -f - --instance-types ec2/us-east-1
  eval "$(joiner dump --context staging)" | joiner plan -f -
"""


_EVERYWHERE = (NodePool, NodeClaim)
"""Custom kinds that every cluster with Karpenter or Joiner has."""


@click.command("dump", short_help="Print the kubectl command that dumps all that plans read.", epilog=EPILOG)
@click.option("--context", metavar="NAME", help="The context of kubectl.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also kinds whose CRDs not every cluster has: overlays, settings, buffers, NodeClasses. kubectl fails without them.",
)
def command(context: str | None, everything: bool) -> None:
    """Print the kubectl command that dumps what plans read of a cluster; nothing is run.

    A plan with fewer kinds is made with what is there: without DaemonSets new nodes look larger than they are, without volumes
    pods may be planned for a zone in which their disk is not.
    """
    custom = tuple(known()[0]) if everything else _EVERYWHERE
    kinds = ",".join(f"{kind.plural}.{kind.group}" if kind.group else kind.plural for kind in (*KUBERNETES, *custom))
    chosen = ["--context", context] if context else []
    click.echo(shlex.join(["kubectl", *chosen, "get", kinds, "--all-namespaces", "-o", "yaml"]))
