"""The story of a single pod: where it goes and why that was bought, or everything that keeps it out."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from joiner.admission.problem import nearest
from joiner.catalog.explain import place, price_text
from joiner.catalog.market import Option
from joiner.cli import output
from joiner.cli.plan import data
from joiner.cli.plan.tables import View, cost_text, counted, money, short
from joiner.model import resources
from joiner.offline.manifests import Unsound
from joiner.scheduling.plan import PlannedClaim, Refusal, RefusalReason
from joiner.scheduling.whatif.alternatives import Cost, PurchaseReasons, Rival, costs, purchase, wishes
from joiner.scheduling.whatif.blockers import LiftedVerdict, blame
from joiner.scheduling.whatif.constraints import Alike
from joiner.scheduling.whatif.existingnodes import objections

_SHOWN_OPTIONS: Final = 10
_SHOWN_NODES: Final = 10
_SHOWN_FUNNELS: Final = 3
_SHOWN_HEEDED: Final = 3
_PRICED_WISHES: Final = 20
BY_NAME: Final = "NodePools of equal weight are asked by name, the last in the alphabet first"


@dataclass(frozen=True)
class PodExplanation:
    """Everything there is to tell about one pod."""

    pod: str
    node: str = ""
    """The node it goes to, if that is there already."""
    claim: PlannedClaim | None = None
    purchase: PurchaseReasons | None = None
    refusal: Refusal | None = None
    verdict: LiftedVerdict | None = None
    given_up: tuple[str, ...] = ()
    """Wishes of it that could not be kept."""
    nodes: tuple[RefusalReason, ...] = ()
    """Why nodes that are there do not take it."""
    costs: tuple[Cost, ...] = ()


def explain(view: View, name: str, form: str, *, priced: bool) -> None:
    """Tell of a single pod. `priced`: also what each of its wishes costs, for which everything is planned again."""
    story = _story(view, _found(view, name), priced)
    if form == output.TABLE:
        for line in _told(view, story):
            click.echo(line)
    else:
        output.data(_data(view, story), form)


def _found(view: View, name: str) -> str:
    known = [pod.key for pod in view.question.problem.pods]
    found = _called(name, known)
    if found is not None:
        return found
    others = view.question.others
    other = _called(name, others)
    if other is not None:
        raise Unsound(f"{short(other)} is not waiting for a node: it {others[other]}")
    raise Unsound(f"no pod {name} is waiting for a node{_hint(view, name, known)}")


def _called(name: str, known: Collection[str]) -> str | None:
    """The one that is called so: in the namespace that is named, in the default one, or in the only one that has it."""
    wanted = name if "/" in name else f"default/{name}"
    if wanted in known:
        return wanted
    alike = [each for each in known if each.endswith(f"/{name}")] if "/" not in name else []
    if len(alike) > 1:
        raise Unsound(f"there are several pods {name}: {', '.join(alike)}; name one with its namespace")
    return alike[0] if alike else None


def _hint(view: View, name: str, known: Sequence[str]) -> str:
    """A pod of the workload of that name, in whichever namespace; else the pod whose name looks most alike."""
    namespace, _, plain = name.rpartition("/")
    for pod, (kind, where, workload) in view.question.workloads.items():
        if workload == plain and where == (namespace or where):
            return f": it is a {kind}; did you mean {short(pod)}?"
    by_name = {pod.partition("/")[2]: pod for pod in reversed(known)}
    near = nearest(name, known) if namespace else by_name.get(nearest(name, by_name) or "")
    return f"; did you mean {short(near)}?" if near else ""


def _story(view: View, name: str, priced: bool) -> PodExplanation:
    problem, plan = view.question.problem, view.plan
    lost = tuple(wish for each in plan.given_up if name in each.pods for wish in each.wishes)
    for node, pods in plan.placements.items():
        if name in pods:
            return PodExplanation(pod=name, node=node, given_up=lost, costs=_costs(view, name, priced))
    claim = next((each for each in plan.claims if name in each.pods), None)
    refusal = next((each for each in plan.refusals if each.pod == name), None)
    return PodExplanation(
        pod=name,
        claim=claim,
        given_up=lost,
        purchase=purchase(problem, plan, claim) if claim is not None else None,
        refusal=refusal,
        verdict=blame(problem, plan, name) if refusal is not None else None,
        nodes=objections(problem, plan, name) if problem.nodes else (),
        costs=_costs(view, name, priced),
    )


def _costs(view: View, name: str, priced: bool) -> tuple[Cost, ...]:
    if not priced:
        return ()
    problem = view.question.problem
    (pod,) = (each for each in problem.pods if each.key == name)
    like = Alike(pod)
    pods = (pod, *(each for each in problem.pods if each is not pod and like(each)))
    return tuple(costs(problem, view.plan, wishes(pods)[:_PRICED_WISHES]))


# -- for people ----------------------------------------------------------------------------------------------------------


def _told(view: View, story: PodExplanation) -> Iterator[str]:
    own, workload = f"Pod {short(story.pod)}", view.workload(story.pod)
    subject = own if workload == own else f"{own} ({workload})"
    if story.node:
        yield output.bold(f"{subject} goes to node {story.node}, which is there already")
    elif story.claim is not None and story.purchase is not None:
        yield from _bought(view, subject, story.claim, story.purchase)
    elif story.refusal is not None:
        yield output.bold(f"{subject} {'was never tried' if story.refusal.ignored else 'finds no place'}")
        yield from _table(("WHO", "RULE", "WHY"), [(r.object, r.rule, str(r)) for r in story.refusal.reasons])
        yield from _funnels(story.refusal)
    else:
        yield output.bold(f"{subject} was not tried: the effort was spent before its turn")
    if story.given_up:
        yield f"it gave up: {'; '.join(story.given_up)}"
    yield from _nodes(story.nodes)
    if story.verdict is not None:
        yield from _remedy(story.verdict)
    if story.costs:
        yield f"\n{output.bold('What its wishes cost')}"
        rows = [(each.constraint.says, cost_text(each.hourly)) for each in story.costs]
        yield from _table(("WISH", "$/h"), rows)


def _table(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[str]:
    columns = tuple(output.TableColumn(name, right=name in ("$/h", "TYPES", "NODES", "WEIGHT")) for name in names)
    return output.plain(output.Table(columns, tuple(rows)))


def _funnels(refusal: Refusal) -> Iterator[str]:
    """The types of each pool through the rules; pools of which all is said already are left out."""
    long = [reason for reason in refusal.reasons if len(reason.funnel) > 1]
    for reason in long[:_SHOWN_FUNNELS]:
        yield f"\n{output.bold(f'Types of {reason.object} that are left')}"
        yield from _table(("TYPES", "AFTER"), [(str(stage.left), stage.after) for stage in reason.funnel])
    if len(long) > _SHOWN_FUNNELS:
        yield f"and {counted(len(long) - _SHOWN_FUNNELS, 'pool')} more; -o json tells of all"


def _nodes(reasons: Sequence[RefusalReason]) -> Iterator[str]:
    """Nodes with the same objection are one row."""
    if not reasons:
        return
    groups: dict[tuple[str, str], list[str]] = {}
    for reason in reasons:
        groups.setdefault((reason.rule, reason.message), []).append(reason.object.removeprefix("Node "))
    yield f"\n{output.bold('Why not a node that is there')}"
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [
        (str(len(names)), rule, message, ", ".join(names[:2]) + (" …" if len(names) > 2 else ""))
        for (rule, message), names in ordered[:_SHOWN_NODES]
    ]
    yield from _table(("NODES", "RULE", "WHY", "WHICH"), rows)
    rest = ordered[_SHOWN_NODES:]
    if rest:
        yield f"and {counted(sum(len(names) for _, names in rest), 'node')} more; -o json tells of each"


_NOT_ALL: Final = "; not all of its constraints were tried, as there are very many"


def _remedy(verdict: LiftedVerdict) -> Iterator[str]:
    if not verdict.blames:
        yield "\nNo single change was found that would let it in" + (_NOT_ALL if verdict.cut_short else "") + "."
        return
    many = len(verdict.blames) > 1
    single = len(verdict.blames[0].constraints) == 1
    title = "What would let it in" + (", each on its own" if many and single else "") + ("" if single else ", together")
    yield f"\n{output.bold(title)}"
    rows = [
        (each.object, each.says, each.change + (f": {blamed.hint}" if blamed.hint and number == 0 else ""))
        for blamed in verdict.blames
        for number, each in enumerate(blamed.constraints)
    ]
    yield from _table(("WHO", "SAYS", "CHANGE"), rows)
    how = "with the other pods where the plan has them" if verdict.on_the_plan else "by planning again without it"
    yield f"found out {how}" + (_NOT_ALL if verdict.cut_short else "")


def _bought(view: View, subject: str, claim: PlannedClaim, why: PurchaseReasons) -> Iterator[str]:
    first = claim.options[0]
    yield output.bold(f"{subject} goes to a new node of NodePool {claim.nodepool}")
    yield f"  bought as:   {first.name} {place(first.offering)} at {price_text(claim.price)} $/h"
    yield f"  why this:    {_why_type(claim, why)}"
    yield f"  runner-up:   {_runner_up(claim, why.runner_up)}"
    yield f"  why there:   {_why_pool(claim, why)}"
    yield f"  shared with: {counted(len(claim.pods) - 1, 'other pod')}"
    there = view.allocatable(claim)
    amounts = ", ".join(
        f"{name} {resources.plain(name, amount)} of {resources.plain(name, there.get(name, 0))}"
        for name, amount in sorted(claim.requests.items())
    )
    yield f"  asked for:   {amounts}"
    yield f"  must be:     {claim.requirements}"
    if note := _min_values(claim):
        yield f"  minValues:   {note}"
    if why.rivals:
        yield f"\n{output.bold('What other pools would have asked for the same pods')}"
        yield from _table(("NODEPOOL", "WEIGHT", "$/h", "WHY NOT"), [_rival(each) for each in why.rivals])
    options = claim.options[:_SHOWN_OPTIONS]
    yield f"\n{output.bold(f'Types that would do ({len(claim.options)}), cheapest first')}"
    rows = [(each.name, place(each.offering), price_text(each.offering.cost)) for each in options]
    yield from _table(("TYPE", "BOUGHT AS", "$/h"), rows)


def _why_type(claim: PlannedClaim, why: PurchaseReasons) -> str:
    if claim.reservations:
        return f"reservation {claim.reservations[0]} is paid for already"
    told = [f"the cheapest of {counted(why.types, 'type')} that would do"]
    if why.cheaper:
        parts = ", ".join(f"{count} {reason}" for reason, count in why.cheaper.items())
        told.append(f"{counted(sum(why.cheaper.values()), 'type')} of the pool cost less: {parts}")
    told += [
        f"the {each.says} of Pod {short(each.pod)} excludes what costs {price_text(each.price)} $/h"
        for each in why.heeded[:_SHOWN_HEEDED]
    ]
    return "; ".join(told)


def _runner_up(claim: PlannedClaim, second: Option | None) -> str:
    if second is None:
        return "none; no other type would do"
    return f"{second.name} {place(second.offering)}, {money(second.offering.cost - claim.price)} $/h more"


def _why_pool(claim: PlannedClaim, why: PurchaseReasons) -> str:
    able = [rival for rival in why.rivals if rival.price is not None]
    if not why.rivals:
        return "there is no other NodePool"
    if not able:
        return "no other NodePool takes these pods"
    before = [rival for rival in able if (rival.weight, rival.nodepool) > (why.weight, claim.nodepool)]
    if before:
        first = before[0]
        return (
            f"NodePool {first.nodepool} is asked before it and would take these pods alone, at {money(first.price or 0.0)}"
            " $/h; all pods together decide"
        )
    if all(rival.weight < why.weight for rival in able):
        return f"its weight of {why.weight} goes before the others that would do"
    best = min(able, key=lambda rival: (rival.price or 0.0, rival.nodepool))
    difference = claim.price - (best.price or 0.0)
    cheaper = f"; NodePool {best.nodepool} would cost {money(difference)} $/h less, but is asked later"
    return f"{BY_NAME}, and its name is the last of those that would do{cheaper if difference > 0 else ''}"


def _min_values(claim: PlannedClaim) -> str:
    if claim.min_values_relaxed:
        return "lowered to what there is, as the policy BestEffort allows"
    if claim.reservations and any(each.min_values is not None for each in claim.requirements.values()):
        return "counted before the reservation was chosen: what is paid for needs no alternatives"
    return ""


def _rival(rival: Rival) -> tuple[str, str, str, str]:
    return (rival.nodepool, str(rival.weight), "" if rival.price is None else money(rival.price), rival.reason)


# -- for machines --------------------------------------------------------------------------------------------------------


def _data(view: View, story: PodExplanation) -> dict[str, Any]:
    found: dict[str, Any] = {"pod": story.pod, "workload": view.workload(story.pod)}
    if story.node:
        found["node"] = story.node
    elif story.claim is not None and story.purchase is not None:
        found["claim"] = data.claim_data(view, story.claim)
        found["why"] = data.purchase_data(story.purchase)
    elif story.refusal is not None and story.verdict is not None:
        found["refusal"] = data.refusal_data(view, story.refusal)
        found["wouldHelp"] = data.verdict_data(story.verdict)
    else:
        found["notAttempted"] = True
    if story.given_up:
        found["givenUp"] = list(story.given_up)
    if story.nodes:
        found["existingNodes"] = [data.reason_data(each) for each in story.nodes]
    if story.costs:
        found["costs"] = [data.cost_data(each) for each in story.costs]
    return found
