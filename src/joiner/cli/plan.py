"""`joiner plan`: what would be bought for these pods, where each would go, and why some would not."""

import asyncio
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from joiner.cli import (
    answer,
    inputs,
    output,
    plandata,
    planoptions,
    planview,
    podview,
    scenario,
    standin,
    storefront,
    wire,
)
from joiner.cli.question import ask
from joiner.cli.world import Unsound, World, load
from joiner.clock import SystemClock
from joiner.scheduling import merits
from joiner.scheduling.bound import Bound, bound, placed
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Policy, Problem
from joiner.scheduling.schedule import schedule
from joiner.scheduling.spreaddefaults import Defaults

_PRICED_WISHES: Final = 20
_TOLD_CLAIMS: Final = 50
_FAR: Final = 0.05
"""From here on it is worth telling why a plan is above the bound."""
_TRIED_POOLS: Final = 8

EPILOG = """\b
Examples:
  joiner plan -f pools.yaml -f deployments/
  kubectl get nodes,pods,nodeclaims -A -o yaml | joiner plan -f pools.yaml -f -
  joiner plan -f manifests/ --explain web-0
  joiner plan -f manifests/ --costs
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
@click.option(
    "--explain", "explained", metavar="POD", help="Only this pod: where it goes and why, or what keeps it out."
)
@click.option(
    "--costs",
    "priced",
    is_flag=True,
    help="Also say what preferences, spread and affinity cost, by planning again without each.",
)
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
@planoptions.options
@click.option("--strict", is_flag=True, help="Fail when a pod or a NodePool is left out.")
@output.option()
@click.pass_context
def command(
    ctx: click.Context,
    filenames: tuple[str, ...],
    catalogue: str | None,
    explained: str | None,
    priced: bool,
    bounded: bool,
    scenarios: str | None,
    node_price: float | None,
    spot_width: int | None,
    spot_width_cost: float | None,
    scheduler_config: str | None,
    strict: bool,
    form: str,
) -> None:
    """Plan for pods: which nodes would be bought, which pods go where, what it costs, and why pods are left over.

    Reads NodePools, their NodeClasses, overlays and settings; Pods, Deployments, StatefulSets, ReplicaSets and Jobs;
    DaemonSets; Nodes, NodeClaims and bound Pods as kubectl prints them; and storage, priority, runtime and limit objects
    where they matter. Nothing is changed anywhere.
    """
    if scenarios is not None:
        dials = (node_price, spot_width, spot_width_cost, scheduler_config)
        if (
            filenames
            or catalogue is not None
            or explained is not None
            or bounded
            or priced
            or any(dial is not None for dial in dials)
        ):
            raise click.UsageError("--scenario stands alone: a scenario holds everything itself.")
        _answer_all(scenarios, debug=bool(ctx.find_root().params.get("debug")))
        return
    if not filenames:
        raise click.UsageError("Name manifests with -f, or a scenario file with --scenario.")
    if bounded and explained is not None:
        raise click.UsageError("--bound is about the whole plan, --explain about one pod: ask for one of them.")
    policy = planoptions.policy(node_price, spot_width, spot_width_cost)
    spread = planoptions.spread_defaults(scheduler_config)
    view = _planned(standin.stand_in(load(filenames), catalogue), policy, spread)
    if explained is not None:
        podview.explain(view, explained, form, priced=priced)
    elif form == output.TABLE:
        planview.draw(view)
        if priced:
            _draw_costs(view)
        if bounded:
            _draw_bound(_bound_of(view), view)
    else:
        more = {**(_costs_data(view) if priced else {}), **(_bound_data(view) if bounded else {})}
        output.data({**plandata.as_data(view), **more}, form)
    if strict and (view.plan.refusals or view.plan.not_attempted or view.missed):
        ctx.exit(1)


def _planned(world: World, policy: Policy, spread: Defaults) -> planview.View:
    """The plan for a world of manifests. A pool that cannot be used is told of and left out."""
    opened = asyncio.run(storefront.open_for(world, None, ()))
    missed = [f"NodePool {name} is left out: {why}" for name, why in opened.problems]
    if missed and not opened.views:
        raise Unsound("\n".join(missed))
    # A pool that keeps a number of nodes asks no pods.
    pools = [each for each in opened.views if each.pool.spec.replicas is None]
    question = ask(world, pools, SystemClock().now(), policy, spread)
    for note in (*missed, *question.notes):
        click.echo(f"{output.styled('note', 'yellow')}: {output.safe(note)}", err=True)
    prices = tuple(dict.fromkeys(each.prices for each in pools))
    return planview.View(question, schedule(question.problem), prices, tuple(missed))


# -- what wishes cost ----------------------------------------------------------------------------------------------------


def _draw_costs(view: planview.View) -> None:
    pods = view.question.problem.pods
    table = planview.costs_table(view, merits.costs(view.question.problem, view.plan, pods, _PRICED_WISHES))
    planview.section("What wishes cost", table)
    if not table.rows:
        click.echo("\nNo pod has a preference, a spread constraint or an affinity that could cost anything")
    rest = merits.wishes(pods) - len(table.rows)
    if rest > 0:
        click.echo(f"and {rest} more that were not looked at; --explain POD --costs does so for one pod")


def _costs_data(view: planview.View) -> dict[str, Any]:
    """What wishes cost; and for each of the first claims, why it is bought as it is."""
    problem, plan = view.question.problem, view.plan
    found = merits.costs(problem, plan, problem.pods, _PRICED_WISHES)
    return {
        "costs": [plandata.cost_data(each) for each in found],
        "claims": [
            {
                **plandata.claim_data(view, claim),
                **({"why": plandata.purchase_data(merits.purchase(problem, plan, claim))} if n < _TOLD_CLAIMS else {}),
            }
            for n, claim in enumerate(plan.claims)
        ],
    }


# -- the bound -----------------------------------------------------------------------------------------------------------


def _bound_of(view: planview.View) -> Bound:
    return bound(view.question.problem, placed(view.plan))


def _draw_bound(least: Bound, view: planview.View) -> None:
    plan = view.plan
    if not placed(plan):
        click.echo("\nNo pod is placed, so there is no price to compare with a bound.")
        return
    gap = least.gap(plan.price)
    far = "" if gap is None else f"; this plan is {gap:.1%} above that"
    placing = "that places the same pods " if plan.refusals or plan.not_attempted else ""
    click.echo(f"\n{output.bold(f'No plan {placing}costs less than {planview.money(least.price)} $/h{far}')}")
    if least.dropped:
        click.echo(f"  not counted, so the true least may be higher: {', '.join(least.dropped)}")
    for line in _why_far(least, view):
        click.echo(f"  {line}")
    if least.method == "climb" and not least.exact:
        click.echo("  found without a solver; pip install 'joiner[optimize]' may find a higher one")


def _why_far(least: Bound, view: planview.View) -> Iterator[str]:
    """What decides before prices do, where the plan is far from the bound: found out by planning without it."""
    problem, plan = view.question.problem, view.plan
    gap = least.gap(plan.price)
    if gap is None or gap < _FAR:
        return
    better = merits.best_order(problem, plan, _TRIED_POOLS)
    if better is not None:
        told = f"NodePools are asked by weight, then by name; with {better[0]} asked first a plan costs"
        yield f"{told} {_priced(least, better[1])}"
    loose = merits.compared(merits.without_spread(problem), plan)
    if loose is not None and loose < plan.price:
        yield f"without topology spread a plan costs {_priced(least, loose)}"


def _priced(least: Bound, price: float) -> str:
    gap = least.gap(price)
    return f"{planview.money(price)} $/h" + ("" if gap is None else f", {gap:.1%} above the bound")


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
            "why": list(_why_far(least, view)),
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
