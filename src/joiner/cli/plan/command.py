"""`joiner plan`: what would be bought for these pods, where each would go, and why some would not.

Manifests and scenarios are two ways to ask; each is imported only when it is used.
"""

from typing import Any

import click
from click.core import ParameterSource

from joiner.cli import inputs, output
from joiner.cli.plan import options

EPILOG = """\b
Examples:
  joiner plan -f pools.yaml -f deployments/
  eval "$(joiner dump)" | joiner plan -f -
  joiner plan --cluster
  joiner plan --cluster --context staging -f another-pool.yaml
  joiner plan -f manifests/ --explain web-0
  joiner plan -f manifests/ --costs
  joiner plan -f manifests/ --bound
  joiner plan -f for-aws/ --instance-types ec2/us-east-1 --zones us-east-1a,us-east-1b
  joiner plan -f manifests/ --capacity-type spot
  joiner plan -f manifests/ -o json | jq '.summary.hourly'
  joiner plan --scenario scenarios.jsonl --output json

\b
Exit codes:
  0  there is a plan, also when it leaves pods over (not with --strict)
  1  something is wrong with the input, or no NodePool can be used; with --strict also when pods or NodePools are left out
  2  wrong usage of the command line
"""


@click.command("plan", short_help="Show what would be bought for pods, where they would go, and why.", epilog=EPILOG)
@inputs.option
@inputs.cluster_options
@inputs.catalogue_option
@inputs.reservations_option
@inputs.narrowing_options
@click.option(
    "--explain", "explained", metavar="POD", help="Only this pod: where it goes and why, or what keeps it out."
)
@click.option(
    "--costs",
    "priced",
    is_flag=True,
    help="Also say what preferences, spread and affinity of pods, and limits, requirements and minValues of NodePools cost,"
    " by planning again without each.",
)
@click.option(
    "--bound",
    "bounded",
    is_flag=True,
    help="Also say what no plan can cost less than, how near this one is, and what each way of planning came to.",
)
@click.option(
    "--scenario",
    "scenarios",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="Answer scenarios (JSON, one or many, - for standard input) with a line of JSON each.",
)
@options.options
@click.option("--strict", is_flag=True, help="Fail when a pod or a NodePool is left out.")
@output.option()
@click.pass_context
def command(ctx: click.Context, /, scenarios: str | None, strict: bool, form: str, **given: Any) -> None:
    """Plan for pods: which nodes would be bought, which pods go where, what it costs, and why pods are left over.

    Reads NodePools, their NodeClasses, overlays and settings; Pods, Deployments, StatefulSets, ReplicaSets and Jobs;
    DaemonSets; CapacityBuffers; Nodes, NodeClaims and bound Pods as kubectl prints them; and storage, priority, runtime and
    limit objects where they matter. Nothing is changed anywhere.
    """
    if scenarios is not None:
        if any(value not in (None, False, ()) for value in given.values()):
            raise click.UsageError("--scenario stands alone: a scenario holds everything itself.")
        if form != output.JSON and ctx.get_parameter_source("form") is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--scenario answers in lines of JSON, not as {form}: leave out -o, or write -o json."
            )
        from joiner.cli.plan.scenarios import answer_all

        answer_all(scenarios, debug=bool(ctx.find_root().params.get("debug")))
        return
    if not given["filenames"] and not given["from_cluster"]:
        raise click.UsageError(
            "Name manifests with -f, a live cluster with --cluster, or a scenario file with --scenario."
        )
    if (given["kubeconfig"] or given["context"]) and not given["from_cluster"]:
        raise click.UsageError("--kubeconfig and --context say which cluster is read: give --cluster as well.")
    if given["bounded"] and given["explained"] is not None:
        raise click.UsageError("--bound is about the whole plan, --explain about one pod: ask for one of them.")
    from joiner.cli.plan import manifests
    from joiner.cli.plan.policy import plan_options

    options = plan_options(given, purchases=bool(given["priced"]) and form != output.TABLE)
    live = inputs.live(given["kubeconfig"], given["context"]) if given["from_cluster"] else None
    sources = manifests.Sources(given["filenames"], given["catalogue"], given["reservations"], live)
    if not manifests.show(sources, options, form) and strict:
        ctx.exit(1)
