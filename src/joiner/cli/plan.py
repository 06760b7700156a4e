"""`joiner plan`: what would be bought for these pods, where each would go, and why some would not."""

import asyncio
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from joiner.cli import answer, inputs, output, planview, scenario, standin, storefront, wire
from joiner.cli.question import ask
from joiner.cli.world import Unsound, World, load
from joiner.clock import SystemClock
from joiner.scheduling.bound import Bound, bound, placed
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Policy, Problem
from joiner.scheduling.schedule import schedule

EPILOG = """\b
Examples:
  joiner plan -f pools.yaml -f deployments/
  kubectl get nodes,pods,nodeclaims -A -o yaml | joiner plan -f pools.yaml -f -
  joiner plan -f manifests/ --explain web-0
  joiner plan -f manifests/ --bound
  joiner plan -f for-aws/ --instance-types ec2/us-east-1
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
@standin.option
@click.option("--explain", "explained", metavar="POD", help="Only this pod: where it goes, or what keeps it out.")
@click.option(
    "--bound", "bounded", is_flag=True, help="Also say what no plan can cost less than, and how near this one is."
)
@click.option(
    "--scenario",
    "scenarios",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="Answer scenarios (JSON, one or many, - for standard input) with a line of JSON each.",
)
@click.option("--strict", is_flag=True, help="Fail when a pod or a NodePool is left out.")
@output.option()
@click.pass_context
def command(
    ctx: click.Context,
    filenames: tuple[str, ...],
    catalogue: str | None,
    explained: str | None,
    bounded: bool,
    scenarios: str | None,
    strict: bool,
    form: str,
) -> None:
    """Plan for pods: which nodes would be bought, which pods go where, what it costs, and why pods are left over.

    Reads NodePools, their NodeClasses, overlays and settings; Pods, Deployments, StatefulSets, ReplicaSets and Jobs;
    DaemonSets; Nodes, NodeClaims and bound Pods as kubectl prints them; and storage, priority, runtime and limit objects
    where they matter. Nothing is changed anywhere.
    """
    if scenarios is not None:
        if filenames or catalogue is not None or explained is not None or bounded:
            raise click.UsageError("--scenario stands alone: a scenario holds everything itself.")
        _answer_all(scenarios, debug=bool(ctx.find_root().params.get("debug")))
        return
    if not filenames:
        raise click.UsageError("Name manifests with -f, or a scenario file with --scenario.")
    if bounded and explained is not None:
        raise click.UsageError("--bound is about the whole plan, --explain about one pod: ask for one of them.")
    view = _planned(standin.stand_in(load(filenames), catalogue))
    if explained is not None:
        planview.explain(view, explained, form)
    elif form == output.TABLE:
        planview.draw(view)
        if bounded:
            _draw_bound(_bound_of(view), view.plan)
    else:
        output.data({**planview.as_data(view), **(_bound_data(view) if bounded else {})}, form)
    if strict and (view.plan.refusals or view.plan.not_attempted or view.missed):
        ctx.exit(1)


def _planned(world: World) -> planview.View:
    """The plan for a world of manifests. A pool that cannot be used is told of and left out."""
    opened = asyncio.run(storefront.open_for(world, None, ()))
    missed = [f"NodePool {name} is left out: {why}" for name, why in opened.problems]
    if missed and not opened.views:
        raise Unsound("\n".join(missed))
    # A pool that keeps a number of nodes asks no pods.
    pools = [each for each in opened.views if each.pool.spec.replicas is None]
    question = ask(world, pools, SystemClock().now(), Policy())
    for note in (*missed, *question.notes):
        click.echo(f"{output.styled('note', 'yellow')}: {output.safe(note)}", err=True)
    prices = tuple(dict.fromkeys(each.prices for each in pools))
    return planview.View(question, schedule(question.problem), prices, tuple(missed))


# -- the bound -----------------------------------------------------------------------------------------------------------


def _bound_of(view: planview.View) -> Bound:
    return bound(view.question.problem, placed(view.plan))


def _draw_bound(least: Bound, plan: Plan) -> None:
    gap = least.gap(plan.price)
    far = "" if gap is None else f"; this plan is {gap:.1%} above that"
    placing = "that places the same pods " if plan.refusals or plan.not_attempted else ""
    click.echo(f"\n{output.bold(f'No plan {placing}costs less than {planview.money(least.price)} $/h{far}')}")
    if least.dropped:
        click.echo(f"  not counted, so the true least may be higher: {', '.join(least.dropped)}")
    if least.method == "climb" and not least.exact:
        click.echo("  found without a solver; pip install 'joiner[optimize]' may find a higher one")


def _bound_data(view: planview.View) -> dict[str, Any]:
    least = _bound_of(view)
    parts = [{"pod": part.pod, "pods": part.count, "hourlyEach": part.price} for part in least.parts]
    return {
        "bound": {
            "hourly": least.price,
            "gap": least.gap(view.plan.price),
            "exact": least.exact,
            "method": least.method,
            "notCounted": list(least.dropped),
            "parts": parts,
        }
    }


# -- scenarios -----------------------------------------------------------------------------------------------------------


def _answer_all(name: str, *, debug: bool) -> None:
    """A line for each scenario, in order, as soon as it is there. One that cannot be answered does not stop the others."""
    folder = Path() if name == "-" else Path(name).parent
    for data in wire.split(_bytes(name)):
        for result in _answers(data, folder, debug=debug):
            click.echo(msgspec.json.encode(result))
            sys.stdout.flush()


def _bytes(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise inputs.InputProblem(name, f"cannot be read: {error.strerror or error}", "check the path") from None


def _answers(data: bytes, folder: Path, *, debug: bool) -> Iterator[dict[str, Any]]:
    clock = SystemClock()
    watch = answer.Stopwatch(clock)
    try:
        question = scenario.read(data, folder)
    except scenario.Unanswerable as error:
        yield answer.failure(str(error), error.name)
        return
    del data
    # What was read lives until the answer is written: the collector need not look at it again and again.
    gc.freeze()
    try:
        yield answer.answer(question, _solve, clock, watch.seconds())
    except Exception as error:
        if debug:
            raise
        yield answer.failure(f"{type(error).__name__}: {error}", question.name)
    finally:
        gc.unfreeze()


def _solve(problem: Problem) -> Plan:
    return schedule(problem)
