"""The one constraint that keeps a pod out: found by lifting one after the other and asking again."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import Final

from joiner.model.meta import Value, replace
from joiner.model.pod import Pod
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.report.suggestions import Spelling
from joiner.scheduling.schedule import schedule
from joiner.scheduling.whatif.aftermath import settled
from joiner.scheduling.whatif.constraints import REMOVE, Alike, Constraint, Lift, constraints, without

SMALL: Final = 60
"""Up to so many pods the whole question is asked again; beyond that, what the plan left of it."""
VERIFIED: Final = 2_000
"""Up to so many pods what was found that way is held against the whole question as well."""
_LIFTED_MAX: Final = 64
_PAIRED_MAX: Final = 12
_HINTS_MAX: Final = 3
_ASKED_MAX: Final = 130
"""How often the question may be asked again."""
_USUAL: Final = 24
"""Where pods have more constraints than so many, a question takes as much longer, and is asked as much less often."""


class Blame(Value):
    """Constraints without which the pod has a place. Mostly there is only one; if there are two, neither alone suffices."""

    constraints: tuple[Constraint, ...]
    hint: str = ""
    """What was probably meant, where something looks mistyped."""

    def __str__(self) -> str:
        said = " and ".join(f"the {each.says} of {each.object}" for each in self.constraints)
        return f"{said}{f' ({self.hint})' if self.hint else ''}"


class LiftedVerdict(Value):
    """What keeps a pod out."""

    blames: tuple[Blame, ...] = ()
    """Each of them suffices, the pod's own demands first; those that look like a slip of the pen before all others."""
    on_the_plan: bool = False
    """Whether the other pods were left where the plan has them, as there are very many; else all was planned anew."""
    cut_short: bool = False
    """Whether not everything was tried that may keep the pod out, as there is very much of it."""


def blame(problem: Problem, plan: Plan, name: str) -> LiftedVerdict:
    """What keeps a pod (`namespace/name`) out that a plan refuses: every single constraint whose lifting would place it.

    Where no single one does, pairs are tried. Constraints are lifted for all pods like it at once.
    """
    pod = next(each for each in problem.pods if each.key == name)
    question, on_the_plan = _question(problem, plan, pod)
    hard = [each for each in constraints(problem, pod) if each.constraint.hard]
    asks = _asks(question)
    lifts = hard[: min(_LIFTED_MAX, asks)]
    found: list[tuple[Lift, ...]] = [(each,) for each in lifts if _placed(without(question, (each,)), name)]
    if not found:
        pairs = islice(combinations(_likely(problem, plan, name, lifts), 2), asks - len(lifts))
        found = [pair for pair in pairs if _placed(without(question, pair), name)]
    if on_the_plan and len(problem.pods) <= VERIFIED:
        found = [lifts for lifts in found if _placed(without(problem, lifts), name)]
        on_the_plan = False
    return LiftedVerdict(blames=_ordered(problem, found), on_the_plan=on_the_plan, cut_short=len(lifts) < len(hard))


def lifted(problem: Problem, name: str, blamed: Blame) -> Problem:
    """The question without what is blamed."""
    pod = next(each for each in problem.pods if each.key == name)
    meant = {(each.object, each.field, each.says) for each in blamed.constraints}
    told = ((each, each.constraint) for each in constraints(problem, pod))
    return without(problem, [each for each, its in told if (its.object, its.field, its.says) in meant])


def _asks(question: Problem) -> int:
    """How often a question may be asked again: the more its pods say, the longer it takes."""
    most = max(sum(1 for _ in constraints(question, pod)) for pod in question.pods)
    return max(2, _ASKED_MAX * _USUAL // max(_USUAL, most))


def _placed(question: Problem, name: str) -> bool:
    plan = schedule(question)
    return name not in plan.not_attempted and all(each.pod != name for each in plan.refusals)


def _question(problem: Problem, plan: Plan, pod: Pod) -> tuple[Problem, bool]:
    """What is asked again and again: small enough, and with the pod refused in it."""
    if len(problem.pods) <= SMALL:
        return problem, False
    rest = settled(problem, plan)
    like = Alike(pod)
    few = replace(rest, pods=(pod, *islice((each for each in rest.pods if each is not pod and like(each)), SMALL)))
    return (problem, False) if _placed(few, pod.key) else (few, True)


def _likely(problem: Problem, plan: Plan, name: str, lifts: Sequence[Lift]) -> Iterator[Lift]:
    """The constraints that pairs are made of: those that the rules spoke of which said no come first."""
    rules = {reason.rule for each in plan.refusals if each.pod == name for reason in each.reasons}
    first = [each for each in lifts if each.constraint.rule in rules]
    return islice((*first, *(each for each in lifts if each not in first)), _PAIRED_MAX)


def _ordered(problem: Problem, found: Iterable[tuple[Lift, ...]]) -> tuple[Blame, ...]:
    spelling = Spelling(problem)
    blames = []
    for lifts in found:
        blamed = tuple(_suited(spelling, each.constraint) for each in lifts)
        hints = [spelling.hint(wanted) for each in blamed for wanted in each.wanted]
        hints += [spelling.resource(each.resource) for each in blamed if each.change == REMOVE and each.resource]
        told = islice(dict.fromkeys(filter(None, hints)), _HINTS_MAX)
        blames.append(Blame(constraints=blamed, hint="; ".join(told)))
    return tuple(sorted(blames, key=lambda each: not each.hint))


def _suited(spelling: Spelling, constraint: Constraint) -> Constraint:
    """If no node has the resource at all, the request should be removed: lowering it does not help."""
    unknown = constraint.resource and not spelling.has(constraint.resource)
    return replace(constraint, change=REMOVE) if unknown else constraint
