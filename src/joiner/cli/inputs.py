"""The click options with which every command names its input: `-f/--filename`, `--cluster` and `--instance-types`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from joiner.model.duration import Duration
    from joiner.offline.files import Documents

F = TypeVar("F", bound=Callable[..., Any])


class _CatalogueName(click.Path):
    """The name of a catalogue, or a file; completed by shells."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The catalogues that have a name, else files."""
        from joiner.offline.instancetypes import names

        found = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
        return found or super().shell_complete(ctx, param, incomplete)


class Given(NamedTuple):
    """What a command is asked about."""

    filenames: tuple[str, ...]
    live: "Documents | None"
    catalogue: str | None
    reservations: str | None


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


def disruption_options(function: F) -> F:
    """The options that say how nodes are judged, as the options of the controllers do."""
    horizon = "Within which time a move must be paid back."
    cost = (
        "What evicting a pod costs, in time of its own price, where its NodePool says nothing; 0s moves for any saving."
    )
    for each in (
        click.option("--spot-to-spot", is_flag=True, help="Let spot nodes be replaced by spot nodes."),
        click.option("--eviction-cost", default="10m", show_default=True, help=cost),
        click.option("--horizon", default="1h", show_default=True, help=horizon),
    ):
        function = each(function)
    return function


def duration(flag: str, text: str, *, positive: bool = False) -> "Duration":
    """The value of an option that is a duration."""
    from joiner.model.duration import NEVER, Duration, DurationError

    allowed = "a duration like 10m or 24h" + (", longer than zero" if positive else ", or 0s")
    try:
        found = Duration.parse(text)
    except DurationError:
        found = NEVER
    if found == NEVER or found < 0 or (positive and found == 0):
        raise click.BadParameter(f"{text!r}: allowed is {allowed}.", param_hint=flag)
    return found


def named(
    filenames: tuple[str, ...],
    from_cluster: bool,
    kubeconfig: str | None,
    context: str | None,
    events_of: str = "",
) -> "Documents | None":
    """The objects of the live cluster, if that is what is asked about. Refuses where nothing is named at all."""
    if not filenames and not from_cluster:
        raise click.UsageError("Name manifests with -f, or a live cluster with --cluster.")
    if (kubeconfig or context) and not from_cluster:
        raise click.UsageError("--kubeconfig and --context say which cluster is meant: they need --cluster.")
    return live(kubeconfig, context, events_of) if from_cluster else None


def live(kubeconfig: str | None, context: str | None, events_of: str = "") -> "Documents":
    """The objects of the live cluster; with a name also the events about Nodes and NodeClaims of that name."""
    from joiner.clock import SystemClock
    from joiner.offline import livecluster
    from joiner.offline.kinds import known
    from joiner.offline.manifests import KUBERNETES

    kinds = (*KUBERNETES, *known()[0])
    return livecluster.read(kinds, clock=SystemClock(), kubeconfig=kubeconfig, context=context, events_of=events_of)


def reservations_option(function: F) -> F:
    """The `--capacity-reservations` option of a command."""
    text = (
        "The capacity reservations of the account, for the selector terms of EC2NodeClasses: a file made by"
        " aws ec2 describe-capacity-reservations --output json."
    )
    path = click.Path()
    return click.option("--capacity-reservations", "reservations", type=path, metavar="FILE", help=text)(function)
