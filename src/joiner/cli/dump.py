"""`joiner dump`: the kubectl command whose output holds everything that a plan reads of a cluster."""

import shlex

import click

from joiner.model.meta import KubeObject
from joiner.offline.kinds import known
from joiner.offline.manifests import KUBERNETES

EPILOG = """\b
Examples:
  joiner dump
  eval "$(joiner dump)" > cluster.yaml && joiner plan -f cluster.yaml
  eval "$(joiner dump)" | joiner plan -f - --instance-types ec2/us-east-1
  eval "$(joiner dump --context staging)" | joiner plan -f -
"""


@click.command("dump", short_help="Print the kubectl command that dumps all that plans read.", epilog=EPILOG)
@click.option("--context", metavar="NAME", help="The context of kubectl.")
def command(context: str | None) -> None:
    """Print the kubectl command that dumps what plans read of a cluster; nothing is run.

    It is a line for a shell: of NodePools, NodeClasses, overlays and the like it asks for those kinds that the cluster has.

    A plan with fewer kinds is made with what is there: without DaemonSets new nodes look larger than they are, without volumes
    pods may be planned for a zone in which their disk is not.
    """
    kubectl = shlex.join(["kubectl", *(["--context", context] if context else [])])
    custom = " ".join(f"-e {_name(kind)}" for kind in known()[0])
    there = f"{kubectl} api-resources -o name | grep -xF {custom} | sed 's/^/,/' | tr -d '\\n'"
    click.echo(f"{kubectl} get {','.join(map(_name, KUBERNETES))}$({there}) --all-namespaces -o yaml")


def _name(kind: type[KubeObject]) -> str:
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural
