"""A plan for manifests and dumps of a cluster: worked out, drawn or given as data."""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import click

from joiner.cli import output
from joiner.cli.findings import load
from joiner.cli.plan import data, explainpod, tables
from joiner.clock import SystemClock
from joiner.offline import catalognotes, catalogs, instancetypes
from joiner.offline.manifests import Manifests, Unsound
from joiner.offline.problem import ask
from joiner.scheduling.bound.lowerbound import Bound, bound, placed
from joiner.scheduling.effort import Tries
from joiner.scheduling.pods.defaultspread import Defaults
from joiner.scheduling.problem import Policy
from joiner.scheduling.reporter import Attempt
from joiner.scheduling.schedule import schedule
from joiner.scheduling.whatif import alternatives

_TOLD_CLAIMS: Final = 50
_FAR: Final = 0.05
"""From here on it is worth telling why a plan is above the bound."""
_TRIED_POOLS: Final = 8
_MANY: Final = 1_000
"""From so many pods on planning may take so long that somebody wonders."""
_FRESH_LINE: Final = "\r\x1b[K"


def show(
    filenames: tuple[str, ...],
    catalogue: str | None,
    policy: Policy,
    spread: Defaults,
    effort: int | None,
    form: str,
    *,
    explained: str | None,
    priced: bool,
    bounded: bool,
) -> bool:
    """Plan, and show the plan; says whether it serves every pod out of every pool."""
    view = _planned(instancetypes.stand_in(load(filenames), catalogue), policy, spread, effort)
    if explained is not None:
        explainpod.explain(view, explained, form, priced=priced)
    elif form == output.TABLE:
        tables.draw(view)
        if priced:
            _draw_costs(view)
        if bounded:
            _draw_bound(_bound_of(view), view)
            tables.section("Ways to plan that were tried", tables.attempts_table(view))
    else:
        more = {**(_costs_data(view) if priced else {}), **(_bound_data(view) if bounded else {})}
        output.data({**data.as_data(view), **more}, form)
    return not (view.plan.refusals or view.plan.not_attempted or view.missed)


def _planned(manifests: Manifests, policy: Policy, spread: Defaults, effort: int | None) -> tables.View:
    """The plan for a manifests of manifests. A pool that cannot be used is told of and left out."""
    opened = asyncio.run(catalogs.open_for(manifests, None, ()))
    missed = [f"NodePool {name} is left out: {why}" for name, why in opened.problems]
    if missed and not opened.views:
        raise Unsound("\n".join(missed))
    # A pool that keeps a number of nodes asks no pods.
    pools = [each for each in opened.views if each.pool.spec.replicas is None]
    question = ask(manifests, pools, SystemClock().now(), policy, spread)
    question = replace(question, notes=(*catalognotes.of_all(opened), *question.notes))
    for note in (*missed, *question.notes):
        click.echo(f"{output.styled('note', 'yellow')}: {output.safe(note)}", err=True)
    prices = tuple(dict.fromkeys(each.prices for each in pools))
    listener = Listener(len(question.problem.pods))
    try:
        plan = schedule(question.problem, reporter=listener, effort=None if effort is None else Tries(effort))
    finally:
        listener.close()
    return tables.View(question, plan, prices, tuple(missed), tuple(listener.attempts))


class Listener:
    """Hears of every way of planning that is tried. Whoever waits for many pods at a terminal sees which it is."""

    def __init__(self, pods: int) -> None:
        self.attempts: list[Attempt] = []
        self._pods = pods
        self._shown = pods >= _MANY and sys.stderr.isatty()

    def trying(self, planner: str) -> None:
        """A way of planning begins."""
        if self._shown:
            click.echo(f"{_FRESH_LINE}planning for {self._pods} pods: {planner}", nl=False, err=True)

    def tried(self, attempt: Attempt) -> None:
        """It has come to its end."""
        self.attempts.append(attempt)

    def close(self) -> None:
        """The plan is there: what was shown goes."""
        if self._shown:
            click.echo(_FRESH_LINE, nl=False, err=True)


# -- what wishes cost ----------------------------------------------------------------------------------------------------


def _draw_costs(view: tables.View) -> None:
    found, rest = _costs(view)
    tables.section("What wishes cost", tables.costs_table(view, found))
    if not found:
        click.echo("\nNo pod has a preference, a spread constraint or an affinity that could cost anything")
    if rest:
        click.echo(f"and {rest} more that were not looked at; --explain POD --costs does so for one pod")


def _costs(view: tables.View) -> tuple[list[alternatives.Cost], int]:
    """What wishes cost, those of large workloads first; and how many were not priced, as that would take too long."""
    problem = view.question.problem
    wished = alternatives.wishes(problem.pods)
    most = alternatives.affordable(len(problem.pods))
    return list(alternatives.costs(problem, view.plan, wished[:most])), len(wished[most:])


def _costs_data(view: tables.View) -> dict[str, Any]:
    """What wishes cost; and for each of the first claims, why it is bought as it is."""
    problem, plan = view.question.problem, view.plan
    found, rest = _costs(view)
    return {
        "costs": [data.cost_data(each) for each in found],
        "costsNotLookedAt": rest,
        "claims": [
            {
                **data.claim_data(view, claim),
                **(
                    {"why": data.purchase_data(alternatives.purchase(problem, plan, claim))} if n < _TOLD_CLAIMS else {}
                ),
            }
            for n, claim in enumerate(plan.claims)
        ],
    }


# -- the bound -----------------------------------------------------------------------------------------------------------


def _bound_of(view: tables.View) -> Bound:
    return bound(view.question.problem, placed(view.plan))


def _draw_bound(least: Bound, view: tables.View) -> None:
    plan = view.plan
    if not placed(plan):
        click.echo("\nNo pod is placed, so there is no price to compare with a bound.")
        return
    gap = least.gap(plan.price)
    far = "" if gap is None else f"; this plan is {gap:.1%} above that"
    placing = "that places the same pods " if plan.refusals or plan.not_attempted else ""
    click.echo(f"\n{output.bold(f'No plan {placing}costs less than {tables.money(least.price)} $/h{far}')}")
    if least.dropped:
        click.echo(f"  not counted, so the true least may be higher: {', '.join(least.dropped)}")
    for line in _why_far(least, view):
        click.echo(f"  {line}")
    if least.method == "climb" and not least.exact:
        click.echo("  found without a solver; pip install 'joiner[optimize]' may find a higher one")


def _why_far(least: Bound, view: tables.View) -> Iterator[str]:
    """What decides before prices do, where the plan is far from the bound: found out by planning without it."""
    problem, plan = view.question.problem, view.plan
    gap = least.gap(plan.price)
    if gap is None or gap < _FAR:
        return
    better = alternatives.best_order(problem, plan, _TRIED_POOLS)
    if better is not None:
        told = f"NodePools are asked by weight, the highest first; {explainpod.BY_NAME}"
        yield f"{told}; with {better[0]} asked first a plan costs {_priced(least, better[1])}"
    for said, question in (
        ("without preferences", alternatives.without_preferences(problem)),
        ("without topology spread", alternatives.without_spread(problem)),
    ):
        loose = alternatives.compared(question, plan)
        if loose is not None and loose < plan.price:
            yield f"{said} a plan costs {_priced(least, loose)}"


def _priced(least: Bound, price: float) -> str:
    gap = least.gap(price)
    return f"{tables.money(price)} $/h" + ("" if gap is None else f", {gap:.1%} above the bound")


def _bound_data(view: tables.View) -> dict[str, Any]:
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
            # The parts and this, less that, are the bound.
            "wholeNodes": least.nodes,
            "roomThatIsThere": least.surplus,
        }
    }
