"""The click options with which every command names its input: `-f/--filename`, `--cluster` and `--instance-types`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from joiner.offline.files import Documents

F = TypeVar("F", bound=Callable[..., Any])


class _CatalogueName(click.Path):
    """The name of a catalogue, or a file; completed by shells."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The catalogues that have a name, else files."""
        from joiner.offline.instancetypes import names

        found = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
        return found or super().shell_complete(ctx, param, incomplete)


def option(function: F) -> F:
    """The `-f/--filename` option of a command."""
    text = "A file, a folder (every *.yaml, *.yml and *.json in it, at any depth) or - for standard input; may be repeated."
    path = click.Path(allow_dash=True)
    return click.option("-f", "--filename", "filenames", multiple=True, type=path, metavar="PATH", help=text)(function)


def narrowing_options(function: F) -> F:
    """The `--capacity-type` and `--zones` options of a command."""
    kinds = "What if every NodePool could buy only this: spot, on-demand or reserved; may be repeated, or several with commas."
    zones = "Only in these zones, such as those of your subnets; may be repeated, or several with commas."
    function = click.option("--zones", multiple=True, metavar="ZONE[,ZONE]", help=zones)(function)
    return click.option("--capacity-type", "capacity_types", multiple=True, metavar="TYPE[,TYPE]", help=kinds)(function)


def catalogue_option(function: F) -> F:
    """The `--instance-types` option of a command."""
    text = (
        "Let every NodePool buy these types, whatever its NodeClass says: kwok, ec2/us-east-1, ec2/us-west-2 or a file."
        " Of a NodeClass the kubelet settings count; of an EC2NodeClass over EC2's types everything that needs no account."
    )
    return click.option("--instance-types", "catalogue", type=_CatalogueName(), metavar="CATALOGUE", help=text)(
        function
    )


def cluster_options(function: F) -> F:
    """The options that name a live cluster to read."""
    text = "Read the live cluster, and change nothing; files that are named as well count instead of the objects there."
    for each in (
        click.option("--context", help="The context of the kubeconfig; else the current one."),
        click.option("--kubeconfig", type=click.Path(), help="The kubeconfig; else KUBECONFIG, then ~/.kube/config."),
        click.option("--cluster", "from_cluster", is_flag=True, help=text),
    ):
        function = each(function)
    return function


def live(kubeconfig: str | None, context: str | None) -> "Documents":
    """The objects of the live cluster."""
    from joiner.clock import SystemClock
    from joiner.offline import livecluster
    from joiner.offline.kinds import known
    from joiner.offline.manifests import KUBERNETES

    kinds = (*KUBERNETES, *known()[0])
    return livecluster.read(kinds, clock=SystemClock(), kubeconfig=kubeconfig, context=context)


def reservations_option(function: F) -> F:
    """The `--capacity-reservations` option of a command."""
    text = (
        "The capacity reservations of the account, for the selector terms of EC2NodeClasses: a file made by"
        " aws ec2 describe-capacity-reservations --output json."
    )
    path = click.Path()
    return click.option("--capacity-reservations", "reservations", type=path, metavar="FILE", help=text)(function)
