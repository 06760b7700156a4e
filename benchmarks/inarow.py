"""How long plans take that are asked for one after the other: a pass of consolidation asks what happens if a node goes, again and
again, and each question is nearly the one before.
"""

import time
from collections.abc import Callable
from typing import Any

from benchmarks import passes
from joiner.disruption.simulate import question_without
from joiner.disruption.situation import Situation
from joiner.scheduling.kept import Kept
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import first_plan, schedule

QUESTION = "500 plans in a row, a node less in each: how long do they take with and without what the last one prepared?"
QUESTIONS = 500
SIZES = ((100, 1_500), (500, 7_500))


def questions(situation: Situation, count: int) -> list[Problem]:
    """What happens if one of the nodes goes, for one after the other."""
    nodes = [each for each in situation.snapshot.nodes if each.claim is not None]
    return [
        question_without(
            [nodes[number % len(nodes)]],
            situation.snapshot,
            situation.options,
            storage=situation.storage,
            policy=situation.rules.policy,
            vocabulary=situation.rules.vocabulary,
        )
        for number in range(count)
    ]


def _seconds(plan: Callable[[Problem, Kept | None], Plan], asked: list[Problem], kept: Kept | None) -> float:
    began = time.process_time()
    for question in asked:
        plan(question, kept)
    return round(time.process_time() - began, 3)


def run() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for nodes, pods in SIZES:
        asked = questions(passes.large(nodes, pods)(), QUESTIONS)
        first_plan(asked[0])
        for name, plan in (("quick", first_plan), ("thorough", lambda one, kept: schedule(one, kept=kept))):
            alone, row = _seconds(plan, asked, None), _seconds(plan, asked, Kept())
            found[f"{nodes} nodes, {pods} pods, {name}"] = {"each from nothing, s": alone, "in a row, s": row}
    return found


def lines(kept: dict[str, Any]) -> list[str]:
    """The part of the page about plans in a row."""
    table = ["| cluster and way | each from nothing, s | in a row, s |", "| --- | ---: | ---: |"]
    table += [
        f"| {name} | {' | '.join(str(number) for number in row.values())} |" for name, row in kept["numbers"].items()
    ]
    return table
