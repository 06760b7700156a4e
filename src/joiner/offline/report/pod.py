"""`PodReport`: everything there is to say about a single pod of a plan, computed once."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from joiner.admission.problem import nearest
from joiner.offline.ignored import listed
from joiner.offline.manifests import Unsound
from joiner.offline.problem import PlanQuestion, short
from joiner.scheduling.plan import Plan, PlannedClaim, Refusal, RefusalReason
from joiner.scheduling.whatif.alternatives import Cost, PurchaseReasons, costs, purchase, wishes
from joiner.scheduling.whatif.blockers import LiftedVerdict, blame
from joiner.scheduling.whatif.constraints import Alike
from joiner.scheduling.whatif.existingnodes import objections

_PRICED_WISHES: Final = 20


@dataclass(frozen=True)
class PodReport:
    """Where a pod goes and why, or what keeps it out."""

    pod: str
    node: str = ""
    """The existing node it goes to."""
    claim: PlannedClaim | None = None
    purchase: PurchaseReasons | None = None
    refusal: Refusal | None = None
    verdict: LiftedVerdict | None = None
    given_up: tuple[str, ...] = ()
    """Preferences of it that were dropped."""
    nodes: tuple[RefusalReason, ...] = ()
    """Why existing nodes do not take it."""
    costs: tuple[Cost, ...] = ()


def pod_report(question: PlanQuestion, plan: Plan, name: str, *, priced: bool) -> PodReport:
    """Find out about the pod of that name. `priced`: also what each of its preferences costs, by planning again."""
    problem = question.problem
    pod = _found(question, name)
    lost = tuple(wish for dropped in plan.given_up if pod in dropped.pods for wish in dropped.wishes)
    prices = _costs(question, plan, pod) if priced else ()
    for node, pods in plan.placements.items():
        if pod in pods:
            return PodReport(pod=pod, node=node, given_up=lost, costs=prices)
    claim = next((claim for claim in plan.claims if pod in claim.pods), None)
    refusal = next((refusal for refusal in plan.refusals if refusal.pod == pod), None)
    return PodReport(
        pod=pod,
        claim=claim,
        given_up=lost,
        purchase=purchase(problem, plan, claim) if claim is not None else None,
        refusal=refusal,
        verdict=blame(problem, plan, pod) if refusal is not None else None,
        nodes=objections(problem, plan, pod) if problem.nodes else (),
        costs=prices,
    )


def _found(question: PlanQuestion, name: str) -> str:
    known = [pod.key for pod in question.problem.pods]
    found = _called(name, known)
    if found is not None:
        return found
    other = _called(name, question.others)
    if other is not None:
        raise Unsound(f"{short(other)} is not waiting for a node: it {question.others[other]}")
    raise Unsound(f"no pod {name} is waiting for a node{_hint(question, name, known)}")


def _called(name: str, known: Collection[str]) -> str | None:
    """The pod of that name: in the namespace that is given, in the default one, or in the only one that has it."""
    wanted = name if "/" in name else f"default/{name}"
    if wanted in known:
        return wanted
    alike = [pod for pod in known if pod.endswith(f"/{name}")] if "/" not in name else []
    if len(alike) > 1:
        raise Unsound(f"there are several pods {name}: {', '.join(alike)}; name one with its namespace")
    return alike[0] if alike else None


def _hint(question: PlanQuestion, name: str, known: Sequence[str]) -> str:
    """A pod of the workload of that name, in whichever namespace; else the pod whose name looks most alike."""
    namespace, _, plain = name.rpartition("/")
    for pod, (kind, where, workload) in question.workloads.items():
        if workload == plain and where == (namespace or where):
            return f": it is a {kind}; did you mean {short(pod)}?"
    by_name = {pod.partition("/")[2]: pod for pod in reversed(known)}
    near = nearest(name, known) if namespace else by_name.get(nearest(name, by_name) or "")
    if near:
        return f"; did you mean {short(near)}?"
    return f"; there are {listed(map(short, known))}" if known else ""


def _costs(question: PlanQuestion, plan: Plan, name: str) -> tuple[Cost, ...]:
    problem = question.problem
    (pod,) = (pod for pod in problem.pods if pod.key == name)
    like = Alike(pod)
    pods = (pod, *(other for other in problem.pods if other is not pod and like(other)))
    return tuple(costs(problem, plan, wishes(pods)[:_PRICED_WISHES]))
