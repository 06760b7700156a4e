"""The planner that controllers share."""

import asyncio

from tests.builders import node_pool, pod, pool_option, problem
from tests.unit.controllers.test_launchretries import Hands

from joiner.controllers.planning import Planner, inline
from joiner.observe.metrics import Metrics
from joiner.scheduling.effort import Effort, Tries
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule

PROBLEM = problem([pod()], pool_option(node_pool()))


def test_problem_and_effort_are_handed_to_where_plans_are_made() -> None:
    asked: list[tuple[Problem, Effort | None]] = []

    async def elsewhere(problem: Problem, effort: Effort | None) -> Plan:
        asked.append((problem, effort))
        return Plan()

    effort = Tries(1)
    plan = asyncio.run(Planner("c", compute=elsewhere, metrics=Metrics(), clock=Hands()).plan(PROBLEM, effort))

    assert (plan, asked) == (Plan(), [(PROBLEM, effort)])


def test_inline_gives_the_plan_of_schedule() -> None:
    planner = Planner("c", compute=inline, metrics=Metrics(), clock=Hands())

    assert asyncio.run(planner.plan(PROBLEM)) == schedule(PROBLEM)
