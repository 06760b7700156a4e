"""What is blamed for a refusal is to blame: without it the pod has a place."""

import json
from pathlib import Path

from hypothesis import Phase, given, settings
from tests.differential.terms import Json
from tests.property.advice import edited
from tests.strategies import scenarios

from joiner.offline.scenario.reader import read
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule
from joiner.scheduling.whatif.aftermath import settled
from joiner.scheduling.whatif.blockers import blame, lifted
from joiner.scheduling.whatif.constraints import constraints, without

# A whole scenario takes minutes to shrink; a failure prints it as it was drawn.
_NOT_SHRUNK = (Phase.explicit, Phase.generate)
SOME = settings(max_examples=120, phases=_NOT_SHRUNK)
FEW = settings(max_examples=50, phases=_NOT_SHRUNK)


def question(scenario: Json) -> Problem:
    return read(json.dumps(scenario).encode(), Path()).problem


def refused(plan: Plan) -> set[str]:
    return {each.pod for each in plan.refusals}


@SOME
@given(scenarios())
def test_without_what_is_blamed_the_pod_is_placed_and_so_it_is_when_users_do_what_is_advised(scenario: Json) -> None:
    problem = question(scenario)
    plan = schedule(problem)

    for name in sorted(refused(plan))[:2]:
        for number, each in enumerate(blame(problem, plan, name).blames[:6]):
            assert number >= 4 or name not in refused(schedule(lifted(problem, name, each)))
            assert name not in refused(schedule(question(edited(scenario, name, each.constraints)))), str(each)


@FEW
@given(scenarios())
def test_whatever_helps_alone_is_blamed(scenario: Json) -> None:
    problem = question(scenario)
    plan = schedule(problem)

    for name in sorted(refused(plan))[:1]:
        (pod,) = (each for each in problem.pods if each.key == name)
        helpful = {
            lift.constraint
            for lift in constraints(problem, pod)
            if name not in refused(schedule(without(problem, (lift,))))
        }
        blamed = {each.constraints for each in blame(problem, plan, name).blames}
        assert not helpful or blamed == {(each,) for each in helpful}


@FEW
@given(scenarios())
def test_every_refusal_ends_with_no_type_left_or_says_which_rule_it_was(scenario: Json) -> None:
    for refusal in schedule(question(scenario)).refusals:
        for reason in refusal.reasons:
            counts = [stage.left for stage in reason.funnel]
            assert counts == sorted(counts, reverse=True)
            assert reason.rule
            assert reason.message


@FEW
@given(scenarios())
def test_afterwards_nobody_waits_but_who_was_refused(scenario: Json) -> None:
    problem = question(scenario)
    plan = schedule(problem)

    rest = settled(problem, plan)

    assert {pod.key for pod in rest.pods} == refused(plan)
    assert len(rest.nodes) == len(problem.nodes) + len(plan.claims)
