"""What is kept from one question for the next changes no plan."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from tests.differential import generate

from joiner.model.meta import replace
from joiner.offline.scenario.reader import read
from joiner.scheduling.kept import Kept
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import first_plan, schedule

FAMILIES = (
    "existing",
    "affinity",
    "anti-affinity",
    "zone-spread",
    "host-spread",
    "deleting",
    "mixed",
    "in-flight",
    "volumes",
)
ENDING = datetime(2030, 1, 1, tzinfo=UTC)


def asked(family: str, seed: int) -> Problem:
    return read(json.dumps(generate.generate(family, seed)).encode(), Path()).problem


def in_a_row(problem: Problem, dice: Random) -> Iterator[Problem]:
    """Questions that differ a little: pods that came, went, run by now or are being deleted, and nodes that went."""
    yield problem
    for _ in range(6):
        pods = tuple(pod for pod in problem.pods if dice.random() < 0.8)
        nodes = tuple(node for node in problem.nodes if dice.random() < 0.8)
        bound = [pod for pod in problem.bound if dice.random() < 0.8]
        bound += [
            replace(pod, spec=replace(pod.spec, node_name=dice.choice(problem.nodes).name))
            for pod in problem.pods
            if problem.nodes and dice.random() < 0.3
        ]
        if bound and dice.random() < 0.5:
            bound[0] = replace(bound[0], metadata=replace(bound[0].metadata, deletion_timestamp=ENDING))
        dice.shuffle(bound)
        yield replace(problem, pods=pods, nodes=nodes, bound=tuple(bound))


@pytest.mark.parametrize("family", FAMILIES)
def test_plans_are_the_same_with_what_was_kept(family: str) -> None:
    for seed in range(40, 44):
        kept = Kept()
        for question in in_a_row(asked(family, seed), Random(seed)):
            assert schedule(question, kept=kept) == schedule(question)
            assert first_plan(question, kept) == first_plan(question)


def test_what_a_question_does_not_ask_for_is_forgotten() -> None:
    kept, made = Kept(), []
    first, second = object(), object()

    def make(thing: object) -> int:
        made.append(thing)
        return len(made)

    assert kept.each("kind", [first, second], make) == [1, 2]
    assert kept.each("kind", [second], make) == [2]
    assert kept.each("kind", [first, second], make) == [3, 2]
    assert kept.each("other kind", [second], make) == [4]


def test_a_state_begins_anew_under_another_key() -> None:
    kept = Kept()
    first = kept.state("counts", frozenset("a"), list[int])

    assert kept.state("counts", frozenset("a"), list[int]) is first
    assert kept.state("counts", frozenset("b"), list[int]) is not first
